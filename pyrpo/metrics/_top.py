"""Metrics of the k best labels, plain or propensity-scored (Jain, Prabhu and Varma, 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from pyrpo._native_scores import scores_topk
from pyrpo._options import number
from pyrpo.metrics._read import (
    check_choice,
    entry_rows,
    read_labels,
    read_scores,
    read_weight,
)

_PARAMETERS = """Y : array or sparse matrix of shape (n_samples, n_labels)
        Zeros and ones.
    scores : array of shape (n_samples, n_labels), or tuple of two (n_samples, m)
        All scores; or labels and their scores as ``predict_topk`` returns them: k or more of each
        row, best first.
    k : int, default=5
        May exceed the number of labels.
    propensity : array of shape (n_labels,), default=None
        Probability of each label to be observed where it holds, see `propensities`. A right label
        then counts 1 / propensity, and the mean over the samples is divided by that of the best
        attainable ranking, as in the extreme classification repository. Without any label: 0.
    sample_weight : array of shape (n_samples,), default=None
    n_jobs : int, default=None
        Threads; the value does not depend on them.
"""


def _documented(function):
    function.__doc__ = function.__doc__.replace("{parameters}", _PARAMETERS.rstrip())
    return function


@dataclass
class _Best:
    """The k best labels of each row and what they gain."""

    Y: sparse.csr_array
    k: int
    labels: np.ndarray  # (n, at most k), best first
    worth: np.ndarray | None  # by label, 1 / propensity; None: 1 each
    weight: np.ndarray | None  # by row
    scores: np.ndarray | None = None  # dense, if they came so
    best: np.ndarray | None = None  # with them: the labels' scores,
    ties: np.ndarray | None = None  # and how many of the row score as the last

    @property
    def size(self) -> np.ndarray:
        """Labels of each row."""
        return np.diff(self.Y.indptr)

    def worth_of(self, labels: np.ndarray) -> np.ndarray:
        return np.ones(labels.shape) if self.worth is None else self.worth[labels]

    def gains(self) -> np.ndarray:
        """What each listed label is worth, 0 where it is wrong."""
        n, d = self.Y.shape
        known = entry_rows(self.Y) * d + self.Y.indices  # ascending
        listed = np.arange(n)[:, None] * d + self.labels
        place = np.minimum(np.searchsorted(known, listed), len(known) - 1)
        right = known[place] == listed if len(known) else np.zeros(listed.shape, dtype=bool)
        return right * self.worth_of(self.labels)

    def mean_gains(self) -> np.ndarray:
        """The same, averaged over labels of equal score, those that are not listed included."""
        gains, (n, m) = self.gains(), self.labels.shape
        rows = entry_rows(self.Y)
        last = self.scores[rows, self.Y.indices] == self.best[rows, -1]
        gain_of_last = np.bincount(rows[last], self.worth_of(self.Y.indices[last]), minlength=n)
        starts = np.ones((n, m), dtype=bool)
        starts[:, 1:] = self.best[:, 1:] != self.best[:, :-1]
        group = np.cumsum(starts) - 1
        mean = np.bincount(group, gains.ravel()) / np.bincount(group)
        mean = mean[group].reshape(n, m)
        return np.where(self.best == self.best[:, -1:], (gain_of_last / self.ties)[:, None], mean)

    def attainable(self, discount: np.ndarray) -> np.ndarray:
        """Discounted gain of each row's labels in the best order."""
        rows, worth = entry_rows(self.Y), self.worth_of(self.Y.indices)
        order = np.lexsort((-worth, rows))
        place = np.arange(len(rows)) - self.Y.indptr[rows]
        listed = place < len(discount)
        return np.bincount(
            rows[listed],
            worth[order][listed] * discount[place[listed]],
            minlength=self.Y.shape[0],
        )

    def score(self, gains: np.ndarray, discount: np.ndarray, unit: np.ndarray) -> float:
        """Mean discounted gain in `unit`; with propensities, its share of the attainable."""
        value = float(np.average(gains @ discount[: gains.shape[1]] * unit, weights=self.weight))
        if self.worth is None:
            return value
        most = float(np.average(self.attainable(discount) * unit, weights=self.weight))
        return value / most if most > 0 else 0.0


def _read(
    Y: Any, scores: Any, k: Any, propensity: Any, sample_weight: Any, n_jobs: int | None
) -> _Best:
    k = number(k, "k", 1, whole=True)
    Y = read_labels(Y)
    worth = None if propensity is None else 1.0 / _check_propensity(propensity, Y.shape[1])
    weight = read_weight(sample_weight, Y.shape[0])
    if isinstance(scores, tuple):
        return _Best(Y, k, _check_lists(scores, k, Y.shape), worth, weight)
    scores = read_scores(scores, Y.shape)
    labels, best, ties = scores_topk(scores, min(k, Y.shape[1]), n_jobs)
    return _Best(Y, k, labels, worth, weight, scores, best, ties)


