"""What forests offer besides growing: parameters, attributes, keeping, scikit-learn's tools."""

import copy
import io
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    label_ranking_average_precision_score,
    mean_squared_error,
    r2_score,
)
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.class_weight import compute_sample_weight

import pyrpo
from pyrpo.projection import GaussianProjection

FORESTS = [
    pyrpo.RandomForestClassifier,
    pyrpo.RandomForestRegressor,
    pyrpo.ExtraTreesClassifier,
    pyrpo.ExtraTreesRegressor,
]
TREES = [pyrpo.DecisionTreeClassifier, pyrpo.DecisionTreeRegressor]


def data(n=200, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    scores = X @ np.random.default_rng(5).normal(size=(6, d))
    return X, (scores > 1).astype(int)


def same_model(a, b):
    return np.array_equal(a._model.dump(), b._model.dump())


# ---- out of bag ----


def slow_oob(forest, X, weight=None):
    """Mean over the trees that did not draw a row, told from their leaves' training rows."""
    total, count = 0.0, np.zeros(len(X))
    for tree in forest.estimators_:
        drawn = np.zeros(len(X), dtype=bool)
        drawn[np.unique(tree.weights(X, X, weight).indices)] = True
        predict = getattr(tree, "predict_proba", tree.predict)
        total = total + np.where(drawn[:, None], 0.0, predict(X).reshape(len(X), -1))
        count += ~drawn
    with np.errstate(invalid="ignore"):
        return total / count[:, None]


@pytest.mark.parametrize("weighted", [False, True])
def test_oob_predictions(weighted):
    X, Y = data()
    weight = np.random.default_rng(0).random(len(X)) if weighted else None
    forest = pyrpo.RandomForestRegressor(30, oob_score=True, random_state=0)
    forest.fit(X, sparse.csr_array(Y), weight)
    np.testing.assert_allclose(forest.oob_prediction_, slow_oob(forest, X, weight), atol=1e-12)
    assert forest.oob_score_ == r2_score(Y, forest.oob_prediction_)


def test_oob_scores():
    X, Y = data()
    forest = pyrpo.RandomForestClassifier(40, random_state=0, oob_score=True).fit(X, Y)
    p = forest.oob_decision_function_
    np.testing.assert_allclose(p, slow_oob(forest, X), atol=1e-12)
    assert forest.oob_score_ == accuracy_score(Y, p > 0.5)
    for y in (Y, sparse.csr_array(Y), pd.DataFrame(Y)):
        forest.set_params(oob_score="lrap").fit(X, y)
        lrap = label_ranking_average_precision_score(Y, p)
        assert forest.oob_score_ == pytest.approx(lrap, rel=1e-12)
        forest.set_params(oob_score=lambda t, q: f1_score(t, q, average="micro")).fit(X, y)
        assert forest.oob_score_ == f1_score(Y, p > 0.5, average="micro")
    classes = np.array(["no", "yes"])[Y[:, 0]]
    forest.set_params(oob_score=True).fit(X, classes)
    guess = forest.classes_[forest.oob_decision_function_.argmax(axis=1)]
    assert forest.oob_score_ == accuracy_score(classes, guess)
    assert not hasattr(forest.set_params(oob_score=False).fit(X, Y), "oob_score_")


def test_oob_of_one_output_and_few_trees():
    X, Y = data()
    forest = pyrpo.RandomForestRegressor(40, oob_score=mean_squared_error, random_state=0)
    forest.fit(X, X[:, 0])
    assert forest.oob_prediction_.shape == (len(X),)
    assert forest.oob_score_ == mean_squared_error(X[:, 0], forest.oob_prediction_)
    with pytest.warns(UserWarning, match="no out-of-bag tree"):
        forest.set_params(n_estimators=2).fit(X, Y)
    assert np.isnan(forest.oob_prediction_).any()
    assert np.isfinite(forest.oob_score_)


# ---- growing on ----


@pytest.mark.parametrize("cls", FORESTS)
def test_warm_start(cls):
    X, Y = data()
    options = {"random_state": 3, "projection": "gaussian", "max_features": 2}
    whole = cls(20, **options).fit(X, Y)
    grown = cls(10, warm_start=True, **options).fit(X, Y)
    assert len(grown.set_params(n_estimators=20).fit(X, Y)) == 20
    assert same_model(whole, grown)
    before = grown._model
    with pytest.warns(UserWarning, match="does not fit new trees"):
        grown.fit(X, Y)
    assert grown._model is before
    with pytest.raises(ValueError, match="n_estimators=5"):
        grown.set_params(n_estimators=5).fit(X, Y)
    assert len(grown) == 20


def test_warm_start_of_shallow_trees_and_oob():
    X, Y = data()
    options = {"random_state": 3, "oob_score": True, "max_depth": 3}
    whole = pyrpo.RandomForestClassifier(40, **options).fit(X, Y)
    grown = pyrpo.RandomForestClassifier(30, warm_start=True, **options).fit(X, Y)
    grown.set_params(n_estimators=40).fit(X, Y)
    # The first 30 trees were kept as a table of leaf values, all 40 would be kept as rows.
    np.testing.assert_allclose(whole.predict_proba(X), grown.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(
        whole.oob_decision_function_, grown.oob_decision_function_, atol=1e-12
    )


def test_warm_start_refuses_other_data():
    X, Y = data()
    forest = pyrpo.RandomForestClassifier(5, warm_start=True).fit(X, Y)
    before = forest.predict_proba(X)
    forest.set_params(n_estimators=8)
    for A, B in ((X[:-1], Y[:-1]), (X[:, 1:], Y), (X, Y[:, 1:]), (X, 1 - Y), (X, Y[:, 0])):
        with pytest.raises(ValueError, match=r"warm_start|same data"):
            forest.fit(A, B)
    np.testing.assert_array_equal(forest.predict_proba(X), before)


@pytest.mark.parametrize("cls", [pyrpo.ExtraTreesClassifier, pyrpo.GradientBoostingClassifier])
@pytest.mark.parametrize("name", ["labels", "other classes"])
def test_warm_start_refuses_other_classes(cls, name):
    """Of as many outputs, in numbers of the same names."""
    X, c = data()[0], np.arange(len(data()[0])) % 3
    forest = cls(3, warm_start=True, random_state=0).fit(X, c)
    forest.set_params(n_estimators=6)
    with pytest.raises(ValueError, match="the same classes"):
        forest.fit(X, c + 1 if name == "other classes" else np.eye(3, dtype=int)[c])
    assert forest.fit(X, c).predict(X).shape == c.shape


# ---- sampling and weights ----


def test_max_samples():
    X, Y = data()
    for value, draws in ((10, 10), (0.25, 50), (1.0, 200), (None, 200)):
        forest = pyrpo.RandomForestRegressor(5, max_samples=value, random_state=0).fit(X, Y)
        for tree in forest.estimators_:
            assert tree.tree_.weighted_n_node_samples[0] == draws
    weight = np.full(200, 0.5)
    forest = pyrpo.RandomForestRegressor(5, max_samples=0.5, random_state=0).fit(X, Y, weight)
    assert forest.estimators_[0].tree_.weighted_n_node_samples[0] == 50


def test_bootstraps_draw_by_weight():
    X, Y = data(d=60)
    weight = np.zeros(200)
    weight[:50], weight[50:100] = 1.0, 3.0
    drawn = np.zeros(200)
    grown = pyrpo.RandomForestRegressor(200, random_state=0).fit(X, sparse.csr_array(Y), weight)
    for tree in grown.estimators_:
        drawn[np.unique(tree.weights(X, X).indices)] += 1
    assert drawn[100:].sum() == 0
    n = 200
    for rows, w in ((slice(0, 50), 1.0), (slice(50, 100), 3.0)):
        share = 1 - (1 - w / weight.sum()) ** n
        assert drawn[rows].mean() / 200 == pytest.approx(share, abs=0.02)


def test_class_weight():
    X, Y = data()
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-1, 1])]
    for labels, kinds in (
        (y, ["balanced", {"a": 2.0, "b": 1.0, "c": 0.5}]),
        (Y, ["balanced", [{0: 1.0, 1: 1.5 + j} for j in range(8)]]),
    ):
        for kind in kinds:
            weight = compute_sample_weight(kind, labels)
            own = np.random.default_rng(0).random(len(X))  # without ties
            options = {"min_samples_leaf": 10}
            a = pyrpo.DecisionTreeClassifier(**options, class_weight=kind).fit(X, labels, own)
            b = pyrpo.DecisionTreeClassifier(**options).fit(X, labels, own * weight)
            np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-9)


