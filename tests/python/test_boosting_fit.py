"""What the boosting estimators do with data, weights, early stopping, warm starts and files."""

import pickle
import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import pyrpo
from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor

BOTH = [GradientBoostingClassifier, GradientBoostingRegressor]


def data(cls, n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Y = X[:, :1] + X[:, 1:2] ** 2 * rng.normal(size=d) + rng.normal(size=(n, d)) / 2
    return X, (Y > 0.5).astype(float) if cls is GradientBoostingClassifier else Y


def make(cls, n_estimators=12, **options):
    given = {"early_stopping": False, "learning_rate": 0.05} | options
    return cls(n_estimators, random_state=0, **given)


def scores(model, X):
    return model._model.predict(X)


KINDS = [
    {},
    {"projection": None},
    {"relabel": False},
    {"projection": "rademacher", "n_components": 3, "leaf": "mean"},
    {"projection": "top", "n_components": 2},
    {"projection": "norm-sampling", "n_components": 2, "max_leaf_nodes": 5},
    {"projection": "subsample", "n_components": 2, "max_features": "sqrt"},
    {"strategy": "single_target"},
    {"strategy": "single_target", "relabel": False, "leaf": "mean"},
    {"max_bins": 4, "learning_rate": 1.0},
]


# ---- Forms of X and Y ----


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_sparse_is_dense(cls, options):
    X, Y = data(cls)
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0.0
    Y[abs(Y) < 0.5] = 0.0
    fits = [
        scores(make(cls, **options).fit(A, B), X)
        for A in (X, sparse.csr_array(X), sparse.csc_matrix(X), np.asfortranarray(X))
        for B in (Y, sparse.csr_array(Y))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0], other)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_predictions_of_all_forms_of_x(cls, options):
    X, Y = data(cls)
    model = make(cls, **options).fit(X, Y)
    whole = scores(model, X)
    for form in (sparse.csr_array, sparse.csc_array, np.asfortranarray):
        np.testing.assert_array_equal(model.predict(form(X)), model.predict(X))
    np.testing.assert_array_equal(whole, np.vstack([scores(model, X[:7]), scores(model, X[7:])]))
    assert model.apply(X).shape == (150, model._model.n_trees)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_classes_are_their_indicator(options):
    """Softmax of classes; two classes are one label."""
    X, Y = data(GradientBoostingClassifier, d=2)
    y = np.array(["a", "b", "c", "d"])[(Y @ [1, 2]).astype(int)]
    if "top" not in str(options) and "sub" not in str(options):
        model = make(GradientBoostingClassifier, 30, **options).fit(X, y)
        assert model.score(X, y) > 0.6
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    two = np.where(Y[:, 0] == 1, "yes", "no")
    if options.get("n_components", 1) == 1:
        model = make(GradientBoostingClassifier, **options).fit(X, two)
        np.testing.assert_allclose(expit(model.decision_function(X)), model.predict_proba(X)[:, 1])
        assert model.decision_function(X).shape == (150,)


@pytest.mark.parametrize("cls", BOTH)
def test_staged(cls):
    X, Y = data(cls)
    for options in KINDS:
        model = make(cls, **options).fit(X, Y)
        stages = [s.copy() for s in model.staged_predict(X)]
        assert len(stages) == model._model.n_trees
        np.testing.assert_array_equal(stages[-1], model.predict(X))
        if options.get("strategy") != "single_target":
            few = make(cls, 5, **options).fit(X, Y)
            np.testing.assert_array_equal(stages[4], few.predict(X))
        best, values = model.predict_topk(X, 2)
        p = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
        np.testing.assert_array_equal(values, -np.sort(-p, axis=1)[:, :2])
        np.testing.assert_array_equal(np.take_along_axis(p, best, 1), values)


