"""Embeddings of the label space against dense references, the papers' propositions, odd inputs."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge as DenseRidge
from sklearn.linear_model import orthogonal_mp

import pyrpo
from pyrpo._least_squares import LeastSquares, Ridge
from pyrpo.embedding import (
    CPLST,
    MLCSSP,
    MOPLMS,
    PLST,
    BinaryRelevance,
    CompressedLabeling,
    CompressedSensing,
    KernelMLCSSP,
    Rembrandt,
)
from pyrpo.embedding._compressed_labeling import distill
from pyrpo.embedding._compressed_sensing import matching_pursuit
from pyrpo.embedding._moplms import group_sparse
from pyrpo.linalg import column_subset

ALL = [
    Rembrandt(3, random_state=0),
    PLST(3),
    PLST(3, center=True),
    CPLST(3),
    MLCSSP(3, random_state=0),
    KernelMLCSSP(3, random_state=0),
    MOPLMS(3),
    CompressedSensing(3, random_state=0),
    CompressedLabeling(3, random_state=0),
    BinaryRelevance(),
]


def problem(n=200, p=12, d=15, seed=0, density=0.3):
    """Labels that depend on sparse features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < density)
    Y = (X @ rng.normal(size=(p, d)) + 0.5 * rng.normal(size=(n, d)) > 0.8).astype(float)
    return X, Y


def hat(X, ridge=0.0, weight=None, center=False):
    """The smoother of least squares, in the metric of the square roots of weights."""
    weight = np.ones(len(X)) if weight is None else weight
    X = X - (weight / weight.sum()) @ X if center else X
    X = np.sqrt(weight)[:, None] * X
    return X @ np.linalg.pinv(X.T @ X + ridge * np.eye(X.shape[1])) @ X.T


def same_span(A, B, tol=1e-6):
    return np.linalg.norm(A - B @ (B.T @ A)) < tol * max(np.linalg.norm(A), 1)


# ---- least squares ----


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_least_squares_is_ridge(solver, center, weighted, kind):
    X, Y = problem()
    X[:, 4] = 0  # a feature that never occurs
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float) if weighted else None
    fit = LeastSquares(kind(X), weight=weight, center=center, ridge=0.7, solver=solver, tol=1e-10)
    Z = fit.solve(Y)
    oracle = DenseRidge(0.7, fit_intercept=center).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(Z, oracle.coef_.T, atol=1e-7)
    mean = np.average(X, axis=0, weights=weight) if center else 0.0
    np.testing.assert_allclose(fit.fitted(Z), (X - mean) @ Z, atol=1e-9)
    np.testing.assert_allclose(fit.solve(sparse.csr_array(Y)), Z, atol=1e-7)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_conjugate_gradients_take_other_types(kind):
    X, Y = problem()
    fit = LeastSquares(kind(X), ridge=0.7, solver="cg", tol=1e-10)
    B = (X.T @ Y).astype(np.float32)
    np.testing.assert_allclose(fit.solve_normal(B), fit.solve(Y), atol=1e-4)


def test_least_squares_of_singular_X_is_the_shortest():
    X, Y = problem()
    X = np.hstack([X, X[:, :3], np.zeros((len(X), 2))])
    Z = LeastSquares(X).solve(Y)
    np.testing.assert_allclose(Z, np.linalg.pinv(X) @ Y, atol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_ridge_has_intercepts(kind):
    X, Y = problem()
    X[:, 4] = 0
    weight = np.arange(len(X), dtype=float)
    ours = Ridge(2.0).fit(kind(X), Y, sample_weight=weight)
    oracle = DenseRidge(2.0).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(kind(X)), oracle.predict(X), atol=1e-8)


# ---- Rembrandt ----


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_rembrandt_tends_to_the_svd_of_the_projected_labels(kind, solver):
    X, Y = problem()
    oracle = linalg.svd(hat(X) @ Y)
    gaps = []
    for q in (0, 1, 3, 12):
        model = Rembrandt(4, p=2, q=q, ridge=0, solver=solver, tol=1e-10, random_state=0)
        model.fit(kind(X), kind(Y))
        V = model.components_
        np.testing.assert_allclose(V @ V.T, np.eye(4), atol=1e-12)
        gaps.append(np.linalg.norm(V.T @ V - oracle[2][:4].T @ oracle[2][:4]))
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-5
    np.testing.assert_allclose(model.eigenvalues_, oracle[1][:4] ** 2, rtol=1e-6)


