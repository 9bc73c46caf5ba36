"""The statistics of section 4: paired tests, ranks, critical distances (Demšar, 2006)."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy import stats


def student(a: np.ndarray, b: np.ndarray) -> float:
    """Student's paired t-test: its p-value, NaN of fewer than two pairs, negative where a < b."""
    if len(a) < 2 or not np.ptp(np.subtract(a, b)) > 0:
        return float("nan")
    p = float(stats.ttest_rel(a, b).pvalue)
    return p if np.mean(a) >= np.mean(b) else -p


def wilcoxon(a: np.ndarray, b: np.ndarray) -> float:
    """Wilcoxon's signed rank test by the normal approximation, signed as `student` is."""
    difference = np.subtract(a, b)
    difference = difference[difference != 0]
    if len(difference) < 2:
        return float("nan")
    p = float(stats.wilcoxon(difference, method="asymptotic").pvalue)
    return p if stats.rankdata(np.abs(difference)) @ np.sign(difference) >= 0 else -p


def ranks(scores: np.ndarray) -> np.ndarray:
    """Ranks of the methods (columns) on each data set, the best score's being 1; ties share."""
    return stats.rankdata(-np.asarray(scores), axis=1)


def friedman(scores: np.ndarray) -> float:
    """P-value of Friedman's test that all methods are equal; NaN of fewer than two data sets."""
    if len(scores) < 2:
        return float("nan")
    return float(stats.friedmanchisquare(*np.asarray(scores).T).pvalue)


def critical_distance(methods: int, data_sets: int, alpha: float = 0.05) -> float:
    """Nemenyi's: mean ranks further apart than this differ."""
    q = stats.studentized_range.ppf(1 - alpha, methods, np.inf) / sqrt(2)
    return float(q * sqrt(methods * (methods + 1) / (6 * data_sets)))


def groups(mean_ranks: np.ndarray, distance: float) -> list[tuple[int, int]]:
    """Longest runs of sorted mean ranks that do not differ, as first and last places."""
    found: list[tuple[int, int]] = []
    for first in range(len(mean_ranks)):
        last = int(np.searchsorted(mean_ranks, mean_ranks[first] + distance, side="right")) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