# ---- Missing outputs and weights ----


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", [{}, {"projection": None}, {"relabel": False}], ids=str)
def test_missing_outputs_are_entries_of_no_weight(cls, options, rng):
    X, Y = data(cls)
    gone = rng.random(Y.shape) < 0.3
    holes = np.where(gone, np.nan, Y)
    garbage = np.where(gone, 1 - Y, Y)
    a = make(cls, **options).fit(X, holes)
    b = make(cls, **options).fit(X, garbage, (~gone).astype(float))
    np.testing.assert_allclose(scores(a, X), scores(b, X), rtol=1e-5, atol=1e-5)
    assert np.isfinite(scores(a, X)).all()
    c = make(cls, **options).fit(X, Y)
    assert not np.array_equal(scores(a, X), scores(c, X))


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", [{}, {"projection": None}, {"relabel": False}], ids=str)
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "logistic", "exponential"])
def test_weights_are_repeated_rows(cls, options, loss, rng):
    if loss not in cls._losses:
        return
    X, Y = data(cls)
    weight = rng.integers(0, 4, size=150)
    options = {"subsample": 1.0, "max_bins": None, "loss": loss, "max_depth": 3} | options
    once = make(cls, 6, **options).fit(X, Y, weight)
    entries = make(cls, 6, **options).fit(X, Y, np.tile(weight[:, None], Y.shape[1]))
    many = np.repeat(np.arange(150), weight)
    often = make(cls, 6, **options).fit(X[many], Y[many])
    without = make(cls, 6, **options).fit(X[weight > 0], Y[weight > 0], weight[weight > 0])
    np.testing.assert_allclose(scores(once, X), scores(often, X), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(scores(once, X), scores(without, X), rtol=1e-5, atol=1e-5)
    assert np.isfinite(scores(entries, X)).all()


def test_rows_of_no_weight_change_nothing(rng):
    X, Y = data(GradientBoostingRegressor)
    weight = (rng.random(150) < 0.6).astype(float)
    fits = []
    for garbage in (0.0, 1e6):
        y = np.where(weight[:, None] > 0, Y, garbage)
        fits.append(scores(make(GradientBoostingRegressor).fit(X, y, weight), X))
    np.testing.assert_array_equal(*fits)


def test_weights_by_entry_pull(rng):
    """An entry of great weight is met; equal weights are none."""
    X, Y = data(GradientBoostingRegressor)
    weight = np.ones_like(Y)
    weight[3, 2] = 1e6
    options = {"subsample": 1.0, "l2": 0.0, "learning_rate": 0.5}
    pulled = make(GradientBoostingRegressor, 20, **options).fit(X, Y, weight)
    assert abs(scores(pulled, X)[3, 2] - Y[3, 2]) < 1e-2
    even = make(GradientBoostingRegressor, 20, **options).fit(X, Y, np.ones_like(Y))
    plain = make(GradientBoostingRegressor, 20, **options).fit(X, Y)
    np.testing.assert_allclose(scores(even, X), scores(plain, X), rtol=1e-5, atol=1e-5)


def test_class_weights(rng):
    X, Y = data(GradientBoostingClassifier, d=2)
    y = (Y @ [1, 2]).astype(int)
    table = {0: 1.0, 1: 5.0, 2: 0.5, 3: 2.0}
    a = make(GradientBoostingClassifier, class_weight=table).fit(X, y)
    b = make(GradientBoostingClassifier).fit(X, y, np.array([table[c] for c in y]))
    np.testing.assert_array_equal(scores(a, X), scores(b, X))


# ---- Early stopping ----


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_early_stopping_repeats(cls, options):
    X, Y = data(cls, n=300)
    options = options | {"early_stopping": True, "n_iter_no_change": 5, "n_jobs": 2}
    a, b = (make(cls, 300, **options).fit(X, Y) for _ in range(2))
    assert a.n_estimators_ == b.n_estimators_ < 300
    np.testing.assert_array_equal(a._model.dump(), b._model.dump())
    c = make(cls, 300, **options | {"n_jobs": 1}).fit(X, Y)
    np.testing.assert_array_equal(a._model.dump(), c._model.dump())


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("relabel", [True, False])
def test_validation_score_is_the_loss_of_the_eval_set(cls, relabel):
    X, Y = data(cls, n=300)
    options = {"n_iter_no_change": 4, "relabel": relabel}
    model = make(cls, 300, **options).fit(X[:200], Y[:200], eval_set=(X[200:], Y[200:]))
    start = make(cls, 1, learning_rate=1e-6).fit(X[:200], Y[:200])
    stages = [start._model.predict(X), *np.array([s.copy() for s in model._staged(X)])]
    for t, f in enumerate(stages):
        held, y = f[200:], Y[200:]
        entries = (
            np.logaddexp(0, -(2 * y - 1) * held)
            if cls is GradientBoostingClassifier
            else (y - held) ** 2 / 2
        )
        assert model.validation_score_[t] == pytest.approx(entries.mean(), rel=1e-4)
    losses = model.validation_score_
    assert model.n_estimators_ == max(1, np.argmin(losses))
    assert len(losses) - 1 == model.n_estimators_ + 4 == len(model.train_score_)
    assert model._model.n_trees == model.n_estimators_


def test_eval_set_is_not_trained_on():
    X, Y = data(GradientBoostingRegressor, n=300)
    fits = []
    for factor in (1.0, -3.0):
        model = make(GradientBoostingRegressor, 5, n_iter_no_change=5, max_bins=None)
        fits.append(model.fit(X[:200], Y[:200], eval_set=(X[200:], Y[200:] * factor)))
    rounds = min(m.n_estimators_ for m in fits)
    stages = [[s.copy() for s in m.staged_predict(X[:200])][rounds - 1] for m in fits]
    np.testing.assert_array_equal(*stages)
    plain = make(GradientBoostingRegressor, rounds, max_bins=None).fit(X[:200], Y[:200])
    np.testing.assert_array_equal(stages[0], plain.predict(X[:200]))


def test_eval_set_forms():
    X, Y = data(GradientBoostingClassifier, n=200)
    weight = np.arange(50) % 3.0
    fits = [
        make(GradientBoostingClassifier, 40, n_iter_no_change=3).fit(
            A(X[:150]), B(Y[:150]), eval_set=(A(X[150:]), B(Y[150:]), weight)
        )
        for A in (np.array, sparse.csr_array)
        for B in (np.array, sparse.csr_array)
    ]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.predict_proba(X), fits[0].predict_proba(X))
    holes = Y[150:].copy()
    holes[:, 1] = np.nan  # an output that the eval set never observes
    make(GradientBoostingClassifier, 5).fit(X[:150], Y[:150], eval_set=(X[150:], holes))


