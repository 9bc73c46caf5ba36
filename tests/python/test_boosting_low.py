"""Boosting without scores (squared loss, sparse Y, relabel=False) against the way with scores."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor
from pyrpo._native import Features, Projection
from pyrpo._native_boost import Boost

ROOT = Path(__file__).parents[2]
OUTPUTS = 256  # as many as the library asks for


def problem(seed, n, d=OUTPUTS, ones=False, density=0.02):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (n, 4)) / 4.0
    Y = (rng.random((n, d)) < density) * (1.0 if ones else rng.normal(size=(n, d)))
    Y[:, 1] += (X[:, 0] > 1) * 1.0
    Y[rng.random(n) < 0.1] = 0.0
    return X, Y


def pair(Y, **options):
    """Sparse Y takes the way without scores, dense Y the other one."""
    options = {"relabel": False, "random_state": 0, "early_stopping": False} | options
    return [
        (GradientBoostingRegressor(**options), sparse.csr_array(Y)),
        (GradientBoostingRegressor(**options), Y),
    ]


def check_close(a, b, X):
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(a.train_score_, b.train_score_, rtol=1e-4, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.integers(1, 12),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["mean", "newton"]),
    st.sampled_from([0.5, 1.0]),
    st.integers(1, 4),
)
def test_agrees_with_scores(seed, n, rounds, ones, weighted, leaf, subsample, depth):
    X, Y = problem(seed, n, ones=ones)
    rng = np.random.default_rng(seed)
    weight = np.append(1.0, rng.integers(0, 3, n - 1)) if weighted else None
    (low, S), (high, _) = pair(
        Y, n_estimators=rounds, leaf=leaf, subsample=subsample, max_depth=depth
    )
    low.fit(X, S, weight)
    high.fit(X, Y, weight)
    check_close(low, high, X)


def test_a_dense_matrix_and_other_projections():
    X, Y = problem(0, 150)
    phi = np.random.default_rng(1).normal(size=(1, OUTPUTS))
    for projection in (phi, "rademacher", "achlioptas", "sparse"):
        (low, S), (high, _) = pair(Y, n_estimators=10, projection=projection)
        check_close(low.fit(X, S), high.fit(X, Y), X)


def test_watched_rows():
    X, Y = problem(2, 300)
    (low, S), (high, _) = pair(Y, n_estimators=30, early_stopping=True, n_iter_no_change=8)
    low.fit(X, S)
    high.fit(X, Y)
    np.testing.assert_allclose(low.validation_score_, high.validation_score_, rtol=1e-6)
    assert low.n_estimators_ == high.n_estimators_
    held = (GradientBoostingRegressor(5, relabel=False, random_state=0) for _ in range(2))
    low, high = (e.fit(X, y, eval_set=(X[:40], y[:40])) for e, y in zip(held, (S, Y), strict=True))
    np.testing.assert_allclose(low.validation_score_, high.validation_score_, rtol=1e-6)


def test_the_losses_are_those_of_predictions():
    X, Y = problem(3, 200)
    (low, S), _ = pair(Y, n_estimators=20, subsample=1.0)
    low.fit(X, S)
    more = pair(Y, n_estimators=19, subsample=1.0)[0][0].fit(X, S)
    expected = ((Y - more.predict(X)) ** 2).mean() / 2
    assert low.train_score_[-1] == pytest.approx(expected, rel=1e-5)


def test_goes_on_with_scores_after_many_rounds():
    X, Y = problem(4, 80)
    rounds = OUTPUTS + 30
    (low, S), (high, _) = pair(Y, n_estimators=rounds, max_depth=1, learning_rate=0.05)
    low.fit(X, S)
    high.fit(X, Y)
    np.testing.assert_allclose(low.train_score_, high.train_score_, rtol=1e-4)


def test_warm_start():
    X, Y = problem(5, 120)
    (once, S), _ = pair(Y, n_estimators=30)
    twice = pair(Y, n_estimators=12, warm_start=True)[0][0].fit(X, S)
    twice.set_params(n_estimators=30).fit(X, S)
    np.testing.assert_array_equal(once.fit(X, S).predict(X), twice.predict(X))


def test_same_bits_for_any_number_of_threads():
    X, Y = problem(6, 5000, density=0.005)
    (one, S), _ = pair(Y, n_estimators=15, early_stopping=True)
    one.fit(X, S)
    for n_jobs in (2, 3):
        more = pair(Y, n_estimators=15, early_stopping=True, n_jobs=n_jobs)[0][0].fit(X, S)
        assert bytes(one._model.dump()) == bytes(more._model.dump())
        np.testing.assert_array_equal(one.train_score_, more.train_score_)
        np.testing.assert_array_equal(one.validation_score_, more.validation_score_)


@pytest.mark.parametrize("leaves", [20, 600])
def test_scores_are_predictions(leaves):
    """To the bit, with leaf numbers of one byte and of two."""
    X = np.random.default_rng(0).normal(size=(1000, 3))
    Y = sparse.csr_array(problem(7, 1000)[1])
    options = {"relabel": 0, "leaf": 1, "max_leaf_nodes": leaves, "seed": 1}
    boost = Boost(options, Features(X, 256, 1), Y, projection=Projection("gaussian", 1))
    boost.run(5)
    rows = np.array([3, 999, 3, 0], dtype=np.int32)
    np.testing.assert_array_equal(boost.scores(rows), boost.model(5).predict(X[rows], 1))


def test_classifier_by_squares():
    X, Y = problem(8, 200, ones=True)
    Y = (Y > 0) * 1
    options = {"loss": "squared", "relabel": False, "random_state": 0, "n_estimators": 15}
    low = GradientBoostingClassifier(**options, scoring="lrap").fit(X, sparse.csr_array(Y))
    high = GradientBoostingClassifier(**options, scoring="lrap").fit(X, Y)
    np.testing.assert_allclose(low.predict_proba(X), high.predict_proba(X), atol=1e-5)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@pytest.mark.skipif(not (ROOT / "bench").is_dir(), reason="the benchmarks are not here")
def test_memory():
    """Scores of these would take 800 MB."""
    command = [sys.executable, ROOT / "bench" / "boosting_memory.py", "--rows", "20000"]
    command += ["--outputs", "10000", "--rounds", "10", "--budget", "100"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
    assert "within 100" in done.stdout
