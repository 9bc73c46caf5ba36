"""ML-CSSP (Bi and Kwok, 2013): label selection by column subset selection, and its kernel form."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.utils import check_random_state

from pyrpo._docs import store
from pyrpo._options import label_count, positive
from pyrpo.embedding._selection import LabelSelection, refuse_beyond, scale_rows
from pyrpo.linalg import column_subset

_KERNELS = ("rbf", "linear")


class MLCSSP(LabelSelection):
    r"""Some of the labels, drawn by their leverage scores; the others are interpolated from them.

    Algorithm 1 of Bi and Kwok: labels are drawn with probabilities
    :math:`p_i = \|(V_k^T)^{(i)}\|^2 / k` until k are distinct; scores are :math:`h^T Y_C^+ Y`, h
    not rounded.

    Parameters
    ----------
    k : int
        Labels to select.
    method : str, default="adaptive"
        Of `pyrpo.linalg.column_subset`: "adaptive", "exact-subspace" (more than k labels),
        "two-stage" or "uniform".
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None

    Attributes
    ----------
    columns_ : ndarray of shape (n_components_,)
        Selected labels.
    interpolation_ : ndarray of shape (n_components_, n_labels)
        :math:`Y_C^+ Y`.
    n_trials_ : int
        Labels drawn.
    leverage_ : ndarray of shape (n_labels,)
    ratio_ : float
        Error of the interpolation over that of the best approximation of rank k.
    full_rank_ : bool
        Whether :math:`(V_k^T)_C` is of full rank, as Proposition 1 wants it.
    n_components_ : int

    References
    ----------
    W. Bi and J. Kwok, "Efficient Multi-label Classification with Many Labels", ICML 2013.
    """

    def __init__(self, k, *, method="adaptive", random_state=None, n_jobs=None):
        store(self, locals())

    def _fit(self, X, Y, weight):
        k = self._width(Y.shape[1])
        Y = scale_rows(Y, weight)
        rng = check_random_state(self.random_state)
        _keep(self, column_subset(Y, k, self.method, random_state=rng, n_jobs=self.n_jobs))


class KernelMLCSSP(LabelSelection):
    r"""ML-CSSP on kernel-mapped labels (section 3.4).

    Labels are drawn by the top k eigenvectors of their kernel matrix K, and
    :math:`B = K_{CC}^{-1} K_{C \cdot}`. A label's value is the y in {0, 1} nearest to
    :math:`\sum_c B_{cj} \varphi(h_c)` in the feature space of the scalar kernel: with "rbf" the y
    of larger :math:`\sum_c B_{cj} k(y, h_c)`. "linear" is `MLCSSP`.

    Parameters
    ----------
    k : int
        Labels to select.
    kernel : "rbf" or "linear", default="rbf"
        "rbf" is :math:`\exp(-\gamma \|a - b\|^2)`.
    gamma : float or None, default=None
        None: 1 over the mean squared distance of two labels' columns, which the paper leaves open.
    memory_limit : float, default=4e9
        Bytes beyond which to refuse: K is dense and has n_labels² numbers.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    columns_ : ndarray of shape (k,)
    interpolation_ : ndarray of shape (k, n_labels)
        B.
    n_trials_, leverage_, ratio_, full_rank_
        As `MLCSSP` has them, of the mapped labels.
    gamma_ : float
    n_components_ : int

    References
    ----------
    W. Bi and J. Kwok, "Efficient Multi-label Classification with Many Labels", ICML 2013.
    """

    def __init__(self, k, *, kernel="rbf", gamma=None, memory_limit=4e9, random_state=None):
        store(self, locals())

    def _fit(self, X, Y, weight):
        k = label_count(self.k, Y.shape[1])
        if self.kernel not in _KERNELS:
            raise ValueError(f"kernel must be one of {list(_KERNELS)}, got {self.kernel!r}")
        if self.gamma is not None:
            positive(self.gamma, "gamma")
        refuse_beyond(self.memory_limit, Y.shape[1], 4, "KernelMLCSSP")
        K = self._kernel_matrix(scale_rows(Y.astype(np.float64), weight))
        values, vectors = linalg.eigh(K)
        mapped = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # mapped'mapped = K
        if self.kernel == "linear":
            mapped[:, np.diag(K) == 0] = 0.0
        rng = check_random_state(self.random_state)
        _keep(self, column_subset(mapped, k, random_state=rng))

    def _kernel_matrix(self, Y: Any) -> np.ndarray:
        gram = (Y.T @ Y).toarray() if sparse.issparse(Y) else Y.T @ Y
        if self.kernel == "linear":
            self.gamma_ = 0.0
            return gram
        norm = np.diag(gram)
        distance = np.maximum(norm[:, None] + norm - 2 * gram, 0.0)
        self.gamma_ = self.gamma
        if self.gamma is None:
            pairs = len(gram) * (len(gram) - 1)
            mean = distance.sum() / pairs if pairs else 0.0
            self.gamma_ = 1.0 / mean if mean > 0 else 1.0
        return np.exp(-self.gamma_ * distance)

    def _decode(self, codes):
        """½ + half of how much nearer 1 is than 0; linear: the interpolation itself."""
        if self.kernel == "linear":
            return super()._decode(codes)
        gain = np.exp(-self.gamma_ * (1 - codes) ** 2) - np.exp(-self.gamma_ * codes**2)
        return 0.5 + gain @ self.interpolation_


def _keep(embedding: Any, subset: Any) -> None:
    embedding.columns_ = subset.columns
    embedding.interpolation_ = subset.interpolation
    embedding.n_trials_ = subset.n_trials
    embedding.leverage_ = subset.leverage
    embedding.ratio_ = subset.ratio
    embedding.full_rank_ = subset.full_rank
    embedding.n_components_ = len(subset.columns)