def test_rembrandt_without_iterations_is_a_projection_of_the_predictions():
    X, Y = problem()
    V = Rembrandt(4, p=0, q=0, ridge=0, random_state=3).fit(X, Y).components_.T
    Q0 = np.random.RandomState(3).standard_normal((Y.shape[1], 4))
    assert same_span(Y.T @ hat(X) @ Y @ Q0, V)


def test_rembrandt_solves_rank_constrained_least_squares():
    """W = X^+ (Y V) V' is no worse than other matrices of rank k: equation 1."""
    X, Y = problem()
    V = Rembrandt(3, p=12, q=8, ridge=0, random_state=0).fit(X, Y).components_.T
    best = np.linalg.norm(Y - hat(X) @ Y @ V @ V.T)
    U, s, Vt = linalg.svd(np.linalg.pinv(X) @ Y, full_matrices=False)
    other = np.linalg.norm(Y - X @ (U[:, :3] * s[:3]) @ Vt[:3])
    assert best <= other + 1e-9
    full = np.linalg.norm(Y - hat(X) @ Y) ** 2
    beyond = np.sum(linalg.svdvals(hat(X) @ Y)[3:] ** 2)
    assert best**2 == pytest.approx(full + beyond, rel=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_weights_are_repetitions(kind):
    X, Y = problem()
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    for model in (
        Rembrandt(3, q=2, random_state=0),
        Rembrandt(3, q=2, center=True, random_state=0),
        Rembrandt(3, p=12, q=2, whiten=True, center=True, random_state=0),
        PLST(3, center=True),
        CPLST(3),
        MOPLMS(3),
        MLCSSP(3, random_state=0),
        KernelMLCSSP(3, random_state=0),
        CompressedSensing(3, random_state=0),
    ):
        a = clone(model).fit(kind(X), kind(Y), sample_weight=weight)
        b = clone(model).fit(kind(X[repeated]), kind(Y[repeated]))
        P = a.inverse_transform(a.transform(Y)), b.inverse_transform(b.transform(Y))
        np.testing.assert_allclose(*P, atol=2e-4, err_msg=str(model))


def test_cplst_is_the_limit_of_rembrandt():
    X, Y = problem()
    V = CPLST(4).fit(sparse.csr_array(X), sparse.csr_array(Y)).components_.T
    centred = Y - Y.mean(axis=0)
    oracle = linalg.svd(hat(X, center=True) @ centred)[2][:4].T
    assert same_span(V, oracle)
    W = Rembrandt(4, q=15, ridge=0, center=True, random_state=0).fit(X, Y).components_.T
    assert same_span(V, W)


def test_plst_is_the_svd():
    _, Y = problem(d=90)
    for center in (False, True):
        model = PLST(5, center=center).fit(sparse.csr_array(Y))
        _, s, Vt = linalg.svd(Y - center * Y.mean(axis=0))
        assert same_span(model.components_.T, Vt[:5].T)
        np.testing.assert_allclose(model.singular_values_, s[:5])


def test_whitening_gives_canonical_correlations():
    X, Y = problem(n=500)
    model = Rembrandt(4, p=11, q=10, ridge=0, center=True, whiten=True, random_state=0).fit(X, Y)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    Qx, Qy = (linalg.qr(A, mode="economic")[0] for A in (Xc, Yc))
    oracle = linalg.svdvals(Qx.T @ Qy)[:4] ** 2
    np.testing.assert_allclose(model.eigenvalues_, oracle, rtol=1e-5)
    V = model.components_.T
    np.testing.assert_allclose(V.T @ Yc.T @ Yc @ V, np.eye(4), atol=1e-5)
    every = Rembrandt(15, q=2, center=True, whiten=True, random_state=0).fit(X, Y)
    np.testing.assert_allclose(every.inverse_transform(every.transform(Y)), Y, atol=1e-3)


def test_similarity_is_factored():
    X, Y = problem()
    S = Rembrandt(15, ridge=0, q=2, random_state=0).fit(X, Y).similarity()
    np.testing.assert_allclose(S @ S.T, Y.T @ hat(X) @ Y, atol=1e-7)


@pytest.mark.parametrize("cv", [None, 3])
def test_rembrandt_with_another_regressor(cv):
    X, Y = problem()
    forest = RandomForestRegressor(10, random_state=0)
    V = Rembrandt(3, regressor=forest, cv=cv, random_state=0).fit(X, Y).components_
    np.testing.assert_allclose(V @ V.T, np.eye(3), atol=1e-12)
    linear = DenseRidge(1.0, fit_intercept=False)
    a = Rembrandt(3, regressor=linear, random_state=0).fit(X, Y).components_
    b = Rembrandt(3, ridge=1.0, random_state=0).fit(X, Y).components_
    np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-8)


