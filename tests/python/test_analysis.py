"""Bias and variance against cases known in closed form, and against theory."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.random_projection import GaussianRandomProjection

from pyrpo import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from pyrpo.analysis import Components, _decompose, _summary, bias_variance
from pyrpo.projection import SubsampleProjection

PARTS = ("residual_bias", "v_ls", "v_algo", "v_proj", "residual", "bias")


def parts(result):
    return np.array([getattr(result, name) for name in PARTS])


# ---- the estimates, on numbers ----


def decompose(F, Y, truth=None):
    """Of predictions (learning sets, projections, repeats, n_test, d)."""
    return _decompose([_summary(list(f), f.shape[0] > 1) for f in F], Y, truth)


def effects(rng, shape, n, v_ls, v_algo, v_proj, mean):
    """Predictions with random effects of known variances, n independent experiments at once."""
    sets, projections, repeats = shape
    a = np.sqrt(v_ls) * rng.normal(size=(sets, 1, 1, n, 1))
    b = np.sqrt(v_proj) * rng.standard_exponential((sets, projections, 1, n, 1))
    c = np.sqrt(v_algo) * rng.uniform(-(3**0.5), 3**0.5, (sets, projections, repeats, n, 1))
    return mean + a + (b - np.sqrt(v_proj)) + c


@pytest.mark.parametrize(
    "variances", [(1.0, 4.0, 0.5), (0.0, 3.0, 0.0), (0.0, 0.0, 2.0), (1.0, 1.0, 0.0)]
)
@pytest.mark.parametrize("shape", [(3, 2, 2), (4, 3, 5)])
def test_estimates_are_unbiased(rng, shape, variances):
    # Naive estimates are off by v_algo / 2 and more here, some 100 standard errors.
    n = 60_000
    F = effects(rng, shape, n, *variances, mean=0.3)
    Y = 1.0 + np.sqrt(2.0) * rng.normal(size=(n, 1))
    result = decompose(F, Y, truth=np.ones((n, 1)))
    assert parts(result) == pytest.approx([2.49, *variances, 2.0, 0.49], abs=0.06)
    assert decompose(F, Y).residual_bias == pytest.approx(2.49, abs=0.06)


def test_standard_errors_say_how_far_estimates_are_off(rng):
    truth = np.array([0.49, 1.0, 2.0, 0.5])
    results = [
        decompose(effects(rng, (12, 3, 2), 1, 1.0, 2.0, 0.5, 0.3), np.ones((1, 1)))
        for _ in range(600)
    ]
    estimates = np.array([parts(r)[:4] for r in results])
    errors = np.array([parts(r.standard_error)[:4] for r in results])
    assert estimates.mean(axis=0) == pytest.approx(truth, abs=0.12)
    assert np.sqrt((errors**2).mean(axis=0)) == pytest.approx(estimates.std(axis=0), rel=0.2)


shapes = st.tuples(*[st.integers(3, 5)], *[st.integers(1, 3)], *[st.integers(2, 4)])


@given(shapes, st.integers(1, 4), st.integers(1, 3), st.integers(0, 99), st.booleans())
def test_invariants(shape, n, d, seed, known):
    rng = np.random.default_rng(seed)
    F, Y = rng.normal(size=(*shape, n, d)), rng.normal(size=(n, d))
    truth = rng.normal(size=(n, d)) if known else None
    result = decompose(F, Y, truth)
    of = parts(result.per_output)
    assert of.shape == (6, d)
    assert parts(result) == pytest.approx(of.mean(axis=1), nan_ok=True)
    assert np.isnan(result.bias) == (not known)
    assert (result.v_proj == 0.0) == (shape[1] == 1)
    assert result.v_algo >= 0.0
    assert result.error == pytest.approx(parts(result)[:4].sum())
    order = rng.permutation(d)
    permuted = decompose(F[..., order], Y[:, order], None if truth is None else truth[:, order])
    assert parts(permuted.per_output) == pytest.approx(of[:, order], nan_ok=True)
    c, shift = rng.normal(size=2)
    scaled = decompose(c * F + shift, c * Y + shift, None if truth is None else c * truth + shift)
    assert parts(scaled.per_output) == pytest.approx(c * c * of, nan_ok=True)
    assert parts(scaled.standard_error) == pytest.approx(
        c * c * parts(result.standard_error), nan_ok=True
    )


@given(shapes, st.integers(0, 99))
def test_what_varies_at_one_level_shows_at_that_level_only(shape, seed):
    rng = np.random.default_rng(seed)
    Y = np.zeros((1, 1))
    a = np.broadcast_to(rng.normal(size=(shape[0], 1, 1, 1, 1)), (*shape, 1, 1))
    result = decompose(a, Y)
    assert parts(result)[1:4] == pytest.approx([a[:, 0, 0].var(ddof=1), 0.0, 0.0])


# ---- estimators, in closed form ----

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def corners(rng, n):
    """Outputs equal to the inputs, up to a shift of variance 1 / 4 of the whole learning set."""
    assert n == 4
    return CORNERS, CORNERS + rng.normal(0.0, 0.5)


@pytest.mark.parametrize("shared", [True, False])
def test_projection_variance_in_closed_form(shared):
    # Phi picks one output, hence the one split of the tree: of x_1 or x_2. The other output is
    # predicted by its mean. Either output is x + shift or 1/2 + shift, with even chances: the
    # variance of one tree is (x - 1/2)^2 / 4 = 1/16, its squared bias (x - 1/2)^2 / 4 = 1/16.
    trees = 5
    forest = ExtraTreesRegressor(
        trees,
        max_depth=1,
        projection=SubsampleProjection(1),
        shared_projection=shared,
    )
    result = bias_variance(
        forest, corners, CORNERS, CORNERS, learning_size=4, truth=CORNERS,
        n_learning_sets=400, n_projections=3, random_state=0,
    )  # fmt: skip
    v_proj = 1 / 16 if shared else 1 / 16 / trees
    # The cut between 0 and 1 is drawn, but any splits alike: no variance of the algorithm.
    assert result.v_algo == 0.0
    for name, value in {"v_ls": 0.25, "v_proj": v_proj, "bias": 1 / 16}.items():
        error = getattr(result.standard_error, name)
        assert 0 < error < 0.03
        assert getattr(result, name) == pytest.approx(value, abs=4 * error)
        of = getattr(result.per_output, name)
        assert of == pytest.approx(value, abs=8 * error)
    assert result.residual == 0.0


@pytest.mark.parametrize("trees", [1, 3])
def test_bootstrap_variance_in_closed_form(trees):
    # A tree that is one leaf predicts the mean of its bootstrap sample.
    n, d, variance = 10, 3, 2.0

    def sample(rng, rows):
        return rng.normal(size=(rows, 2)), np.sqrt(variance) * rng.normal(size=(rows, d))

    rng = np.random.default_rng(0)
    X_test, Y_test = sample(rng, 2000)
    forest = RandomForestRegressor(
        trees, min_samples_split=n + 1, projection="gaussian", n_components=2
    )
    result = bias_variance(
        forest, sample, X_test, Y_test + 1.0, learning_size=n, truth=np.ones((2000, d)),
        n_learning_sets=300, n_projections=2, random_state=0,
    )  # fmt: skip
    expected = {
        "v_ls": variance / n,
        "v_algo": (n - 1) / n * variance / n / trees,
        "v_proj": 0.0,
        "bias": 1.0,
    }
    for name, value in expected.items():
        error = getattr(result.standard_error, name)
        assert 0 < error < 0.04
        assert getattr(result, name) == pytest.approx(value, abs=4 * error)
    assert result.residual == pytest.approx(variance, rel=0.06)


# ---- theory ----


def surface(X):
    return np.c_[
        np.sin(6 * X[:, 0]), X[:, 1] * X[:, 2], X[:, 3] > 0.5, X[:, 0] * X[:, 3], X[:, 4], X[:, 2]
    ].astype(float)


def noisy(rng, n):
    X = rng.uniform(size=(n, 5))
    return X, surface(X) + 0.2 * rng.normal(size=(n, 6))


def measure(estimator, **parameters):
    X_test, Y_test = noisy(np.random.default_rng(1), 60)
    settings = {"learning_size": 60, "truth": surface(X_test), "n_learning_sets": 40}
    settings |= {"random_state": 3} | parameters
    return bias_variance(estimator, noisy, X_test, Y_test, **settings)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_own_projections_divide_the_projection_variance_by_the_trees(kind):
    # Appendix C.2: V_LS + V_Algo / t + V_Proj of Algorithm 1, V_LS + (V_Algo + V_Proj) / t of 2.
    trees, m = 6, {"projection": "gaussian", "n_components": 1}
    one = measure(kind(1, **m), n_projections=8)
    for shared in (True, False):
        forest = kind(trees, **m, shared_projection=shared)
        measured = measure(forest, random_state=4)
        expected = one.of_ensemble(trees, shared=shared)
        for name in ("residual_bias", "v_ls", "v_algo", "v_proj"):
            error = np.hypot(
                getattr(measured.standard_error, name), getattr(one.standard_error, name)
            )
            assert getattr(measured, name) == pytest.approx(getattr(expected, name), abs=4 * error)
        # Not so vague that the other algorithm would pass.
        assert 4 * measured.standard_error.v_proj < one.v_proj * (1 - 1 / trees)


def test_error_is_what_fresh_forests_make():
    forest = RandomForestRegressor(
        3, projection="rademacher", n_components=1, shared_projection=True
    )
    result = measure(forest, n_learning_sets=60, truth=None)
    X_test, Y_test = noisy(np.random.default_rng(1), 60)
    rng = np.random.default_rng(8)

    def error(seed):
        fresh = forest.set_params(random_state=seed).fit(*noisy(rng, 60))
        return ((fresh.predict(X_test) - Y_test) ** 2).mean()

    errors = [error(seed) for seed in range(300)]
    spread = np.std(errors) / np.sqrt(len(errors))
    assert result.error == pytest.approx(np.mean(errors), abs=5 * spread)


# ---- kinds of estimator, projection and data ----


class PLST(TransformerMixin, BaseEstimator):
    """Two principal axes of the outputs, uncentred; nothing random."""

    def fit(self, Y):
        self.axes_ = np.linalg.svd(Y)[2][:2]
        return self

    def transform(self, Y):
        return Y @ self.axes_.T


@pytest.mark.parametrize("projection", [None, "auto", "pca", PLST(), np.eye(2, 6)])
@pytest.mark.parametrize("shared", [True, False])
def test_projections_that_are_not_random_have_no_variance(projection, shared):
    forest = RandomForestRegressor(2, projection=projection, shared_projection=shared)
    result = measure(forest, n_learning_sets=5)
    assert result.v_proj == 0.0
    assert (result.per_output.v_proj == 0.0).all()
    assert result.v_algo > 0.0


def test_random_transformers_are_one_for_all_trees():
    one = measure(DecisionTreeRegressor(projection=GaussianRandomProjection(1)))
    forest = RandomForestRegressor(
        5,
        projection=GaussianRandomProjection(1, random_state=0),
        bootstrap=False,
        max_features=1.0,
    )
    many = measure(forest)
    assert one.v_algo == many.v_algo == 0.0
    assert many.v_proj == pytest.approx(one.v_proj, rel=0.25)


def test_classifiers_sparse_pools_and_one_output():
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 30), density=0.2, format="csr", rng=rng)
    Y = sparse.csr_array((rng.random((200, 7)) < 0.2).astype(int))
    pool, test = (X[:150], Y[:150]), (X[150:], Y[150:])
    forest = RandomForestClassifier(
        3, projection="gaussian", threshold="oob", oob_score=True, random_state=0
    )
    result = bias_variance(forest, pool, *test, learning_size=50, n_learning_sets=4)
    assert result.per_output.v_ls.shape == (7,)
    dense = bias_variance(
        DecisionTreeClassifier(), (pool[0].toarray(), pool[1].toarray()), *test, learning_size=50,
        n_learning_sets=4,
    )  # fmt: skip
    assert dense.v_algo == dense.v_proj == 0.0 < dense.v_ls
    y = rng.normal(size=200)
    one = bias_variance(
        RandomForestRegressor(2, projection="gaussian"), (X[:150], y[:150]), X[150:], y[150:],
        learning_size=50, n_learning_sets=4,
    )  # fmt: skip
    assert one.per_output.v_ls.shape == (1,)


def test_same_seed_same_result_and_the_estimator_is_left_alone():
    forest = RandomForestRegressor(2, projection="gaussian", n_components=2, random_state=5)
    before = forest.get_params()
    a, b = (measure(forest, n_learning_sets=3) for _ in range(2))
    assert parts(a).tolist() == parts(b).tolist()
    assert forest.get_params() == before
    assert not hasattr(forest, "n_outputs_")


def test_components_of_an_ensemble():
    one = Components(1.0, 2.0, 6.0, 3.0, 0.75, 0.25)
    assert astuple(one.of_ensemble(3, shared=True)) == (1.0, 2.0, 2.0, 3.0, 0.75, 0.25)
    assert astuple(one.of_ensemble(3, shared=False)) == (1.0, 2.0, 2.0, 1.0, 0.75, 0.25)
    assert one.variance == 11.0
    assert one.error == 12.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": PCA()}, "estimator must be a tree or forest"),
        ({"estimator": RandomForestRegressor}, "estimator must be a tree or forest"),
        ({"sample": [1, 2, 3]}, "sample must be callable or a pair"),
        ({"learning_size": 31}, "learning_size must be at most the 30 rows"),
        ({"learning_size": 0}, "learning_size must be at least 1"),
        ({"n_learning_sets": 2}, "n_learning_sets must be at least 3"),
        ({"n_projections": 1}, "n_projections must be at least 2"),
        ({"n_repeats": 1.5}, "n_repeats must be an int"),
        ({"Y_test": np.zeros((9, 6))}, "Y_test must have the 10 rows"),
        ({"Y_test": np.zeros((10, 5))}, "Y_test must have the 6 outputs"),
        ({"Y_test": np.full((10, 6), np.nan)}, "Y_test contains NaN"),
        ({"truth": np.zeros((10, 5))}, r"truth must have the shape of Y_test, \(10, 6\)"),
        ({"estimator": RandomForestRegressor(projection="gauss")}, "projection must be one of"),
        (
            {
                "estimator": RandomForestClassifier(),
                "sample": (np.zeros((30, 5)), np.arange(30) % 3),
            },
            "got 1-D classes",
        ),
    ],
)
def test_bad_input(change, message):
    X, Y = noisy(np.random.default_rng(0), 40)
    arguments = {
        "estimator": RandomForestRegressor(2, projection="gaussian"),
        "sample": (X[:30], Y[:30]), "X_test": X[30:], "Y_test": Y[30:], "learning_size": 20,
    }  # fmt: skip
    with pytest.raises((TypeError, ValueError), match=message):
        bias_variance(**(arguments | change))
