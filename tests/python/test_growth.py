"""Races between settings, growth until time or precision, and the errors that steer them."""

import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import pyrpo
from pyrpo import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from pyrpo._choosing import RACED
from pyrpo._growth import weighted
from pyrpo._native import Model
from pyrpo.datasets import make_multilabel

PLAIN = {"n_components": "log", "max_features": "sqrt", "random_state": 0}


@pytest.fixture(scope="module")
def labels():
    data = make_multilabel(400, n_features=60, n_labels=40, cardinality=4, random_state=0)
    return data.X, data.Y


def by_hand(model, X, Y, rows, weight):
    """Trees, squared errors and products of pairs of errors, tree after tree."""
    trees, total, squares = np.zeros(len(rows)), 0.0, 0.0
    for t in range(model.n_trees):
        p, count = Model.pick([model], [(0, t)]).predict_oob(X, weight)
        seen = count[rows] > 0
        error = np.where(seen[:, None], p[rows] - Y[rows], 0.0)
        trees, total, squares = trees + seen, total + error, squares + (error**2).sum(axis=1)
    return np.column_stack([trees, squares, (total**2).sum(axis=1) - squares])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["real", "labels", "csr"]),
    options=st.sampled_from([{}, {"max_depth": 1}, {"projection": "gaussian"}]),
    weighted=st.booleans(),
    jobs=st.sampled_from([1, 3]),
)
def test_agreement(seed, kind, options, weighted, jobs):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 12))
    X = rng.normal(size=(n, 4)).round(1)
    Y = rng.normal(size=(n, d)) + 1e6 if kind == "real" else (rng.random((n, d)) < 0.2) * 1.0
    weight = rng.integers(1, 4, size=n).astype(float) if weighted else None
    forest = RandomForestRegressor(5, random_state=0, **options)
    y = sparse.csr_array(Y) if kind == "csr" else Y
    model = forest.fit(X, y, weight)._model
    rows = np.sort(rng.permutation(n)[: rng.integers(1, n + 1)])
    found = model.agreement(X[rows], y[rows], rows, weight, jobs)
    np.testing.assert_allclose(
        found, by_hand(model, X, Y, rows, weight), rtol=1e-7, atol=1e-9 if kind != "real" else 1e-4
    )