@pytest.mark.parametrize(
    "regressor",
    [
        pyrpo.RandomForestRegressor(10, random_state=0),
        pyrpo.GradientBoostingRegressor(20, random_state=0),
    ],
    ids=lambda r: type(r).__name__,
)
def test_rembrandt_with_our_regressors(regressor):
    """Line 5 by a forest or by boosting: directions that X predicts, though not linearly."""
    rng = np.random.default_rng(0)
    X = rng.random((600, 4))
    signal = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(float)
    Y = rng.normal(size=(600, 8))
    Y[:, 2] += 2 * signal - 1
    Y[:, 5] -= 2 * signal - 1
    truth = np.zeros(8)
    truth[[2, 5]] = np.sqrt(0.5), -np.sqrt(0.5)
    weight = np.ones(600)
    for options in ({}, {"cv": 3}):
        model = Rembrandt(1, regressor=regressor, center=True, q=2, random_state=0, **options)
        V = model.fit(X, Y, sample_weight=weight).components_
        assert abs(V[0] @ truth) > 0.9
    linear = Rembrandt(1, center=True, q=2, random_state=0).fit(X, Y).components_
    assert abs(linear[0] @ truth) < 0.9


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_means_of_features(kind, dtype):
    """Least squares of centred features, their means a thousand deviations."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(2000, 5)) + 1000).astype(dtype)
    truth = rng.normal(size=(5, 3))
    T = ((X - X.mean(axis=0, dtype=float)) @ truth).astype(dtype)
    Z = LeastSquares(kind(X), center=True).solve(T)
    np.testing.assert_allclose(Z, truth, atol=5e-3 if dtype == np.float32 else 1e-6)


def test_float32_stays():
    X, Y = (a.astype(np.float32) for a in problem())
    for model in (Rembrandt(3, random_state=0), PLST(3), CPLST(3)):
        codes = clone(model).fit(sparse.csr_array(X), sparse.csr_array(Y)).transform(Y)
        assert codes.dtype == np.float32
        double = clone(model).fit(X.astype(float), Y.astype(float))
        np.testing.assert_allclose(
            codes @ codes.T, double.transform(Y) @ double.transform(Y).T, atol=1e-2
        )


# ---- label selection ----


def test_mlcssp_is_column_subset():
    _, Y = problem()
    model = MLCSSP(5, random_state=0).fit(sparse.csr_array(Y))
    subset = column_subset(Y, 5, random_state=np.random.RandomState(0))
    np.testing.assert_array_equal(model.columns_, subset.columns)
    codes = model.transform(sparse.csr_array(Y))
    np.testing.assert_array_equal(codes, Y[:, model.columns_])
    oracle = codes @ (np.linalg.pinv(codes) @ Y)
    np.testing.assert_allclose(model.inverse_transform(codes), oracle, atol=1e-8)


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_error_bound_of_rounded_predictions(seed, k):
    """Proposition 3 with the factor it lacks: ||Y_C^+ Y||_2 on its first term."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((30, 10)) < 0.4).astype(float)
    k = min(k, int(Y.any(axis=0).sum()))
    model = MLCSSP(k, random_state=seed).fit(Y)
    codes = model.transform(Y)
    H = codes + 0.3 * rng.normal(size=codes.shape)
    B = model.interpolation_
    wrong = np.linalg.norm((model.inverse_transform(H) > 0.5) - Y)
    bound = np.linalg.norm(H - codes) * np.linalg.norm(B, 2) + np.linalg.norm(Y - codes @ B)
    assert wrong <= 2 * bound + 1e-9


def test_linear_kernel_is_mlcssp():
    _, Y = problem()
    Y[:, 3] = 0
    a = MLCSSP(5, random_state=0).fit(Y)
    b = KernelMLCSSP(5, kernel="linear", random_state=0).fit(Y)
    np.testing.assert_array_equal(a.columns_, b.columns_)
    np.testing.assert_allclose(a.interpolation_, b.interpolation_, atol=1e-8)


