r"""Randomized principal components and column subset selection, for sparse matrices above all.

`randomized_pca` is Algorithm 1 of Mineiro and Karampatziakis, *Fast Label Embeddings via Randomized
Linear Algebra* (2015). `column_subset` is Algorithm 1 of Bi and Kwok, *Efficient Multi-label
Classification with Many Labels* (2013), with the methods they compare it with. `strong_rrqr` is
Gu and Eisenstat's factorization (1996), which one of these uses. Matrices are read by their
products alone: nothing of their size is made dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, qr, solve_triangular, svd
from sklearn.utils import check_array, check_random_state

from pyrpo._inputs import canonical, check_structure
from pyrpo._options import number, positive
from pyrpo._products import gram_product, is_operator, product, t_product

__all__ = ["ColumnSubset", "column_subset", "randomized_pca", "strong_rrqr"]


def randomized_pca(
    A: Any,
    k: int,
    p: int = 20,
    q: int = 1,
    center: bool = False,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""First right singular vectors and values of A, by randomized subspace iteration.

    Algorithm 1 of the Rembrandt paper: q + 1 passes over A, each a product with :math:`A^T A`.

    Parameters
    ----------
    A : array, sparse matrix or LinearOperator of shape (n, d)
        Whatever offers products with A and its transpose will do. float32 stays float32.
    k : int
        Number of components, at most d.
    p : int, default=20
        Oversampling: random vectors beyond k.
    q : int, default=1
        Rounds of the range finder; 0 takes the range of :math:`A^T A` times random vectors.
    center : bool, default=False
        Take the column means off, without making A dense.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Threads for a sparse A.

    Returns
    -------
    V : ndarray of shape (d, k)
        Orthonormal columns, in descending order of their singular values. Beyond the rank of A
        they complete the basis arbitrarily.
    sigma : ndarray of shape (k,)
        The singular values. (The paper's :math:`\Sigma` belongs to :math:`A^T A`: their squares.)

    Notes
    -----
    Lines 8 to 10 of the algorithm are carried out by a QR factorization and a singular value
    decomposition of :math:`\Psi = A^T A Q`, since its F would square the condition once more.
    """
    A = _read(A, "A")
    d = A.shape[1]
    k = number(k, "k", 1, whole=True)
    p, q = number(p, "p", 0, whole=True), number(q, "q", 0, whole=True)
    if k > d:
        raise ValueError(f"k must be at most the {d} columns of A, got {k}")
    rng = check_random_state(random_state)
    dtype = np.float32 if getattr(A, "dtype", None) == np.float32 else np.float64
    times_gram = _gram(A, center, dtype, n_jobs)
    Q = rng.standard_normal((d, min(k + p, d))).astype(dtype, copy=False)
    for _ in range(q):
        Q = _orthonormal(times_gram(Q))
    if q == 0:
        Q = _orthonormal(Q)
    basis, R = qr(times_gram(Q), mode="economic", overwrite_a=True, check_finite=False)
    rotation, values, _ = svd(R, check_finite=False)
    return basis @ rotation[:, :k], np.sqrt(values[:k])


@dataclass(frozen=True)
class ColumnSubset:
    r"""Columns C that stand for the whole of Y, made by `column_subset`.

    Attributes
    ----------
    columns : ndarray of int
        C, ascending: k columns, or all that were met with method="exact-subspace".
    n_trials : int
        Columns drawn, repetitions counted.
    leverage : ndarray of shape (d,)
        Squared norms of the rows of :math:`V_k`; they sum to k (to the rank of Y if it is less).
    interpolation : ndarray of shape (len(columns), d)
        :math:`Y_C^+ Y`, by which Y is approximated: :math:`Y \approx Y_C Y_C^+ Y`.
    ratio : float
        :math:`\|Y - Y_C Y_C^+ Y\|_F / \|Y - Y_k\|_F` with the best approximation :math:`Y_k` of
        rank k; 1 when both are zero.
    full_rank : bool
        Whether the columns C of :math:`V_k^T` have rank k.
    """

    columns: np.ndarray
    n_trials: int
    leverage: np.ndarray
    interpolation: np.ndarray
    ratio: float
    full_rank: bool


