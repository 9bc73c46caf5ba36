"""Boosting of other learners than our trees, against Algorithms 2 and 3 in numpy."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor as Theirs
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor

ALL = {"early_stopping": False, "subsample": 1.0, "random_state": 0}


def problem(seed, n=80, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    return X, np.tanh(X @ rng.normal(size=(3, d))) + 0.3 * rng.normal(size=(n, d))


def slow_boosting(learner, X, Y, rounds, rate, phi, weight):
    """Algorithms 2 (phi None) and 3 with the squared loss."""
    F = np.tile(np.average(Y, axis=0, weights=weight), (len(Y), 1))
    for _ in range(rounds):
        z = Y - F if phi is None else (Y - F) @ phi.T
        g = learner().fit(X, z, sample_weight=weight).predict(X)
        g = g.reshape(len(Y), -1)
        above = (weight[:, None] * (Y - F) * g).sum(axis=0)
        below = (weight[:, None] * g**2).sum(axis=0)
        F += rate * np.divide(above, below, out=np.zeros(Y.shape[1]), where=below > 0) * g
    return F


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 60),
    st.integers(1, 5),
    st.integers(1, 6),
    st.sampled_from([0.1, 1.0]),
    st.booleans(),
    st.booleans(),
)
def test_against_numpy(seed, n, d, rounds, rate, projected, weighted):
    X, Y = problem(seed, n, d)
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    phi = rng.normal(size=(1, d)) if projected else None
    model = GradientBoostingRegressor(
        rounds, base_estimator=Ridge(), learning_rate=rate, relabel=not projected,
        projection=phi, **ALL,
    ).fit(X, Y, weight)  # fmt: skip
    expected = slow_boosting(Ridge, X, Y, rounds, rate, phi, weight)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-4, atol=1e-4)
    assert len(model.estimators_) == model.n_estimators_ == rounds
    assert model.steps_.shape == (rounds, d)


def test_equals_scikit_learn_on_its_trees():
    X, Y = problem(1, 200, 1)
    tree = DecisionTreeRegressor(max_depth=3)
    theirs = Theirs(n_estimators=30, max_depth=3, random_state=0)
    ours = GradientBoostingRegressor(
        30, base_estimator=tree, projection=None, learning_rate=0.1, **ALL
    )
    expected = theirs.fit(X, Y.ravel()).predict(X)
    np.testing.assert_allclose(ours.fit(X, Y.ravel()).predict(X), expected, atol=1e-5)


LOSSES = {
    "absolute": lambda y, f: abs(y - f),
    "logistic": lambda y, f: np.logaddexp(0, (1 - 2 * y) * f),
    "exponential": lambda y, f: np.exp((0.5 - y) * f),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("projected", [False, True])
def test_steps_are_minima(loss, projected):
    X, Y = problem(2, 90)
    kind = GradientBoostingRegressor
    if loss != "absolute":
        kind, Y = GradientBoostingClassifier, (Y > 0.2).astype(float)
    options = {"projection": np.ones((1, 4)), "relabel": False} if projected else {}
    options = {"projection": None} | options
    tree = DecisionTreeRegressor(max_depth=4)

    def fit(rounds):
        return kind(
            rounds, base_estimator=tree, loss=loss, learning_rate=1.0, **options, **ALL
        ).fit(X, Y)

    before, after = fit(3), fit(4)
    F, G = before._scores(X), after._scores(X)
    v = np.broadcast_to(after.estimators_[-1].predict(X).reshape(len(X), -1), Y.shape)
    for j in range(4):

        def total(t, j=j):
            return LOSSES[loss](Y[:, j], F[:, j] + t * v[:, j]).sum()

        far = 30 / abs(v[:, j]).max()  # scores move no farther in a round
        best = total(np.clip(minimize_scalar(total).x, -far, far))
        assert LOSSES[loss](Y[:, j], G[:, j]).sum() <= best * (1 + 1e-5) + 1e-6


def test_softmax_takes_one_step_for_all():
    X, Y = problem(3, 150)
    y = Y.argmax(axis=1)
    model = GradientBoostingClassifier(
        10, base_estimator=DecisionTreeRegressor(max_depth=3), projection=None, **ALL
    ).fit(X, y)
    assert (model.steps_ == model.steps_[:, :1]).all()
    projected = GradientBoostingClassifier(
        10, base_estimator=DecisionTreeRegressor(max_depth=3), relabel=False, **ALL
    ).fit(X, y)
    for fitted in (model, projected):
        assert (np.diff(fitted.train_score_) < 0).all()
        rows = np.arange(len(y))
        loss = -np.log(fitted.predict_proba(X)[rows, y]).mean()
        assert loss < fitted.train_score_[-1]


def test_stopping_bits_and_stages():
    X, Y = problem(4, 200)
    options = {"base_estimator": DecisionTreeRegressor(max_depth=3, splitter="random"),
               "relabel": False, "random_state": 3, "n_iter_no_change": 5,
               "learning_rate": 0.05}  # fmt: skip
    model = GradientBoostingRegressor(400, **options).fit(X, Y)
    assert model.n_estimators_ < 400
    best = np.nanargmin(model.validation_score_[:-1])
    assert model.n_estimators_ == -(-best * 5 // 4)  # a fifth of the rows was held out
    seeds = {learner.random_state for learner in model.estimators_}
    assert len(seeds) == model.n_estimators_
    more = GradientBoostingRegressor(400, n_jobs=2, **options).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), more.predict(X))
    stages = [scores.copy() for scores in model.staged_predict(X)]
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    assert len(stages) == model.n_estimators_
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    index, values = model.predict_topk(X, 2)
    np.testing.assert_array_equal(values, np.sort(model.predict(X))[:, :-3:-1])
    np.testing.assert_array_equal(np.take_along_axis(model.predict(X), index, 1), values)


class Spy(RegressorMixin, BaseEstimator):
    """Remembers the weights it was given."""

    def fit(self, X, y, sample_weight=None):
        self.weight_, self.mean_ = sample_weight, np.average(y, axis=0, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full((X.shape[0], *np.shape(self.mean_)), self.mean_)


def test_weights_reach_learners_that_take_them():
    X, Y = problem(5, 60)
    weight = np.where(np.arange(60) < 20, 0.0, 2.0)
    options = {"relabel": False, **ALL}
    model = GradientBoostingRegressor(2, base_estimator=Spy(), **options).fit(X, Y, weight)
    assert all((s.weight_ == 2).all() and len(s.weight_) == 40 for s in model.estimators_)
    assert GradientBoostingRegressor(2, base_estimator=Spy(), **options).fit(
        X, Y
    ).estimators_[0].weight_ is None  # fmt: skip
    GradientBoostingRegressor(2, base_estimator=KNeighborsRegressor(), **options).fit(X, Y, weight)


def test_parts_and_sparse_data():
    X, Y = problem(6, 100)
    pipe = make_pipeline(StandardScaler(with_mean=False), DecisionTreeRegressor(max_depth=2))
    model = GradientBoostingRegressor(5, base_estimator=pipe, projection=None, **ALL)
    S = sparse.csr_array(np.where(abs(X) > 0.5, X, 0))
    dense = model.fit(S.toarray(), Y).predict(S.toarray())
    np.testing.assert_allclose(model.fit(S, sparse.csr_array(Y)).predict(S), dense, atol=1e-4)
    assert all(p[-1].random_state is not None for p in model.estimators_)
    labels = (Y > 0) * 1
    proba = (
        GradientBoostingClassifier(5, base_estimator=pipe, relabel=False, **ALL)
        .fit(S, labels)
        .predict_proba(S)
    )
    assert ((proba >= 0) & (proba <= 1)).all()


def test_many_sparse_outputs():
    """The run that could do without scores goes on with them."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 3)), (rng.random((50, 300)) < 0.02) * 1.0
    model = GradientBoostingRegressor(3, base_estimator=Ridge(), relabel=False, **ALL)
    a, b = (model.fit(X, y).predict(X) for y in (Y, sparse.csr_array(Y)))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_refused_by_name(tmp_path):
    X, Y = problem(7)

    def fit(**options):
        options = {"base_estimator": Ridge(), "relabel": False} | options
        return GradientBoostingRegressor(3, **options).fit(X, Y)

    with pytest.raises(ValueError, match="base_estimator: relabel=True"):
        fit(relabel=True)
    with pytest.raises(ValueError, match="strategy='single_target'"):
        fit(strategy="single_target")
    with pytest.raises(ValueError, match="warm_start=True"):
        fit(warm_start=True)
    with pytest.raises(ValueError, match="n_components must be 1"):
        fit(n_components=2)
    with pytest.raises(TypeError, match="base_estimator must be a scikit-learn regressor"):
        fit(base_estimator="ridge")
    with pytest.raises(TypeError, match="base_estimator must be a scikit-learn regressor"):
        fit(base_estimator=StandardScaler())
    with pytest.raises(TypeError, match="base_estimator must be a scikit-learn regressor"):
        fit(base_estimator=LogisticRegression())
    model = fit()
    with pytest.raises(ValueError, match="save: a model with base_estimator"):
        model.save(tmp_path / "m.rpo")
    with pytest.raises(ValueError, match="apply: a model with base_estimator"):
        model.apply(X)
    assert not hasattr(model, "feature_importances_")

    class Wide(Ridge):
        def predict(self, X):
            return np.zeros((len(X), 7))

    with pytest.raises(ValueError, match="base_estimator predicts an array of shape"):
        fit(base_estimator=Wide())

    class Lost(Ridge):
        def predict(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(ValueError, match="predictions must be finite"):
        fit(base_estimator=Lost())


def test_expit_of_scores():
    X, Y = problem(8)
    labels = (Y > 0) * 1
    model = GradientBoostingClassifier(4, base_estimator=Ridge(), projection=None, **ALL)
    scores = model.fit(X, labels).decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X), expit(scores))
