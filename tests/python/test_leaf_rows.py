"""Leaves that hold all training rows: values, out-of-bag predictions, what stays of the sample."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pyrpo

pytestmark = pytest.mark.filterwarnings("ignore:.*no out-of-bag tree")

CLASSIFIERS = [pyrpo.RandomForestClassifier, pyrpo.ExtraTreesClassifier]


def problem(seed, n=80, d=5, real=False):
    """Features with ties, a constant and missing values; labels or real outputs."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(n, 4)).astype(float)
    X[:, 3] = rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 1] = 2.0
    Y = rng.normal(size=(n, d)) + 1e3 if real else (rng.random((n, d)) < 0.3).astype(float)
    return X, Y


def pair(cls, X, Y, weight=None, trees=6, **options):
    """The same forest with leaves of the samples and of all rows."""
    options |= {"bootstrap": True, "random_state": 3}
    return [cls(trees, leaf_rows=r, **options).fit(X, Y, weight) for r in ("sample", "all")]


def values_by_hand(forest, X, Y, weight, leave_out=None):
    """Means over all rows of each row's leaves; out of bag: without itself, over those trees."""
    leaves, w = forest.apply(X), np.ones(len(X)) if weight is None else weight
    total, count = np.zeros(Y.shape), np.zeros(len(X))
    for t in range(leaves.shape[1]):
        same = (leaves[:, t][:, None] == leaves[:, t][None, :]) * w[None, :]
        if leave_out is not None:
            np.fill_diagonal(same, 0.0)
            same[leave_out[:, t]] = 0.0
        below = same.sum(axis=1)
        total += np.divide(
            same @ Y, below[:, None], out=np.zeros(Y.shape), where=below[:, None] > 0
        )
        count += below > 0
    with np.errstate(invalid="ignore"):
        return total / count[:, None]


def in_bag(X, weight=None, trees=6, **options):
    """Rows drawn by each tree of `pair`: with a label of its own a row shows in the leaves."""
    grown, _ = pair(pyrpo.RandomForestRegressor, X, np.eye(len(X)), weight, trees, **options)
    return np.stack([t.predict(X).any(axis=0) for t in grown.estimators_], axis=1)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    real=st.booleans(),
    weighted=st.booleans(),
    options=st.sampled_from(
        [
            {},
            {"max_depth": 2},  # few leaves: kept as a table
            {"max_leaf_nodes": 3},
            {"min_samples_leaf": 4, "max_samples": 0.4},
            {"ccp_alpha": 0.02},
            {"max_bins": 3},
            {"projection": "gaussian", "n_components": 2},
        ]
    ),
)
def test_values_and_out_of_bag(seed, real, weighted, options):
    X, Y = problem(seed, real=real)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, size=len(X)) * rng.random() if weighted else None
    cls = pyrpo.RandomForestRegressor if real else pyrpo.RandomForestClassifier
    oob = {"oob_score": lambda y, p: 0.0}
    sample, full = pair(cls, X, Y, weight, **options, **oob)
    np.testing.assert_array_equal(sample.apply(X), full.apply(X))
    predict = full.predict if real else full.predict_proba
    np.testing.assert_allclose(predict(X), values_by_hand(full, X, Y, weight), atol=1e-9)
    drawn = in_bag(X, weight, **{k: v for k, v in options.items() if k == "max_samples"})
    left = full.oob_prediction_ if real else full.oob_decision_function_
    expected = values_by_hand(full, X, Y, weight, drawn)
    np.testing.assert_allclose(left, expected, atol=1e-9)


def test_structure_and_importances_stay_those_of_the_sample():
    X, Y = problem(0)
    sample, full = pair(pyrpo.RandomForestClassifier, X, Y)
    np.testing.assert_array_equal(sample.feature_importances_, full.feature_importances_)
    for a, b in zip(sample.estimators_, full.estimators_, strict=True):
        for name in ("children_left", "children_right", "feature", "threshold", "impurity"):
            np.testing.assert_array_equal(getattr(a.tree_, name), getattr(b.tree_, name))
        np.testing.assert_array_equal(a.feature_importances_, b.feature_importances_)
        assert b.tree_.n_node_samples[0] == b.tree_.weighted_n_node_samples[0] == len(X)
        assert a.tree_.n_node_samples[0] < len(X) == a.tree_.weighted_n_node_samples[0]
    W = full.weights(X)
    np.testing.assert_allclose(W @ Y, full.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, np.asarray])
def test_sparse_features(container):
    X, Y = problem(1)
    X = np.nan_to_num(X) * (np.random.default_rng(0).random(X.shape) < 0.4)
    forests = [
        pyrpo.RandomForestClassifier(9, leaf_rows="all", oob_score="lrap", random_state=0).fit(x, Y)
        for x in (X, container(X))
    ]
    assert np.array_equal(forests[0]._model.dump(), forests[1]._model.dump())
    assert forests[0].oob_score_ == forests[1].oob_score_