def bootstrap_counts(n, weight, trees, **options):
    """How often each tree drew each row: the root's mean of one output a row."""
    twin = pyrpo.RandomForestRegressor(trees, max_depth=1, random_state=0, **options)
    twin.fit(np.arange(n)[:, None], np.eye(n), weight)
    drawn = np.array([tree.tree_.value[0].ravel() for tree in twin.estimators_])
    return np.rint(drawn / drawn[drawn > 0].min()).astype(int)


def assert_trees_are_balanced(X, y, weight=None, max_samples=None, **options):
    """Each tree is the one grown on its bootstrap counts times scikit-learn's class weights."""
    forest = pyrpo.RandomForestClassifier(
        4, max_features=None, class_weight="balanced_subsample", max_samples=max_samples,
        random_state=0, **options,
    ).fit(X, y, weight)  # fmt: skip
    counts = bootstrap_counts(len(X), weight, 4, max_samples=max_samples)
    labels = y.toarray() if sparse.issparse(y) else y
    draws = max_samples or len(X)
    for tree, count in zip(forest.estimators_, counts, strict=True):
        count = count * draws // count.sum()
        assert count.sum() == draws
        balanced = compute_sample_weight(
            "balanced", labels, indices=np.repeat(np.arange(len(X)), count)
        )
        own = pyrpo.DecisionTreeClassifier(max_features=None, **options)
        own.fit(X, y, count * balanced)
        seen = count > 0  # a tie may be broken otherwise, to the same end on the tree's own rows
        np.testing.assert_allclose(
            tree.predict_proba(X[seen]), own.predict_proba(X[seen]), atol=1e-9
        )
        for name in ("weighted_n_node_samples", "n_node_samples", "impurity"):
            a, b = (np.sort(getattr(t.tree_, name)) for t in (tree, own))
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"min_samples_leaf": 15},
        {"min_weight_fraction_leaf": 0.1},
        {"max_samples": 40, "max_depth": 3},
        {"max_leaf_nodes": 7},
    ],
)
def test_balanced_subsample(weighted, options):
    X, Y = data()
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [-1, 2])]
    weight = np.random.default_rng(0).random(len(X)) if weighted else None
    for labels in (y, Y, sparse.csr_array(Y)):
        assert_trees_are_balanced(X, labels, weight, **options)