def column_subset(
    Y: Any,
    k: int,
    method: str = "adaptive",
    *,
    epsilon: float = 1.0,
    p: int = 20,
    q: int = 3,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> ColumnSubset:
    r"""Choose k columns of Y whose span approximates all of Y.

    Columns are drawn by their leverage scores on the first k right singular vectors :math:`V_k`,
    :math:`p_i = \|(V_k^T)^{(i)}\|^2 / k` (eq. (4) of Bi and Kwok), with replacement.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n, d)
        Sparse matrices stay sparse. No column means are taken off.
    k : int
        Columns to choose, at most the columns of Y that are not zero.
    method : {"adaptive", "exact-subspace", "two-stage", "uniform"}, default="adaptive"
        - "adaptive": draw until k are distinct, ML-CSSP (Bi and Kwok, Algorithm 1); k·H_k draws
          are enough on average (Proposition 2);
        - "exact-subspace": draw :math:`\lceil k^2/\epsilon^2 \rceil` and keep all (Drineas,
          Mahoney and Muthukrishnan, 2006, whose theorem has a constant there, taken as 1);
        - "two-stage": draw :math:`\lceil 2 k \ln k \rceil`, scale and thin out to k by a strong
          rank-revealing QR factorization (Boutsidis, Mahoney and Drineas, 2009);
        - "uniform": draw until k are distinct, with equal probabilities.
    epsilon : float, default=1.0
        For "exact-subspace".
    p, q : int, default=20 and 3
        Oversampling and rounds of the range finder: see `randomized_pca`.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Threads for a sparse Y.

    Returns
    -------
    subset : ColumnSubset

    Notes
    -----
    A k beyond the rank r of Y is allowed: scores are then those of :math:`V_r`. Singular values
    come from the randomized method and are low rather than high, so is the ratio.
    """
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    positive(epsilon, "epsilon")
    check_structure(Y, "Y")
    Y = check_array(Y, accept_sparse=["csr", "csc"], dtype=np.float64, input_name="Y")
    Y = canonical(Y) if sparse.issparse(Y) else Y
    k = number(k, "k", 1, whole=True)
    filled = np.ravel(abs(Y).sum(axis=0)) > 0
    if k > filled.sum():
        raise ValueError(f"k must be at most the {filled.sum()} columns of Y not all 0, got {k}")
    rng = check_random_state(random_state)
    V, sigma = randomized_pca(Y, k, p, q, random_state=rng, n_jobs=n_jobs)
    rank = int(np.sum(sigma > sigma[0] * np.sqrt(max(Y.shape) * np.finfo(np.float64).eps)))
    V = np.where(filled[:, None], V[:, :rank], 0.0)
    leverage = np.square(V).sum(axis=1)
    columns, n_trials = _METHODS[method](V, leverage / leverage.sum(), k, epsilon, rng)
    columns = np.sort(columns)
    interpolation, explained = _interpolate(Y, columns)
    total = float(np.square(Y.data if sparse.issparse(Y) else Y).sum())
    return ColumnSubset(
        columns=columns,
        n_trials=n_trials,
        leverage=leverage,
        interpolation=interpolation,
        ratio=_ratio(total, total - explained, total - float(np.square(sigma).sum())),
        full_rank=rank == k and bool(np.linalg.matrix_rank(V[columns]) == k),
    )


# ---- methods: (V_k, probabilities, k, epsilon, generator) -> columns and number of draws ----


def _first_met(
    probability: np.ndarray, count: int, rng: Any, met: Any = ()
) -> tuple[np.ndarray, int]:
    """Draw columns with replacement until `count` are new; returns them and the number of draws.

    As if each column came at its own exponential rate, which gives the order in which the new
    ones (not in `met`) are found; the draws between two of them are a geometric number. However
    unlike probabilities are, this takes one sort.
    """
    unmet = probability.copy()
    unmet[list(met)] = 0.0
    if count > (unmet > 0).sum():
        positive = (probability > 0).sum()
        raise ValueError(f"k must be at most the {positive} columns of positive leverage")
    with np.errstate(divide="ignore"):
        arrival = rng.standard_exponential(len(unmet)) / unmet
        columns = np.argsort(arrival)[:count]
        never = max(unmet.sum() - unmet[columns].sum(), 0.0)
        chance = np.cumsum(unmet[columns][::-1])[::-1] + never  # that a draw is a new column
        rate = -np.log1p(-np.minimum(chance / probability.sum(), 1.0))
    draws = np.maximum(np.ceil(rng.standard_exponential(count) / rate), 1.0)
    return columns, int(draws.sum())


def _adaptive(V: Any, probability: np.ndarray, k: int, epsilon: float, rng: Any):
    return _first_met(probability, k, rng)


def _uniform(V: Any, probability: np.ndarray, k: int, epsilon: float, rng: Any):
    return _first_met(np.full(len(V), 1.0 / len(V)), k, rng)


def _exact_subspace(V: Any, probability: np.ndarray, k: int, epsilon: float, rng: Any):
    n_trials = ceil((k / epsilon) ** 2)
    return np.flatnonzero(rng.multinomial(n_trials, probability)), n_trials


def _two_stage(V: Any, probability: np.ndarray, k: int, epsilon: float, rng: Any):
    n_trials = max(k, ceil(2 * k * log(k)))
    times = rng.multinomial(n_trials, probability)
    met = np.flatnonzero(times)
    if len(met) <= k:  # go on drawing until there are k
        more, extra = _first_met(probability, k - len(met), rng, met)
        return np.append(met, more), n_trials + extra
    scale = np.sqrt(times[met] / (n_trials * probability[met]))
    _, order = strong_rrqr(V[met].T * scale, min(k, V.shape[1]))
    return met[order[:k]], n_trials


_METHODS = {
    "adaptive": _adaptive,
    "exact-subspace": _exact_subspace,
    "two-stage": _two_stage,
    "uniform": _uniform,
}


def strong_rrqr(A: np.ndarray, k: int, f: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    r"""Strong rank-revealing QR factorization (Gu and Eisenstat, 1996, Algorithm 4).

    Orders the columns of A so that the first k are well-conditioned and the rest lie near their
    span: with :math:`A \Pi = Q R`, R cut into blocks at k and
    :math:`c = \sqrt{1 + f^2 k (d - k)}`,
    :math:`\sigma_i(R_{11}) \ge \sigma_i(A) / c`,
    :math:`\sigma_j(R_{22}) \le \sigma_{k+j}(A) c` and
    :math:`|(R_{11}^{-1} R_{12})_{ij}| \le f`.

    Parameters
    ----------
    A : array of shape (n, d)
    k : int
        At most min(n, d). If A's rank is less, the bounds hold with the rank in its place.
    f : float, default=2.0
        At least 1; smaller means tighter bounds and more exchanges of columns.

    Returns
    -------
    R : ndarray of shape (min(n, d), d)
        Upper triangular (trapezoidal).
    order : ndarray of shape (d,)
        The permutation: A[:, order] = Q R.
    """
    A = check_array(A, dtype=np.float64, input_name="A")
    k = number(k, "k", 1, whole=True)
    if k > min(A.shape):
        raise ValueError(f"k must be at most {min(A.shape)} for A of shape {A.shape}, got {k}")
    number(f, "f", 1.0)
    R, order = qr(A, mode="r", pivoting=True)
    R = R[: min(A.shape)]
    diagonal = np.abs(np.diag(R))
    k = min(k, int(np.sum(diagonal > diagonal[0] * max(A.shape) * np.finfo(np.float64).eps)))
    while 0 < k < A.shape[1]:
        growth = _growth_by_exchange(R, k)
        i, j = np.unravel_index(np.argmax(growth), growth.shape)
        if growth[i, j] <= f * (1 + 1e-9):  # rounding must not undo an exchange for ever
            break
        order[[i, k + j]] = order[[k + j, i]]
        R = qr(A[:, order], mode="r")[0][: min(A.shape)]
    return R, order


def _growth_by_exchange(R: np.ndarray, k: int) -> np.ndarray:
    """By how much |det R11| grows when columns i and k + j change places: their Lemma 3.1."""
    inverse = solve_triangular(R[:k, :k], np.eye(k))
    rows = np.linalg.norm(inverse, axis=1)
    rest = np.linalg.norm(R[k:, k:], axis=0)
    return np.hypot(inverse @ R[:k, k:], rows[:, None] * rest)


# ---- parts ----


def _interpolate(Y: Any, columns: np.ndarray) -> tuple[np.ndarray, float]:
    """Y_C⁺Y and |Y_C Y_C⁺ Y|², by the normal equations."""
    Y_C = Y[:, columns]
    right = Y_C.T @ Y
    right = right.toarray() if sparse.issparse(right) else right
    gram = right[:, columns]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
    values, vectors = eigh(gram * scale * scale[:, None])
    rank = int(np.sum(values > 1e-10 * values[-1]))
    if rank == len(columns):
        vectors *= scale[:, None]
    else:  # the pseudo-inverse is not that of the scaled matrix
        values, vectors = (a[..., len(columns) - rank :] for a in eigh(gram))
    half = (vectors / np.sqrt(values)).T @ right
    return (vectors / np.sqrt(values)) @ half, float(np.square(half).sum())


def _ratio(total: float, square: float, best: float) -> float:
    """Root of square / best, where differences of sums near `total` are known no better."""
    noise = 1e-12 * total
    if best <= noise:
        return 1.0 if square <= noise else np.inf
    return float(np.sqrt(max(square, 0.0) / best))


def _read(A: Any, name: str) -> Any:
    """A as an array of floats, CSR, CSC or something with products."""
    if is_operator(A):
        if min(A.shape) < 1:
            raise ValueError(f"{name} must not be empty, got shape {A.shape}")
        return A
    check_structure(A, name)
    types = [np.float64, np.float32]
    return check_array(A, accept_sparse=["csr", "csc"], dtype=types, input_name=name)


def _gram(A: Any, center: bool, dtype: Any, n_jobs: int | None):
    """The function Q -> AᵀA Q, of A less its column means if `center`."""
    if not center:
        return lambda Q: gram_product(A, Q, n_jobs=n_jobs)
    n = A.shape[0]
    mean = t_product(A, np.full((n, 1), 1.0 / n, dtype=dtype), n_jobs=n_jobs)
    if sparse.issparse(A):
        return lambda Q: gram_product(A, Q, n_jobs=n_jobs) - n * (mean @ (mean.T @ Q))

    def centred(Q):
        inner = product(A, Q) - mean.T @ Q
        return t_product(A, inner) - mean @ inner.sum(axis=0, keepdims=True)

    return centred


def _orthonormal(Q: np.ndarray) -> np.ndarray:
    return qr(Q, mode="economic", overwrite_a=True, check_finite=False)[0]