def test_metrics_stop_too():
    X, Y = data(GradientBoostingClassifier, n=300)
    seen = []

    def worst_at_once(y, p):
        assert y.shape == p.shape == (60, 6)  # a fifth of the rows
        assert ((p >= 0) & (p <= 1)).all()
        seen.append(len(seen))
        return -len(seen)

    options = {"early_stopping": True, "n_iter_no_change": 25}
    model = make(GradientBoostingClassifier, 200, scoring=worst_at_once, **options).fit(X, Y)
    assert model.n_estimators_ == 13  # looked at every ten rounds; 10 * 300 / 240
    model = make(GradientBoostingClassifier, 60, scoring="lrap", **options).fit(X, Y)
    assert 1 <= model.n_estimators_ <= 60
    with pytest.raises(ValueError, match="lrap"):
        make(GradientBoostingRegressor, scoring="lrap").fit(*data(GradientBoostingRegressor))
    with pytest.raises(ValueError, match="lrap"):
        make(GradientBoostingClassifier, scoring="lrap").fit(X, Y[:, 0])


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("weightless", [0, 50])
def test_all_rows_get_rounds_in_proportion(cls, weightless):
    X, Y = data(cls, n=300)
    weight = np.where(np.arange(300) < weightless, 0.0, 1.0)
    options = {"early_stopping": True, "n_iter_no_change": 5}
    held = make(cls, 300, refit=False, **options).fit(X, Y, weight)
    model = make(cls, 300, **options).fit(X, Y, weight)
    rows = 300 - weightless
    assert model.n_estimators_ == -(-held.n_estimators_ * rows // (rows - rows // 5))
    plain = make(cls, model.n_estimators_).fit(X, Y, weight)
    np.testing.assert_array_equal(scores(model, X), scores(plain, X))
    half = make(cls, 300, refit=False, validation_fraction=0.5, **options).fit(X, Y)
    model = make(cls, 300, validation_fraction=0.5, **options).fit(X, Y)
    assert model.n_estimators_ == -(-half.n_estimators_ * 5 // 4)  # no more was tried
    few = held.n_estimators_ + 1
    assert make(cls, few, **options).fit(X, Y, weight).n_estimators_ <= few


@pytest.mark.parametrize("cls", BOTH)
def test_few_rows(cls):
    X, Y = data(cls)
    for n in (1, 2, 3):
        for options in KINDS:
            model = make(cls, 5, early_stopping="auto", **options).fit(X[:n], Y[:n])
            assert np.isfinite(scores(model, X)).all()
    with pytest.raises(ValueError, match=r"early_stopping.*1 sample"):
        make(cls, 5, early_stopping=True).fit(X[:1], Y[:1])
    weight = np.zeros(150)
    weight[:3] = 1.0
    model = make(cls, 5, early_stopping=True).fit(X, Y, weight)  # held out are rows of weight
    assert np.isfinite(model.validation_score_).all()


def test_held_out_rows_are_of_all_classes():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.repeat([0, 1, 2], [20, 60, 120])
    model = make(GradientBoostingClassifier, 3, early_stopping=True, validation_fraction=0.1)
    held = []
    original = pyrpo._boost_data.BoostData.hold

    def note(self, rows):
        held.append(rows)
        return original(self, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyrpo._boost_data.BoostData, "hold", note)
        model.fit(X, y)
    np.testing.assert_array_equal(np.bincount(y[held[0]]), [2, 6, 12])


def test_max_time():
    X, Y = data(GradientBoostingRegressor, n=2000, d=20)
    began = time.perf_counter()
    model = make(GradientBoostingRegressor, 10**6, max_time=0.3).fit(X, Y)
    assert time.perf_counter() - began < 3
    assert 1 <= model.n_estimators_ < 10**6
    same = make(GradientBoostingRegressor, model.n_estimators_).fit(X, Y)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


# ---- Going on ----


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    "options", [k for k in KINDS if k.get("strategy") != "single_target"], ids=str
)
@pytest.mark.parametrize("d", [3, 40])
def test_warm_start_is_a_longer_run(cls, options, d):
    X, Y = data(cls, d=d)
    model = make(cls, 4, warm_start=True, **options).fit(X, Y)
    for more in (4, 5, 12):
        model.set_params(n_estimators=more, n_jobs=3).fit(X, Y)
    whole = make(cls, 12, **options).fit(X, Y)
    np.testing.assert_array_equal(model._model.dump(), whole._model.dump())
    np.testing.assert_array_equal(model.train_score_, whole.train_score_)
    assert model.n_estimators_ == 12


@pytest.mark.parametrize("cls", BOTH)
def test_warm_start_with_early_stopping(cls):
    X, Y = data(cls, n=300)
    options = {"early_stopping": True, "n_iter_no_change": 5, "warm_start": True}
    model = make(cls, 4, **options).fit(X, Y)
    model.set_params(n_estimators=500).fit(X, Y)
    whole = make(cls, 500, **options).fit(X, Y)
    np.testing.assert_array_equal(model._model.dump(), whole._model.dump())
    before = model.predict(X)
    model.fit(X, Y)  # nothing is gained any more
    np.testing.assert_array_equal(model.predict(X), before)


def test_learning_rate_goes_by_the_size_of_the_problem():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1000, 10)), rng.integers(0, 2, size=(1000, 1500))
    X[::2] = 0.0

    def rate(X, Y, n_estimators=12_000, **options):
        options = {"n_iter_no_change": 1, "random_state": 0, "max_depth": 1} | options
        model = GradientBoostingClassifier(n_estimators, **options)
        return model.fit(X, Y).learning_rate_

    assert rate(X, Y[:, :5]) == 0.015
    assert rate(X, Y) == pytest.approx(0.015 * (1.505e6 / 1e6) ** 0.5)
    assert rate(sparse.csr_array(X), sparse.csr_array(Y)) == rate(X, Y)
    assert rate(np.repeat(X, 3, axis=0), np.repeat(Y, 3, axis=0)) == 0.03
    assert rate(X, Y[:, :5], 100) == 0.1
    assert rate(X, Y[:, :5], 500) == 0.02
    assert rate(X, Y[:, :5], 3) == 0.1
    assert rate(X, Y[:, :5], 100, learning_rate=0.01) == 0.01
    assert rate(X, Y[:, :5], max_time=0.01) == 0.03


