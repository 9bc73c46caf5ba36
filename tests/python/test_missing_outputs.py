"""NaN in Y, weights by entry, scales of outputs: against sums written out in numpy."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import pyrpo

MODELS = [
    pyrpo.RandomForestClassifier,
    pyrpo.RandomForestRegressor,
    pyrpo.ExtraTreesClassifier,
    pyrpo.ExtraTreesRegressor,
    pyrpo.DecisionTreeClassifier,
    pyrpo.DecisionTreeRegressor,
]


def data(n=120, d=5, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    Y = (X @ rng.normal(size=(6, d)) > 0.5).astype(float)
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


def rows_in_leaves(tree, X, drawn):
    """S of a tree: share of each drawn training row in each row's leaf."""
    leaves = tree.apply(X)
    S = (leaves[:, None] == leaves[None, :]) * drawn
    return S / S.sum(axis=1, keepdims=True)


def slow_prediction(trees, X, Y, row, entry):
    """Sums of w S y over sums of w S, pooled over trees; the mean where nothing was observed."""
    observed = ~np.isnan(Y)
    w = np.where(observed, entry, 0.0)
    y = np.where(observed, Y, 0.0)
    above = below = 0.0
    for tree in trees:
        S = rows_in_leaves(tree, X, row)
        above = above + S @ (w * y)
        below = below + S @ w
    total = row[:, None] * w
    mean = (total * y).sum(axis=0) / total.sum(axis=0)
    return np.where(below > 0, above / np.where(below > 0, below, 1), mean)


def same_leaves(a, b):
    """Whether two numberings of leaves group the rows alike."""
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def predictions(model, X):
    return getattr(model, "predict_proba", model.predict)(X)


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("options", [{}, {"min_samples_leaf": 5}, {"projection": "gaussian"}])
@pytest.mark.parametrize("weights", ["none", "rows", "entries"])
def test_against_sums(cls, options, weights):
    X, Y = data()
    rng = np.random.default_rng(1)
    row, entry, weight = np.ones(len(X)), np.ones(Y.shape), None
    if weights == "rows":
        row = weight = rng.random(len(X)) + 0.1
    elif weights == "entries":
        weight = rng.random(Y.shape)
        weight[rng.random(Y.shape) < 0.1] = 0.0
        row = weight.mean(axis=1)
        entry = weight / row[:, None]
    model = cls(random_state=0, **options)
    if hasattr(model, "bootstrap"):
        model.set_params(n_estimators=7, bootstrap=False)
    model.fit(X, Y, weight)
    trees = list(getattr(model, "estimators_", [model]))
    expected = slow_prediction(trees, X, Y, row, entry)
    np.testing.assert_allclose(predictions(model, X), expected, atol=1e-9)


def test_bootstrapped():
    """The rows a tree drew, with their counts, are its weights."""
    X, Y = data()
    forest = pyrpo.RandomForestRegressor(5, random_state=0).fit(X, Y)
    twin = pyrpo.RandomForestRegressor(5, random_state=0)
    wide = np.hstack([np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y), np.zeros((len(X), 400))])
    twin.fit(X, sparse.csr_array(wide))
    observed = ~np.isnan(Y)
    above = below = 0.0
    for ours, kept in zip(forest.estimators_, twin.estimators_, strict=True):
        np.testing.assert_array_equal(ours.apply(X), kept.apply(X))
        S = kept.weights(X, X).toarray()
        above, below = above + S @ np.where(observed, Y, 0.0), below + S @ observed.astype(float)
    seen = below > 0
    np.testing.assert_allclose(forest.predict(X)[seen], above[seen] / below[seen], atol=1e-9)


def test_splits_see_missing_entries_at_the_mean():
    X, Y = data()
    filled = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    for options in ({}, {"projection": np.random.default_rng(0).normal(size=(2, 5))}):
        with_holes = pyrpo.DecisionTreeRegressor(min_samples_leaf=4, **options).fit(X, Y)
        without = pyrpo.DecisionTreeRegressor(min_samples_leaf=4, **options).fit(X, filled)
        np.testing.assert_array_equal(with_holes.apply(X), without.apply(X))


def test_splits_see_the_mean_weight_of_a_row():
    X, Y = data(missing=0.0)
    weight = np.random.default_rng(0).random(Y.shape)
    by_entry = pyrpo.DecisionTreeRegressor(min_samples_leaf=4).fit(X, Y, weight)
    by_row = pyrpo.DecisionTreeRegressor(min_samples_leaf=4).fit(X, Y, weight.mean(axis=1))
    np.testing.assert_array_equal(by_entry.apply(X), by_row.apply(X))


def test_entries_of_no_weight_are_missing_entries_to_leaves():
    X, Y = data(missing=0.0)
    weight = np.ones(Y.shape)
    weight[::3, 1] = 0.0
    model = pyrpo.DecisionTreeRegressor(min_samples_leaf=8).fit(X, Y, weight)
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        expected = np.average(Y[rows, 1], weights=weight[rows, 1])
        np.testing.assert_allclose(model.predict(X[rows])[:, 1], expected)


def test_equal_weights_by_entry_are_weights_by_row():
    X, Y = data(missing=0.0)
    row = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    for target in (Y, sparse.csr_array(Y)):
        for cls in (pyrpo.DecisionTreeRegressor, pyrpo.DecisionTreeClassifier):
            a = cls(min_samples_leaf=3).fit(X, target, np.tile(row[:, None], 5))
            b = cls(min_samples_leaf=3).fit(X, target, row)
            np.testing.assert_allclose(predictions(a, X), predictions(b, X), atol=1e-12)


