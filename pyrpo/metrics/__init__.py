"""Metrics for very many outputs; a sparse Y stays sparse, lists of the best are enough for some.

Rankings of labels: `label_ranking_average_precision`, `precision_at_k`, `recall_at_k`, `ndcg_at_k`
(the last three also propensity-scored), `micro_auprc`, `macro_auprc`. Real outputs: `rmse`,
`macro_r2`. Each has a scorer for `cross_validate` and `GridSearchCV`; `scorer` makes others.
"""

from pyrpo.metrics._outputs import macro_r2, rmse
from pyrpo.metrics._ranking import (
    label_ranking_average_precision,
    macro_auprc,
    micro_auprc,
)
from pyrpo.metrics._scorers import (
    label_ranking_average_precision_scorer,
    macro_auprc_scorer,
    macro_r2_scorer,
    micro_auprc_scorer,
    ndcg_at_k_scorer,
    neg_rmse_scorer,
    precision_at_k_scorer,
    recall_at_k_scorer,
    scorer,
)
from pyrpo.metrics._top import ndcg_at_k, precision_at_k, propensities, recall_at_k

__all__ = [
    "label_ranking_average_precision",
    "label_ranking_average_precision_scorer",
    "macro_auprc",
    "macro_auprc_scorer",
    "macro_r2",
    "macro_r2_scorer",
    "micro_auprc",
    "micro_auprc_scorer",
    "ndcg_at_k",
    "ndcg_at_k_scorer",
    "neg_rmse_scorer",
    "precision_at_k",
    "precision_at_k_scorer",
    "propensities",
    "recall_at_k",
    "recall_at_k_scorer",
    "rmse",
    "scorer",
]