def test_learning_rate_of_sparse_x_goes_by_non_zeros():
    rng = np.random.default_rng(0)
    X, Y = np.ones((2000, 600)), rng.random((2000, 3))
    stored = sparse.csr_array(X)
    stored.data[rng.random(stored.nnz) < 0.9] = 0.0
    model = GradientBoostingRegressor(1000, n_iter_no_change=1, random_state=0)
    rates = [model.fit(A, Y).learning_rate_ for A in (X, stored, stored.toarray())]
    assert rates == [0.015 * (1.206e6 / 1e6) ** 0.5, 0.015, 0.015]


@pytest.mark.parametrize(
    ("options", "patience"),
    [({}, 100), ({"learning_rate": 0.03}, 50), ({"learning_rate": 0.5}, 20)],
)
def test_patience_goes_by_the_learning_rate(options, patience):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)  # nothing to learn
    model = GradientBoostingRegressor(random_state=0, refit=False, **options).fit(X, y)
    assert len(model.validation_score_) - 1 == model.n_estimators_ + patience
    assert model.validation_score_.argmin() == model.n_estimators_


def test_warm_start_keeps_its_learning_rate():
    X, Y = data(GradientBoostingClassifier)
    options = {"early_stopping": False, "random_state": 0}
    model = GradientBoostingClassifier(125, warm_start=True, **options).fit(X, Y)
    assert model.learning_rate_ == 0.08
    model.set_params(n_estimators=150).fit(X, Y)
    whole = GradientBoostingClassifier(150, learning_rate=0.08, **options).fit(X, Y)
    np.testing.assert_array_equal(model._model.dump(), whole._model.dump())


