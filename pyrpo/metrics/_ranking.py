"""Metrics of whole rankings: average precision by row, by label, and of all entries at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from pyrpo._native_scores import scores_precision, scores_reaching
from pyrpo.metrics._read import (
    check_choice,
    entry_rows,
    read_labels,
    read_labels_as_they_are,
    read_scores,
    read_weight,
)


def label_ranking_average_precision(
    Y: Any, scores: Any, *, empty: str = "one", sample_weight: Any = None, n_jobs: int | None = None
) -> float:
    r"""Label ranking average precision (LRAP): how many of the labels ranked above are right.

    .. math:: \frac{1}{n} \sum_i \frac{1}{|y^i|} \sum_{j: y_j^i = 1}
              \frac{|\{k: y_k^i = 1, s_k^i \ge s_j^i\}|}{|\{k: s_k^i \ge s_j^i\}|}

    Ties count against the label, as scikit-learn's do.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_samples, n_labels)
        Zeros and ones.
    scores : array of shape (n_samples, n_labels)
    empty : {"one", "drop"}, default="one"
        What rows without labels count: 1, as scikit-learn has it, or nothing, as in the papers,
        whose formula divides by their number.
    sample_weight : array of shape (n_samples,), default=None
    n_jobs : int, default=None
        Threads; the value does not depend on them.

    Returns
    -------
    lrap : float

    Examples
    --------
    >>> from pyrpo.metrics import label_ranking_average_precision
    >>> label_ranking_average_precision([[1, 0, 0], [0, 0, 0]], [[0.7, 0.5, 1], [1, 0.2, 0.1]])
    0.75
    """
    check_choice(empty, "empty", ("one", "drop"))
    Y = read_labels_as_they_are(Y)
    weight = read_weight(sample_weight, Y.shape[0])
    values = scores_precision(read_scores(scores, Y.shape), Y, n_jobs)
    labelled = ~np.isnan(values)
    if empty == "one":
        values[~labelled] = 1.0
    else:
        values, weight = values[labelled], None if weight is None else weight[labelled]
        if len(values) == 0 or (weight is not None and not weight.any()):
            raise ValueError("Y has no row with a label and a weight: empty='drop' leaves none")
    return float(np.average(values, weights=weight))


def macro_auprc(Y: Any, scores: Any, *, empty: str = "zero", n_jobs: int | None = None) -> float:
    """Area under the precision-recall curve of each label over the samples, averaged over labels.

    The area is the average precision: the sum over the curve's steps, as in scikit-learn's
    ``average_precision_score(average="macro")``.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_samples, n_labels)
        Zeros and ones.
    scores : array of shape (n_samples, n_labels)
    empty : {"zero", "drop"}, default="zero"
        What labels that no sample has count: 0, as scikit-learn has it, or nothing.
    n_jobs : int, default=None
        Threads; the value does not depend on them.

    Returns
    -------
    auprc : float
    """
    check_choice(empty, "empty", ("zero", "drop"))
    Y = read_labels(Y)
    scores = read_scores(scores, Y.shape)
    values = scores_precision(scores.T, Y.T.tocsr(), n_jobs)
    if empty == "zero":
        values[np.isnan(values)] = 0.0
    elif np.isnan(values).all():
        raise ValueError("Y has no label: empty='drop' leaves none")
    return float(np.nanmean(values))


def micro_auprc(Y: Any, scores: Any, *, thresholds: Any = None, n_jobs: int | None = None) -> float:
    """Area under the precision-recall curve of all entries of Y in one ranking.

    The area is the average precision: the sum over the curve's steps, as in scikit-learn's
    ``average_precision_score(average="micro")``. A Y without a label gives 0.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_samples, n_labels)
        Zeros and ones.
    scores : array of shape (n_samples, n_labels)
    thresholds : array, default=None
        The curve's points are the predictions ``scores >= t`` for these t only; None: for every
        score. Bi and Kwok (2013) vary a rounding threshold from 0 to 1, without saying how finely:
        ``numpy.linspace(0, 1, 101)``, say. Recall that the lowest threshold does not reach adds no
        area.
    n_jobs : int, default=None
        Threads; the value does not depend on them.

    Returns
    -------
    auprc : float
    """
    Y = read_labels(Y)
    scores = read_scores(scores, Y.shape)
    positive = np.sort(scores[entry_rows(Y), Y.indices].astype(np.float64))
    if len(positive) and not np.isfinite(positive).all():
        bad = positive[~np.isfinite(positive)][0]
        raise ValueError(f"scores must be finite, found {bad}")
    if thresholds is None:
        thresholds = positive if len(positive) else [0.0]
    else:
        thresholds = check_array(
            thresholds, dtype=np.float64, ensure_2d=False, input_name="thresholds"
        ).ravel()
    steps = np.unique(thresholds)
    predicted = scores_reaching(scores, steps, n_jobs)
    right = len(positive) - np.searchsorted(positive, steps)
    gained = right - np.append(right[1:], 0)
    some = gained > 0
    area = (gained[some] * (right[some] / predicted[some])).sum()
    return float(area / max(len(positive), 1))