def test_pairs_of_few_trees_estimate_the_error_of_many():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 5))
    Y = np.column_stack([np.sin(6 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(300, 2))
    rows = np.arange(300)

    def error(trees, seed):
        model = RandomForestRegressor(trees, max_features=2, random_state=seed).fit(X, Y)._model
        b, _, products = model.agreement(X, Y, rows).T
        used = b > 1
        return (products[used] / (b * (b - 1))[used]).mean()

    few = [error(6, seed) for seed in range(60)]
    many = error(2000, 1000)
    assert abs(np.mean(few) - many) < 3 * np.std(few) / np.sqrt(60)
    single = [
        (a[a[:, 0] > 0, 1] / a[a[:, 0] > 0, 0]).mean()
        for a in [RandomForestRegressor(1, random_state=0).fit(X, Y)._model.agreement(X, Y, rows)]
    ]
    assert single[0] > 1.5 * many


def test_agreement_refuses(labels):
    X, Y = labels
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)._model
    with pytest.raises(ValueError, match=r"rows\[1\] is 400"):
        model.agreement(X[:2], Y[:2], [0, 400])
    with pytest.raises(ValueError, match="Y is 2 x 39"):
        model.agreement(X[:2], Y[:2, :39], [0, 1])
    with pytest.raises(ValueError, match="weight"):
        model.agreement(X[:2], Y[:2], [0, 1], np.full(400, -1.0))


@pytest.mark.parametrize("cls", [RandomForestClassifier, ExtraTreesClassifier])
def test_a_race_keeps_its_trees(cls, labels):
    X, Y = labels
    chosen = {"n_components": "auto", "max_features": "auto", "bootstrap": True, "random_state": 3}
    forest = cls(60, **chosen).fit(X, Y)
    rows = forest.tuning_.rows
    assert len(forest) == 60
    assert sum(r["chosen"] for r in rows) == 1
    assert all(r["r2"] < r["r2_limit"] for r in rows)
    assert {r["n_components"] for r in rows} >= {None, 1, 4, 7, 25}
    assert sum(r["trees"] for r in rows) < 60
    assert "chosen" in str(forest.tuning_)
    again = cls(60, n_jobs=3, **chosen).fit(X, Y)
    assert np.array_equal(again._model.dump(), forest._model.dump())
    assert again.tuning_ == forest.tuning_
    assert forest.estimators_[0].tree_.node_count > 1


def test_a_race_finds_what_is_better():
    """Most inputs are irrelevant: the more are drawn the better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 200))
    Y = (X[:, :1] > 0) * np.ones((1, 5)) + 0.0
    forest = RandomForestRegressor(60, n_components="log", random_state=0).fit(X, Y)
    assert [r["max_features"] for r in forest.tuning_.rows] == [14, 28, 56, 66]
    assert max(forest.tuning_.rows, key=lambda r: r["chosen"])["max_features"] >= 56


def test_work_is_counted_alike_for_any_threads(labels):
    X, Y = labels
    one, three = (RandomForestClassifier(20, random_state=0, n_jobs=j).fit(X, Y) for j in (1, 3))
    assert one._model.work == three._model.work > 0
    half = RandomForestClassifier(10, random_state=0).fit(X, Y)
    assert 0.4 < half._model.work / one._model.work < 0.6


def test_too_few_trees_for_a_race(labels):
    X, Y = labels
    forest = RandomForestClassifier(10, n_components="auto", random_state=0).fit(X, Y)
    assert len(forest) == 10
    assert forest.tuning_.rows == []
    assert "too few" in forest.tuning_.note
    plain = RandomForestClassifier(10, **PLAIN).fit(X, Y)
    assert np.array_equal(plain.predict_proba(X), forest.predict_proba(X))


def test_one_output_has_nothing_to_race(labels):
    X, Y = labels
    y = Y[:, [0]].toarray().ravel()
    auto, plain = (
        RandomForestRegressor(60, max_features="sqrt", random_state=0, n_components=m).fit(X, y)
        for m in ("auto", "log")
    )
    assert not hasattr(auto, "tuning_")
    assert np.array_equal(auto.predict(X), plain.predict(X))


@pytest.mark.parametrize("projection", ["auto", "pca", "subsample"])
def test_kinds(projection, labels):
    X, Y = labels
    components = 3 if projection == "auto" else "auto"
    forest = RandomForestClassifier(
        80, projection=projection, n_components=components, random_state=0
    ).fit(X, Y)
    kinds = {r["projection"] for r in forest.tuning_.rows}
    if projection == "auto":
        assert kinds == {"gaussian", "rademacher", "sparse", "subsample", None}
    else:  # what was named is not left out; its usual size stands first
        assert kinds == {projection}
        assert [r["n_components"] for r in forest.tuning_.rows][:4] == [4, 1, 7, 25]


def test_warm_start_goes_on_with_what_was_chosen(labels):
    X, Y = labels
    forest = RandomForestClassifier(60, n_components="auto", warm_start=True, random_state=0)
    first = forest.fit(X, Y).tuning_
    forest.set_params(n_estimators=70).fit(X, Y)
    assert len(forest) == 70
    assert forest.tuning_ == first


def test_models_keep_their_records(labels, tmp_path):
    X, Y = labels
    forest = RandomForestClassifier(
        60, n_components="auto", target_score="converged", random_state=0
    ).fit(X, Y)
    forest.save(tmp_path / "forest.rpo")
    for other in (pyrpo.load(tmp_path / "forest.rpo"), pickle.loads(pickle.dumps(forest))):
        assert other.tuning_ == forest.tuning_
        assert other.convergence_ == forest.convergence_


def test_target_score(labels):
    X, Y = labels
    forest = RandomForestClassifier(400, target_score=0.05, **PLAIN).fit(X, Y)
    record = forest.convergence_
    assert record.stopped == "target_score"
    assert record.rows[-1]["trees"] == len(forest) < 400
    assert record.rows[-1]["r2"] >= 0.05 > record.rows[0]["r2"]
    plain = RandomForestClassifier(len(forest), **PLAIN).fit(X, Y)
    assert np.array_equal(plain.predict_proba(X), forest.predict_proba(X))
    never = RandomForestClassifier(20, target_score=0.99, random_state=0).fit(X, Y)
    assert never.convergence_.stopped == "n_estimators"
    assert len(never) == 20


def test_converged(labels):
    X, Y = labels
    forest = RandomForestClassifier(2000, target_score="converged", random_state=0).fit(X, Y)
    last = forest.convergence_.rows[-1]
    assert last["r2_limit"] - last["r2"] <= 0.005
    assert len(forest) < 2000


@pytest.mark.parametrize("cls", [RandomForestRegressor, ExtraTreesRegressor])
def test_max_time(cls):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2000, 40)), rng.normal(size=(2000, 10))
    cls(1, random_state=0).fit(X, Y)
    begin = time.monotonic()
    forest = cls(10**6, max_time=0.5, random_state=0).fit(X, Y)
    assert time.monotonic() - begin < 10
    assert forest.convergence_.stopped == "max_time"
    assert 1 <= len(forest) < 10**6
    assert forest.convergence_.rows[-1]["trees"] == len(forest)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_time": 0}, "max_time"),
        ({"max_time": -1.0}, "max_time"),
        ({"target_score": "good"}, "target_score"),
        ({"target_score": 0.5, "bootstrap": False}, "target_score=0.5 needs bootstrap"),
        ({"n_components": "auto", "projection": "fourier"}, "projection"),
        ({"max_features": "many"}, "max_features"),
    ],
)
def test_refused(params, message, labels):
    X, Y = labels
    with pytest.raises(ValueError, match=message):
        RandomForestClassifier(60, **params).fit(X, Y)


def test_no_race_without_rows_out_of_bag(labels):
    """What cannot race is what stands first, and says so; a target score cannot be."""
    X, Y = labels
    missing = Y.toarray().astype(float)
    missing[0, 0] = np.nan
    for options, y, weight in (
        ({}, missing, None),
        ({}, Y, np.ones(Y.shape)),
        ({"strategy": "single_target"}, Y[:, :3], None),
        ({"bootstrap": False}, Y, None),
    ):
        auto = RandomForestRegressor(60, random_state=0, **options).fit(X, y, weight)
        assert "out of bag" in auto.tuning_.note
        assert auto.tuning_.rows == []
        plain = RandomForestRegressor(60, **PLAIN, **options).fit(X, y, weight)
        assert np.array_equal(auto.predict(X), plain.predict(X))
    with pytest.raises(ValueError, match=r"target_score=0.5 needs a y without missing"):
        RandomForestRegressor(60, target_score=0.5).fit(X, missing)


def test_forests_choose_unless_told_otherwise(labels):
    X, Y = labels
    forest = RandomForestClassifier(70, random_state=0).fit(X, Y)
    told = RandomForestClassifier(70, n_components="auto", max_features="auto", random_state=0).fit(
        X, Y
    )
    assert np.array_equal(forest._model.dump(), told._model.dump())
    assert {r["max_features"] for r in forest.tuning_.rows} > {7}
    plain = RandomForestClassifier(70, **PLAIN).fit(X, Y)
    assert not hasattr(plain, "tuning_")
    assert not hasattr(ExtraTreesClassifier(70, random_state=0).fit(X, Y), "tuning_")


@pytest.mark.parametrize("projection", ["matrix", "object"])
def test_what_a_user_made_is_projected_on(projection, labels):
    """Only the number of features races, also when trees are added."""
    X, Y = labels
    made = {
        "matrix": np.random.default_rng(0).normal(size=(3, 40)),
        "object": pyrpo.projection.GaussianProjection(3),
    }[projection]
    forest = RandomForestClassifier(60, projection=made, random_state=0, warm_start=True).fit(X, Y)
    assert {r["projection"] for r in forest.tuning_.rows} == {type(made).__name__}
    assert len(forest.tuning_.rows) == 3
    tree = forest.estimators_[0]
    assert tree.n_components == "log"
    assert tree.max_features in {r["max_features"] for r in forest.tuning_.rows}
    assert len(forest.set_params(n_estimators=70).fit(X, Y)) == 70


def test_forests_without_splits_do_not_race():
    X, few = np.random.default_rng(0).normal(size=(140, 6)), "fewer than 100 rows tell too little"
    for rows, y, options, why in (
        (140, np.ones(140), {}, "trees have no splits"),
        (140, np.ones((140, 5)), {}, "trees have no splits"),
        (140, X[:, :3], {"min_samples_leaf": 100}, "trees have no splits"),
        (99, X[:, :3], {}, few),
        (1, np.zeros((1, 3)), {}, few),
    ):
        forest = RandomForestRegressor(60, random_state=0, **options).fit(X[:rows], y[:rows])
        assert forest.tuning_.note == f"nothing raced: {why}"
        assert len(forest) == 60


@pytest.mark.parametrize("projection", [None, "auto", *RACED, "pca", "hadamard"])
def test_one_output_races_features_only(projection):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    forest = RandomForestRegressor(60, projection=projection, random_state=0).fit(X, X[:, 0])
    assert [r["max_features"] for r in forest.tuning_.rows] == [5, 10, 20]
    classes = RandomForestClassifier(60, random_state=0).fit(X, X[:, 0] > 0)
    assert [r["max_features"] for r in classes.tuning_.rows] == [5, 10, 20]


def test_few_outputs_are_not_subsampled_in_whole():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    forest = RandomForestRegressor(100, random_state=0).fit(X, X[:, :9])
    assert {r["projection"] for r in forest.tuning_.rows} == {None, "gaussian"}


@pytest.mark.parametrize(
    ("more", "grown"),
    [
        ({"max_features": 1.0, "n_components": "log"}, {"max_features": 1.0}),
        (
            {"projection": "gaussian", "n_components": 3, "max_features": 9},
            {"projection": "gaussian", "n_components": 3, "max_features": 9},
        ),
        ({"projection": "subsample", "max_features": 5}, {"projection": "subsample"}),
    ],
)
def test_warm_starts_go_by_what_is_said_now(more, grown, labels):
    X, Y = labels
    first = RandomForestClassifier(70, random_state=0, warm_start=True).fit(X, Y)
    forest = clone(first).fit(X, Y).set_params(n_estimators=80, **more).fit(X, Y)
    plain = RandomForestClassifier(70, random_state=0, warm_start=True).fit(X, Y)
    grown = {"n_components": "log", "max_features": 5} | grown
    plain.set_params(n_estimators=80, **grown).fit(X, Y)
    assert np.array_equal(forest.predict_proba(X), plain.predict_proba(X))


def test_warm_starts_from_few_trees_race_later(labels):
    X, Y = labels
    forest = RandomForestClassifier(10, random_state=0, warm_start=True).fit(X, Y)
    assert "too few" in forest.tuning_.note
    forest.set_params(n_estimators=100).fit(X, Y)
    assert len(forest) == 100
    assert sum(r["chosen"] for r in forest.tuning_.rows) == 1


def test_few_rows_prove_nothing():
    rows = np.arange(100.0)
    assert weighted(rows[:99], np.ones(99)) == (pytest.approx(49.0), np.inf)
    assert weighted(rows, np.ones(100)) == pytest.approx((49.5, rows.std() / 10))
    assert np.isnan(weighted(np.full(3, np.nan), np.ones(3))[0])


def test_a_race_takes_half_of_the_time_at_most(labels):
    X, Y = labels
    forest = RandomForestClassifier(100, max_time=1e-4, random_state=0).fit(X, Y)
    assert "too short for a race" in forest.tuning_.note
    assert len(forest) == 1
    assert forest.convergence_.rows[0]["trees"] == 1
    forest = RandomForestClassifier(100, max_time=600.0, random_state=0).fit(X, Y)
    assert len(forest.tuning_.rows) > 1
    assert len(forest) == 100


def test_plots(labels):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, Y = labels
    forest = RandomForestClassifier(60, n_components="auto", target_score=0.9, random_state=0).fit(
        X, Y
    )
    assert forest.tuning_.plot().get_xlabel() == "operations per tree"
    assert len(forest.convergence_.plot().lines) >= 2


@pytest.mark.parametrize("name", ["n_components", "max_features", "projection"])
def test_single_trees_do_not_race(name, labels):
    X, Y = labels
    with pytest.raises(ValueError, match="auto"):
        pyrpo.DecisionTreeClassifier(**{"projection": "gaussian", name: "auto"}).fit(X, Y)


def test_races_and_leaves_of_all_rows(labels):
    """The race looks at samples' leaves; the forest it makes has all rows in them."""
    X, Y = labels
    options = {"n_components": "auto", "random_state": 0}
    sample = RandomForestClassifier(60, **options).fit(X, Y)
    forest = RandomForestClassifier(60, leaf_rows="all", **options).fit(X, Y)
    assert forest.tuning_ == sample.tuning_
    np.testing.assert_allclose(
        forest.weights(X, X) @ Y.toarray(), forest.predict_proba(X), atol=1e-9
    )
    with pytest.raises(ValueError, match="its leaves hold all rows"):
        forest._model.agreement(X[:2], Y[:2], [0, 1])


def test_columns_first_and_missing_outputs(labels):
    """Sparse X of any layout races; time limits need no out-of-bag rows."""
    X, Y = labels
    options = {"n_components": "auto", "random_state": 0}
    rows, columns = (
        RandomForestClassifier(60, **options).fit(x, Y) for x in (X, sparse.csc_array(X))
    )
    assert rows.tuning_ == columns.tuning_
    missing = Y.toarray().astype(float)
    missing[::7, 0] = np.nan
    for forest in (
        RandomForestRegressor(9, max_time=60.0, random_state=0).fit(X, missing),
        ExtraTreesRegressor(9, max_time=60.0, random_state=0).fit(X, Y),
    ):
        assert len(forest) == 9
        assert np.isnan(forest.convergence_.rows[-1]["r2"])