def test_warm_start_refuses():
    X, Y = data(GradientBoostingRegressor)
    model = make(GradientBoostingRegressor, 5, warm_start=True).fit(X, Y)
    before, fresh = model.predict(X), clone(model)
    cases = [
        ({"n_estimators": 4}, X, Y, "n_estimators=4 must be larger or equal"),
        ({}, X[:, :3], Y, "as many features"),
        ({}, X, Y[:, :3], "as many outputs"),
        ({"strategy": "single_target"}, X, Y, "does not go with strategy='single_target'"),
        ({"relabel": False}, X, Y, "not the model of such a run"),
    ]
    for options, A, B, match in cases:
        model.set_params(**options)
        with pytest.raises(ValueError, match=match):
            model.fit(A, B)
        model.set_params(**{name: getattr(fresh, name) for name in options})
        np.testing.assert_array_equal(model.predict(X), before)
    classifier = make(GradientBoostingClassifier, 3, warm_start=True)
    classifier.fit(X, np.arange(150) % 3)
    with pytest.raises(ValueError, match="same classes"):
        classifier.fit(X, np.arange(150) % 3 + 1)


# ---- A loss of one's own ----


class Logistic:
    def __init__(self, parts=3, weight=None):
        self.parts, self.weight, self.calls = parts, weight, 0

    def __call__(self, y, f):
        self.calls += 1
        p = expit(f)
        return (np.logaddexp(0, -(2 * y - 1) * f), p - y, p * (1 - p))[: self.parts]

    def start(self, y):
        mean = np.nanmean(y, axis=0) if self.weight is None else np.average(y, 0, self.weight)
        return np.log(mean / (1 - mean))


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("stop", [False, True])
def test_a_loss_of_ones_own(options, stop):
    X, Y = data(GradientBoostingClassifier, n=250, d=4)
    options = options | {"n_iter_no_change": 10}
    # Rounding would decide between cuts of a few rows with equal labels and scores.
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 200)
    sets = {"eval_set": (X[200:], Y[200:])} if stop else {}
    rounds = 15
    own = make(
        GradientBoostingClassifier,
        rounds,
        loss=Logistic(weight=None if stop else weight),
        **options,
    )
    own.fit(X[:200], Y[:200], weight, **sets)
    if stop:
        assert 1 <= own.n_estimators_ <= rounds
        return
    built_in = make(GradientBoostingClassifier, rounds, loss="logistic", **options)
    built_in.fit(X[:200], Y[:200], weight)
    np.testing.assert_allclose(scores(own, X), scores(built_in, X), rtol=2e-3, atol=2e-3)


def test_a_loss_without_curvature():
    X, Y = data(GradientBoostingRegressor)

    def squared(y, f):
        return (y - f) ** 2 / 2, f - y

    own, same = make(GradientBoostingRegressor, loss=squared), make(GradientBoostingRegressor)
    np.testing.assert_allclose(own.fit(X, Y).predict(X), same.fit(X, Y).predict(X), atol=1e-5)
    holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    own = make(GradientBoostingRegressor, loss=squared).fit(X, holes)
    same = make(GradientBoostingRegressor).fit(X, holes)
    np.testing.assert_allclose(own.predict(X), same.predict(X), atol=1e-5)


def test_bad_losses():
    X, Y = data(GradientBoostingRegressor)
    cases = [
        (lambda y, f: f, "loss must return .value, gradient"),
        (lambda y, f: (f,), "loss must return"),
        (lambda y, f: (f, f[:, :1]), r"loss: the gradient has shape"),
        (lambda y, f: (f, f, f[:1, :1]), r"loss: the curvature has shape"),
    ]
    for loss, match in cases:
        with pytest.raises(ValueError, match=match):
            make(GradientBoostingRegressor, loss=loss).fit(X, Y)
    with pytest.raises(ValueError, match="loss: the value has shape"):
        make(
            GradientBoostingRegressor, 30, loss=lambda y, f: (0.0, f - y), early_stopping=True
        ).fit(X, Y)

    def broken(y, f):
        raise KeyError("broken loss")

    with pytest.raises(KeyError, match="broken loss"):
        make(GradientBoostingRegressor, loss=broken).fit(X, Y)


