"""Principal components, column subsets and rank-revealing QR against the papers' claims."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from pyrpo.datasets import load_mulan
from pyrpo.linalg import column_subset, randomized_pca, strong_rrqr

DATA = Path(os.environ.get("PYRPO_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data")
METHODS = ["adaptive", "exact-subspace", "two-stage", "uniform"]


def labels(rng, n, d, density=0.1):
    """A 0/1 matrix with some structure: labels that imply others."""
    Y = rng.random((n, d)) < density * rng.random(d) * 2
    Y[:, d // 2] = Y[:, 0] | Y[:, 1]
    return Y.astype(float)


def low_rank(rng, n, d, rank):
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))


# ---- randomized PCA ----


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array, aslinearoperator])
@pytest.mark.parametrize("center", [False, True])
def test_components_are_those_of_the_svd(rng, form, center):
    spectrum = 0.8 ** np.arange(40)
    A = np.linalg.qr(rng.normal(size=(200, 40)))[0] * spectrum
    A = A @ np.linalg.qr(rng.normal(size=(60, 40)))[0].T + 0.1 * center
    V, sigma = randomized_pca(form(A), 10, q=4, center=center, random_state=0)
    _, expected, Vt = np.linalg.svd(A - center * A.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(V.T @ V, np.eye(10), atol=1e-12)
    np.testing.assert_allclose(sigma, expected[:10], rtol=1e-8)
    np.testing.assert_allclose(V @ V.T, Vt[:10].T @ Vt[:10], atol=1e-4)


@pytest.mark.parametrize("q", [0, 1])
def test_the_range_is_that_of_algorithm_1(rng, q):
    """With p = 0, V spans (AᵀA)^(q+1) times the first random vectors."""
    A = rng.normal(size=(50, 20))
    V, _ = randomized_pca(A, 4, p=0, q=q, random_state=7)
    Q = np.random.RandomState(7).standard_normal((20, 4))
    for _ in range(q + 1):
        Q = np.linalg.qr(A.T @ (A @ Q))[0]
    np.testing.assert_allclose(V @ V.T, Q @ Q.T, atol=1e-10)


def test_passes_are_counted(rng):
    """q + 1 products with A and with its transpose."""
    A, calls = rng.normal(size=(30, 12)), []

    class Counted:
        shape, dtype = A.shape, A.dtype

        def matmat(self, Z):
            calls.append("A")
            return A @ Z

        def rmatmat(self, Z):
            calls.append("T")
            return A.T @ Z

    randomized_pca(Counted(), 3, q=2, random_state=0)
    assert "".join(calls) == "ATATAT"


def test_beyond_the_rank_v_stays_orthonormal(rng):
    V, sigma = randomized_pca(low_rank(rng, 30, 12, 3), 12, random_state=0)
    np.testing.assert_allclose(V.T @ V, np.eye(12), atol=1e-12)
    assert (sigma[3:] < 1e-6 * sigma[0]).all()


def test_float32_stays_float32(rng):
    A = sparse.random_array((80, 40), density=0.3, rng=rng, format="csr", dtype=np.float32)
    V, sigma = randomized_pca(A, 5, q=5, random_state=0)
    assert V.dtype == sigma.dtype == np.float32
    expected = np.linalg.svd(A.toarray(), compute_uv=False)[:5]
    np.testing.assert_allclose(sigma, expected, rtol=1e-2)


def test_large_means_cancel(rng):
    A = rng.normal(size=(100, 8))
    expected = np.linalg.svd(A - A.mean(axis=0), compute_uv=False)
    _, sigma = randomized_pca(A + 1e6, 8, center=True, random_state=0)
    np.testing.assert_allclose(sigma, expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (3, 9)])
def test_small_shapes(rng, shape):
    A = rng.normal(size=shape)
    k = shape[1]
    V, sigma = randomized_pca(A, k, random_state=0)
    assert V.shape == (k, k)
    expected = np.zeros(k)
    expected[: min(shape)] = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(sigma, expected, atol=1e-6)


# ---- column subsets ----


@st.composite
def subset_case(draw):
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 15))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["labels", "real", "deficient"]))
    if kind == "labels":
        Y = (rng.random((n, d)) < 0.3).astype(float)
        if d > 3:  # empty, constant, duplicate
            Y[:, 0], Y[:, 1], Y[:, 2] = 0.0, 1.0, Y[:, 3]
    else:
        Y = low_rank(rng, n, d, min(n, d) if kind == "real" else 2)
    k = draw(st.integers(1, d))
    assume(k <= (np.abs(Y).sum(axis=0) > 0).sum())
    return Y, k


@given(subset_case(), st.sampled_from(METHODS), st.sampled_from([np.asarray, sparse.csr_array]))
def test_what_a_subset_says_is_so(case, method, form):
    Y, k = case
    subset = column_subset(form(Y), k, method, random_state=0)
    C = subset.columns
    assert len(C) == k or (method == "exact-subspace" and 1 <= len(C) <= k * k)
    assert (np.diff(C) > 0).all()
    assert method == "exact-subspace" or subset.n_trials >= k
    expected = np.linalg.pinv(Y[:, C], rcond=1e-8) @ Y
    np.testing.assert_allclose(subset.interpolation, expected, atol=1e-5)
    _, sigma, Vt = np.linalg.svd(Y, full_matrices=False)
    rank = min(k, int((sigma > 1e-9 * sigma[0]).sum()))
    assert subset.leverage.sum() == pytest.approx(rank)
    assert (subset.leverage[~Y.any(axis=0)] == 0).all()
    best = np.sqrt(np.square(sigma[rank:]).sum())
    error = np.linalg.norm(Y - Y[:, C] @ subset.interpolation)
    if best > 1e-5 * sigma[0]:
        assert subset.ratio == pytest.approx(error / best, rel=1e-3)
        gap = sigma[rank - 1] - sigma[rank] if rank < len(sigma) else sigma[0]
        if gap > 0.2 * sigma[0]:
            np.testing.assert_allclose(subset.leverage, np.square(Vt[:rank]).sum(0), atol=1e-3)


def test_repeats_and_differs_by_seed(rng):
    Y = sparse.csr_array(labels(rng, 200, 50))
    first = column_subset(Y, 10, random_state=3)
    again = column_subset(Y, 10, random_state=3, n_jobs=2)
    np.testing.assert_array_equal(first.columns, again.columns)
    assert first.n_trials == again.n_trials
    others = [column_subset(Y, 10, random_state=seed).columns for seed in range(5)]
    assert any(not np.array_equal(first.columns, columns) for columns in others)


def test_draws_are_those_of_the_loop(rng):
    """Sets of columns and numbers of trials have the distribution of Algorithm 1, lines 3 to 9."""
    Y = labels(rng, 60, 6, 0.4) * np.array([3, 1, 1, 1, 0.5, 0.1])
    leverage = column_subset(Y, 3, q=20, random_state=0).leverage
    count, loop_sets, sets, trials, loop_trials = 3000, {}, {}, [], []
    for seed in range(count):
        chosen, drawn = set(), 0
        while len(chosen) < 3:
            chosen.add(int(rng.choice(6, p=leverage / leverage.sum())))
            drawn += 1
        loop_sets[tuple(sorted(chosen))] = loop_sets.get(tuple(sorted(chosen)), 0) + 1
        loop_trials.append(drawn)
        subset = column_subset(Y, 3, random_state=seed)
        key = tuple(subset.columns.tolist())
        sets[key] = sets.get(key, 0) + 1
        trials.append(subset.n_trials)
    for key in loop_sets.keys() | sets.keys():
        a, b = loop_sets.get(key, 0), sets.get(key, 0)
        assert abs(a - b) < 5 * np.sqrt(a + b + 1)
    spread = np.sqrt((np.var(trials) + np.var(loop_trials)) / count)
    assert abs(np.mean(trials) - np.mean(loop_trials)) < 5 * spread


@pytest.mark.parametrize("k", [2, 6])
def test_proposition_1(rng, k):
    """T = 2k/e² log(k/e²) draws, eq. (5) with c0 = 1, have full rank with chance 1 - 4e²."""
    e = 0.25
    trials = 2 * k / e**2 * np.log(k / e**2)
    for Y in (labels(rng, 200, 40), labels(rng, 200, 40, 0.03)):
        drawn = [
            column_subset(Y, k, "exact-subspace", epsilon=k / np.sqrt(trials), random_state=seed)
            for seed in range(40)
        ]
        assert abs(drawn[0].n_trials - trials) <= 1
        assert np.mean([subset.full_rank for subset in drawn]) >= 1 - 4 * e**2


@pytest.mark.parametrize("d", [20, 60, 180])
def test_corollary_1(rng, d):
    """The ratio to the best approximation of rank k is a constant: it does not grow with d."""
    Y = labels(rng, 300, d, 0.1)
    ratio = [column_subset(Y, 8, random_state=seed).ratio for seed in range(30)]
    assert np.mean(np.array(ratio) < 2.0) >= 0.9


@pytest.mark.parametrize("k", [1, 5, 20, 30])
def test_proposition_2(rng, k):
    """On average at most k·H_k trials; equality where k labels share all leverage evenly."""
    bound = k * (1 / np.arange(1, k + 1)).sum()
    for Y in (labels(rng, 300, 40), np.eye(40)[:, :k] if k > 1 else np.eye(40)):
        trials = [column_subset(Y, k, random_state=seed).n_trials for seed in range(150)]
        assert np.mean(trials) <= bound + 4 * np.std(trials) / np.sqrt(150)


def test_proposition_3_with_the_missing_factor(rng):
    """RMSE <= 2/sqrt(n) (|H - Y_C| |Y_C⁺Y|_2 + |Y - Y_C Y_C⁺Y|); the factor is not always 1."""
    factors = []
    for seed in range(20):
        Y = labels(rng, 120, 30, 0.2)
        subset = column_subset(Y, 8, random_state=seed)
        Y_C, B = Y[:, subset.columns], subset.interpolation
        H = Y_C + rng.normal(scale=rng.choice([0.05, 0.3, 1.0]), size=Y_C.shape)
        rounded = (H @ B > 0.5).astype(float)
        factors.append(np.linalg.norm(B, 2))
        encoding = np.linalg.norm(Y - Y_C @ B)
        bound = np.linalg.norm(H - Y_C) * factors[-1] + encoding
        assert np.linalg.norm(rounded - Y) <= 2 * bound
        best = np.sqrt(np.square(np.linalg.svd(Y, compute_uv=False)[8:]).sum())
        assert encoding == pytest.approx(subset.ratio * best, rel=0.01)  # so Corollary 2 follows
    assert max(factors) > 1.05


def test_leverage_is_full_rank_where_uniform_is_not(rng):
    """Table 8: most labels are of the same document, uniform draws take several of those."""
    Y = sparse.lil_array((2000, 300))
    Y[:, :20] = rng.random((2000, 20)) < 0.4
    Y[7, 20:] = 1  # one column, 280 times
    full = {
        method: [column_subset(Y.tocsr(), 8, method, random_state=s).full_rank for s in range(5)]
        for method in ("adaptive", "uniform")
    }
    assert full == {"adaptive": [True] * 5, "uniform": [False] * 5}


def test_leverage_has_the_better_ratio(rng):
    """A few labels carry the leading space, uniform draws miss it."""
    Y = np.zeros((400, 200))
    Y[:, :20] = rng.random((400, 20)) < 0.4
    rows = rng.permutation(400)[:180]
    Y[rows, 20:] = np.eye(180)
    full = [column_subset(Y, 10, "adaptive", random_state=s).full_rank for s in range(20)]
    ratio = {
        method: np.mean([column_subset(Y, 10, method, random_state=s).ratio for s in range(20)])
        for method in METHODS
    }
    assert np.mean(full) == 1
    assert ratio["exact-subspace"] < ratio["adaptive"] < ratio["uniform"]
    assert ratio["two-stage"] < ratio["uniform"]


def test_exact_subspace_takes_more_as_epsilon_falls(rng):
    Y = labels(rng, 300, 60)
    subsets = [column_subset(Y, 5, "exact-subspace", epsilon=e, random_state=0) for e in (1, 0.5)]
    assert [s.n_trials for s in subsets] == [25, 100]
    assert len(subsets[0].columns) < len(subsets[1].columns)
    assert subsets[0].ratio > subsets[1].ratio


def test_all_columns(rng):
    Y = rng.normal(size=(20, 6))
    for method in ("adaptive", "two-stage", "uniform"):
        subset = column_subset(Y, 6, method, random_state=0)
        np.testing.assert_array_equal(subset.columns, np.arange(6))
        np.testing.assert_allclose(subset.interpolation, np.eye(6), atol=1e-8)
        assert subset.ratio == 1


def test_duplicates_share_the_interpolation(rng):
    Y = (rng.random((50, 1)) < 0.5) * np.ones(4)
    subset = column_subset(Y, 3, random_state=0)
    np.testing.assert_allclose(subset.interpolation, np.full((3, 4), 1 / 3))
    assert not subset.full_rank
    assert subset.ratio == 1


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"k": 0}, ValueError, "k must be at least 1, got 0"),
        ({"k": 2.0}, TypeError, "k must be an int, got 2.0"),
        ({"k": True}, TypeError, "k must be an int, got True"),
        ({"k": 5}, ValueError, "k must be at most the 4 columns of Y not all 0, got 5"),
        ({"k": 2, "method": "best"}, ValueError, "method must be one of adaptive, .* got 'best'"),
        ({"k": 2, "epsilon": 0}, ValueError, "epsilon must be positive and finite, got 0"),
        ({"k": 2, "q": -1}, ValueError, "q must be at least 0, got -1"),
        ({"k": 2, "p": -1}, ValueError, "p must be at least 0, got -1"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, words):
    Y = np.hstack([np.eye(4), np.zeros((4, 1))])
    with pytest.raises(error, match=words):
        column_subset(Y, **arguments)


def test_columns_out_of_reach():
    """Beyond the rank, columns too small to count have no leverage."""
    Y = np.diag([1.0, 1.0, 1e-200])
    assert column_subset(Y, 2, random_state=0).columns.tolist() == [0, 1]
    assert column_subset(Y, 3, "uniform", random_state=0).columns.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="k must be at most the 2 columns of positive leverage"):
        column_subset(Y, 3, random_state=0)


def test_bad_matrices_are_refused():
    with pytest.raises(ValueError, match="k must be at most the 0 columns"):
        column_subset(np.zeros((3, 3)), 1)
    with pytest.raises(ValueError, match="Y contains NaN"):
        column_subset(np.full((3, 3), np.nan), 1)
    with pytest.raises(ValueError, match="A contains infinity"):
        randomized_pca(np.full((3, 3), np.inf), 1)
    with pytest.raises(ValueError, match="k must be at most the 3 columns of A, got 4"):
        randomized_pca(np.eye(3), 4)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        randomized_pca(np.empty((0, 3)), 1)


# ---- strong rank-revealing QR ----


def kahan(n, c=0.3):
    """Pivoting alone leaves R22 far too small a singular value of R11 behind."""
    s = np.sqrt(1 - c * c)
    upper = np.eye(n) - c * np.triu(np.ones((n, n)), 1)
    return (s ** np.arange(n))[:, None] * upper * (1 - 1e-10 * np.arange(n))


@st.composite
def rrqr_case(draw):
    n, d = draw(st.integers(1, 14)), draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "steep", "signs", "kahan"]))
    A = rng.normal(size=(n, d))
    if kind == "steep":
        A = A * 10.0 ** -np.arange(d)
    elif kind == "signs":
        A = np.sign(A)
    elif kind == "kahan":
        A = kahan(max(n, 2))
    return A, draw(st.integers(1, min(A.shape))), draw(st.sampled_from([1.0, 1.2, 2.0, 10.0]))


@given(rrqr_case())
def test_strong_rrqr_keeps_its_bounds(case):
    A, k, f = case
    R, order = strong_rrqr(A, k, f)
    assert sorted(order) == list(range(A.shape[1]))
    np.testing.assert_allclose(R.T @ R, A[:, order].T @ A[:, order], atol=1e-9 * np.square(A).sum())
    assert np.allclose(R, np.triu(R))
    sigma = np.linalg.svd(A, compute_uv=False)
    assume(sigma[k - 1] > 1e-10 * sigma[0])
    bound = np.sqrt(1 + f * f * k * (A.shape[1] - k)) * (1 + 1e-6)
    R11, R12, R22 = R[:k, :k], R[:k, k:], R[k:, k:]
    assert (np.linalg.svd(R11, compute_uv=False) * bound >= sigma[:k]).all()
    assert (np.abs(np.linalg.solve(R11, R12)) <= f * (1 + 1e-6)).all()
    if R22.size:
        inner = np.linalg.svd(R22, compute_uv=False)
        rest = np.append(sigma[k:], np.zeros(len(inner)))[: len(inner)]
        assert (inner <= rest * bound + 1e-12 * sigma[0]).all()


def test_strong_is_stronger_than_pivoting():
    A = kahan(40)
    R, order = strong_rrqr(A, 39)
    assert not np.array_equal(order, np.arange(40))
    sigma = np.linalg.svd(A, compute_uv=False)
    assert abs(R[39, 39]) <= sigma[39] * np.sqrt(1 + 4 * 39)


def test_strong_rrqr_of_deficient_matrices(rng):
    A = low_rank(rng, 8, 10, 3)
    R, order = strong_rrqr(A, 5)
    assert np.linalg.matrix_rank(A[:, order[:3]]) == 3
    assert (np.abs(R[3:, 3:]) < 1e-10).all()
    R, order = strong_rrqr(np.zeros((3, 4)), 2)
    assert (R == 0).all()
    assert sorted(order) == [0, 1, 2, 3]


def test_strong_rrqr_refuses():
    with pytest.raises(ValueError, match=r"k must be at most 2 for A of shape \(2, 5\), got 3"):
        strong_rrqr(np.ones((2, 5)), 3)
    with pytest.raises(ValueError, match=r"f must be at least 1\.0, got 0\.5"):
        strong_rrqr(np.ones((2, 5)), 1, 0.5)


# ---- the paper's data ----


def label_matrix(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sparse.csr_array(load_mulan(path).Y)


@pytest.mark.parametrize(
    ("name", "k", "trials", "ratio"),
    [("cal500.arff.gz", 17, (18, 1), 1.33), ("delicious-train.arff.gz", 98, (134, 7), 1.15)],
)
def test_trials_and_ratios_of_the_paper(name, k, trials, ratio):
    """Tables 6, 7 and 8, there over ten folds of all rows; their ratio on cal500 is larger."""
    Y = label_matrix(name)
    subsets = [column_subset(Y, k, random_state=seed) for seed in range(10)]
    assert abs(np.mean([s.n_trials for s in subsets]) - trials[0]) < 2 * trials[1]
    assert np.mean([s.ratio for s in subsets]) < ratio + 0.02
    assert all(s.full_rank for s in subsets)
