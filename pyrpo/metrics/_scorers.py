"""Scorers: metrics as ``cross_validate`` and ``GridSearchCV`` take them, larger is better.

scikit-learn's ``make_scorer`` takes a label indicator of two columns for two classes and refuses a
sparse one where it looks into it; these read scores off the estimator themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyrpo.metrics._outputs import macro_r2, rmse
from pyrpo.metrics._ranking import (
    label_ranking_average_precision,
    macro_auprc,
    micro_auprc,
)
from pyrpo.metrics._top import ndcg_at_k, precision_at_k, recall_at_k

_OF_LISTS = (ndcg_at_k, precision_at_k, recall_at_k)
_OF_PREDICTIONS = (macro_r2, rmse)


def label_scores(estimator: Any, X: Any) -> np.ndarray:
    """Scores of the labels: probabilities, decision values or, of a regressor, predictions."""
    if hasattr(estimator, "predict_proba"):
        p = estimator.predict_proba(X)
        return _joined(p, estimator.classes_) if isinstance(p, list) else p
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    return estimator.predict(X)


def _joined(p: list[np.ndarray], classes: list[np.ndarray]) -> np.ndarray:
    """Probability of each label's class 1, where a classifier gives an array a label."""
    return np.column_stack([q[:, c == 1].sum(axis=1) for q, c in zip(p, classes, strict=True)])


class Scorer:
    """A metric of ``(estimator, X, Y)``; `scorer` makes them."""

    def __init__(self, metric: Callable[..., float], sign: int, options: dict[str, Any]) -> None:
        self.metric, self.sign, self.options = metric, sign, options

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted estimator."""
        options = dict(self.options)
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        return self.sign * self.metric(y, self._read(estimator, X, y), **options)

    def _read(self, estimator: Any, X: Any, y: Any) -> Any:
        if self.metric in _OF_PREDICTIONS:
            return estimator.predict(X)
        if self.metric in _OF_LISTS and hasattr(estimator, "predict_topk"):
            return estimator.predict_topk(X, min(self.options.get("k", 5), np.shape(y)[1]))
        return label_scores(estimator, X)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        sign = ", greater_is_better=False" if self.sign < 0 else ""
        return f"scorer({self.metric.__name__}{options}{sign})"


def scorer(metric: Callable[..., float], *, greater_is_better: bool = True, **options) -> Scorer:
    """Make a scorer of a metric.

    Parameters
    ----------
    metric : callable
        ``metric(Y, scores, **options)``. `rmse` and `macro_r2` are given ``predict(X)``; metrics of
        the k best ``predict_topk(X, k)`` where the estimator has it; others ``predict_proba(X)``,
        ``decision_function(X)`` or ``predict(X)``, the first there is.
    greater_is_better : bool, default=True
        False: the score is minus the metric.
    **options
        Passed to the metric.

    Returns
    -------
    scorer : callable of (estimator, X, Y, sample_weight=None)

    Examples
    --------
    >>> from pyrpo.metrics import precision_at_k, scorer
    >>> scorer(precision_at_k, k=1)
    scorer(precision_at_k, k=1)
    """
    return Scorer(metric, 1 if greater_is_better else -1, options)


label_ranking_average_precision_scorer = scorer(label_ranking_average_precision)
precision_at_k_scorer = scorer(precision_at_k)
recall_at_k_scorer = scorer(recall_at_k)
ndcg_at_k_scorer = scorer(ndcg_at_k, ties="first")  # as the lists are, whatever the estimator gives
micro_auprc_scorer = scorer(micro_auprc)
macro_auprc_scorer = scorer(macro_auprc)
neg_rmse_scorer = scorer(rmse, greater_is_better=False)
macro_r2_scorer = scorer(macro_r2)
