"""Every split against a search through all splits in numpy, on small problems of all kinds."""

from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from pyrpo import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestRegressor,
)


@st.composite
def problems(draw, real=False):
    """A small X with ties, constants and duplicates, a Y, and weights or None.

    Where Y is `real`, no two sets of rows have the same score.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p, d = draw(st.integers(1, 24)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    X = rng.integers(-2, 3, size=(n, p)).astype(float)
    X *= rng.random((n, p)) < draw(st.sampled_from([0.2, 0.6, 1.0]))
    if draw(st.booleans()):
        X += rng.normal(size=(n, p))
    if draw(st.booleans()):
        X[:, rng.integers(p)] = 1.5
    if draw(st.booleans()):
        X = X[rng.integers(n, size=n)]
    if draw(st.booleans()):
        X[rng.random((n, p)) < 0.3] = np.nan
    labels = not real and draw(st.booleans())
    Y = (rng.random((n, d)) < 0.4).astype(float) if labels else rng.normal(size=(n, d))
    if not real and draw(st.booleans()):
        Y[rng.random(n) < 0.3] = 0.0
    weight = None
    if draw(st.booleans()):
        weight = rng.integers(0, 4, size=n).astype(float)
        if draw(st.booleans()):
            weight *= 0.37
        assume(weight.sum() > 0)
    return X, Y, weight


def spread(Y, w):
    """Sum over the outputs of the weighted squares about the mean."""
    return float((w[:, None] * (Y - w @ Y / w.sum()) ** 2).sum()) if w.sum() > 0 else 0.0


def best_decrease(X, Y, w, min_leaf=1):
    """Largest decrease over all features, cuts and sides of the missing values."""
    best = -np.inf
    for x in X.T:
        values, gone = np.unique(x[~np.isnan(x)]), np.isnan(x)
        cuts = (values[:-1] + values[1:]) / 2
        lefts = [np.where(gone, side, x <= c) for c in cuts for side in {gone.any(), False}]
        if gone.any() and not gone.all():
            lefts.append(~gone)
        for left in lefts:
            left = left.astype(bool)
            if min(left.sum(), (~left).sum()) >= min_leaf:
                rest = spread(Y[left], w[left]) + spread(Y[~left], w[~left])
                best = max(best, spread(Y, w) - rest)
    return best


def check_every_node(tree, X, Y, weight, min_leaf=1):
    w = np.ones(len(X)) if weight is None else weight
    X, Y, w = X[w > 0], Y[w > 0], w[w > 0]
    scale = spread(Y, w) + (w @ Y**2).sum() * 1e-3 + 1e-12
    paths = tree.decision_path(X).toarray().astype(bool)
    t = tree.tree_
    for node in range(t.node_count):
        rows = paths[:, node]
        here = X[rows], Y[rows], w[rows]
        assert t.n_node_samples[node] == rows.sum()
        assert t.weighted_n_node_samples[node] == pytest.approx(w[rows].sum(), rel=1e-9)
        impurity = spread(*here[1:]) / w[rows].sum()
        assert t.impurity[node] * Y.shape[1] == pytest.approx(impurity, rel=1e-5, abs=1e-6 * scale)
        best = best_decrease(*here, min_leaf)
        if t.children_left[node] < 0:
            pure = spread(*here[1:]) <= 1e-9 * scale
            assert best == -np.inf or pure or rows.sum() < 2 * min_leaf
            continue
        left = paths[:, t.children_left[node]]
        right = paths[:, t.children_right[node]]
        assert (left ^ right == rows).all()
        done = spread(*here[1:]) - spread(Y[left], w[left]) - spread(Y[right], w[right])
        assert done == pytest.approx(best, rel=1e-9, abs=1e-9 * scale)


@settings(max_examples=300, deadline=None)
@given(problems(), st.integers(1, 3))
def test_dense(problem, min_leaf):
    X, Y, weight = problem
    tree = DecisionTreeRegressor(min_samples_leaf=min_leaf).fit(X, Y, weight)
    check_every_node(tree, X, Y, weight, min_leaf)


@settings(max_examples=300, deadline=None)
@given(problems(), st.integers(1, 3), st.sampled_from([sparse.csr_array, sparse.csc_array]))
def test_sparse(problem, min_leaf, container):
    X, Y, weight = problem
    if min(X.shape) == 0 or not np.nan_to_num(X).any():
        X[0, 0] = 1.0
    tree = DecisionTreeRegressor(min_samples_leaf=min_leaf).fit(container(X), Y, weight)
    check_every_node(tree, X, Y, weight, min_leaf)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_sparse_targets(problem):
    """A CSR Y, whatever it holds."""
    X, Y, weight = problem
    tree = DecisionTreeRegressor().fit(X, sparse.csr_array(Y), weight)
    check_every_node(tree, X, Y, weight)


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(2, 6))
def test_best_first(problem, leaves):
    X, Y, weight = problem
    tree = DecisionTreeRegressor(max_leaf_nodes=leaves).fit(X, Y, weight)
    assert tree.get_n_leaves() <= leaves
    if tree.get_n_leaves() < leaves:
        check_every_node(tree, X, Y, weight)


def assert_same(a, b, X):
    for name in ("children_left", "children_right", "feature", "threshold", "n_node_samples"):
        np.testing.assert_array_equal(getattr(a.tree_, name), getattr(b.tree_, name), err_msg=name)
    np.testing.assert_array_equal(a.apply(X), b.apply(X))


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(["best", "random"]))
def test_both_targets_agree(problem, splitter):
    """Sums of a dense Y, and the cursor over a CSR Y: the same tree from the same 0 and 1."""
    X, Y, weight = problem
    Y = (Y > 0).astype(float)
    trees = [
        DecisionTreeRegressor(splitter=splitter, random_state=0).fit(X, y, weight)
        for y in (Y, sparse.csr_array(Y))
    ]
    assert_same(*trees, X)
    np.testing.assert_allclose(trees[0].predict(X), trees[1].predict(X), atol=1e-12)


def test_both_targets_agree_on_many_labels():
    """Wide enough for the cursor, which few labels are not."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(400, 60)).astype(float)
    Y = (rng.random((400, 300)) < 0.02).astype(float)
    for settings_ in ({}, {"max_features": 5}, {"max_leaf_nodes": 30}, {"splitter": "random"}):
        trees = [
            DecisionTreeRegressor(**settings_, random_state=1).fit(x, y)
            for x in (X, sparse.csr_array(X))
            for y in (Y, sparse.csr_array(Y))
        ]
        for other in trees[1:]:
            assert_same(trees[0], other, X)
        labels = DecisionTreeClassifier(**settings_, random_state=1).fit(X, sparse.csr_array(Y))
        assert_same(trees[0], labels, X)


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from([{}, {"max_features": 2}, {"splitter": "random"}]))
def test_dense_and_sparse_features_agree(problem, options):
    X, Y, weight = problem
    options = options | {"random_state": 0}
    if options.get("max_features") or options.get("splitter"):
        X = np.nan_to_num(X)
    a = DecisionTreeRegressor(**options).fit(X, Y, weight)
    b = DecisionTreeRegressor(**options).fit(sparse.csr_array(X), Y, weight)
    np.testing.assert_allclose(a.predict(X), b.predict(sparse.csr_array(X)), atol=1e-9)
    np.testing.assert_array_equal(b.apply(X), b.apply(sparse.csr_array(X)))


