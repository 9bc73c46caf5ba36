"""Sums of many columns: searched by panels, and in small nodes by products of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.tree import DecisionTreeRegressor as SklearnTree

from pyrpo import DecisionTreeRegressor, ExtraTreesRegressor, RandomForestRegressor

NARROW = 9  # columns: summed in registers


@st.composite
def problems(draw):
    """X of few or many values, Y of few columns, weights or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p = draw(st.integers(2, 400)), draw(st.integers(1, 40))
    X = rng.normal(size=(n, p)).astype(draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        X[:, 0] = np.round(X[:, 0])
    if draw(st.booleans()):
        X[:, rng.integers(p)] = 2.0
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.1] = np.nan
    Y = rng.normal(size=(n, NARROW)) + draw(st.sampled_from([0.0, 1e6]))
    weight = draw(st.sampled_from([None, rng.integers(0, 3, size=n) + 0.5, rng.random(n)]))
    return X, Y, weight


@pytest.mark.parametrize("forest", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("max_leaf_nodes", [None, 12])
@given(problem=problems(), columns=st.sampled_from([30, 200, 700]), k=st.sampled_from([0.4, 1.0]))
@settings(max_examples=25, deadline=None)
def test_columns_of_zeros_change_nothing(forest, max_leaf_nodes, problem, columns, k):
    X, Y, weight = problem
    n = len(X)
    wide = np.hstack([Y, np.zeros((n, columns - NARROW))])[:, ::-1]
    how = {
        "n_estimators": 2,
        "bootstrap": False,  # features that part the rows alike may part others differently
        "min_samples_leaf": 5,
        "max_features": k,
        "max_leaf_nodes": max_leaf_nodes,
        "random_state": 0,
    }
    one = forest(**how).fit(X, Y, sample_weight=weight)
    other = forest(**how).fit(X, wide, sample_weight=weight)
    found = other.predict(X)[:, ::-1][:, :NARROW]
    np.testing.assert_allclose(found, one.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("columns", [24, 65, 250, 520])
def test_trees_are_scikit_learns(columns):
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(600, 7)).astype(np.float32)
    Y = np.tanh(X @ rng.normal(size=(7, columns))) + 0.3 * rng.normal(size=(600, columns))
    weight = rng.integers(1, 4, size=600).astype(float)
    how = {"min_samples_leaf": 3, "random_state": 0}
    ours = DecisionTreeRegressor(**how).fit(X, Y, sample_weight=weight)
    theirs = SklearnTree(**how).fit(X, Y, sample_weight=weight)
    assert ours.tree_.node_count == theirs.tree_.node_count
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9, atol=1e-12)


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 30)).astype(np.float32)
    Y = X @ rng.normal(size=(30, 90))
    for forest in (RandomForestRegressor, ExtraTreesRegressor):
        one, two = (
            forest(4, random_state=0, n_jobs=jobs).fit(X, Y).predict(X[:50]) for jobs in (1, 3)
        )
        assert_array_equal(one, two)