def test_one_output_with_gaps():
    X, Y = data()
    y = Y[:, 0]
    model = pyrpo.DecisionTreeRegressor(min_samples_leaf=5).fit(X, y)
    assert model.predict(X).shape == (len(X),)
    assert np.isfinite(model.predict(X)).all()
    two = pyrpo.DecisionTreeRegressor(min_samples_leaf=5).fit(X, y[:, None])
    np.testing.assert_array_equal(two.predict(X).ravel(), model.predict(X))


def test_a_leaf_that_saw_nothing_gives_the_training_mean():
    X = np.arange(10.0)[:, None]
    Y = np.column_stack([np.arange(10) // 5 * 100, np.where(np.arange(10) < 5, np.nan, 3.0)])
    Y[9, 1] = 5.0
    model = pyrpo.DecisionTreeRegressor(max_depth=1).fit(X, Y)
    np.testing.assert_allclose(model.predict([[0.0], [9.0]]), [[0, 3.4], [100, 3.4]])
    Y[:5, 1] = np.nan
    deep = pyrpo.DecisionTreeRegressor().fit(X, Y)
    np.testing.assert_allclose(deep.predict([[0.0], [9.0]]), [[0, 3.4], [100, 5.0]])


def test_pandas_missing_entries():
    X, Y = data()
    frame = pd.DataFrame(Y).astype("Float64")
    assert frame.isna().to_numpy().any()
    a = pyrpo.RandomForestRegressor(3, random_state=0).fit(X, frame)
    b = pyrpo.RandomForestRegressor(3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize("cls", MODELS)
def test_unobserved_outputs_are_refused(cls):
    X, Y = data()
    Y[:, 3] = np.nan
    with pytest.raises(ValueError, match="output 3 is never observed"):
        cls().fit(X, Y)
    Y[0, 3] = 1.0
    cls().fit(X, Y)
    weight = np.ones(Y.shape)
    weight[0, 3] = 0.0
    with pytest.raises(ValueError, match="output 3 is never observed"):
        cls().fit(X, Y, weight)
    with pytest.raises(ValueError, match="NaN"):
        cls().fit(X, np.full(Y.shape, np.nan))


def test_missing_classes_are_refused():
    X, Y = data()
    with pytest.raises(ValueError, match=r"NaN|Unknown label type"):
        pyrpo.RandomForestClassifier(2).fit(X, Y[:, 0])


# ---- scales of outputs ----


def test_output_scale():
    """A scale changes the splits as a scaled y does, and no leaf."""
    X, Y = data(missing=0.0)
    Y = Y * [1, 10, 1, 100, 1] + np.random.default_rng(0).normal(size=Y.shape)
    scale = np.array([1.0, 0.5, 0.0, 2.0, 3.0])
    for target in (Y, sparse.csr_array(Y)):
        model = pyrpo.DecisionTreeRegressor(min_samples_leaf=4, output_scale=scale).fit(X, target)
        reference = pyrpo.DecisionTreeRegressor(min_samples_leaf=4).fit(X, Y * scale)
        assert same_leaves(model.apply(X), reference.apply(X))
        leaves = model.apply(X)
        means = [Y[leaves == leaf].mean(axis=0) for leaf in leaves]
        np.testing.assert_allclose(model.predict(X), means, atol=1e-12)
        std = pyrpo.DecisionTreeRegressor(min_samples_leaf=4, output_scale="std").fit(X, target)
        by_hand = pyrpo.DecisionTreeRegressor(min_samples_leaf=4).fit(X, Y / Y.std(axis=0))
        assert same_leaves(std.apply(X), by_hand.apply(X))


def test_output_scale_with_gaps_and_projection():
    X, Y = data()
    scale = np.array([1.0, 0.5, 0.0, 2.0, 3.0])
    phi = np.random.default_rng(0).normal(size=(2, 5))
    filled = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    model = pyrpo.DecisionTreeClassifier(
        min_samples_leaf=4, output_scale=scale, projection=phi
    ).fit(X, Y)
    reference = pyrpo.DecisionTreeRegressor(min_samples_leaf=4).fit(X, (filled * scale) @ phi.T)
    assert same_leaves(model.apply(X), reference.apply(X))


def test_constant_outputs_have_no_part_in_std():
    X, Y = data(missing=0.0)
    Y[:, 0] = 7.0
    model = pyrpo.DecisionTreeRegressor(output_scale="std").fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-12)


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float64", "object"])
def test_missing_labels_of_nullable_frames(dtype):
    X, Y = data()
    frame = pd.DataFrame(Y).astype("Int64").astype(dtype)
    for cls in (pyrpo.RandomForestClassifier, pyrpo.GradientBoostingClassifier):
        model, plain = cls(3, random_state=0).fit(X, frame), cls(3, random_state=0).fit(X, Y)
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_missing_labels_of_polars():
    X, Y = data()
    rows = [[None if np.isnan(v) else bool(v) for v in row] for row in Y]
    frame = pytest.importorskip("polars").DataFrame(rows, orient="row")
    model = pyrpo.RandomForestClassifier(3, random_state=0)
    p = model.fit(X, frame).predict_proba(X)
    np.testing.assert_array_equal(p, model.fit(X, Y).predict_proba(X))


def test_entries_of_no_weight_do_not_steer_splits():
    X, Y = data(missing=0.0)
    weight = (np.random.default_rng(1).random(Y.shape) < 0.7).astype(float)
    fits = [
        pyrpo.ExtraTreesRegressor(10, random_state=0).fit(X, np.where(weight, Y, hidden), weight)
        for hidden in (0.0, 999.0)
    ]
    np.testing.assert_array_equal(*(fit.predict(X) for fit in fits))