@given(st.integers(0, 9999), st.integers(2, 25), st.integers(1, 4))
def test_balanced_subsample_of_few_rows(seed, n, d):
    # Classes and labels that a bootstrap misses, constant labels, rows without labels.
    rng = np.random.default_rng(seed)
    X = rng.permutation(n)[:, None].astype(float)  # one feature: no ties between features
    y = rng.integers(0, d, n) if d > 1 else (rng.random((n, 3)) < rng.random(3)).astype(int)
    assert_trees_are_balanced(X, y, rng.random(n) if seed % 2 else None, max_depth=1)


def test_balanced_subsample_draws_as_without_class_weights():
    X, Y = data(n=60)
    for y in (Y, Y[:, 0]):
        plain, balanced = (
            pyrpo.RandomForestClassifier(3, class_weight=kind, random_state=0).fit(X, y)
            for kind in (None, "balanced_subsample")
        )
        left_out, same = (f._model.predict_oob(X, None)[1] for f in (plain, balanced))
        assert left_out.tolist() == same.tolist()
        for a, b in zip(plain.estimators_, balanced.estimators_, strict=True):
            assert a.tree_.n_node_samples[0] == b.tree_.n_node_samples[0]


def test_balanced_subsample_needs_complete_labels_and_weights_by_row():
    X, Y = data()
    holes = Y.astype(float)
    holes[0, 0] = np.nan
    forest = pyrpo.RandomForestClassifier(2, class_weight="balanced_subsample")
    for y, weight in ((holes, None), (Y, np.ones(Y.shape))):
        with pytest.raises(ValueError, match=r"balanced_subsample.* needs a y without missing"):
            forest.fit(X, y, weight)


def test_balanced_subsample_without_bootstrap_is_balanced():
    X, Y = data()
    a, b = (
        pyrpo.ExtraTreesClassifier(5, class_weight=kind, random_state=0).fit(X, Y)
        for kind in ("balanced", "balanced_subsample")
    )
    assert same_model(a, b)


def test_balanced_subsample_of_very_many_labels():
    # The product over 5000 labels, scikit-learn's definition, is below the smallest number.
    rng = np.random.default_rng(0)
    Y = sparse.random_array((100, 5000), density=0.002, format="csr", rng=rng)
    Y.data[:] = 1
    X = rng.normal(size=(100, 3))
    for kind in ("balanced", "balanced_subsample"):
        forest = pyrpo.RandomForestClassifier(3, class_weight=kind, random_state=0).fit(X, Y)
        assert np.isfinite(forest.predict_proba(X)).all()
        assert forest[0].get_n_leaves() > 1


def test_trees_of_balanced_forests_can_be_fitted_again():
    X, Y = data()
    forest = pyrpo.RandomForestClassifier(2, class_weight="balanced_subsample").fit(X, Y)
    assert forest[0].class_weight is None  # as in scikit-learn
    clone(forest[0]).fit(X, Y)


@pytest.mark.parametrize("cls", FORESTS + TREES)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_weights_give_the_prediction(cls, container):
    X, Y = data(d=60)
    if cls in TREES:
        container = sparse.csr_array  # a single tree's table is smaller than a dense Y
    model = cls(random_state=0).fit(X, container(Y))
    new, _ = data(seed=1)
    W = model.weights(new)
    assert W.shape == (200, 200)
    assert W.has_sorted_indices
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    predict = getattr(model, "predict_proba", model.predict)
    np.testing.assert_allclose(W @ Y, predict(new), atol=1e-12)


