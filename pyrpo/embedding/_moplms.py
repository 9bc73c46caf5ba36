"""MOPLMS (Balasubramanian and Lebanon, 2012): landmark labels by group-sparse regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, sparse

from pyrpo._docs import store
from pyrpo._options import label_count, number
from pyrpo.embedding._selection import LabelSelection, refuse_beyond, scale_rows

_BISECTIONS = 30


class MOPLMS(LabelSelection):
    r"""Multiple output prediction landmark selection: labels from which the others are recovered.

    Minimises :math:`\|Y - YW\|_F^2 + \lambda_1 \|W\|_{1,2} + \lambda_2 \|W\|_1` (equation 1 of Bi
    and Kwok) by accelerated proximal gradient; the labels whose rows of W are not zero are
    selected. :math:`\lambda_1` is found by bisection, warm-started, so that they are k, or as near
    to k as it gets.

    W has n_labels² numbers: the method is defined by it, and slow beyond a thousand labels.

    Parameters
    ----------
    k : int
        Labels wanted; see `n_components_` for how many there are.
    l1 : float, default=0.0
        The equation's second lambda.
    tol : float, default=1e-4
        Largest relative change of W at which proximal gradient ends.
    max_iter : int, default=500
        Of proximal gradient, for each lambda.
    memory_limit : float, default=4e9
        Bytes beyond which to refuse.

    Attributes
    ----------
    columns_ : ndarray of shape (n_components_,)
        Selected labels.
    interpolation_ : ndarray of shape (n_components_, n_labels)
        Their rows of W.
    lambda_ : float
    n_components_ : int

    References
    ----------
    K. Balasubramanian and G. Lebanon, "The Landmark Selection Method for Multiple Output
    Prediction", ICML 2012.
    """

    def __init__(self, k, *, l1=0.0, tol=1e-4, max_iter=500, memory_limit=4e9):
        store(self, locals())

    def _fit(self, X, Y, weight):
        k = label_count(self.k, Y.shape[1])
        number(self.l1, "l1", 0.0, 1e300)
        refuse_beyond(self.memory_limit, Y.shape[1], 5, "MOPLMS")
        Y = scale_rows(Y.astype(np.float64), weight)
        gram = (Y.T @ Y).toarray() if sparse.issparse(Y) else Y.T @ Y
        gram = gram.astype(np.float64)
        if not gram.any():
            raise ValueError("Y: no label occurs, nothing can be selected")
        rows = np.linalg.norm(_soft(2 * gram, self.l1), axis=1)  # at W = 0
        W, self.lambda_ = bisect(
            lambda lam, start: group_sparse(gram, lam, self.l1, start, self.tol, self.max_iter),
            k,
            float(rows.max()),
            np.zeros_like(gram),
        )
        self.columns_ = np.flatnonzero(W.any(axis=1))
        self.interpolation_ = W[self.columns_]
        self.n_components_ = len(self.columns_)


def bisect(
    solve: Callable[[float, np.ndarray], np.ndarray], k: int, most: float, start: np.ndarray
) -> tuple[np.ndarray, float]:
    """W with k rows that are not zero, or as near as it gets, and its lambda, at most `most`."""
    low, high = most * 1e-6, most  # too many rows, too few
    best, found, at = None, start, most
    for _ in range(_BISECTIONS):
        lam = float(np.sqrt(low * high))
        W = solve(lam, found)
        count = int(W.any(axis=1).sum())
        if count and (best is None or abs(count - k) < best):
            best, kept, at = abs(count - k), W, lam
        if count == k or high / low < 1 + 1e-6:
            break
        low, high = (lam, high) if count > k else (low, lam)
        found = W
    if best is None:
        kept = solve(low, found)
        at = low
    return kept, at


def group_sparse(
    gram: np.ndarray, lam: float, l1: float, W: np.ndarray, tol: float, max_iter: int
) -> np.ndarray:
    """Minimise trace((I - W)' G (I - W)) + lam sum of row norms + l1 sum of |W|, from W on.

    Accelerated proximal gradient; the momentum restarts when it points uphill.
    """
    lipschitz = 2 * linalg.eigvalsh(gram, subset_by_index=[len(gram) - 1] * 2)[0]
    lipschitz = max(lipschitz, np.finfo(np.float64).tiny)
    V, t = W, 1.0
    for _ in range(max_iter):
        step = V - (2 / lipschitz) * (gram @ V - gram)
        new = _shrink_rows(_soft(step, l1 / lipschitz), lam / lipschitz)
        change = new - W
        if np.vdot(V - new, change) > 0:
            t = 1.0
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        V, W, t = new + ((t - 1) / after) * change, new, after
        if np.abs(change).max() <= tol * max(np.abs(new).max(), np.finfo(np.float64).tiny):
            break
    return W


def _soft(A: np.ndarray, threshold: float) -> np.ndarray:
    return np.sign(A) * np.maximum(np.abs(A) - threshold, 0.0) if threshold else A


def _shrink_rows(A: np.ndarray, threshold: float) -> np.ndarray:
    norm = np.linalg.norm(A, axis=1, keepdims=True)
    return A * np.maximum(1 - threshold / np.where(norm > 0, norm, 1.0), 0.0)