def test_kernel_decoding_takes_the_nearer_value():
    _, Y = problem()
    model = KernelMLCSSP(5, gamma=0.2, random_state=0).fit(Y)
    C = model.columns_
    K = np.exp(-0.2 * ((Y[:, :, None] - Y[:, None, :]) ** 2).sum(axis=0))
    B = np.linalg.solve(K[np.ix_(C, C)], K[C])
    np.testing.assert_allclose(model.interpolation_, B, atol=1e-6)
    h = np.random.default_rng(0).random((4, 5))
    score = [np.einsum("nc,cj->nj", np.exp(-0.2 * (y - h) ** 2), B) for y in (0, 1)]
    np.testing.assert_array_equal(model.inverse_transform(h) > 0.5, score[1] > score[0])


def test_group_sparse_regression_is_optimal():
    """The subgradient of equation 1 contains zero."""
    _, Y = problem()
    gram, lam, l1 = Y.T @ Y, 80.0, 1.0
    W = group_sparse(gram, lam, l1, np.zeros_like(gram), 1e-12, 20000)
    G, norm = 2 * (gram @ W - gram), np.linalg.norm(W, axis=1, keepdims=True)
    on = norm[:, 0] > 0
    assert 0 < on.sum() < len(W)
    slope = G[on] + lam * W[on] / norm[on]
    nonzero = W[on] != 0
    np.testing.assert_allclose(slope[nonzero], -l1 * np.sign(W[on][nonzero]), atol=1e-4)
    assert (np.abs(slope[~nonzero]) <= l1 + 1e-4).all()
    rest = np.maximum(np.abs(G[~on]) - l1, 0)
    assert (np.linalg.norm(rest, axis=1) <= lam + 1e-6).all()


@pytest.mark.parametrize("k", [1, 4, 8, 15])
def test_moplms_finds_k(k):
    _, Y = problem()
    model = MOPLMS(k).fit(sparse.csr_array(Y))
    assert model.n_components_ == len(model.columns_) == k


# ---- compressed sensing and labeling ----


def test_matching_pursuit_is_scikit_learns():
    rng = np.random.default_rng(0)
    A, truth = rng.normal(size=(30, 12)), np.zeros((20, 30))
    np.put_along_axis(truth, rng.permuted(np.tile(np.arange(30), (20, 1)), axis=1)[:, :3], 1.0, 1)
    codes = truth @ A + 0.05 * rng.normal(size=(20, 12))
    labels, values = matching_pursuit(A, codes, 3)
    ours = np.zeros_like(truth)
    np.put_along_axis(ours, labels, values, 1)
    unit = A / np.linalg.norm(A, axis=1, keepdims=True)
    oracle = orthogonal_mp(unit.T, codes.T, n_nonzero_coefs=3).T
    np.testing.assert_allclose(ours, oracle / np.linalg.norm(A, axis=1), atol=1e-7)


def test_compressed_sensing_recovers_sparse_labels():
    rng = np.random.default_rng(0)
    Y = np.zeros((100, 200))
    np.put_along_axis(Y, rng.integers(0, 200, (100, 3)), 1.0, axis=1)
    model = CompressedSensing(60, random_state=0).fit(sparse.csr_array(Y))
    assert model.cardinality_ == 3
    wrong = (model.inverse_transform(model.transform(Y)) > 0.5) != Y
    assert wrong.any(axis=1).mean() < 0.05


def test_compressed_labeling_recovers_label_sets():
    rng = np.random.default_rng(0)
    groups = [(0, 1, 2), (3, 4), (5,), (6, 7), (8, 9, 10)]
    Y = np.zeros((300, 11))
    for row in Y:
        for group in rng.choice(5, size=2, replace=False):
            row[list(groups[group])] = 1
    model = CompressedLabeling(600, random_state=0).fit(sparse.csr_array(Y))
    codes = model.transform(Y)
    assert set(np.unique(codes)) == {0.0, 1.0}
    assert ((model.inverse_transform(codes) > 0.5) != Y).mean() < 0.05  # nearly half of Y is 1
    sets = {tuple(np.flatnonzero(row)) for row in model.distilled_.toarray()}
    assert {(label,) for label in range(11)} <= sets