@settings(max_examples=100, deadline=None)
@given(problems(real=True), st.sampled_from([1e3, 1e6]), st.booleans())
def test_shifted_outputs_grow_the_same_tree(problem, shift, as_sparse):
    X, Y, weight = problem
    Y = np.round(Y * 2**20) / 2**20  # exact, shifted or not
    container = sparse.csr_array if as_sparse else np.asarray
    plain = DecisionTreeRegressor().fit(X, container(Y), weight)
    shifted = DecisionTreeRegressor().fit(X, container(Y + shift), weight)
    assert plain.tree_.node_count == shifted.tree_.node_count
    seen = X if weight is None else X[weight > 0]
    np.testing.assert_allclose(plain.predict(seen), shifted.predict(seen) - shift, atol=1e-6)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_identity_projection_is_none(problem):
    X, Y, weight = problem
    assert_same(
        DecisionTreeRegressor().fit(X, Y, weight),
        DecisionTreeRegressor(projection=np.eye(Y.shape[1])).fit(X, Y, weight),
        X,
    )


@settings(max_examples=100, deadline=None)
@given(problems(), st.booleans())
def test_weight_two_is_a_row_twice(problem, as_sparse):
    X, Y, _ = problem
    weight = np.random.default_rng(0).integers(1, 4, size=len(X))
    a, b = DecisionTreeRegressor(), DecisionTreeRegressor()
    many_X, many_Y = np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    if as_sparse:
        a.fit(sparse.csr_array(X), sparse.csr_array(Y), weight)
        b.fit(sparse.csr_array(many_X), sparse.csr_array(many_Y))
    else:
        a.fit(X, Y, weight)
        b.fit(many_X, many_Y)
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-9)
    assert a.tree_.node_count == b.tree_.node_count


