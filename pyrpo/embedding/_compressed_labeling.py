"""Compressed labeling (Zhou, Tao and Wu, 2012): signs of Gaussian projections, tested against sets.

The method as its paper sketches it; what is assumed where the sketch ends is said in the docstring.
"""

from __future__ import annotations

from itertools import chain
from math import isqrt
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils import check_random_state

from pyrpo._docs import store
from pyrpo._options import number
from pyrpo._products import product
from pyrpo.embedding._base import Embedding
from pyrpo.embedding._compressed_sensing import chunks
from pyrpo.projection import GaussianProjection

_ROUNDS = 20


class CompressedLabeling(Embedding):
    r"""Codes are the signs of Gaussian projections of Y: k binary labels, balanced and independent.

    Decoding tests, for each *distilled label set* (a frequent subset of labels), whether it is part
    of the sample's labels: the signs of the projections of two vectors at the angle
    :math:`\theta` agree with probability :math:`1 - \theta/\pi`, and the observed share of
    agreement is compared with what either hypothesis expects by Kullback-Leibler divergence.

    Parameters
    ----------
    k : int
        Codes; may exceed the number of labels.
    n_clusters : int or None, default=None
        Clusters of a round of distilling; None: the square root of the number of labels.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (k, n_labels)
        The Gaussian matrix.
    distilled_ : csr_array of shape (n_sets, n_labels)
        The distilled label sets; those of one label are among them for every label that occurs.
    n_components_ : int

    Notes
    -----
    Assumed, where the description we have ends:

    - Distilling clusters the label vectors by k-means; a cluster's set are the labels that more
      than half of its vectors hold. It is subtracted from the vectors that contain it, and what is
      left is clustered again, until a round finds no set of two labels or more.
    - The expected angle is that of the training samples: the mean cosine of the set with the
      samples that contain it, and with those that do not.
    - A set's frequency in training is its prior probability; a label's score is the largest
      posterior probability among the sets that hold it.
    - Codes may be predicted probabilities: agreement is then its expectation. A sample without
      labels has code 0.

    References
    ----------
    T. Zhou, D. Tao and X. Wu, "Compressed labeling on distilled labelsets for multi-label
    learning", Machine Learning 88, 2012.
    """

    def __init__(self, k, *, n_clusters=None, random_state=None):
        store(self, locals())

    def _fit(self, X, Y, weight):
        k = number(self.k, "k", 1, max(Y.shape[1], 1 << 20), whole=True)
        rng = check_random_state(self.random_state)
        projection = GaussianProjection(k, random_state=rng.randint(2**31 - 1)).fit(Y)
        self.components_ = projection.components_.astype(Y.dtype)
        labels = sparse.csr_array(Y != 0).astype(np.float64)
        weight = np.ones(Y.shape[0]) if weight is None else weight
        rows = np.flatnonzero(weight)
        labels, weight = labels[rows], weight[rows]
        n_clusters = isqrt(Y.shape[1]) if self.n_clusters is None else self.n_clusters
        self.distilled_ = distill(labels, weight, max(1, n_clusters), rng)
        self._signs = self._encode(self.distilled_.astype(Y.dtype))
        self._fit_tests(labels, weight)
        self.n_components_ = k

    def _fit_tests(self, Y: Any, weight: np.ndarray) -> None:
        """Expected agreement of signs if a set is part of a sample's labels, and if not."""
        size, cardinality = self.distilled_.sum(axis=1), Y.sum(axis=1)
        cosine = sparse.csr_array(Y @ self.distilled_.T)  # overlaps, to begin with
        row = np.repeat(np.arange(Y.shape[0]), np.diff(cosine.indptr))
        whole = cosine.data == size[cosine.indices]
        cosine.data /= np.sqrt(size[cosine.indices] * cardinality[row])
        inside, both = (
            np.bincount(cosine.indices, weight[row] * values, minlength=len(size))
            for values in (whole.astype(float), cosine.data)
        )
        part = np.bincount(cosine.indices, weight[row] * whole * cosine.data, minlength=len(size))
        total, k = weight.sum(), len(self.components_)
        with_set = 1 - np.arccos(np.minimum(_ratio(part, inside), 1.0)) / np.pi
        without = 1 - np.arccos(np.clip(_ratio(both - part, total - inside), 0.0, 1.0)) / np.pi
        edge = 0.5 / (k + 1)
        self._agree = np.clip(np.stack([without, with_set]), edge, 1 - edge)
        prior = np.clip(inside / total, 1e-12, 1 - 1e-12)
        self._prior = np.log(prior / (1 - prior))

    def _encode(self, Y):
        signs = product(Y, np.ascontiguousarray(self.components_.T, dtype=Y.dtype)) > 0
        return signs.astype(Y.dtype)

    def _decode(self, codes):
        n_labels, holders = self.components_.shape[1], sparse.csc_array(self.distilled_)
        occurs = np.flatnonzero(np.diff(holders.indptr))
        scores = np.zeros((len(codes), n_labels), dtype=codes.dtype)
        for rows in chunks(len(codes), max(n_labels, holders.nnz)):
            posterior = self._test(np.clip(codes[rows], 0.0, 1.0))
            each = posterior[:, holders.indices]
            scores[rows, occurs] = np.maximum.reduceat(each, holders.indptr[occurs], axis=1)
        return scores

    def _test(self, codes: np.ndarray) -> np.ndarray:
        """Posterior probability of each set: k (KL(p || without) - KL(p || with)) + prior odds."""
        k = len(self.components_)
        agree = (codes @ self._signs.T + (1 - codes) @ (1 - self._signs).T) / k
        p0, p1 = self._agree
        evidence = agree * np.log(p1 / p0) + (1 - agree) * np.log((1 - p1) / (1 - p0))
        return expit(k * evidence + self._prior)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)


