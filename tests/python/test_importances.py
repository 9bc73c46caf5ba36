"""Importances made again on the outputs themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pyrpo

REGRESSORS = [pyrpo.RandomForestRegressor, pyrpo.ExtraTreesRegressor]
CLASSIFIERS = [pyrpo.RandomForestClassifier, pyrpo.ExtraTreesClassifier]


def slow_gains(tree, X, Y, weight):
    """Decreases of the weighted sum of squared deviations of one tree, by feature."""
    passed, arrays = tree.decision_path(X).toarray().astype(bool), tree.tree_

    def spread(node):
        w, y = weight[passed[:, node]], Y[passed[:, node]]
        return (w[:, None] * (y - np.average(y, axis=0, weights=w)) ** 2).sum()

    gains = np.zeros(X.shape[1])
    for node in np.flatnonzero(arrays.children_left >= 0):
        children = arrays.children_left[node], arrays.children_right[node]
        gains[arrays.feature[node]] += spread(node) - sum(map(spread, children))
    return gains


def slow_importances(trees, X, Y, weight):
    gains = np.array([slow_gains(tree, X, Y, weight) for tree in trees])
    totals = gains.sum(axis=1, keepdims=True)
    mean = np.divide(gains, totals, out=np.zeros_like(gains), where=totals > 0).sum(axis=0)
    return mean / max(mean.sum(), 1e-300)


@st.composite
def problems(draw):
    """X with ties and constants, and outputs of several kinds, sparse or dense."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p, d = draw(st.integers(1, 40)), draw(st.integers(1, 4)), draw(st.integers(1, 12))
    X = rng.integers(0, draw(st.sampled_from([1, 2, 5, 100])), (n, p)).astype(float)
    kind = draw(st.sampled_from(["real", "large", "labels", "sparse", "sparse real"]))
    Y = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.5)
    if kind == "large":
        Y += 1e6
    if kind in ("labels", "sparse"):
        Y = (Y > 0.3).astype(float)
    weight = draw(st.sampled_from([None, "real", "whole"]))
    if weight is not None:
        weight = rng.exponential(size=n) if weight == "real" else rng.integers(0, 3, n) * 1.0
        weight[0] = 1.0
    return X, Y, sparse.csr_array(Y) if kind.startswith("sparse") else Y, weight


@settings(max_examples=150)
@given(problems(), st.sampled_from(REGRESSORS), st.sampled_from([None, 2, 3]))
def test_decreases_are_those_of_the_outputs(problem, cls, depth):
    X, Y, given_Y, weight = problem
    forest = cls(3, bootstrap=False, projection="rademacher", n_components=2, max_depth=depth)
    forest.set_params(random_state=0).fit(X, given_Y, weight)
    got = forest.importances(X, given_Y, weight)
    w = np.ones(len(X)) if weight is None else weight
    expected = slow_importances(forest.estimators_, X, Y, w)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    few = slow_importances(forest.estimators_, X, Y[:, :1], w)
    np.testing.assert_allclose(forest.importances(X, given_Y[:, :1], weight), few, atol=1e-6)


@settings(max_examples=150)
@given(problems(), st.sampled_from(REGRESSORS), st.booleans(), st.sampled_from(["sample", "all"]))
def test_without_projection_they_are_the_kept_ones(problem, cls, bootstrap, leaf_rows):
    X, _, Y, weight = problem
    forest = cls(3, bootstrap=bootstrap, leaf_rows=leaf_rows, random_state=0).fit(X, Y, weight)
    np.testing.assert_allclose(
        forest.importances(X, Y, weight), forest.feature_importances_, atol=1e-5
    )


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_of_classifiers(cls, bootstrap, class_weight, rng):
    X, c = rng.normal(size=(80, 5)), rng.integers(0, 4, 80)
    Y = rng.uniform(size=(80, 6)) < 0.3
    for y in (c, Y, sparse.csr_array(Y)):
        forest = cls(5, bootstrap=bootstrap, class_weight=class_weight, random_state=0).fit(X, y)
        before = vars(forest).copy()
        got = forest.importances(sparse.csr_array(X), y)
        np.testing.assert_allclose(got, forest.feature_importances_, atol=1e-5)
        assert vars(forest) == before


def test_of_trees_missing_outputs_scales_and_weights_by_entry(rng):
    X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 5)) * [1, 10, 100, 1, 1]
    weight = rng.uniform(size=Y.shape)
    holes = np.where(rng.uniform(size=Y.shape) < 0.2, np.nan, Y)
    for estimator in (
        pyrpo.DecisionTreeRegressor(output_scale="std"),
        pyrpo.RandomForestRegressor(4, output_scale="std", max_bins=8, ccp_alpha=0.01),
    ):
        for y, w in ((Y, None), (holes, None), (Y, weight)):
            fitted = estimator.set_params(random_state=0).fit(X, y, w)
            np.testing.assert_allclose(
                fitted.importances(X, y, w), fitted.feature_importances_, atol=1e-5
            )
    forest = pyrpo.RandomForestRegressor(4, random_state=0).fit(X, Y)
    parts = [tree.importances(X, Y) for tree in forest.estimators_]
    np.testing.assert_allclose(forest.importances(X, Y), np.mean(parts, axis=0), atol=1e-12)


def test_a_projection_that_hides_an_output_does_not_hide_its_input(rng):
    X = rng.normal(size=(300, 3))
    Y = np.column_stack([X[:, 0], 5.0 * X[:, 0] + 5.0 * X[:, 1]])
    first = np.array([[1.0, 0.0]])
    forest = pyrpo.ExtraTreesRegressor(50, projection=first, max_features=1, max_depth=4)
    forest.set_params(random_state=0).fit(X, Y)
    kept, again = forest.feature_importances_, forest.importances(X, Y)
    assert kept[0] > 0.8
    assert again[1] > 0.3 > kept[1]
    one = forest.importances(X, Y[:, 0])
    np.testing.assert_allclose(one, kept, atol=1e-5)


def test_threads_change_nothing(rng):
    X, Y = rng.normal(size=(200, 5)), sparse.random_array((200, 30), density=0.1, rng=rng)
    forest = pyrpo.RandomForestRegressor(9, projection="gaussian", random_state=0).fit(X, Y)
    one = forest.importances(X, Y)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(forest.set_params(n_jobs=n_jobs).importances(X, Y), one)


def test_other_data_are_refused(rng):
    X, Y = rng.normal(size=(40, 3)), rng.uniform(size=(40, 4)) < 0.4
    forest = pyrpo.RandomForestClassifier(3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="X has 39 rows, the model was fitted to 40"):
        forest.importances(X[1:], Y[1:])
    with pytest.raises(ValueError, match="y has 39 rows, the model was fitted to 40"):
        forest.importances(X, Y[1:])
    with pytest.raises(ValueError, match="X and weight are not those of the fit: leaf"):
        forest.importances(X[::-1], Y)
    with pytest.raises(ValueError, match="X and weight are not those of the fit: leaf"):
        forest.importances(X, Y, rng.uniform(size=40))
    with pytest.raises(ValueError, match="label indicator"):
        forest.importances(X, Y * 2.5)
    forest.set_params(class_weight="balanced_subsample").fit(X, Y)
    with pytest.raises(ValueError, match="class_weight='balanced_subsample'"):
        forest.importances(X, Y)
    with pytest.raises(ValueError, match="not fitted"):
        pyrpo.RandomForestClassifier().importances(X, Y)
