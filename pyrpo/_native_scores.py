"""The library's metrics of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrpo._native_call import Matrix, check, control, given, into, lib


def scores_precision(scores: np.ndarray, Y: Any, n_jobs: int | None = None) -> np.ndarray:
    """Average precision of each row; NaN where Y has no label."""
    s, y, out = Matrix(scores), Matrix(Y), np.empty(scores.shape[0])
    with control(n_jobs) as c:
        check(lib.rpo_scores_precision, s.struct, y.struct, c, into(out))
    return out


def scores_reaching(scores: np.ndarray, thresholds: np.ndarray, n_jobs: int | None = None):
    """How many of all scores are at least each of the ascending thresholds."""
    s, out = Matrix(scores), np.empty(len(thresholds), dtype=np.int64)
    with control(n_jobs) as c:
        check(lib.rpo_scores_reaching, s.struct, given(thresholds), len(out), c, into(out))
    return out


def scores_topk(scores: np.ndarray, k: int, n_jobs: int | None = None):
    """The k best labels of each row, their scores, and how many score as the last of them."""
    s, shape = Matrix(scores), (scores.shape[0], k)
    index, score = np.empty(shape, dtype=np.int64), np.empty(shape)
    ties = np.empty(shape[0], dtype=np.int64)
    outputs = (into(index), into(score), into(ties))
    with control(n_jobs) as c:
        check(lib.rpo_scores_topk, s.struct, k, c, *outputs)
    return index, score, ties