@settings(max_examples=100, deadline=None)
@given(problems(real=True), st.booleans())
def test_rows_of_no_weight_are_absent(problem, as_sparse):
    X, Y, weight = problem
    weight = np.ones(len(X)) if weight is None else weight
    keep = weight > 0
    container = sparse.csr_array if as_sparse else np.asarray
    a = DecisionTreeRegressor().fit(container(X), container(Y), weight)
    b = DecisionTreeRegressor().fit(container(X[keep]), container(Y[keep]), weight[keep])
    assert a.tree_.node_count == b.tree_.node_count
    np.testing.assert_allclose(a.predict(X[keep]), b.predict(X[keep]), atol=1e-9)


def test_random_cuts_are_uniform_in_values():
    """On one feature with a far value, the cut falls by distance, not by rank."""
    X = np.r_[np.linspace(0, 1, 99), 100.0][:, None]
    Y = np.random.default_rng(0).normal(size=(100, 1))
    cuts = np.array(
        [
            DecisionTreeRegressor(splitter="random", max_depth=1, random_state=seed)
            .fit(X, Y)
            .tree_.threshold[0]
            for seed in range(400)
        ]
    )
    assert (cuts > 0).all()
    assert (cuts < 100).all()
    assert abs(np.mean(cuts > 1) - 0.99) < 0.02
    assert abs(np.mean(cuts < 50) - 0.5) < 0.1


def test_features_are_drawn_evenly():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 10)), rng.normal(size=(40, 2))
    forest = RandomForestRegressor(1000, max_features=1, max_depth=1, random_state=0).fit(X, Y)
    roots = [forest._model.tree(i)["feature"][0] for i in range(1000)]
    counts = np.bincount(roots, minlength=10)
    assert ((counts - 100) ** 2 / 100).sum() < 27.9  # chi-squared, 9 degrees, 0.1 %


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    common=st.integers(0, 6),
    options=st.sampled_from(
        [
            {},
            {"min_samples_leaf": 3},
            {"max_features": 0.4},
            {"max_leaf_nodes": 9},
            {"max_depth": 3},
        ]
    ),
    weighted=st.booleans(),
)
def test_rows_of_one_class_walked_together(seed, common, options, weighted):
    """Labels of 2 take the general loops, at four times every score: the same trees."""
    rng = np.random.default_rng(seed)
    n, p, classes = int(rng.integers(2, 300)), int(rng.integers(1, 30)), 40
    X = rng.integers(0, rng.integers(1, 16, size=p), size=(n, p)).astype(float)
    X[rng.random((n, p)) < rng.choice([0.0, 0.7])] = common
    if p > 2:
        X[:, 1] = rng.normal(size=n)  # many values among the few
    y = rng.integers(classes, size=n)
    Y = sparse.csr_array((np.ones(n), y, np.arange(n + 1)), shape=(n, classes))
    weight = rng.integers(0, 3, size=n).astype(float) if weighted else None
    assume(weight is None or weight.sum() > 0)
    trees = [
        DecisionTreeRegressor(random_state=0, **options).fit(X, scale * Y, weight)
        for scale in (1.0, 2.0)
    ]
    assert_same(*trees, X)


