"""The same trees as scikit-learn's where neither draws anything."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import ensemble, tree

import pyrpo


def regression_data(n=200, p=6, d=4, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32)  # scikit-learn rounds to float32
    Y = np.column_stack([X[:, j % p] * X[:, (j + 1) % p] for j in range(d)])
    Y += 0.1 * rng.normal(size=(n, d))
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
    return X, Y


def row_sets(estimator, X, rows):
    """Training rows of every node, as scikit-learn and we number them."""
    paths = estimator.decision_path(X).toarray()[rows].astype(bool)
    return [paths[:, node].tobytes() for node in range(paths.shape[1])]


def assert_same_tree(ours, theirs, X, weight=None):
    """The same set of nodes, each with the same rows, weight, impurity and values.

    A node of a few rows is split alike by several features: rows tell nodes, not features.
    """
    rows = np.ones(len(X), bool) if weight is None else weight > 0
    mine, reference = row_sets(ours, X, rows), row_sets(theirs, X, rows)
    assert len(set(reference)) == len(reference) == len(mine)
    ours, theirs = ours.tree_, theirs.tree_
    place = [mine.index(key) for key in reference]
    np.testing.assert_array_equal(ours.n_node_samples[place], theirs.n_node_samples)
    for name in ("weighted_n_node_samples", "value", "impurity"):
        a, b = getattr(ours, name)[place], getattr(theirs, name)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7, err_msg=name)
    leaves = theirs.children_left < 0
    np.testing.assert_array_equal(ours.children_left[place] < 0, leaves)
    np.testing.assert_array_equal(ours.feature[place][leaves], theirs.feature[leaves])
    np.testing.assert_array_equal(ours.threshold[place][leaves], theirs.threshold[leaves])
    same = ~leaves & (ours.feature[place] == theirs.feature)
    large = ~leaves & (theirs.n_node_samples > 20)
    assert (large & same).sum() >= 0.9 * large.sum()
    # Thresholds are kept in the precision of X: float32 here.
    np.testing.assert_allclose(ours.threshold[place][same], theirs.threshold[same], rtol=1e-6)
    for a, b in zip(np.flatnonzero(same), np.array(place)[same], strict=True):
        assert ours.children_left[b] == place[theirs.children_left[a]]
        assert ours.children_right[b] == place[theirs.children_right[a]]
    assert ours.node_count == theirs.node_count
    assert ours.n_leaves == theirs.n_leaves
    assert ours.max_depth == theirs.max_depth
    assert ours.n_features == theirs.n_features


def same_leaves(a, b):
    """Whether two numberings of leaves group the rows alike."""
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


SETTINGS = [
    {},
    {"max_depth": 3},
    {"min_samples_leaf": 7},
    {"min_samples_leaf": 0.03, "min_samples_split": 0.2},
    {"min_samples_split": 20},
    {"min_weight_fraction_leaf": 0.04},
    {"max_leaf_nodes": 13},
    {"max_leaf_nodes": 30, "min_samples_leaf": 3},
    {"min_impurity_decrease": 0.01},
    {"max_leaf_nodes": 20, "min_impurity_decrease": 0.01},
    {"ccp_alpha": 0.01},
    {"ccp_alpha": 0.2},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_regressor(settings, missing, weighted):
    X, Y = regression_data(missing=missing)
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float) if weighted else None
    ours = pyrpo.DecisionTreeRegressor(**settings).fit(X, Y, weight)
    theirs = tree.DecisionTreeRegressor(**settings, random_state=0).fit(X, Y, weight)
    assert_same_tree(ours, theirs, X, weight)
    seen = X if weight is None else X[weight > 0]
    np.testing.assert_allclose(ours.predict(seen), theirs.predict(seen), rtol=1e-9, atol=1e-12)
    if not missing and settings.get("min_samples_leaf") == 7:
        new, _ = regression_data(seed=2)
        np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-9, atol=1e-12)
    assert ours.get_depth() == theirs.get_depth()
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    t = ours.tree_
    loss = t.weighted_n_node_samples * t.impurity
    inner = t.children_left >= 0
    loss[inner] -= loss[t.children_left[inner]] + loss[t.children_right[inner]]
    gain = np.bincount(t.feature[inner], loss[inner], minlength=X.shape[1])
    np.testing.assert_allclose(ours.feature_importances_, gain / max(gain.sum(), 1e-300), atol=1e-6)


def test_apply_and_decision_path():
    X, Y = regression_data(missing=0.1)
    settings = {"max_depth": 6, "min_samples_leaf": 6}
    ours = pyrpo.DecisionTreeRegressor(**settings).fit(X, Y)
    theirs = tree.DecisionTreeRegressor(**settings, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
    assert (ours.decision_path(X) != theirs.decision_path(X)).nnz == 0


def test_apply_and_decision_path_of_forests():
    X, Y = regression_data()
    settings = {"bootstrap": False, "min_samples_leaf": 6, "max_features": 1.0}
    ours = pyrpo.RandomForestRegressor(3, **settings).fit(X, Y)
    theirs = ensemble.RandomForestRegressor(3, **settings, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
    (our_path, our_starts), (their_path, their_starts) = (
        ours.decision_path(X),
        theirs.decision_path(X),
    )
    np.testing.assert_array_equal(our_starts, their_starts)
    assert (our_path != their_path).nnz == 0


def classification_data(n=300, p=5, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32)
    y = np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n), np.linspace(-1, 1, classes - 1))
    return X, np.array(["a", "b", "c", "d", "e"])[y]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 2},
        {"max_leaf_nodes": 6},
        {"min_samples_leaf": 30},
        {"min_impurity_decrease": 0.02},
        {"ccp_alpha": 0.01},
    ],
    ids=str,
)
def test_classes(settings, weighted):
    X, y = classification_data()
    weight = np.random.default_rng(1).random(len(X)) + 0.1 if weighted else None
    ours = pyrpo.DecisionTreeClassifier(**settings).fit(X, y, weight)
    theirs = tree.DecisionTreeClassifier(**settings, random_state=0).fit(X, y, weight)
    assert_same_tree(ours, theirs, X, weight)
    new, _ = classification_data(seed=3)
    if weighted:
        np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.n_classes_ == theirs.n_classes_


def test_indicator():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)).astype(np.float32)
    Y = (X @ rng.normal(size=(5, 7)) > 1).astype(int)
    weight = rng.random(300) + 0.5
    for settings in [{"max_depth": 4}, {"max_leaf_nodes": 12}, {"min_impurity_decrease": 0.005}]:
        ours = pyrpo.DecisionTreeClassifier(**settings).fit(X, Y, weight)
        theirs = tree.DecisionTreeClassifier(**settings, random_state=0).fit(X, Y, weight)
        assert_same_tree(ours, theirs, X, weight)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        p = np.stack([q[:, 1] for q in theirs.predict_proba(X)], axis=1)
        np.testing.assert_allclose(ours.predict_proba(X), p, atol=1e-12)
        again = pyrpo.DecisionTreeClassifier(**settings).fit(X, sparse.csr_array(Y), weight)
        np.testing.assert_array_equal(again.predict_proba(X), ours.predict_proba(X))


@pytest.mark.parametrize("seed", range(5))
def test_ties(seed):
    """Equal splits may be taken in another order: the first level's impurity is the same."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(60, 8)).astype(float)
    Y = rng.integers(0, 2, size=(60, 3)).astype(float)
    ours = pyrpo.DecisionTreeRegressor(max_depth=1).fit(X, Y).tree_
    theirs = tree.DecisionTreeRegressor(max_depth=1, random_state=seed).fit(X, Y).tree_

    def left_over(t):
        children = [t.children_left[0], t.children_right[0]]
        return np.dot(t.impurity[children], t.weighted_n_node_samples[children])

    np.testing.assert_allclose(left_over(ours), left_over(theirs), rtol=1e-6)
    grown = pyrpo.DecisionTreeRegressor().fit(X, Y).predict(X)
    np.testing.assert_allclose(
        grown, tree.DecisionTreeRegressor(random_state=0).fit(X, Y).predict(X), atol=1e-12
    )