def test_distilled_sets_are_the_common_ones():
    Y = np.zeros((60, 6))
    Y[:30, :3], Y[30:, 3:5] = 1, 1
    sets = distill(sparse.csr_array(Y), np.ones(60), 2, np.random.RandomState(0))
    found = {tuple(np.flatnonzero(row)) for row in sets.toarray()}
    assert found == {(0, 1, 2), (3, 4), (0,), (1,), (2,), (3,), (4,)}


def test_weights_of_distilling():
    """Rows of weight 0 are not there; a cluster's set is what most of its weight holds."""
    rng = np.random.default_rng(0)
    Y = sparse.csr_array((rng.random((200, 12)) < 0.3).astype(float))
    weight = rng.integers(0, 3, 200).astype(float)
    rows = np.flatnonzero(weight)
    a = CompressedLabeling(40, random_state=0).fit(Y, sample_weight=weight)
    b = CompressedLabeling(40, random_state=0).fit(Y[rows], sample_weight=weight[rows])
    codes = a.transform(Y)
    np.testing.assert_array_equal(a.inverse_transform(codes), b.inverse_transform(codes))
    Y = np.zeros((60, 4))
    Y[:, :2], Y[:40, 2], Y[40:, 3] = 1, 1, 1  # one cluster: label 2 has most rows, 3 most weight
    weight = np.where(Y[:, 3] > 0, 10.0, 1.0)
    sets = distill(sparse.csr_array(Y), weight, 1, np.random.RandomState(0))
    assert (0, 1, 3) in {tuple(np.flatnonzero(row)) for row in sets.toarray()}


# ---- what all have in common ----


SQUARE = MOPLMS | KernelMLCSSP | CompressedLabeling  # defined by squares of labels; slow


@pytest.mark.parametrize("model", [m for m in ALL if not isinstance(m, SQUARE)], ids=str)
def test_nothing_dense_is_made(model):
    """No array of samples or labels times labels."""
    rng = np.random.default_rng(0)
    n, d = 2500, 2500
    X = sparse.random_array((n, 40), density=0.1, rng=rng, format="csr", dtype=np.float32)
    Y = sparse.random_array((n, d), density=0.002, rng=rng, format="csr", dtype=np.float32)
    Y.data[:] = 1.0
    model = clone(model)
    tracemalloc.start()
    model.fit(X, Y).transform(Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n * d / 2


@pytest.mark.parametrize("model", ALL, ids=str)
def test_sparse_and_dense_agree(model):
    X, Y = problem()
    a = clone(model).fit(X, Y)
    b = clone(model).fit(sparse.csr_matrix(X), sparse.csr_matrix(Y))
    codes = a.transform(Y)
    also = b.transform(sparse.csr_matrix(Y))
    also = also.toarray() if sparse.issparse(also) else also
    np.testing.assert_allclose(codes, also, atol=1e-7)
    np.testing.assert_allclose(a.inverse_transform(codes), b.inverse_transform(codes), atol=1e-7)
    np.testing.assert_allclose(clone(model).fit_transform(X, Y), codes, atol=1e-12)
    assert len(a.get_feature_names_out()) == codes.shape[1] == a.n_components_


@pytest.mark.parametrize("model", ALL, ids=str)
@pytest.mark.parametrize(
    "odd",
    [
        *("constant", "empty", "duplicate", "rank one", "all empty"),
        *("one sample", "few samples", "one label", "singular X"),
    ],
)
def test_odd_labels(model, odd):
    X, Y = problem()
    model = clone(model)
    if odd == "constant":
        Y[:, 2] = 1
    elif odd == "empty":
        Y[:, 2] = 0
    elif odd == "duplicate":
        Y[:, 2:5] = Y[:, :3]
    elif odd == "rank one":
        Y[:] = Y[:, :1]
    elif odd == "singular X":
        X[:, 1], X[:, 2], X[:, 3] = X[:, 0], 0.0, 1.0
    elif odd == "all empty":
        Y[:] = 0
    elif odd == "one sample":
        X, Y = X[:1], Y[:1]
    elif odd == "few samples":
        X, Y = X[:2], Y[:2]
    else:
        Y = Y[:, :1]
        if "k" in model.get_params():
            model.set_params(k=1)
    if odd in ("all empty", "one sample", "few samples") and isinstance(model, MLCSSP | MOPLMS):
        few = Y.any(axis=0).sum() < 3
        if few and (isinstance(model, MLCSSP) or not Y.any()):
            with pytest.raises(ValueError, match=r"k must be at most|no label occurs"):
                model.fit(X, Y)
            return
    model.fit(X, Y)
    scores = model.inverse_transform(model.transform(Y))
    assert scores.shape == Y.shape
    assert np.isfinite(scores).all()
    if odd == "one label" and not isinstance(model, CompressedLabeling | KernelMLCSSP | MOPLMS):
        np.testing.assert_allclose(scores, Y, atol=1e-6)


@pytest.mark.parametrize("model", ALL[:-1], ids=str)
def test_bad_k(model):
    X, Y = problem()
    for k in (0, -1, 2**40):
        with pytest.raises(ValueError, match="k must be"):
            clone(model).set_params(k=k).fit(X, Y)
    for k in (2.0, True, "a"):
        with pytest.raises(TypeError, match="k must be an int"):
            clone(model).set_params(k=k).fit(X, Y)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_bad_input(model):
    X, Y = problem()
    model = clone(model)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X[:-1], Y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.where(Y == 1, np.nan, Y))
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        model.fit(X, Y, sample_weight=np.full(len(Y), -1.0))
    model.fit(X, Y)
    with pytest.raises(ValueError, match="15 features"):
        model.transform(Y[:, :-1])
    with pytest.raises(ValueError, match="codes must have"):
        model.inverse_transform(np.zeros((2, model.n_components_ + 1)))