# ---- how many features are drawn ----------------------------------------------------------------


def decreases(X, Y):
    """Largest decrease by each column that is not constant, best first; the columns' numbers."""
    columns = np.flatnonzero(np.ptp(X, axis=0))
    best = np.array([best_decrease(X[:, [j]], Y, np.ones(len(X))) for j in columns])
    order = np.argsort(-best)
    return best[order], columns[order]


def surprise(trees, X, Y, k):
    """How far the features split on are from the best of k drawn among those not constant.

    Of q features that are not constant, the best of k drawn without replacement has rank >= r with
    probability C(q - r, k) / C(q, k); where k >= q the rank is 0. Returns the sum over all nodes of
    rank - expected rank, in standard deviations, and how many ranks are not 0 that had to be.
    """
    total = variance = wrong = 0
    for tree in trees:
        paths, t = tree.decision_path(X).toarray().astype(bool), tree.tree_
        for node in np.flatnonzero(t.children_left >= 0):
            rows = paths[:, node]
            best, columns = decreases(X[rows], Y[rows])
            if len(best) > 1 and (np.diff(best) > -1e-9 * best[0]).any():
                continue  # ties: the rank is not defined, whichever feature was taken
            rank, q = list(columns).index(t.feature[node]), len(columns)
            if k >= q:
                wrong += rank > 0
                continue
            tail = np.array([comb(q - r, k) / comb(q, k) for r in range(1, q)])
            mean = tail.sum()  # and E[rank²] = sum of (2r - 1) P(rank >= r)
            total += rank - mean
            variance += ((2 * np.arange(1, q) - 1) * tail).sum() - mean**2
    return total / np.sqrt(variance), wrong


@pytest.mark.parametrize("rows", [60, 150], ids=["nodes as bits", "nodes as lists"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_draw_non_constant(container, rows):
    """Sparse columns, most of them constant in most nodes: best of k that are not."""
    rng = np.random.default_rng(0)
    X = (rng.random((rows, 40)) < 0.08).astype(float)
    Y, k = rng.normal(size=(rows, 2)), 4

    def trees(draw_non_constant):
        options = {"max_features": k, "draw_non_constant": draw_non_constant}
        return [
            DecisionTreeRegressor(random_state=seed, **options).fit(container(X), Y)
            for seed in range(8)
        ]

    distance, wrong = surprise(trees(True), X, Y, k)
    assert abs(distance) < 4
    assert wrong == 0
    distance, wrong = surprise(trees(False), X, Y, k)  # looks at fewer, so takes worse ones
    assert wrong > 3
    assert distance > 1


def test_draw_non_constant_of_enough_features_is_all_of_them():
    """Of 5 features and 25 constant ones, drawing 5 that are not constant takes every one."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(50, 5)), np.ones((50, 25))])[:, rng.permutation(30)]
    Y = rng.normal(size=(50, 2))
    drawn = DecisionTreeRegressor(max_features=5, draw_non_constant=True, random_state=0)
    check_every_node(drawn.fit(X, Y), X, Y, None)
    fewer = DecisionTreeRegressor(max_features=5, random_state=0).fit(X, Y)
    with pytest.raises(AssertionError):
        check_every_node(fewer, X, Y, None)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("forest", [RandomForestRegressor, ExtraTreesClassifier])
def test_draw_non_constant_of_forests(forest, seed):
    """Reaches the trees of forests; changes nothing where no feature is constant in any node."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((60, 5)) < 0.3).astype(float)
    for X, same in ((rng.random((60, 30)) < 0.1, False), (rng.normal(size=(60, 30)), True)):
        a, b = (
            forest(5, draw_non_constant=choice, max_features=4, random_state=seed).fit(X, Y)
            for choice in (False, True)
        )
        assert (a.estimators_[0].tree_.feature.tolist() == b[0].tree_.feature.tolist()) == same
        assert b[0].draw_non_constant