def test_forest_without_randomness():
    X, Y = regression_data()
    settings = {"bootstrap": False, "max_features": None, "min_samples_leaf": 2}
    ours = pyrpo.RandomForestRegressor(3, **settings).fit(X, Y)
    theirs = ensemble.RandomForestRegressor(3, **settings, random_state=0).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9, atol=1e-12)


def test_random_forest_is_as_good():
    """With randomness: errors on new data agree with scikit-learn's."""
    X, Y = regression_data(500)
    new, truth = regression_data(500, seed=1)
    pairs = [
        (pyrpo.RandomForestRegressor, ensemble.RandomForestRegressor),
        (pyrpo.ExtraTreesRegressor, ensemble.ExtraTreesRegressor),
    ]
    for mine, reference in pairs:
        settings = {"n_estimators": 100, "max_features": 2, "random_state": 0}
        error = [
            np.mean((model(**settings).fit(X, Y).predict(new) - truth) ** 2)
            for model in (mine, reference)
        ]
        assert error[0] == pytest.approx(error[1], rel=0.07)


def random_problem(seed):
    """Real numbers, so that no two splits are equally good but those that part the rows alike."""
    rng = np.random.default_rng(1000 + seed)
    n, p, d = rng.integers(4, 200), rng.integers(1, 9), rng.integers(1, 7)
    X = rng.normal(size=(n, p)).astype(np.float32)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.15] = np.nan
    Y = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4) + rng.choice([0.0, 50.0])
    Y = Y[:, 0] if d == 1 else Y
    weight = rng.uniform(0.5, 2.0, n) if rng.random() < 0.5 else None
    settings = {
        "max_depth": rng.choice([None, 2, 5]),
        "min_samples_leaf": int(rng.integers(1, 6)),
        "min_samples_split": int(rng.integers(2, 12)),
        "max_leaf_nodes": rng.choice([None, None, 9]),
        "min_weight_fraction_leaf": float(rng.choice([0.0, 0.0, 0.05])),
    }
    return X, Y, weight, settings