@pytest.mark.parametrize("depth", [None, 2])
def test_missing_and_weighted_entries(depth):
    X, Y = problem(2, real=True)
    Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
    options = {"max_depth": depth, "oob_score": lambda y, p: 0.0}
    _, full = pair(pyrpo.RandomForestRegressor, X, Y, **options)
    seen = ~np.isnan(Y)
    labels = np.hstack([np.where(seen, Y, 0.0), seen])

    def ratio(sums):
        above, below = np.split(sums, 2, axis=1)
        mean = np.divide(above, below, out=np.full(Y.shape, np.nan), where=below > 0)
        return np.where(below == 0, np.nanmean(Y, axis=0), mean)

    expected = ratio(values_by_hand(full, X, labels, None))
    np.testing.assert_allclose(full.predict(X), expected, atol=1e-9)
    drawn = in_bag(X)
    expected = ratio(values_by_hand(full, X, labels, None, drawn))
    np.testing.assert_allclose(full.oob_prediction_, expected, rtol=1e-9)


def test_classes_threads_keeping_and_warm_start(tmp_path):
    X, Y = problem(3, n=300)
    y = Y[:, 0] + 2 * Y[:, 1]
    options = {"leaf_rows": "all", "random_state": 0, "oob_score": True}
    forest = pyrpo.RandomForestClassifier(12, **options).fit(X, y)
    three = pyrpo.RandomForestClassifier(12, n_jobs=3, **options).fit(X, y)
    assert np.array_equal(forest._model.dump(), three._model.dump())
    assert forest.oob_score_ == three.oob_score_
    warm = pyrpo.RandomForestClassifier(5, warm_start=True, **options).fit(X, y)
    warm.set_params(n_estimators=12).fit(X, y)
    assert np.array_equal(forest._model.dump(), warm._model.dump())
    np.testing.assert_array_equal(forest.oob_decision_function_, warm.oob_decision_function_)
    forest.save(tmp_path / "forest.rpo")
    loaded = pyrpo.load(tmp_path / "forest.rpo")
    assert loaded.leaf_rows == "all"
    for other in (loaded, pickle.loads(pickle.dumps(forest))):
        np.testing.assert_array_equal(forest.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(forest.feature_importances_, other.feature_importances_)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_without_bootstrap_leaves_hold_all_rows_anyway(cls):
    X, Y = problem(4)
    a, b = (
        cls(3, bootstrap=False, leaf_rows=rows, random_state=0).fit(X, Y)
        for rows in ("sample", "all")
    )
    assert np.array_equal(a._model.dump(), b._model.dump())


def test_bad_values_are_named():
    X, Y = problem(5)
    for value in ("every", None, True, 1):
        with pytest.raises(ValueError, match=f"leaf_rows must be .* got {value!r}"):
            pyrpo.ExtraTreesClassifier(2, leaf_rows=value).fit(X, Y)
    with pytest.raises(ValueError, match=r"balanced_subsample.*leaf_rows='all'"):
        pyrpo.RandomForestClassifier(
            2, leaf_rows="all", class_weight="balanced_subsample"
        ).fit(X, Y)  # fmt: skip


def test_warm_start_does_not_mix_leaves():
    X, Y = problem(7)
    forest = pyrpo.RandomForestRegressor(2, warm_start=True, random_state=0).fit(X, Y)
    before = forest.predict(X)
    with pytest.raises(ValueError, match="differ in leaf_rows"):
        forest.set_params(n_estimators=4, leaf_rows="all").fit(X, Y)
    np.testing.assert_array_equal(forest.predict(X), before)


def test_the_library_refuses_other_rows():
    X, Y = problem(6)
    model = pyrpo.RandomForestRegressor(2, random_state=0).fit(X, Y)._model
    table = pyrpo.RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, Y)._model
    labels, features = pyrpo._native.Matrix(Y), pyrpo._native.Features(X)
    with pytest.raises(ValueError, match="no row ends in leaf"):
        table.relabel(pyrpo._native.Features(np.zeros_like(X)), labels, None)
    with pytest.raises(ValueError, match="no row ends in leaf"):
        model.relabel(features, labels, (np.arange(len(X)) == 7).astype(float))
    with pytest.raises(ValueError, match="features have 9 rows, labels have 80"):
        model.relabel(pyrpo._native.Features(X[:9]), labels, None)
    with pytest.raises(ValueError, match="features have 3 columns, the forest was fitted to 4"):
        model.relabel(pyrpo._native.Features(X[:, :3].copy()), labels, None)
    with pytest.raises(ValueError, match="labels have 2 columns"):
        model.relabel(features, pyrpo._native.Matrix(Y[:, :2].copy()), None)
    with pytest.raises(ValueError, match="weight must be finite and not negative, found -1"):
        model.relabel(features, labels, np.full(len(X), -1.0))
    full = model.relabel(features, labels, None)
    with pytest.raises(ValueError, match="labels is NULL"):
        full.predict_oob(X, None)
    with pytest.raises(ValueError, match="labels must be 80 x 5"):
        full.predict_oob(X, None, None, pyrpo._native.Matrix(Y[:9].copy()))
