"""Compressed sensing of label vectors (Hsu, Kakade, Langford and Zhang, 2009)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyrpo._docs import store
from pyrpo._options import number
from pyrpo._products import product
from pyrpo.embedding._base import Embedding, weighted_mean
from pyrpo.projection import GaussianProjection

_CHUNK = 1 << 22  # numbers of a block of scores


class CompressedSensing(Embedding):
    """Random Gaussian projections of Y, decoded by orthogonal matching pursuit.

    Parameters
    ----------
    k : int
        Codes.
    cardinality : int or None, default=None
        Labels that the pursuit selects; None: the mean number of labels of the training samples,
        rounded, 1 at least. At most k.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (k, n_labels)
        The matrix of codes Y A', its entries normal with variance 1/k.
    cardinality_ : int
    n_components_ : int

    References
    ----------
    D. Hsu, S. Kakade, J. Langford and T. Zhang, "Multi-Label Prediction via Compressed Sensing",
    NIPS 2009.
    """

    def __init__(self, k, *, cardinality=None, random_state=None):
        store(self, locals())

    def _fit(self, X, Y, weight):
        k = self._width(Y.shape[1])
        projection = GaussianProjection(k, random_state=self.random_state).fit(Y)
        self.components_ = projection.components_.astype(Y.dtype)
        self.cardinality_ = min(k, self._cardinality(Y, weight))
        self.n_components_ = k

    def _cardinality(self, Y, weight) -> int:
        if self.cardinality is None:
            return max(1, round(float(weighted_mean(Y, weight).sum())))
        return number(self.cardinality, "cardinality", 1, whole=True)

    def _encode(self, Y):
        return product(Y, np.ascontiguousarray(self.components_.T, dtype=Y.dtype))

    def _decode(self, codes):
        A = np.ascontiguousarray(self.components_.T)
        scores = np.zeros((len(codes), len(A)), dtype=codes.dtype)
        for rows in chunks(len(codes), len(A)):
            labels, values = matching_pursuit(A, codes[rows], self.cardinality_)
            np.put_along_axis(scores[rows], labels, values, axis=1)
        return scores


def chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Blocks of rows that hold a few million numbers of this width."""
    step = max(1, _CHUNK // max(width, 1))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def matching_pursuit(A: np.ndarray, codes: np.ndarray, s: int) -> tuple[np.ndarray, np.ndarray]:
    """Write each row of `codes` as a combination of s rows of A, all rows in step.

    In each of s steps the row of A most correlated with what is left joins, and the coefficients
    are fitted again by least squares.
    """
    norm = np.linalg.norm(A, axis=1)
    unit = A / np.where(norm > 0, norm, 1.0)[:, None]
    rows = np.arange(len(codes))
    labels = np.empty((len(codes), s), dtype=np.int64)
    values, left = np.zeros((len(codes), 0), dtype=codes.dtype), codes
    taken = np.zeros((len(codes), len(A)), dtype=bool)
    for step in range(s):
        match = np.abs(left @ unit.T)
        match[taken] = -1.0
        labels[:, step] = match.argmax(axis=1)
        taken[rows, labels[:, step]] = True
        atoms = A[labels[:, : step + 1]]  # (rows, step + 1, k)
        gram = atoms @ atoms.transpose(0, 2, 1)
        gram += 1e-10 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(step + 1)
        gram += np.finfo(gram.dtype).tiny * np.eye(step + 1)
        right = atoms @ codes[:, :, None]
        values = np.linalg.solve(gram, right)[:, :, 0]
        left = codes - (values[:, None, :] @ atoms)[:, 0]
    return labels, values
