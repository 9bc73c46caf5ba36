"""Principal label space transformations: PLST (Tai, Lin 2012) and CPLST (Chen, Lin 2012)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from pyrpo._docs import store
from pyrpo._least_squares import LeastSquares, weigh
from pyrpo._products import t_product
from pyrpo.embedding._base import LinearEmbedding, shifted_product, weighted_mean

_SMALL = 64  # labels up to which the operator is written out


class _Principal(LinearEmbedding):
    """Codes along the top eigenvectors of Y' H Y, where H is symmetric."""

    def _smoother(self, X, weight) -> Callable[[np.ndarray], np.ndarray]:
        """From T to H T; rows weighed."""
        raise NotImplementedError

    def _centers(self) -> bool:
        raise NotImplementedError

    def _fit(self, X, Y, weight):
        k = self._width(Y.shape[1])
        if X is not None:
            Y = Y.astype(X.dtype, copy=False)
        self.mean_ = weighted_mean(Y, weight) if self._centers() else None
        smooth = self._smoother(X, weight)

        def times(Q: np.ndarray) -> np.ndarray:
            T = smooth(shifted_product(Y, Q, self.mean_))
            B = t_product(Y, np.ascontiguousarray(T))
            return B if self.mean_ is None else B - np.outer(self.mean_, T.sum(axis=0))

        V, values = top_eigenvectors(times, Y.shape[1], k, Y.dtype)
        self.components_ = np.ascontiguousarray(V.T)
        self.singular_values_ = np.sqrt(np.maximum(values, 0.0))
        self.n_components_ = k


class PLST(_Principal):
    """Principal label space transformation: the top right singular vectors of Y.

    Parameters
    ----------
    k : int
        Codes.
    center : bool, default=False
        Subtract the means of the labels, as Tai and Lin do; Bi and Kwok compare with the uncentred
        form. A sparse Y is not densified.

    Attributes
    ----------
    components_ : ndarray of shape (k, n_labels)
    singular_values_ : ndarray of shape (k,)
    mean_ : ndarray of shape (n_labels,) or None
    n_components_ : int

    References
    ----------
    F. Tai and H.-T. Lin, "Multilabel Classification with Principal Label Space Transformation",
    Neural Computation 24(9), 2012.
    """

    def __init__(self, k, *, center=False):
        store(self, locals())

    def _centers(self):
        return self.center

    def _smoother(self, X, weight):
        return lambda T: weigh(T, weight)


class CPLST(_Principal):
    """Conditional principal label space transformation: the top right singular vectors of H Y.

    H is the projection on the range of X, both centred: `Rembrandt` with ``center=True`` and
    ``ridge=0`` tends to it with q.

    Parameters
    ----------
    k : int
        Codes.
    ridge : float, default=0.0
        Added to the diagonal of X'X.

    Attributes
    ----------
    components_ : ndarray of shape (k, n_labels)
    singular_values_ : ndarray of shape (k,)
    mean_ : ndarray of shape (n_labels,)
    n_components_ : int

    References
    ----------
    Y.-N. Chen and H.-T. Lin, "Feature-aware Label Space Dimension Reduction for Multi-label
    Classification", NIPS 2012.
    """

    _needs_X = True

    def __init__(self, k, *, ridge=0.0):
        store(self, locals())

    def _centers(self):
        return True

    def _smoother(self, X, weight):
        fit = LeastSquares(X, weight=weight, center=True, ridge=self.ridge)
        return lambda T: weigh(fit.fitted(fit.solve(T)), weight)


def top_eigenvectors(
    times: Callable[[np.ndarray], np.ndarray], d: int, k: int, dtype
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a symmetric operator on d columns, descending, and vectors.

    By Lanczos' method; written out where k is nearly d anyway. Each vector's largest entry is
    positive.
    """
    if d <= _SMALL or 2 * k > d:
        A = times(np.eye(d, dtype=dtype)).astype(np.float64)
        values, V = linalg.eigh((A + A.T) / 2, subset_by_index=[d - k, d - 1])
    else:
        operator = LinearOperator(
            (d, d), matvec=lambda v: times(v.reshape(-1, 1)).ravel(), matmat=times, dtype=dtype
        )
        start = np.random.default_rng(0).standard_normal(d).astype(dtype)
        values, V = eigsh(operator, k=k, v0=start, ncv=min(d, max(2 * k + 1, 20)))
    values, V = values[::-1], V[:, ::-1]
    largest = V[np.abs(V).argmax(axis=0), np.arange(k)]
    return V * np.where(largest < 0, -1.0, 1.0).astype(V.dtype), values
