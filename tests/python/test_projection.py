"""Projections: their moments, Theorem 1, the transformers, and what forests make of them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from pyrpo import DecisionTreeRegressor, ExtraTreesRegressor, RandomForestClassifier
from pyrpo.projection import (
    AchlioptasProjection,
    GaussianProjection,
    HadamardProjection,
    PCAProjection,
    RademacherProjection,
    SparseProjection,
    SubsampleProjection,
    johnson_lindenstrauss,
    resolve_components,
)

RANDOM = [
    GaussianProjection,
    RademacherProjection,
    AchlioptasProjection,
    SparseProjection,
    HadamardProjection,
    SubsampleProjection,
]


def matrices(cls, m, d, count=200, **options):
    Y = np.zeros((1, d))
    return np.stack(
        [cls(m, random_state=seed, **options).fit(Y).components_ for seed in range(count)]
    )


@pytest.mark.parametrize("cls", RANDOM)
@pytest.mark.parametrize("d", [7, 16, 40])
def test_norms_are_kept_on_average(cls, d):
    """The expectation of |Phi y|^2 is |y|^2."""
    m = 3
    phi = matrices(cls, m, d, count=500)
    assert phi.shape[1:] == (m, d)
    y = np.random.default_rng(0).normal(size=d)
    norms = ((phi @ y) ** 2).sum(axis=1)
    spread = norms.std() / np.sqrt(len(norms))
    assert abs(norms.mean() - (y**2).sum()) < 5 * spread


def test_gaussian_moments():
    m = 4
    phi = matrices(GaussianProjection, m, 50, count=400).ravel() * np.sqrt(m)
    n = len(phi)
    assert abs(phi.mean()) < 4 / np.sqrt(n)
    assert abs(phi.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((phi**3).mean()) < 4 * np.sqrt(15 / n)
    assert abs((phi**4).mean() - 3) < 4 * np.sqrt(96 / n)


@pytest.mark.parametrize(
    ("cls", "options", "s"),
    [
        (RademacherProjection, {}, 1.0),
        (RademacherProjection, {"sparsity": 5.0}, 5.0),
        (AchlioptasProjection, {}, 3.0),
        (SparseProjection, {}, np.sqrt(50)),
    ],
)
def test_rademacher_values(cls, options, s):
    m = 4
    phi = matrices(cls, m, 50, count=400, **options).ravel()
    values = np.unique(phi)
    expected = np.array([-np.sqrt(s / m), 0.0, np.sqrt(s / m)])
    np.testing.assert_allclose(values, expected if s > 1 else expected[[0, 2]])
    n = len(phi)
    for value in expected[[0, 2]]:
        share = np.mean(np.isclose(phi, value))
        assert abs(share - 0.5 / s) < 4 * np.sqrt(0.25 / n)


def test_hadamard():
    phi = HadamardProjection(8, random_state=0).fit(np.zeros((1, 8))).components_
    np.testing.assert_allclose(np.abs(phi), 1 / np.sqrt(8))
    np.testing.assert_allclose(phi @ phi.T, np.eye(8), atol=1e-12)
    few = HadamardProjection(5, random_state=0).fit(np.zeros((1, 11))).components_
    assert len({row.tobytes() for row in few}) == 5


def test_subsample():
    phi = SubsampleProjection(4, random_state=0).fit(np.zeros((1, 9))).components_
    assert sorted(np.unique(phi)) == [0.0, np.sqrt(9 / 4)]
    assert (phi != 0).sum(axis=1).tolist() == [1] * 4
    assert (phi != 0).sum(axis=0).max() == 1
    many = SubsampleProjection(30, replace=True, random_state=0).fit(np.zeros((1, 9)))
    assert (many.components_ != 0).sum(axis=0).max() > 1
    counts = (matrices(SubsampleProjection, 3, 9, count=900) != 0).sum(axis=(0, 1))
    assert ((counts - 300) ** 2 / 300).sum() < 26.1  # chi-squared, 8 degrees, 0.1 %


@pytest.mark.parametrize("cls", [GaussianProjection, RademacherProjection, AchlioptasProjection])
def test_theorem_1(cls):
    """Projected variances of all subsets lie within 1 +- eps at the size of Lemma 1."""
    rng = np.random.default_rng(0)
    eps, n = 0.5, 60
    Y = (rng.random((n, 500)) < 0.05).astype(float)
    Z = cls(johnson_lindenstrauss(n, eps), random_state=0).fit_transform(Y)
    for _ in range(200):
        rows = rng.choice(n, rng.integers(2, n), replace=False)
        ratio = Z[rows].var(axis=0).sum() / Y[rows].var(axis=0).sum()
        assert 1 - eps <= ratio <= 1 + eps


def test_components():
    assert resolve_components("log", 100, 983) == 7
    assert resolve_components("log", 100, 1) == 1
    assert resolve_components("jl", 12920, 983) == johnson_lindenstrauss(12920)
    assert johnson_lindenstrauss(100, 0.5) == int(np.ceil(8 * np.log(100) / 0.25))
    assert GaussianProjection("jl").fit(np.zeros((50, 3))).n_components_ == 126
    for eps in (0, 1, -1):
        with pytest.raises(ValueError, match="eps"):
            johnson_lindenstrauss(10, eps)


@pytest.mark.parametrize("cls", [*RANDOM, PCAProjection])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_transform_is_the_product(cls, container):
    Y = (np.random.default_rng(0).random((30, 12)) < 0.3).astype(float)
    projection = cls(5)
    if cls is not PCAProjection:
        projection.set_params(random_state=3)
    Z = projection.fit_transform(container(Y))
    assert isinstance(Z, np.ndarray)
    centred = Y - Y.mean(axis=0) if cls is PCAProjection else Y
    np.testing.assert_allclose(Z, centred @ projection.components_.T, atol=1e-12)
    if cls is not PCAProjection:
        np.testing.assert_allclose(Z, clone(projection).fit_transform(Y), atol=1e-14)
    float32 = clone(projection).fit(Y).transform(Y.astype(np.float32))
    np.testing.assert_allclose(np.abs(float32), np.abs(Z), atol=1e-5)


def test_pca_is_scikit_learns():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 40)) < 0.1).astype(float)
    ours = [PCAProjection(6).fit(Y), PCAProjection(6).fit(sparse.csr_array(Y))]
    theirs = PCA(6, svd_solver="full").fit(Y)
    for projection in ours:
        np.testing.assert_allclose(
            np.abs(projection.components_), np.abs(theirs.components_), atol=1e-6
        )
        np.testing.assert_allclose(np.abs(projection.transform(Y)), np.abs(theirs.transform(Y)))


def test_pca_does_not_densify():
    Y = sparse.random_array((2000, 100_000), density=1e-5, rng=np.random.default_rng(0))
    Z = PCAProjection(2).fit_transform(sparse.csr_array(Y))  # dense: 1.6 GB
    assert Z.shape == (2000, 2)


def test_pipelines_and_set_output():
    rng = np.random.default_rng(0)
    Y, z = rng.normal(size=(50, 20)), rng.normal(size=50)
    pipeline = make_pipeline(GaussianProjection(4, random_state=0), Ridge()).fit(Y, z)
    assert pipeline.predict(Y).shape == (50,)
    projection = GaussianProjection(4, random_state=0).set_output(transform="pandas")
    frame = projection.fit_transform(Y)
    assert list(frame.columns) == [f"gaussianprojection{i}" for i in range(4)]
    assert list(projection.get_feature_names_out()) == list(frame.columns)


@pytest.mark.parametrize(
    ("projection", "error", "match"),
    [
        (GaussianProjection(0), ValueError, "n_components must be at least 1, got 0"),
        (GaussianProjection(-3), ValueError, "n_components"),
        (GaussianProjection("many"), ValueError, "'many'"),
        (GaussianProjection(2.5), TypeError, "2.5"),
        (GaussianProjection(True), TypeError, "True"),
        (RademacherProjection(2, sparsity=0.5), ValueError, "sparsity must be at least 1, got 0.5"),
        (RademacherProjection(2, sparsity=np.nan), ValueError, "sparsity"),
        (HadamardProjection(9), ValueError, "n_components must be at most 8.*got 9"),
        (SubsampleProjection(8), ValueError, "n_components must be at most 7.*got 8"),
        (PCAProjection(8), ValueError, "n_components must be at most.*got 8"),
    ],
)
def test_errors(projection, error, match):
    with pytest.raises(error, match=match):
        projection.fit(np.zeros((20, 7)))
    with pytest.raises(error, match=match):
        DecisionTreeRegressor(projection=projection).fit(np.zeros((20, 2)), np.zeros((20, 7)))


def test_missing_and_infinite_outputs_are_refused():
    for value in (np.nan, np.inf):
        Y = np.zeros((5, 3))
        Y[1, 1] = value
        for cls in (GaussianProjection, PCAProjection):
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                cls(1).fit(Y)


def label_data(n=300, d=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    Y = X @ np.random.default_rng(9).normal(size=(10, d)) + rng.normal(size=(n, d)) > 2
    return X, Y.astype(float)


@pytest.mark.parametrize(
    "projection",
    [
        "gaussian",
        "rademacher",
        "achlioptas",
        "sparse",
        "hadamard",
        "subsample",
        "pca",
        RademacherProjection(4, sparsity=2.0),
        SubsampleProjection(70, replace=True),
        PCA(3),
        np.random.default_rng(0).normal(size=(3, 60)),
        sparse.random_array((5, 60), density=0.3, rng=np.random.default_rng(0)),
    ],
    ids=lambda p: p if isinstance(p, str) else type(p).__name__,
)
@pytest.mark.parametrize("shared", [False, True])
def test_forests_on_projections(projection, shared):
    """Dense and CSR outputs alike, leaves in the original space, better than the mean."""
    X, Y = label_data()
    forest = RandomForestClassifier(
        20, projection=projection, shared_projection=shared, random_state=0
    )
    p = forest.fit(X, Y).predict_proba(X)
    assert p.shape == Y.shape
    assert np.mean((p - Y) ** 2) < 0.5 * Y.var(axis=0).mean()
    np.testing.assert_allclose(forest.weights(X) @ Y, p, atol=1e-12)
    if isinstance(projection, PCA) or (isinstance(projection, str) and projection == "pca"):
        return  # another solver, other last bits
    again = forest.fit(X, sparse.csr_array(Y)).predict_proba(X)
    np.testing.assert_array_equal(p, again)


def test_shared_and_own_subspaces():
    """Without other randomness trees on a shared subspace are equal, on their own they differ."""
    X, Y = label_data()
    settings = {"bootstrap": False, "max_features": None, "projection": "gaussian"}
    for shared in (True, False):
        forest = RandomForestClassifier(
            4, **settings, n_components=2, shared_projection=shared, random_state=0
        ).fit(X, Y)
        leaves = forest.apply(X)
        assert (leaves == leaves[:, :1]).all() == shared


def test_a_tree_grows_on_the_projected_outputs():
    X, Y = label_data()
    phi = np.random.default_rng(0).normal(size=(4, 60))
    ours = DecisionTreeRegressor(projection=phi, min_samples_leaf=5).fit(X, Y)
    ready = DecisionTreeRegressor(min_samples_leaf=5).fit(X, Y @ phi.T)
    np.testing.assert_array_equal(ours.apply(X), ready.apply(X))
    leaves = ours.apply(X)
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        np.testing.assert_allclose(ours.predict(X[rows][:1])[0], Y[rows].mean(axis=0), atol=1e-12)


def test_own_subspaces_vary_less():
    """Section 3.3: Algorithm 2 divides the projection's variance by the number of trees."""
    X, Y = label_data(200)
    new, truth = label_data(200, seed=1)
    variance, error = {}, {}
    for shared in (True, False):
        predictions = np.stack(
            [
                ExtraTreesRegressor(
                    20,
                    projection="gaussian",
                    n_components=1,
                    shared_projection=shared,
                    min_samples_leaf=5,
                    random_state=seed,
                )
                .fit(X, Y)
                .predict(new)
                for seed in range(15)
            ]
        )
        variance[shared] = predictions.var(axis=0).sum(axis=1).mean()
        error[shared] = ((predictions - truth) ** 2).sum(axis=2).mean()
    assert variance[False] < 0.5 * variance[True]
    assert error[False] < error[True]
