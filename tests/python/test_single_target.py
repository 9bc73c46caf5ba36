"""Forests of single targets: for each output the forest that it would have alone."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pyrpo
from pyrpo import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

REGRESSORS = {
    RandomForestRegressor: RandomForestRegressor,
    ExtraTreesRegressor: ExtraTreesRegressor,
    RandomForestClassifier: RandomForestRegressor,
    ExtraTreesClassifier: ExtraTreesRegressor,
}


def problem(seed, n=60, d=4):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (n, 5)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.nan_to_num(X) @ rng.normal(size=(5, d)) + rng.normal(size=(n, d))


def alone(kind, X, Y, weight=None, **options):
    """Each output's forest, as a regression on its column."""
    if "Classifier" in kind.__name__:
        options = {"max_features": "sqrt"} | options
    forest = REGRESSORS[kind](strategy="joint", **options)
    return np.column_stack([forest.fit(X, y, weight).predict(X) for y in Y.T])


@pytest.mark.parametrize("kind", REGRESSORS)
@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 50),
    st.integers(2, 5),
    st.integers(1, 12),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
    st.booleans(),
)
def test_is_each_output_alone(kind, seed, n, d, trees, depth, weighted, is_sparse):
    X, Y = problem(seed, n, d)
    weight = np.random.default_rng(seed).integers(1, 4, n) * 1.0 if weighted else None
    classifies = "Classifier" in kind.__name__
    Y = (Y > 0) * 1.0 if classifies else Y
    options = {"n_estimators": trees, "random_state": seed, "max_depth": depth}
    forest = kind(strategy="single_target", **options)
    forest.fit(X, sparse.csr_array(Y) if is_sparse else Y, weight)
    expected = alone(kind, X, Y, weight, **options)
    if classifies:
        p = forest.predict_proba(X)
        assert p.min() >= 0
        assert p.max() <= 1 + 1e-12
        np.testing.assert_allclose(p, expected, atol=1e-12)
    else:
        np.testing.assert_allclose(forest.predict(X), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_kept_and_read(kind, tmp_path):
    X, Y = problem(0, 120)
    Y = (Y > 0) * 1.0 if "Classifier" in kind.__name__ else Y
    forest = kind(12, strategy="single_target", random_state=1, n_jobs=2).fit(X, Y)
    read = getattr(forest, "predict_proba", forest.predict)
    forest.save(tmp_path / "forest.rpo")
    again = pyrpo.load(tmp_path / "forest.rpo")
    for other in (again, pickle.loads(pickle.dumps(forest))):
        np.testing.assert_array_equal(getattr(other, read.__name__)(X), read(X))
    one = kind(12, strategy="single_target", random_state=1).fit(X, Y)
    assert bytes(one._model.dump()) == bytes(forest._model.dump())
    index, values = forest.predict_topk(X, 2)
    np.testing.assert_array_equal(np.take_along_axis(read(X), index, 1), values)
    assert forest.apply(X).shape == (120, 48)
    assert forest.feature_importances_.sum() == pytest.approx(1.0)


def test_importances_are_means():
    X, Y = problem(1, 100, 3)
    options = {"n_estimators": 10, "random_state": 0}
    forest = RandomForestRegressor(strategy="single_target", **options).fit(X, Y)
    parts = [RandomForestRegressor(**options).fit(X, y).feature_importances_ for y in Y.T]
    np.testing.assert_allclose(forest.feature_importances_, np.mean(parts, axis=0), rtol=1e-6)


def test_one_output_and_classes_have_one_forest():
    X, Y = problem(2)
    for kind, y in ((RandomForestRegressor, Y[:, 0]), (RandomForestClassifier, Y.argmax(axis=1))):
        a = kind(5, strategy="single_target", random_state=0).fit(X, y)
        b = kind(5, random_state=0).fit(X, y)
        assert bytes(a._model.dump()) == bytes(b._model.dump())
        assert len(a.estimators_) == 5


def test_verbose():
    pytest.importorskip("tqdm")
    X, Y = problem(3)
    RandomForestRegressor(5, strategy="single_target", verbose=1).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("projection", "gaussian"),
        ("projection", np.ones((1, 4))),
        ("target_score", 0.5),
        ("max_time", 1.0),
        ("oob_score", True),
        ("warm_start", True),
        ("leaf_rows", "all"),
        ("class_weight", "balanced_subsample"),
        ("threshold", "oob"),
    ],
)
def test_refused_by_name(name, value):
    X, Y = problem(4)
    forest = RandomForestClassifier(3, strategy="single_target", **{name: value})
    with pytest.raises(ValueError, match=rf"{name}=.* does not go with strategy='single_target'"):
        forest.fit(X, (Y > 0) * 1)


def test_refused_when_read():
    X, Y = problem(5)
    forest = RandomForestRegressor(3, strategy="single_target").fit(X, Y)
    with pytest.raises(ValueError, match="weights: forests of single targets"):
        forest.weights(X, X)
    with pytest.raises(ValueError, match="importances: forests of single targets"):
        forest.importances(X, Y)
    with pytest.raises(ValueError, match="estimators_: forests of single targets"):
        forest.estimators_  # noqa: B018
    with pytest.raises(ValueError, match="strategy must be 'joint' or 'single_target', got 'both'"):
        RandomForestRegressor(strategy="both").fit(X, Y)
    Y[3, 1] = np.nan
    with pytest.raises(ValueError, match="needs a y without missing entries"):
        RandomForestRegressor(3, strategy="single_target").fit(X, Y)
