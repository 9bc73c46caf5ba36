"""weights(X) of boosting: times the training outputs they are the predictions, to rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor


def problem(seed, n, d=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, (n, 3)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, rng.normal(size=(n, d)) + np.nan_to_num(X[:, :1]), rng.integers(0, 8, (9, 3)) * 1.0


options = st.fixed_dictionaries(
    {
        "n_estimators": st.integers(1, 25),
        "learning_rate": st.sampled_from([0.1, 1.0, "auto"]),
        "subsample": st.sampled_from([0.4, 1.0]),
        "l2": st.sampled_from([0.0, 2.0]),
        "leaf": st.sampled_from(["newton", "mean"]),
        "max_depth": st.integers(1, 4),
        "refit": st.booleans(),
        "early_stopping": st.booleans(),
        "projection": st.sampled_from([None, "gaussian", "subsample"]),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 60), options, st.booleans())
def test_one_weight_for_all_outputs(seed, n, options, weighted):
    """Equation (45), Algorithms 2 and 4."""
    X, Y, T = problem(seed, n)
    weight = np.random.default_rng(seed).integers(0, 3, n) * 1.0 if weighted else None
    if weighted:
        weight[:2] = 1.0
    model = GradientBoostingRegressor(random_state=seed, **options).fit(X, Y, weight)
    W = model.weights(T, X, weight)
    assert W.shape == (9, n)
    np.testing.assert_allclose(W @ Y, model.predict(T), atol=1e-4)
    np.testing.assert_allclose(W.sum(axis=1), 1.0, atol=1e-12)
    if weighted:
        assert (W[:, weight == 0] == 0).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 40), options)
def test_factors(seed, n, options):
    """Equation (47), Algorithm 3."""
    X, Y, T = problem(seed, n)
    options |= {"projection": options["projection"] or "gaussian", "relabel": False}
    model = GradientBoostingRegressor(random_state=seed, **options).fit(X, Y)
    W = model.weights(T, X)
    assert W.shape == (9, n, 3, 3)
    expected = model.predict(T)
    np.testing.assert_allclose(W.apply(Y), expected, atol=1e-4 * (1 + abs(expected).max()))
    np.testing.assert_allclose(W.apply(sparse.csr_array(Y)), W.apply(Y), atol=1e-9)
    parts = [[W.between(j, k) @ Y[:, k] for k in range(3)] for j in range(3)]
    np.testing.assert_allclose(np.sum(parts, axis=1).T, W.apply(Y), rtol=1e-6, atol=1e-8)
    one = np.zeros_like(Y)
    one[n // 2, 1] = 1.0
    column = [W.between(j, 1)[:, n // 2] for j in range(3)]
    np.testing.assert_allclose(np.transpose(column), W.apply(one), atol=1e-9)


def test_many_rows_on_two_threads():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1500, 4)), rng.normal(size=(1500, 5))
    model = GradientBoostingRegressor(20, early_stopping=False, random_state=0).fit(X, Y)
    W = model.weights(X[:30], X)
    np.testing.assert_allclose(W @ Y, model.predict(X[:30]), atol=1e-5)
    model.set_params(n_jobs=2)
    np.testing.assert_array_equal(model.weights(X[:30], X), W)


def test_a_set_that_was_given():
    X, Y, T = problem(1, 50)
    model = GradientBoostingRegressor(30, random_state=0).fit(X, Y, eval_set=(X[:9], Y[:9]))
    np.testing.assert_allclose(model.weights(T, X) @ Y, model.predict(T), atol=1e-5)


def test_classes_and_labels():
    X, Y, T = problem(2, 80, 4)
    labels, y = (Y > 0.5) * 1, Y.argmax(axis=1)
    options = {"loss": "squared", "random_state": 0, "n_estimators": 20}
    model = GradientBoostingClassifier(**options).fit(X, labels)
    W = model.weights(T, X)
    np.testing.assert_allclose(W @ labels, model.decision_function(T), atol=1e-5)
    model.fit(X, y)
    scores = model.weights(T, X) @ np.eye(4)[y]
    np.testing.assert_allclose(scores, model.decision_function(T), atol=1e-5)
    model.fit(X, y > 0)
    np.testing.assert_allclose(model.weights(T, X) @ (y > 0), model.decision_function(T), atol=1e-5)
    held = GradientBoostingClassifier(refit=False, **options).fit(X, y)
    with pytest.raises(ValueError, match="held out by class"):
        held.weights(T, X)


def test_sparse_outputs_without_scores():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(60, 3)), sparse.csr_array((rng.random((60, 300)) < 0.03) * 1.0)
    model = GradientBoostingRegressor(10, relabel=False, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.weights(X, X).apply(Y), model.predict(X), atol=1e-5)


def test_refused_by_name():
    X, Y, T = problem(4, 40)

    def fitted(kind=GradientBoostingRegressor, **options):
        return kind(3, random_state=0, **options).fit(X, Y if "Reg" in kind.__name__ else Y > 1)

    with pytest.raises(ValueError, match="not linear in the outputs; loss='squared' is needed"):
        fitted(loss="huber").weights(T, X)
    with pytest.raises(ValueError, match="loss='auto'"):
        fitted(GradientBoostingClassifier).weights(T, X)
    with pytest.raises(ValueError, match="strategy='single_target'"):
        fitted(strategy="single_target").weights(T, X)
    with pytest.raises(ValueError, match="projection='top' with relabel=False"):
        fitted(projection="top", relabel=False).weights(T, X)
    model = fitted()
    with pytest.raises(ValueError, match="X_fit and sample_weight are not those of fit"):
        model.weights(T, X[::-1])
    with pytest.raises(ValueError, match="X_fit and sample_weight are not those of fit"):
        model.weights(T, X, np.arange(1.0, 41.0))
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        model.weights(T, X, np.ones((40, 3)))
    factors = fitted(relabel=False).weights(T, X)
    with pytest.raises(ValueError, match=r"Y must have shape \(40, 3\), got \(40, 2\)"):
        factors.apply(Y[:, :2])


def test_models_from_before_learning_rates_were_chosen():
    """Their files have a number as the parameter, and no attribute."""
    X, Y, T = problem(0, 60)
    model = GradientBoostingRegressor(20, learning_rate=0.2, random_state=0).fit(X, Y)
    known = model.weights(T, X)
    del model.learning_rate_
    np.testing.assert_array_equal(model.weights(T, X), known)
    model.set_params(warm_start=True, learning_rate="auto", n_estimators=30, early_stopping=False)
    assert model.fit(X, Y).learning_rate_ == 0.1