SEEDS = range(200)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    X, Y, weight, settings = random_problem(seed)
    kinds = [(pyrpo.DecisionTreeRegressor, tree.DecisionTreeRegressor, {})]
    if seed % 4 == 0:
        one = {"n_estimators": 2, "bootstrap": False, "max_features": None}
        kinds.append((pyrpo.RandomForestRegressor, ensemble.RandomForestRegressor, one))
    scale = abs(Y - Y.mean(axis=0)).max()
    for mine, reference, more in kinds:
        ours = mine(**settings, **more).fit(X, Y, weight)
        theirs = reference(**settings, **more, random_state=0).fit(X, Y, weight)
        a, b = ours.predict(X), theirs.predict(X)
        np.testing.assert_allclose(a, b, atol=1e-7 * scale, rtol=1e-9)
        assert ours.score(X, Y, weight) == pytest.approx(theirs.score(X, Y, weight), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_classes(seed):
    """Random weights keep splits apart here too."""
    rng = np.random.default_rng(2000 + seed)
    n, p, classes = rng.integers(5, 200), rng.integers(1, 9), rng.integers(2, 7)
    X = rng.normal(size=(n, p)).astype(np.float32)
    y = rng.integers(0, classes, n)
    weight = rng.uniform(0.5, 2.0, n)
    settings = {"max_depth": int(rng.integers(1, 7)), "min_samples_leaf": int(rng.integers(1, 5))}
    ours = pyrpo.DecisionTreeClassifier(**settings).fit(X, y, weight)
    theirs = tree.DecisionTreeClassifier(**settings, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


def test_public_numbers_of_trees():
    X = np.random.default_rng(0).normal(size=(60, 4))
    labels, classes = (X[:, :3] > 0).astype(int), X[:, 0].round().astype(int)
    for name, y in (("Regressor", X[:, :3]), ("Classifier", classes), ("Classifier", labels)):
        ours = getattr(pyrpo, f"DecisionTree{name}")(max_depth=3).fit(X, y).tree_
        theirs = getattr(tree, f"DecisionTree{name}")(max_depth=3).fit(X, y).tree_
        for what in ("n_features", "n_outputs", "n_classes", "max_n_classes", "max_depth"):
            np.testing.assert_array_equal(getattr(ours, what), getattr(theirs, what), what)
        assert ours.value.shape[1:] == theirs.value.shape[1:]
        assert ours.capacity == ours.node_count
    graph = tree.export_graphviz(pyrpo.DecisionTreeClassifier(max_depth=2).fit(X, classes))
    assert graph.startswith("digraph Tree")
    assert graph.count("->") > 2