def same_trees(cls, X, kind, *, weight=None, **options):
    """Two models of the same trees: a leaf table, of few outputs, and rows, of many."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(len(X), 1))
    if kind == "dense":
        few, many = y, rng.normal(size=(len(X), 1500))
    else:
        few = sparse.random_array((len(X), 5000), density=2e-6, rng=0, format="csr")
        many = sparse.random_array((len(X), 5000), density=0.3, rng=0, format="csr")
    models = []
    for Y in (few, many):
        joint = (sparse.hstack if sparse.issparse(Y) else np.hstack)([Y, y])
        joint = sparse.csr_array(joint) if sparse.issparse(joint) else joint
        scale = np.zeros(joint.shape[1])
        scale[-1] = 1.0  # the split search sees y alone
        plain = {"n_components": "log", "max_features": 1.0, "random_state": 0}
        model = cls(output_scale=scale, **plain, **options)
        models.append(model.fit(X, joint, weight))
    return *models, many


@pytest.mark.parametrize("cls", [pyrpo.RandomForestRegressor, pyrpo.ExtraTreesRegressor])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_tables_are_those_of_rows(cls, kind, weighted):
    X, _ = data(1000)
    new, _ = data(50, seed=1)
    weight = np.random.default_rng(1).integers(0, 3, len(X)) / 2 if weighted else None
    options = {"n_estimators": 60, "max_leaf_nodes": 25, "weight": weight}
    # Several features find sides of few rows alike, and rounding would choose among them.
    table, rows, _ = same_trees(cls, X, kind, min_samples_leaf=15, **options)
    assert rows._model.has_rows
    assert not table._model.has_rows
    np.testing.assert_array_equal(table.apply(new), rows.apply(new))
    for A in (X, sparse.csr_array(X)):
        W, V = table.weights(new, A, weight), rows.weights(new)
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(W, name), getattr(V, name))


@pytest.mark.parametrize("bootstrap", [False, True])
def test_weights_of_models_that_keep_a_table(bootstrap):
    X, Y = data(3000, d=2)
    model = pyrpo.RandomForestRegressor(20, max_depth=2, bootstrap=bootstrap, random_state=0)
    model.fit(X, Y)
    assert not model._model.has_rows
    for trained in (model, pickle.loads(pickle.dumps(model))):
        W = trained.weights(X[:70], X)
        np.testing.assert_allclose(W.sum(axis=1), 1.0)
        np.testing.assert_allclose(W @ Y, model.predict(X[:70]), atol=1e-12)
    one = model.estimators_[3]
    np.testing.assert_allclose(one.weights(X[:70], X) @ Y, one.predict(X[:70]), atol=1e-12)


def test_weights_name_what_they_lack():
    X, Y = data(3000, d=2)
    weight = np.random.default_rng(0).random(len(X))
    model = pyrpo.RandomForestRegressor(20, max_depth=2, bootstrap=False, random_state=0)
    model.fit(X, Y, weight)
    with pytest.raises(ValueError, match=r"X_fit is None.*table of values"):
        model.weights(X)
    with pytest.raises(ValueError, match="X_fit has 2999 rows, the model was fitted to 3000"):
        model.weights(X, X[1:], weight[1:])
    with pytest.raises(ValueError, match="X_fit: X has 1 features"):
        model.weights(X, X[:, :1], weight)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(3000,\)"):
        model.weights(X, X, weight[1:])
    with pytest.raises(ValueError, match="X_fit and sample_weight are not those of fit"):
        model.weights(X, X)
    with pytest.raises(ValueError, match="X_fit and sample_weight are not those of fit"):
        model.weights(X, X[::-1], weight)
    np.testing.assert_allclose(model.weights(X, X, weight) @ Y, model.predict(X), atol=1e-12)
    np.testing.assert_array_equal(
        model.weights(X, X, np.stack([weight, weight], axis=1)).data,
        model.weights(X, X, weight).data,
    )


def test_weights_with_class_weights():
    X, Y = data(3000, d=2)
    factor = {0: 1.0, 1: 3.0}
    forest = pyrpo.RandomForestClassifier(
        20, max_depth=2, class_weight=[factor, factor], random_state=0
    ).fit(X, Y)
    assert not forest._model.has_rows
    W = forest.weights(X, X, 3.0 ** np.asarray(Y).sum(axis=1))
    np.testing.assert_allclose(W @ Y, forest.predict_proba(X), atol=1e-12)
    with pytest.raises(ValueError, match="class_weight"):
        pyrpo.RandomForestClassifier(
            20, max_depth=2, bootstrap=False, class_weight=[factor, factor], random_state=0
        ).fit(X, Y).weights(X, X)
    model = pyrpo.RandomForestClassifier(
        20, max_depth=2, class_weight="balanced_subsample", random_state=0
    )
    model.fit(X, Y)
    assert not model._model.has_rows
    with pytest.raises(ValueError, match="class_weight='balanced_subsample'"):
        model.weights(X, X)


# ---- leaf tables ----


def sparse_problem(n=1000, d=3000):
    X, _ = data(n)
    rng = np.random.default_rng(2)
    return X, sparse.csr_array(
        (np.ones(n), (np.arange(n), rng.integers(0, 40, n) * (d // 40))), shape=(n, d)
    )


@pytest.mark.parametrize("cls", [pyrpo.RandomForestClassifier, pyrpo.RandomForestRegressor])
def test_sparse_tables(cls, tmp_path):
    """Few leaves of many outputs, mostly zero: a sparse table, in every readout."""
    X, Y = sparse_problem()
    model = cls(25, max_leaf_nodes=8, random_state=0).fit(X, Y)
    assert not model._model.has_rows
    leaves = len(model) * 8
    assert model._model.nbytes < leaves * Y.shape[1]  # far below a dense table
    predict = getattr(model, "predict_proba", model.predict)
    p = predict(X)
    np.testing.assert_allclose(p, model.weights(X, X) @ Y.toarray(), atol=1e-12)
    np.testing.assert_allclose(
        p, sum(getattr(t, "predict_proba", t.predict)(X) for t in model) / 25, atol=1e-12
    )
    index, score = model.predict_topk(X, 30)
    order = np.argsort(-p, axis=1, kind="stable")[:, :30]
    np.testing.assert_array_equal(index, order)
    np.testing.assert_array_equal(score, np.take_along_axis(p, order, axis=1))
    model.save(tmp_path / "model.rpo")
    loaded = pyrpo.load(tmp_path / "model.rpo")
    np.testing.assert_array_equal(predict(X), getattr(loaded, predict.__name__)(X))
    assert same_model(model, pickle.loads(pickle.dumps(model)))
    more = clone(model).set_params(n_estimators=30)
    less = clone(model).set_params(n_estimators=20, warm_start=True).fit(X, Y)
    less.set_params(n_estimators=30).fit(X, Y)
    np.testing.assert_allclose(
        getattr(less, "predict_proba", less.predict)(X),
        getattr(more.fit(X, Y), "predict_proba", more.predict)(X),
        atol=1e-12,
    )


def test_sparse_tables_out_of_bag():
    X, Y = sparse_problem()
    kept = {"max_leaf_nodes": 8, "random_state": 0, "oob_score": lambda y, p: 0.0}
    forest = pyrpo.RandomForestClassifier(30, **kept).fit(X, Y)
    assert not forest._model.has_rows
    p = forest.oob_decision_function_
    np.testing.assert_allclose(p, slow_oob(forest, X), atol=1e-12)


@pytest.mark.parametrize("d", [1, 40, 4000])
@pytest.mark.parametrize("leaves", [2, 30, None])
def test_the_smallest_form_is_chosen(d, leaves):
    """No other form would take fewer bytes, but for what types and alignment save."""
    X, _ = data(500)
    Y = sparse.random_array((500, d), density=min(1.0, 5 / d), rng=0, format="csr")
    forest = pyrpo.RandomForestRegressor(10, max_leaf_nodes=leaves, random_state=0).fit(X, Y)
    trees = list(forest.estimators_)
    entries = sum(np.count_nonzero(t.tree_.value[t.tree_.children_left < 0]) for t in trees)
    n_leaves = sum(t.tree_.n_leaves for t in trees)
    rows = sum(t.tree_.n_node_samples[0] for t in trees)
    forms = {
        "rows": 3 * rows + 10 * Y.nnz + 8 * 501,
        "dense": 8 * n_leaves * d,
        "sparse": 8 * n_leaves + 10 * entries,
    }
    nodes = 2 * n_leaves * 20 + 5000
    assert forest._model.nbytes < min(forms.values()) + nodes


# ---- labels ----


def test_threshold():
    X, Y = data()
    p = pyrpo.RandomForestClassifier(20, random_state=0).fit(X, Y).predict_proba(X)
    for threshold in (0.2, 0.0, 1.0, np.linspace(0.1, 0.8, 8)):
        forest = pyrpo.RandomForestClassifier(20, random_state=0, threshold=threshold).fit(X, Y)
        np.testing.assert_array_equal(forest.predict(X), p > threshold)
        assert forest.predict(X).dtype == np.int64


@pytest.mark.parametrize("missing", [False, True])
def test_threshold_out_of_bag(missing):
    X, Y = data()
    y = Y.astype(float)
    if missing:
        y[np.random.default_rng(0).random(y.shape) < 0.1] = np.nan
    forest = pyrpo.RandomForestClassifier(50, random_state=0, threshold="oob").fit(X, y)
    assert not hasattr(forest, "oob_score_")
    again = pyrpo.RandomForestClassifier(50, random_state=0)
    again.set_params(oob_score=lambda t, q: 0.0).fit(X, y)
    p, seen = again.oob_decision_function_, ~np.isnan(y)
    f1 = [f1_score(y[seen], p[seen] >= t) for t in np.linspace(0, 1, 201)]
    chosen = f1_score(y[seen], p[seen] >= forest.threshold_)
    assert chosen == pytest.approx(max(f1), abs=0.005)
    with pytest.raises(ValueError, match="bootstrap=True"):
        pyrpo.ExtraTreesClassifier(threshold="oob").fit(X, Y)


def test_a_half_is_not_more_than_a_half():
    """Probabilities of exactly one half, of any number of rows, are not predicted."""
    for n in (2, 6, 10, 14, 22, 98):
        X = np.zeros((n, 1))
        Y = np.zeros((n, 3))
        Y[: n // 2, 0] = Y[:, 1] = 1
        model = pyrpo.RandomForestClassifier(7, bootstrap=False).fit(X, Y)
        np.testing.assert_array_equal(model.predict_proba(X), np.tile([0.5, 1, 0], (n, 1)))
        np.testing.assert_array_equal(model.predict(X), np.tile([0, 1, 0], (n, 1)))


@pytest.mark.parametrize("cls", FORESTS + TREES)
def test_predict_topk(cls):
    X, Y = data()
    model = cls(random_state=0).fit(X, Y)
    scores = getattr(model, "predict_proba", model.predict)(X)
    labels, best = model.predict_topk(X, 3)
    assert labels.shape == best.shape == (200, 3)
    np.testing.assert_allclose(best, -np.sort(-scores, axis=1)[:, :3], atol=1e-12)
    np.testing.assert_allclose(best, np.take_along_axis(scores, labels, axis=1), atol=1e-12)
    assert model.predict_topk(X, 8)[0].shape == (200, 8)


def test_predict_topk_of_classes():
    X, _ = data()
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-1, 1])]
    model = pyrpo.RandomForestClassifier(11, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_topk(X, 1)[0][:, 0], model.predict(X))


def test_shapes_and_classes():
    X, Y = data()
    model = pyrpo.RandomForestClassifier(3, random_state=0).fit(X, Y)
    assert model.n_outputs_ == 8
    assert model.n_classes_ == [2] * 8
    np.testing.assert_array_equal(model.classes_, np.arange(8))
    assert model.predict_proba(X).shape == (200, 8)
    assert 0 <= model.score(X, Y) <= 1
    assert model.score(X, sparse.csr_array(Y)) == model.score(X, Y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    model.fit(X, Y[:, 0])
    assert model.n_outputs_ == 1
    assert model.n_classes_ == 2
    assert model.predict_proba(X).shape == (200, 2)
    one = pyrpo.RandomForestRegressor(3).fit(X, Y[:, :1].astype(float))
    assert one.predict(X).shape == (200, 1)
    assert one.fit(X, Y[:, 0]).predict(X).shape == (200,)
    constant = pyrpo.RandomForestClassifier(3).fit(X, np.zeros((200, 4)))
    assert not constant.predict_proba(X).any()


# ---- trees of a forest ----


@pytest.mark.parametrize("cls", FORESTS)
def test_estimators(cls):
    X, Y = data()
    forest = cls(7, random_state=0, min_samples_leaf=2).fit(X, Y)
    assert len(forest.estimators_) == len(forest) == 7
    trees = list(forest.estimators_)
    predict = [getattr(t, "predict_proba", t.predict)(X) for t in trees]
    whole = getattr(forest, "predict_proba", forest.predict)(X)
    np.testing.assert_allclose(np.mean(predict, axis=0), whole, atol=1e-12)
    np.testing.assert_array_equal(forest.apply(X), np.stack([t.apply(X) for t in trees], axis=1))
    path, starts = forest.decision_path(X)
    for i, tree in enumerate(trees):
        assert (path[:, starts[i] : starts[i + 1]] != tree.decision_path(X)).nnz == 0
        assert tree.min_samples_leaf == 2
        assert tree.get_n_leaves() == len(np.unique(forest.apply(X)[:, i])) or forest.bootstrap
    importances = np.mean([t.feature_importances_ for t in trees], axis=0)
    np.testing.assert_allclose(forest.feature_importances_, importances, atol=1e-12)
    assert forest.feature_importances_.sum() == pytest.approx(1)
    assert [t.get_depth() for t in forest.estimators_[1:3]] == [t.get_depth() for t in trees[1:3]]
    assert forest[-1].get_depth() == trees[6].get_depth()
    with pytest.raises(IndexError):
        forest.estimators_[7]
    assert is_classifier(forest) == is_classifier(trees[0])
    assert is_regressor(forest) == is_regressor(trees[0])


def test_tree_arrays():
    X, Y = data()
    tree = pyrpo.DecisionTreeClassifier(random_state=0).fit(X, Y).tree_
    assert tree.value.shape == (tree.node_count, 8, 2)
    np.testing.assert_allclose(tree.value.sum(axis=2), 1)
    assert tree.n_leaves == (tree.children_left < 0).sum()
    assert tree.n_features == 6
    assert tree.n_outputs == 8
    assert not tree.feature.flags.writeable
    regressor = pyrpo.DecisionTreeRegressor().fit(X, Y)
    np.testing.assert_allclose(
        regressor.tree_.value[regressor.apply(X), :, 0], regressor.predict(X), atol=1e-12
    )
    classes = pyrpo.DecisionTreeClassifier().fit(X, Y[:, 0]).tree_
    assert classes.value.shape == (classes.node_count, 1, 2)


def test_tree_arrays_are_kept():
    X, Y = data()
    estimator = pyrpo.DecisionTreeClassifier(random_state=0).fit(X, Y)
    size = len(pickle.dumps(estimator))
    tree = estimator.tree_
    assert estimator.tree_ is tree
    for name in ("feature", "threshold", "children_left", "impurity", "value"):
        assert getattr(tree, name) is getattr(tree, name)
        assert not getattr(tree, name).flags.writeable
    assert len(pickle.dumps(estimator)) < size + 200
    other = pickle.loads(pickle.dumps(estimator))
    assert other.tree_.model is other._model
    np.testing.assert_array_equal(other.tree_.value, tree.value)
    estimator.set_params(max_depth=1).fit(X, Y)
    assert estimator.tree_.node_count == 3 < tree.node_count
    assert copy.deepcopy(estimator).tree_.node_count == 3


def test_importances_under_a_projection_point_at_the_inputs_that_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    Y = X[:, [0]] * rng.normal(size=(1, 50))
    forest = pyrpo.RandomForestRegressor(10, projection="gaussian", random_state=0).fit(X, Y)
    assert forest.feature_importances_.argmax() == 0


# ---- work and display ----


def test_n_jobs_and_joblib_context():
    from pyrpo._native_call import threads

    assert threads(None) == 1
    assert threads(3) in (1, 2, 3)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert threads(None) in (1, 2)
    X, Y = data()
    with pytest.raises(ValueError, match="n_jobs"):
        pyrpo.RandomForestRegressor(2, n_jobs=0).fit(X, Y)


def test_omp_num_threads_limits(monkeypatch):
    from pyrpo._native_call import threads

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads(8) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "not a number")
    assert threads(2) >= 1


def test_verbose_shows_a_bar(capsys):
    X, Y = data()
    pyrpo.RandomForestRegressor(5).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    pyrpo.RandomForestRegressor(5, verbose=1).fit(X, Y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "RandomForestRegressor" in captured.err
    assert "5/5" in captured.err


# ---- keeping ----


@pytest.mark.parametrize("cls", FORESTS + TREES)
def test_pickle_and_copies(cls):
    X, Y = data()
    model = cls(random_state=0).fit(X, Y)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(buffer)):
        assert same_model(again, model)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not hasattr(clone(model), "n_features_in_")


def test_joblib_memory_maps(tmp_path):
    X, Y = data()
    model = pyrpo.RandomForestClassifier(random_state=0).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    joblib.dump((X, Y), tmp_path / "data.joblib")
    again = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    mapped_X, mapped_Y = joblib.load(tmp_path / "data.joblib", mmap_mode="r")
    assert not mapped_X.flags.writeable
    np.testing.assert_array_equal(again.predict(mapped_X), model.predict(X))
    assert same_model(clone(model).fit(mapped_X, mapped_Y), model)


@pytest.mark.parametrize("cls", FORESTS + TREES)
def test_save_and_load(cls, tmp_path):
    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = cls(random_state=0, projection="gaussian", output_scale=np.ones(8)).fit(frame, Y)
    model.save(tmp_path / "model.rpo")
    again = pyrpo.load(tmp_path / "model.rpo")
    assert type(again) is cls
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    for name, value in model.get_params().items():
        np.testing.assert_array_equal(again.get_params()[name], value)
    assert same_model(clone(again).fit(frame, Y), model)
    again.save(str(tmp_path / "again.rpo"))
    assert (tmp_path / "again.rpo").read_bytes() == (tmp_path / "model.rpo").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": {0: 1.0, 1: 2.0}},
        {"random_state": np.random.RandomState(0)},
        {"projection": GaussianProjection(3, random_state=4)},
        {"projection": np.eye(2)},
        {"threshold": np.float64(0.3), "max_depth": np.int64(3)},
        {"oob_score": accuracy_score},
    ],
    ids=lambda o: ",".join(o),
)
def test_parameters_are_saved(options, tmp_path):
    X, Y = data()
    model = pyrpo.RandomForestClassifier(30, **options).fit(X, Y[:, 0])
    model.save(tmp_path / "model.rpo")
    again = pyrpo.load(tmp_path / "model.rpo")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.class_weight == model.class_weight
    if "projection" in options:
        assert repr(again.projection) == repr(model.projection)
    clone(again).fit(X, Y[:, 0])


@pytest.mark.parametrize("classes", [np.array(["x", "y"]), np.array([3, -1]), [True, False]])
def test_classes_are_saved(classes, tmp_path):
    X, Y = data()
    model = pyrpo.RandomForestClassifier(3).fit(X, np.array(classes)[Y[:, 0]])
    model.save(tmp_path / "model.rpo")
    again = pyrpo.load(tmp_path / "model.rpo")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_save_needs_a_fit_and_a_place(tmp_path):
    from sklearn.exceptions import NotFittedError

    model = pyrpo.RandomForestRegressor(3)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.rpo")
    model.fit(*data())
    with pytest.raises(OSError, match=r"model\.rpo"):
        model.save(tmp_path / "no such folder" / "model.rpo")
    with pytest.raises(OSError, match=r"nothing\.rpo"):
        pyrpo.load(tmp_path / "nothing.rpo")


# ---- scikit-learn's tools ----


def test_model_selection():
    X, Y = data()
    search = GridSearchCV(
        pyrpo.RandomForestClassifier(5, random_state=0),
        {"n_components": [1, 3], "projection": ["gaussian", GaussianProjection(2)]},
        cv=2,
        n_jobs=2,
    ).fit(X, Y)
    assert search.best_estimator_.predict(X).shape == Y.shape
    scores = cross_val_score(pyrpo.ExtraTreesRegressor(5, random_state=0), X, Y, cv=3)
    assert np.isfinite(scores).all()


def test_get_and_set_params():
    model = pyrpo.ExtraTreesClassifier(projection=GaussianProjection(3))
    assert model.get_params()["projection__n_components"] == 3
    model.set_params(projection__n_components=5)
    assert model.projection.n_components == 5
    assert repr(pyrpo.RandomForestRegressor(3, projection="pca")) == (
        "RandomForestRegressor(n_estimators=3, projection='pca')"
    )


@pytest.mark.parametrize("cls", FORESTS + TREES)
def test_docstrings_name_every_parameter(cls):
    for name in cls().get_params():
        assert f"\n    {name} : " in cls.__doc__
    assert "{" not in cls.__doc__


# ---- kinds of input ----


def test_data_frames():
    X, Y = data()
    names = list("abcdef")
    model = pyrpo.RandomForestClassifier(5, random_state=0)
    plain = model.fit(X, Y).predict_proba(X)
    for frame, target in (
        (pd.DataFrame(X, columns=names), pd.DataFrame(Y)),
        (pl.DataFrame(X, schema=names), pl.DataFrame(Y)),
    ):
        model.fit(frame, target)
        np.testing.assert_array_equal(model.feature_names_in_, names)
        np.testing.assert_array_equal(model.predict_proba(frame), plain)
    model.fit(X, pd.Series(Y[:, 0]).astype("category"))
    np.testing.assert_array_equal(model.classes_, [0, 1])
    with pytest.raises(ValueError, match="feature names"):
        model.fit(frame, Y).predict(pd.DataFrame(X, columns=list("abcdeg")))


def variants(a):
    yield np.asfortranarray(a)
    yield a.astype(np.float32)
    readonly = a.copy()
    readonly.flags.writeable = False
    yield readonly
    yield np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3]
    yield a[::-1][::-1]
    yield np.ascontiguousarray(a[:, ::-1])[:, ::-1]
    for container in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.coo_array):
        yield container(a)
    wide = sparse.csr_array(a)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield wide
    yield sparse.csr_array(a.astype(np.float32))


def test_all_kinds_of_X_and_Y_give_the_same_model():
    X, Y = data()
    X = np.round(X * 8) / 8  # exact in float32
    X[X == 0] = 0.125
    Y = Y.astype(float)
    plain = pyrpo.RandomForestClassifier(5, random_state=0).fit(X, Y)
    p = plain.predict_proba(X)
    for A in variants(X):
        model = clone(plain).fit(A, Y)
        np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-12)
        np.testing.assert_array_equal(plain.predict_proba(A), p)
    regressor = pyrpo.RandomForestRegressor(5, random_state=0).fit(X, Y)
    for B in variants(Y):
        np.testing.assert_array_equal(clone(plain).fit(X, B).predict_proba(X), p)
        np.testing.assert_allclose(
            clone(regressor).fit(X, B).predict(X), regressor.predict(X), atol=1e-12
        )
    for kind in (int, bool, np.int8):
        np.testing.assert_array_equal(clone(plain).fit(X, Y.astype(kind)).predict_proba(X), p)
    np.testing.assert_array_equal(clone(plain).fit(X.tolist(), Y.tolist()).predict_proba(X), p)
    whole = (X * 8).astype(np.int64)
    clone(plain).fit(whole, Y).predict(whole)
    clone(plain).fit(X > 0, Y).predict(X > 0)


def test_unsorted_and_repeated_sparse_entries():
    X, Y = data()
    X = np.round(X * 8) / 8
    tidy = sparse.csr_array(X)
    messy = tidy.copy()
    for i in range(200):
        row = slice(messy.indptr[i], messy.indptr[i + 1])
        messy.indices[row], messy.data[row] = messy.indices[row][::-1], messy.data[row][::-1]
    messy.has_sorted_indices = False
    halves = sparse.csr_array(
        (np.repeat(tidy.data / 2, 2), np.repeat(tidy.indices, 2), tidy.indptr * 2), tidy.shape
    )
    plain = pyrpo.RandomForestClassifier(5, random_state=0).fit(tidy, Y)
    for other in (messy, halves):
        stored = other.indices.copy()
        model = clone(plain).fit(other, Y)
        assert same_model(model, plain)
        np.testing.assert_array_equal(model.predict(other), plain.predict(tidy))
        np.testing.assert_array_equal(other.indices, stored)  # the caller's matrix is untouched
    labels = sparse.csr_array(Y)
    for i in range(200):
        row = slice(labels.indptr[i], labels.indptr[i + 1])
        labels.indices[row] = labels.indices[row][::-1].copy()
    labels.has_sorted_indices = False
    assert same_model(clone(plain).fit(tidy, labels), plain)


def test_import_is_light(tmp_path):
    """tqdm, pandas and matplotlib are imported when asked for only."""
    code = (
        "import sys, pyrpo; "
        "print([m for m in ('tqdm', 'matplotlib', 'polars', 'pyrpo.datasets') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["one", "many", "classes", "labels"])
def test_random_cuts_on_values(kind, missing, dtype):
    """Rows that differ end in leaves of their own, on the way down as when they were grown."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)).astype(dtype)
    X[:, 3] = np.round(X[:, 3])
    X[:, :2][rng.random((3000, 2)) < missing] = np.nan
    cls = pyrpo.ExtraTreesClassifier if kind in ("classes", "labels") else pyrpo.ExtraTreesRegressor
    y = {
        "one": rng.normal(size=3000),
        "many": rng.normal(size=(3000, 5)),
        "classes": rng.integers(0, 40, 3000),
        "labels": (rng.random((3000, 60)) < 0.05).astype(int),
    }[kind]
    model = cls(3, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-12)


@pytest.mark.parametrize(
    ("of_y", "of_weight"),
    [
        (2.0**320, 1.0),
        (2.0**-320, 1.0),
        (2.0**320, 2.0**160),
        (2.0**-330, 2.0**-158),
        (1.0, 2.0**160),
    ],
)
def test_scales_change_no_tree(of_y, of_weight):
    """Powers of two scale sums exactly, until products of sums leave the range of numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X[:, :2] + 0.1 * rng.normal(size=(200, 2))
    weight = rng.uniform(0.5, 1, 200)
    tree = pyrpo.DecisionTreeRegressor(random_state=0, max_leaf_nodes=20)
    leaves = tree.fit(X, y, sample_weight=weight).apply(X)
    scaled = tree.fit(X, y * of_y, sample_weight=weight * of_weight).apply(X)
    np.testing.assert_array_equal(scaled, leaves)