# ---- Files, importances ----


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("d", [3, 40])
def test_keeping(cls, options, d, tmp_path):
    X, Y = data(cls, d=d)
    model = make(cls, **options).fit(X, Y)
    model.save(tmp_path / "model.rpo")
    for again in (pickle.loads(pickle.dumps(model)), pyrpo.load(tmp_path / "model.rpo")):
        assert type(again) is cls
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.apply(X), model.apply(X))
        np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
        assert again.n_estimators_ == model.n_estimators_
        assert again.get_params() == model.get_params()
        if "strategy" not in options:
            np.testing.assert_array_equal(again.train_score_, model.train_score_)
            again.set_params(warm_start=True, n_estimators=15).fit(X, Y)
            longer = make(cls, 15, **options).fit(X, Y)
            np.testing.assert_array_equal(again.predict(X), longer.predict(X))


def test_models_are_small():
    """Algorithm 3 keeps a number a leaf and a vector a tree."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(500, 5)), (rng.random((500, 200)) < 0.1).astype(float)
    three = make(GradientBoostingClassifier, 20, relabel=False).fit(X, Y)._model
    leaves = sum((three.tree(t)["left"] < 0).sum() for t in range(20))
    assert three.nbytes < 20 * 200 * 4 + leaves * 60 + 200 * 8 + 4000
    four = make(GradientBoostingClassifier, 20).fit(X, Y)._model
    leaves = sum((four.tree(t)["left"] < 0).sum() for t in range(20))
    assert four.nbytes < leaves * 200 * 2 + leaves * 60 + 200 * 8 + 4000


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_importances(cls, options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    Y = np.column_stack([np.sign(X[:, 2]), 2 * np.sign(X[:, 2]), -np.sign(X[:, 2])])
    Y = Y + rng.normal(size=Y.shape) / 100
    Y = (Y > 0).astype(float) if cls is GradientBoostingClassifier else Y
    model = make(cls, 5, **options).fit(X, Y)
    importances = model.feature_importances_
    assert importances.shape == (6,)
    assert importances.sum() == pytest.approx(1.0)
    assert (importances >= 0).all()
    assert importances.argmax() == 2


@pytest.mark.parametrize("cls", BOTH)
def test_what_is_not_for_boosted_models(cls):
    X, Y = data(cls)
    for options in KINDS:
        model = make(cls, 3, **options).fit(X, Y)._model
        calls = [
            lambda m=model: m.predict_oob(X, None),
            lambda m=model: m.agreement(X[:4], Y[:4], np.arange(4)),
            lambda m=model: m.relabel(pyrpo._native.Features(X), pyrpo._native.Matrix(Y), None),
            lambda m=model: m.weights(X),
            lambda m=model: m.leaf_rows(X, None),
            lambda m=model: m.importances_on(X, pyrpo._native.Matrix(Y), None),
            lambda m=model: m.tree_values(0),
            lambda m=model: pyrpo._native.Model.pick([m], [(0, 0)]),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="boosted"):
                call()


# ---- Bad input ----

BAD = [
    ({"n_estimators": 0}, "n_estimators"),
    ({"n_estimators": 2.5}, "n_estimators"),
    ({"loss": "hinge"}, "loss must be"),
    ({"loss": None}, "loss must be"),
    ({"learning_rate": 0.0}, "learning_rate"),
    ({"learning_rate": 1.5}, "learning_rate"),
    ({"learning_rate": np.nan}, "learning_rate"),
    ({"learning_rate": "fast"}, "learning_rate must be 'auto' or a number, got 'fast'"),
    ({"learning_rate": None}, "learning_rate"),
    ({"n_iter_no_change": "never"}, "n_iter_no_change must be 'auto' or an int, got 'never'"),
    ({"projection": "no such"}, "projection"),
    ({"projection": "pca"}, "projection"),
    ({"projection": np.ones((2, 3))}, "projection"),
    ({"projection": 5}, "projection"),
    ({"n_components": 0}, "n_components"),
    ({"n_components": 1.5}, "n_components"),
    ({"projection": "top", "n_components": 7}, "n_components"),
    ({"projection": "top", "n_components": "log"}, "n_components"),
    ({"relabel": False, "n_components": 2}, "n_components"),
    ({"relabel": 2}, "relabel"),
    ({"leaf": "median"}, "leaf"),
    ({"strategy": "both"}, "strategy"),
    ({"max_depth": 0}, "max_depth"),
    ({"max_depth": -2}, "max_depth"),
    ({"max_leaf_nodes": 1}, "max_leaf_nodes"),
    ({"min_samples_split": 1}, "min_samples_split"),
    ({"min_samples_leaf": 0}, "min_samples_leaf"),
    ({"max_features": 0}, "max_features"),
    ({"max_features": "all"}, "max_features"),
    ({"subsample": 0.0}, "subsample"),
    ({"subsample": 1.1}, "subsample"),
    ({"l2": -1.0}, "l2"),
    ({"max_bins": 1}, "max_bins"),
    ({"early_stopping": "yes"}, "early_stopping"),
    ({"early_stopping": None}, "early_stopping"),
    ({"validation_fraction": 0.0}, "validation_fraction"),
    ({"validation_fraction": 1.0}, "validation_fraction"),
    ({"n_iter_no_change": 0}, "n_iter_no_change"),
    ({"scoring": "accuracy"}, "scoring"),
    ({"tol": -0.1}, "tol"),
    ({"max_time": -1}, "max_time"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"warm_start": "yes"}, "warm_start"),
    ({"random_state": "x"}, "seed"),
]


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(("options", "match"), BAD, ids=str)
def test_bad_parameters(cls, options, match):
    X, Y = data(cls, n=40)
    model = make(cls, 2).fit(X, Y)
    before = model.predict(X)
    model.set_params(**options)
    state = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=match):
        model.fit(X, Y)
    assert vars(model) == state
    model.set_params(**{name: getattr(cls(), name) for name in options})
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("value", [-0.1, 1.5, "median", np.nan])
def test_bad_huber_quantiles(value):
    X, Y = data(GradientBoostingRegressor, n=40)
    with pytest.raises((ValueError, TypeError), match="huber_quantile"):
        make(GradientBoostingRegressor, 2, loss="huber", huber_quantile=value).fit(X, Y)


@pytest.mark.parametrize("value", ["oob", [0.5, 0.5], None, np.nan])
def test_bad_thresholds(value):
    X, Y = data(GradientBoostingClassifier, n=40)
    model = make(GradientBoostingClassifier, 2, threshold=value)
    with pytest.raises((ValueError, TypeError), match="threshold"):
        model.fit(X, Y)


@pytest.mark.parametrize("cls", BOTH)
def test_bad_data(cls):
    X, Y = data(cls, n=40)
    bad = X.copy()
    bad[0, 0] = np.inf
    holes = Y.copy()
    holes[:, 2] = np.nan
    infinite = Y.copy()
    infinite[1, 1] = np.inf
    one = np.ones(40)
    cases = [
        ((bad, Y), {}, "X contains infinity"),
        ((X[:-1], Y), {}, "inconsistent numbers"),
        ((X, None), {}, "requires y"),
        ((X, holes), {}, "output 2 is never observed"),
        ((X, np.full_like(Y, np.nan)), {}, "NaN only"),
        ((X, infinite), {}, "y contains infinity"),
        ((X, Y, -one), {}, "sample_weight must not be negative"),
        ((X, Y, one[:-1]), {}, "sample_weight must have shape"),
        ((X, Y, one * np.nan), {}, "sample_weight contains NaN"),
        ((X, Y, one * 0), {}, "sample_weight"),
        ((X, Y), {"eval_set": X}, "eval_set must be"),
        ((X, Y), {"eval_set": (X,)}, "eval_set must be"),
        ((X, Y), {"eval_set": (X, Y[:-1])}, "eval_set"),
        ((X, Y), {"eval_set": (X, Y[:, :2])}, "eval_set"),
        ((X, Y), {"eval_set": (X[:, :2], Y)}, "2 features"),
    ]
    for arguments, keywords, match in cases:
        with pytest.raises(ValueError, match=match):
            make(cls, 2).fit(*arguments, **keywords)
    with pytest.raises(NotFittedError):
        make(cls).predict(X)
    with pytest.raises(ValueError, match="4 features"):
        make(cls, 2).fit(X, Y).predict(X[:, :4])
    with pytest.raises(ValueError, match=r"y must be of size 1e\+20 at most, found"):
        make(GradientBoostingRegressor).fit(X, Y * 0 + 1e21)
    with pytest.raises(ValueError, match="weight must be between"):
        make(cls).fit(X, Y, one * 1e30)


def test_classifiers_refuse_other_labels():
    X, Y = data(GradientBoostingClassifier, n=40)
    for y, match in [
        (Y * 2, "indicator"),
        (X[:, 0], "Unknown label type"),
        (np.where(Y > 0, Y, 0.5), "indicator"),
    ]:
        with pytest.raises(ValueError, match=match):
            make(GradientBoostingClassifier).fit(X, y)
    with pytest.raises(ValueError, match="softmax"):
        make(GradientBoostingClassifier, loss="softmax").fit(X, Y)
    with pytest.raises(ValueError, match="a class that the training y does not: 2"):
        make(GradientBoostingClassifier).fit(X, np.arange(40) % 2, eval_set=(X, np.arange(40) % 3))
    with pytest.raises(ValueError, match="kind of the training y"):
        make(GradientBoostingClassifier).fit(X, np.arange(40) % 2, eval_set=(X, Y))


# ---- What a loss of one's own may not do, and data that single precision cannot hold ----


@pytest.mark.parametrize("start", [3.0, [0.0], np.zeros((1, 3)), np.zeros(4)])
def test_starts_of_a_loss_are_as_many_as_outputs(start):
    class Squared:
        def __call__(self, y, f):
            return (f - y) ** 2 / 2, f - y

        def start(self, y):
            return start

    X, Y = data(GradientBoostingRegressor, d=3)
    with pytest.raises(ValueError, match=r"loss: start must give an array of shape \(3,\)"):
        make(GradientBoostingRegressor, loss=Squared()).fit(X, Y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_numbers_of_a_loss_are_finite(bad):
    X, Y = data(GradientBoostingRegressor, d=3)
    for part in (1, 2):

        def loss(y, f, part=part):
            parts = [(f - y) ** 2, f - y, np.ones_like(f, dtype=float)]
            parts[part] = np.full(f.shape, bad)
            return tuple(parts)

        which = ("gradient", "curvature")[part - 1]
        with pytest.raises(ValueError, match=f"loss: the {which} must be finite"):
            make(GradientBoostingRegressor, loss=loss).fit(X, Y)


def test_a_metric_gives_numbers():
    X, Y = data(GradientBoostingRegressor)
    boosting = make(GradientBoostingRegressor, early_stopping=True, scoring=lambda y, f: np.nan)
    with pytest.raises(ValueError, match="scoring must give numbers, got nan after 10 rounds"):
        boosting.fit(X, Y)


def test_single_targets_do_not_start_warm():
    X, Y = data(GradientBoostingRegressor)
    with pytest.raises(
        ValueError, match="warm_start=True does not go with strategy='single_target"
    ):
        make(GradientBoostingRegressor, strategy="single_target", warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="max_time must be positive, got 0"):
        make(GradientBoostingRegressor, max_time=0).fit(X, Y)


@pytest.mark.parametrize("leaf", ["newton", "mean"])
def test_equal_weights_by_entry_are_weights_by_row(leaf):
    X, Y = data(GradientBoostingRegressor)
    weight = np.random.default_rng(0).exponential(size=len(X))
    weight[::7] = 0.0
    fits = [
        make(GradientBoostingRegressor, leaf=leaf).fit(X, Y, w)
        for w in (weight, np.repeat(weight[:, None], Y.shape[1], axis=1))
    ]
    np.testing.assert_array_equal(*(fit.predict(X) for fit in fits))


def test_outputs_far_from_zero_are_warned_of():
    X, Y = data(GradientBoostingRegressor, d=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(GradientBoostingRegressor).fit(X, Y + np.array([0.0, 1e3, 0.0]))
        make(GradientBoostingRegressor).fit(X, Y * [1.0, 0.0, 1.0] + 1e3)  # a constant one
    Y[:, 1] = np.where(np.arange(len(Y)) % 5, Y[:, 1] + 1e6, np.nan)
    with pytest.warns(UserWarning, match="y: output 1 lies between 99.*subtract its mean") as told:
        make(GradientBoostingRegressor).fit(X, Y)
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():  # few rows to look at lie close together
        warnings.simplefilter("error")
        near = X[:2], np.array([[1.0, 1e3, 1.0], [2.0, 1e3 + 1e-3, 2.0]])
        make(GradientBoostingRegressor).fit(X, Y - [0.0, 1e6, 0.0], eval_set=near)