def test_parameters_are_checked():
    X, Y = problem()
    for model, message in [
        (Rembrandt(2, p=-1), "p must be at least 0"),
        (Rembrandt(2, q=-1), "q must be at least 0"),
        (Rembrandt(2, ridge=-1.0), "ridge must be"),
        (Rembrandt(2, solver="lu"), "solver must be"),
        (KernelMLCSSP(2, kernel="cubic"), "kernel must be"),
        (KernelMLCSSP(2, gamma=0.0), "gamma must be"),
        (KernelMLCSSP(2, memory_limit=100), "memory_limit"),
        (MOPLMS(2, memory_limit=100), "memory_limit"),
        (MOPLMS(2, l1=-1.0), "l1 must be between"),
        (MLCSSP(2, method="best"), "method must be"),
        (CompressedSensing(2, cardinality=0), "cardinality must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
    with pytest.raises(TypeError, match="q must be an int"):
        Rembrandt(2, q=0.5).fit(X, Y)
    holes = Y.toarray() if sparse.issparse(Y) else Y.copy()
    holes[0, 0] = np.nan
    for call in (lambda: Rembrandt(2).fit(X, holes), lambda: PLST(2).fit(Y).transform(holes)):
        with pytest.raises(ValueError, match="Input Y contains NaN"):
            call()
    for model in (Rembrandt(2), CPLST(2)):
        with pytest.raises(ValueError, match="needs X and Y"):
            model.fit(Y)


def test_fit_of_labels_alone():
    _, Y = problem()
    for model in ALL[4:]:
        codes = clone(model).fit(Y).transform(Y)
        np.testing.assert_array_equal(codes, clone(model).fit(_, Y).transform(Y))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 5.0])
def test_wide_least_squares(ridge, center, weighted):
    """Few rows: by their products, the same as by those of the features."""
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(12, 50)), rng.normal(size=(12, 3))
    X[3] = X[4]
    weight = rng.integers(0, 3, 12).astype(float) if weighted else None
    fit = LeastSquares(X, weight=weight, center=center, ridge=ridge)
    w = np.ones(12) if weight is None else weight
    mean = w @ X / w.sum() if center else np.zeros(50)
    A = np.sqrt(w)[:, None] * (X - mean)
    gram = A.T @ A + ridge * np.eye(50)
    inverse = np.linalg.pinv(gram, rcond=1e-12, hermitian=True)
    np.testing.assert_allclose(fit.solve(T), inverse @ (A.T @ (np.sqrt(w)[:, None] * T)), atol=1e-8)
    B = A.T @ rng.normal(size=(12, 2)) + (ridge > 0) * rng.normal(size=(50, 2))
    np.testing.assert_allclose(fit.solve_normal(B), inverse @ B, atol=1e-8, rtol=1e-7)


def test_binary_relevance_keeps_sparse_labels():
    Y = sparse.csr_array((np.random.default_rng(0).random((20, 6)) < 0.3).astype(float))
    same = BinaryRelevance().fit(Y)
    again = same.inverse_transform(same.transform(Y))
    assert sparse.issparse(again)
    assert abs(again - Y).nnz == 0
