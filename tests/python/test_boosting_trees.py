"""Trees of boosting against a search through all splits, and what rows a model puts where."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from pyrpo import DecisionTreeRegressor
from pyrpo._native import Features
from pyrpo._native_boost import LEAVES, LOSSES, Boost


def boost(X, Y, *, weight=None, watched=None, bins=0, start=None, n_jobs=None, **options):
    """Squared loss on all outputs: the first round's target is y minus the start."""
    options = {"loss": LOSSES.index("squared"), "leaf": LEAVES.index("mean"), **options}
    options = {"learning_rate": 1.0} | options
    start = np.zeros(Y.shape[1]) if start is None else start
    return Boost(
        options,
        Features(X, bins, 1),
        Y,
        weight=weight,
        watched=watched,
        start=start,
        n_jobs=n_jobs,
    )


@st.composite
def problems(draw):
    """A small X with ties, constants, duplicates, zeros and missing values; Y; weights or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p, d = draw(st.integers(1, 30)), draw(st.integers(1, 5)), draw(st.integers(1, 9))
    X = rng.integers(-2, 3, size=(n, p)).astype(float)
    X *= rng.random((n, p)) < draw(st.sampled_from([0.1, 0.6, 1.0]))
    if draw(st.booleans()):
        X += rng.normal(size=(n, p)) * (X != 0 if draw(st.booleans()) else 1)
    if draw(st.booleans()):
        X = (X != 0).astype(float)  # binary
    if draw(st.booleans()):
        X[:, rng.integers(p)] = 1.5
    if draw(st.booleans()):
        X = X[rng.integers(n, size=n)]
    if draw(st.booleans()):
        X[rng.random((n, p)) < 0.3] = np.nan
    if draw(st.booleans()):
        X = sparse.csr_array(X)
    Y = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    if draw(st.booleans()):
        Y[rng.random(n) < 0.5] = 0.25
    weight = None
    if draw(st.booleans()):
        weight = rng.integers(0, 4, size=n).astype(float)
        if draw(st.booleans()):
            weight *= 0.37 * rng.random(n)
        assume(weight.sum() > 0)
    return X, Y, weight


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def spread(Y, w):
    return float((w[:, None] * (Y - w @ Y / w.sum()) ** 2).sum()) if w.sum() > 0 else 0.0


def best_decrease(X, Y, w, min_leaf):
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


def walk(tree, X):
    """Rows of every node, as a boolean array."""
    inside = np.zeros((len(X), len(tree["left"])), dtype=bool)
    inside[:, 0] = True
    for node, left in enumerate(tree["left"]):
        if left >= 0:
            x = X[:, tree["feature"][node]]
            goes = np.where(
                np.isnan(x), tree["missing_left"][node] == 1, x <= tree["threshold"][node]
            )
            inside[:, left] = inside[:, node] & goes
            inside[:, tree["right"][node]] = inside[:, node] & ~goes
    return inside


def check_every_node(model, X, Y, w, *, min_leaf=1, greedy=True, bins=None):
    """`bins`: X as its bins, to search in."""
    t, searched = model.tree(0), X if bins is None else bins
    np.testing.assert_array_equal(walk(t, X)[np.arange(len(X)), model.apply(X)[:, 0]], True)
    keep = w > 0
    inside, searched, Y, w = walk(t, X)[keep], searched[keep], Y[keep], w[keep]
    scale = (w @ Y**2).sum() + 1e-12
    for node in range(len(t["left"])):
        rows = inside[:, node]
        y, v = Y[rows], w[rows]
        assert t["n_samples"][node] == rows.sum()
        assert t["weight"][node] == pytest.approx(v.sum(), rel=1e-9)
        impurity = spread(y, v) / v.sum()
        assert t["impurity"][node] == pytest.approx(impurity, rel=1e-4, abs=1e-5 * scale / v.sum())
        if not greedy:
            continue
        best = best_decrease(searched[rows], y, v, min_leaf)
        if t["left"][node] < 0:
            assert best <= 1e-7 * scale
            continue
        left, right = inside[:, t["left"][node]], inside[:, t["right"][node]]
        assert min(left.sum(), right.sum()) >= min_leaf
        done = spread(y, v) - spread(Y[left], w[left]) - spread(Y[right], w[right])
        assert done == pytest.approx(best, rel=1e-6, abs=1e-7 * scale)


@settings(max_examples=300)
@given(problems(), st.integers(1, 3), st.sampled_from([None, 1, 2]))
def test_every_split_is_the_best(problem, min_leaf, n_jobs):
    X, Y, weight = problem
    run = boost(X, Y, weight=weight, min_samples_leaf=min_leaf)
    run.run(1, n_jobs)
    w = np.ones(len(Y)) if weight is None else weight
    check_every_node(run.model(1), dense(X), Y, w, min_leaf=min_leaf)


@settings(max_examples=150)
@given(problems(), st.integers(2, 4))
def test_every_split_is_the_best_of_bins(problem, bins):
    X, Y, weight = problem
    run = boost(X, Y, weight=weight, bins=bins)
    run.run(1)
    codes = np.column_stack([run.features.codes(j) for j in range(X.shape[1])]).astype(float)
    codes[np.isnan(dense(X))] = np.nan
    w = np.ones(len(Y)) if weight is None else weight
    check_every_node(run.model(1), dense(X), Y, w, bins=codes)


@settings(max_examples=100)
@given(problems(), st.integers(2, 6))
def test_best_first(problem, leaves):
    """The same splits as without a limit; those made decrease the impurity most."""
    X, Y, weight = problem
    w = np.ones(len(Y)) if weight is None else weight
    run = boost(X, Y, weight=weight, max_leaf_nodes=leaves)
    run.run(1)
    t = run.model(1).tree(0)
    found = (t["left"] < 0).sum()
    assert found <= leaves
    check_every_node(run.model(1), dense(X), Y, w, greedy=found < leaves)
    if found == leaves > 2:
        assert_largest_first(t, dense(X)[w > 0], Y[w > 0], w[w > 0])


def assert_largest_first(t, X, Y, w):
    """No leaf could have been split with a larger decrease than the last split that was made."""
    inside = walk(t, X)

    def decrease(node):
        rows = inside[:, node]
        return best_decrease(X[rows], Y[rows], w[rows], 1)

    inner = np.flatnonzero(t["left"] >= 0)
    last = [i for i in inner if t["left"][t["left"][i]] < 0 and t["left"][t["right"][i]] < 0]
    waiting = max(decrease(i) for i in np.flatnonzero(t["left"] < 0))
    scale = (w @ Y**2).sum() * 1e-6
    # leaves that wait were there before at least one of the last splits
    assert any(
        decrease(i) >= min(waiting, max(decrease(c) for c in children_apart(t, i))) - scale
        for i in last
    )


def children_apart(t, node):
    """Leaves that are not children of the node."""
    leaves = set(np.flatnonzero(t["left"] < 0)) - {t["left"][node], t["right"][node]}
    return leaves or {node}


@settings(max_examples=100)
@given(problems())
def test_grows_what_the_exact_grower_grows(problem):
    """The same partition of the rows wherever no two splits are equally good."""
    X, Y, weight = problem
    tree = DecisionTreeRegressor(max_depth=3).fit(X, Y, weight)
    run = boost(X, Y, weight=weight, max_depth=3)
    run.run(1)
    w = np.ones(len(Y)) if weight is None else weight
    keep = w > 0
    ours, theirs = run.model(1).predict(X)[keep], tree.predict(X).reshape(Y.shape)[keep]
    left = [w[keep] @ ((Y[keep] - p) ** 2).sum(axis=1) for p in (ours, theirs)]
    if not ties(X, Y, w):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        assert left[0] == pytest.approx(left[1], rel=1e-3, abs=1e-5)


def ties(X, Y, w):
    """Whether two features part the rows alike, or rows have the same y."""
    columns = dense(X)[w > 0]
    return columns.shape[1] > 1 or np.isnan(columns).any() or len(np.unique(Y, axis=0)) < len(Y)


# ---- Larger data: subtraction, threads, features drawn ----


@pytest.mark.parametrize("form", ["dense", "binned", "sparse", "binary"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_every_split_of_many_rows(form, weighted, d, rng):
    n, p = 700, 6
    X = rng.normal(size=(n, p)).round(1)
    if form == "sparse":
        X *= rng.random((n, p)) < 0.15
    if form == "binary":
        X = (X > 1).astype(float)
    if form == "dense":
        X[rng.random((n, p)) < 0.1] = np.nan
    Y = (rng.normal(size=(n, d)) + np.nan_to_num(X[:, :1])).astype(np.float32).astype(float)
    weight = rng.random(n) * (rng.random(n) < 0.8) if weighted else None
    options = {"weight": weight, "bins": 32 if form == "binned" else 0, "max_depth": 5}
    trees = []
    for n_jobs in (1, 2, 3):
        given = sparse.csr_array(X) if form in ("sparse", "binary") else X
        run = boost(given, Y, **options)
        run.run(1, n_jobs)
        trees.append(run.model(1).dump())
    np.testing.assert_array_equal(trees[0], trees[1])
    np.testing.assert_array_equal(trees[0], trees[2])
    t, w = run.model(1).tree(0), np.ones(n) if weight is None else weight
    inside = walk(t, X)
    codes = np.column_stack([run.features.codes(j) for j in range(p)]).astype(float)
    codes[np.isnan(X)] = np.nan
    for node in np.flatnonzero(t["left"] >= 0):
        rows = inside[:, node] & (w > 0)
        left, right = (inside[:, t[side][node]] & (w > 0) for side in ("left", "right"))
        done = spread(Y[rows], w[rows]) - spread(Y[left], w[left]) - spread(Y[right], w[right])
        best = best_decrease(codes[rows], Y[rows], w[rows], 1)
        assert done == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("features", [1, 4, 12])
def test_few_features_of_many_sparse_ones(binary, weighted, features, rng):
    """Sums by drawn feature, of all features, and of dense ones: the same trees."""
    n, p, d = 400, 40, 20
    X = rng.integers(1, 4, size=(n, p)) * (rng.random((n, p)) < 0.1)
    X = (X > 0).astype(float) if binary else X.astype(float)
    Y = rng.normal(size=(n, d)) + X[:, :d] - X[:, d:]
    weight = rng.random(n) * (rng.random(n) < 0.8) if weighted else None
    options = {"weight": weight, "max_features": features, "max_depth": 6, "learning_rate": 0.3}
    trees = []
    for form in (X, sparse.csr_array(X)):
        for n_jobs in (1, 3):
            run = boost(form, Y, **options)
            run.run(4, n_jobs)
            trees.append(run.model(4).dump())
    for other in trees[1:]:
        np.testing.assert_array_equal(trees[0], other)


@pytest.mark.parametrize("max_features", [1, 3])
def test_features_drawn(max_features, rng):
    """Splits are the best of some features; all features have their turn."""
    X, Y = rng.normal(size=(200, 6)), rng.normal(size=(200, 2))
    run = boost(X, Y, max_features=max_features, learning_rate=0.1, max_depth=4)
    run.run(30)
    features = np.concatenate([run.model(30).tree(t)["feature"] for t in range(30)])
    used = np.bincount(features[features >= 0], minlength=6)
    assert (used > 0).all()
    constant = np.column_stack([np.ones(200), X[:, 0], np.zeros(200)])
    run = boost(constant, Y, max_features=1)
    run.run(1)
    assert set(run.model(1).tree(0)["feature"]) == {1, -2}  # drawn until one is not constant


@pytest.mark.parametrize("bins", [0, 5, 256])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("single", [False, True])
def test_scores_of_a_run_are_predictions(bins, form, single, rng):
    """Rows trained on, left out of samples, watched, of weight zero: the bits of predict."""
    n = 500
    X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < (0.3 if form == "sparse" else 1.0))
    X[rng.random(X.shape) < 0.05] = np.nan
    X = X.astype(np.float32) if single else X
    given = sparse.csr_array(X) if form == "sparse" else X
    Y = rng.normal(size=(n, 3))
    watched, weight = rng.random(n) < 0.3, rng.random(n) * (rng.random(n) < 0.8)
    run = boost(
        given,
        Y,
        bins=bins,
        watched=watched,
        weight=weight,
        subsample=0.3,
        learning_rate=0.5,
        max_depth=8,
    )
    run.run(25)
    rows = np.arange(n)
    np.testing.assert_array_equal(run.scores(rows), run.model(25).predict(given).astype(np.float32))
    np.testing.assert_array_equal(run.scores(rows[::-2]), run.model(25).predict(X)[::-2])


@settings(max_examples=80)
@given(problems(), st.sampled_from([0, 2, 3]), st.floats(0.1, 1.0))
def test_scores_of_small_runs_are_predictions(problem, bins, subsample):
    X, Y, weight = problem
    run = boost(X, Y, weight=weight, bins=bins, subsample=subsample, learning_rate=0.5)
    run.run(4)
    np.testing.assert_array_equal(run.scores(np.arange(len(Y))), run.model(4).predict(X))


def test_depth_and_size(rng):
    X, Y = rng.normal(size=(300, 4)), rng.normal(size=(300, 2))
    for options, leaves in [
        ({"max_depth": 1}, 2),
        ({"max_depth": 3}, 8),
        ({"max_leaf_nodes": 5}, 5),
    ]:
        run = boost(X, Y, **options)
        run.run(1)
        assert (run.model(1).tree(0)["left"] < 0).sum() == leaves
    run = boost(X, Y, min_samples_split=100)
    run.run(1)
    t = run.model(1).tree(0)
    assert t["n_samples"][t["left"] >= 0].min() >= 100
    run = boost(X, Y)  # grown out
    run.run(1)
    np.testing.assert_allclose(run.model(1).predict(X), Y, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_min_impurity_decrease(weighted, rng):
    """In the units of the impurities, like the trees'."""
    X, Y = rng.normal(size=(100, 3)), rng.normal(size=(100, 2)).astype(np.float32).astype(float)
    weight = rng.random(100) * 3 if weighted else None
    w = np.ones(100) if weight is None else weight
    best = best_decrease(X, Y, w, 1) / w.sum()
    for factor, nodes in [(0.999, 3), (1.001, 1)]:
        run = boost(X, Y, weight=weight, max_depth=1, min_impurity_decrease=best * factor)
        run.run(1)
        assert len(run.model(1).tree(0)["left"]) == nodes