def distill(
    Y: Any, weight: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> sparse.csr_array:
    """Frequent label sets by recursive clustering and subtraction, and all single labels."""
    found: set[tuple[int, ...]] = set()
    left = Y
    for _ in range(_ROUNDS):
        rows = np.flatnonzero(np.diff(left.indptr) > 1)
        left, weight = left[rows], weight[rows]
        if left.shape[0] == 0:
            break
        sets = _common_sets(left, weight, min(n_clusters, left.shape[0]), rng)
        if not sets:
            break
        found.update(sets)
        left = _subtract(left, sets)
    occurring = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    every = sorted(found) + [(int(label),) for label in occurring]
    return _rows_of(every, Y.shape[1])


def _rows_of(sets: list[tuple[int, ...]], n_labels: int) -> sparse.csr_array:
    """Indicators of label sets."""
    indptr = np.cumsum([0] + [len(labels) for labels in sets])
    indices = np.fromiter(chain.from_iterable(sets), dtype=np.int64, count=indptr[-1])
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(sets), n_labels))


def _common_sets(
    Y: Any, weight: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> list[tuple[int, ...]]:
    """Labels that most vectors of a cluster hold, two or more."""
    means = MiniBatchKMeans(n_clusters, n_init=3, random_state=rng.randint(2**31 - 1))
    narrow = (Y.data, Y.indices.astype(np.int32), Y.indptr.astype(np.int32))
    cluster = means.fit_predict(sparse.csr_matrix(narrow, shape=Y.shape), sample_weight=weight)
    member = sparse.csr_array(
        (weight, (cluster, np.arange(len(cluster)))),
        shape=(n_clusters, len(cluster)),
    )
    share = sparse.csr_array(member @ Y)
    count = member.sum(axis=1)
    share.data /= count[np.repeat(np.arange(n_clusters), np.diff(share.indptr))]
    sets = []
    for start, end in zip(share.indptr[:-1], share.indptr[1:], strict=True):
        labels = share.indices[start:end][share.data[start:end] > 0.5]
        if len(labels) > 1:
            sets.append(tuple(sorted(map(int, labels))))
    return sets


def _subtract(Y: Any, sets: list[tuple[int, ...]]) -> sparse.csr_array:
    """Remove from each vector the largest of the sets that it contains."""
    size = np.array([len(labels) for labels in sets])
    order = np.argsort(-size, kind="stable")
    sets, size = [sets[i] for i in order], size[order]
    D = _rows_of(sets, Y.shape[1])
    overlap = sparse.csr_array(Y @ D.T)
    row = np.repeat(np.arange(Y.shape[0]), np.diff(overlap.indptr))
    whole = np.flatnonzero(overlap.data == size[overlap.indices])
    largest = np.full(Y.shape[0], len(sets))
    np.minimum.at(largest, row[whole], overlap.indices[whole])
    has = np.flatnonzero(largest < len(sets))
    chosen = sparse.csr_array(
        (np.ones(len(has)), (has, largest[has])), shape=(Y.shape[0], len(sets))
    )
    rest = sparse.csr_array(Y - chosen @ D)
    rest.eliminate_zeros()
    return rest