def _check_propensity(propensity: Any, n_labels: int) -> np.ndarray:
    p = check_array(propensity, dtype=np.float64, ensure_2d=False, input_name="propensity")
    if p.shape != (n_labels,):
        raise ValueError(
            f"propensity must have a number for each of {n_labels} labels, got {p.shape}"
        )
    if not ((p > 0) & (p <= 1)).all():
        raise ValueError(f"propensity must lie in (0, 1], found {p[~((p > 0) & (p <= 1))][0]}")
    return p


def _check_lists(scores: tuple, k: int, shape: tuple[int, int]) -> np.ndarray:
    """The first k labels of each row, all different, their scores falling."""
    n, d = shape
    if len(scores) != 2:
        raise ValueError(
            f"scores must be an array or a tuple (labels, scores), got {len(scores)} items"
        )
    labels, values = (np.asarray(a) for a in scores)
    if labels.ndim != 2 or len(labels) != n or values.shape != labels.shape:
        raise ValueError(
            f"scores: labels and scores must both have shape ({n}, m), got {labels.shape} and "
            f"{values.shape}"
        )
    if labels.shape[1] < min(k, d):
        raise ValueError(f"scores: lists of {labels.shape[1]} labels are too short for k={k}")
    labels, values = labels[:, :k], values[:, :k]
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"scores: labels must be integers, got {labels.dtype}")
    if labels.min() < 0 or labels.max() >= d:
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise ValueError(f"scores: labels must be between 0 and {d - 1}, found {wrong}")
    if (np.diff(np.sort(labels, axis=1), axis=1) == 0).any():
        raise ValueError("scores: a label occurs twice in a list")
    if not (values[:, 1:] <= values[:, :-1]).all():
        raise ValueError("scores: lists must be best first, without NaN")
    return labels.astype(np.int64)


def _discount(k: int) -> np.ndarray:
    return 1.0 / np.log2(np.arange(2, k + 2))


@_documented
def precision_at_k(
    Y: Any,
    scores: Any,
    k: int = 5,
    *,
    propensity: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Share of right ones among the k labels that score best, averaged over the samples.

    Of labels that score the same the lowest come first, as in ``predict_topk``.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    precision : float

    Examples
    --------
    >>> from pyrpo.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1], [0, 0, 1]], [[0.7, 0.5, 1], [1, 0.2, 0.1]], k=2)
    0.5
    """
    best = _read(Y, scores, k, propensity, sample_weight, n_jobs)
    return best.score(best.gains(), np.ones(best.k), np.full(len(best.labels), 1.0 / best.k))


@_documented
def recall_at_k(
    Y: Any,
    scores: Any,
    k: int = 5,
    *,
    propensity: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Share of a sample's labels that are among the k that score best, averaged over the samples.

    Of labels that score the same the lowest come first, as in ``predict_topk``. Samples without
    labels count 0.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    recall : float
    """
    best = _read(Y, scores, k, propensity, sample_weight, n_jobs)
    return best.score(best.gains(), np.ones(best.k), 1.0 / np.maximum(best.size, 1))


@_documented
def ndcg_at_k(
    Y: Any,
    scores: Any,
    k: int = 5,
    *,
    ties: str = "average",
    propensity: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> float:
    r"""Normalised discounted cumulative gain of the k labels that score best.

    The label at rank r gains :math:`1 / \log_2(1 + r)` where it is right; the sum is divided by the
    largest that the sample's number of labels allows. Samples without labels count 0.

    Parameters
    ----------
    {parameters}
    ties : {"average", "first"}, default="average"
        Labels that score the same share their mean gain, as in scikit-learn's ``ndcg_score``, or
        the lowest come first, as in ``predict_topk``. Lists are always taken in their order.

    Returns
    -------
    ndcg : float
    """
    check_choice(ties, "ties", ("average", "first"))
    best = _read(Y, scores, k, propensity, sample_weight, n_jobs)
    averaged = ties == "average" and best.scores is not None
    discount = _discount(best.k)
    ideal = np.concatenate([[np.inf], np.cumsum(discount)])[np.minimum(best.size, best.k)]
    return best.score(best.mean_gains() if averaged else best.gains(), discount, 1.0 / ideal)


def propensities(Y: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    r"""Propensities of labels by their frequency in training data.

    Jain, Prabhu and Varma (*Extreme multi-label loss functions for recommendation, tagging, ranking
    and other missing label applications*, 2016) fit, for N samples of which N_l have label l,

    .. math:: p_l = \frac{1}{1 + C e^{-a \ln(N_l + b)}}, \quad C = (\ln N - 1)(b + 1)^a.

    They use a = 0.5, b = 0.4 for Wikipedia, a = 0.6, b = 2.6 for Amazon, the defaults elsewhere.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_samples, n_labels)
        Training labels. Of fewer than 3 samples C would be negative; it is then 0.
    a, b : float, default=0.55, 1.5

    Returns
    -------
    p : ndarray of shape (n_labels,)
    """
    for name, value in (("a", a), ("b", b)):
        if not 0 <= value < np.inf:
            raise ValueError(f"{name} must be finite and not negative, got {value}")
    Y = read_labels(Y)
    count = np.bincount(Y.indices, minlength=Y.shape[1])
    c = max(np.log(Y.shape[0]) - 1.0, 0.0) * (b + 1.0) ** a
    return 1.0 / (1.0 + c * (count + b) ** -a)
