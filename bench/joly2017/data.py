"""The paper's artificial problems, and the sizes of its splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from bench.joly2014.data import Source
from bench.joly2017 import paper
from pyrpo.datasets import make_friedman1_chain, make_friedman1_group, make_friedman1_ind
from pyrpo.metrics import label_ranking_average_precision, macro_r2

N_TRAIN, N_TEST, N_OUTPUTS = 300, 4000, 16  # section 4.2.1
VALIDATION = 0.2  # of the training rows

_MAKE = {
    "chain": make_friedman1_chain,
    "group": make_friedman1_group,
    "ind": make_friedman1_ind,
}


@dataclass(frozen=True)
class Split:
    """Rows for training, for testing; those of the training rows that tune, and the others."""

    X: Any
    Y: Any
    train: np.ndarray
    test: np.ndarray
    fit: np.ndarray
    validation: np.ndarray


def _split(X: Any, Y: Any, order: np.ndarray, n_train: int, n_test: int) -> Split:
    """The first rows of a random order train, the last of them tune; what follows tests."""
    train, n_fit = order[:n_train], n_train - max(1, round(VALIDATION * n_train))
    return Split(X, Y, train, order[n_train:][:n_test], train[:n_fit], train[n_fit:])


class Problem(Protocol):
    """A data set as the experiments see it."""

    name: str
    metric: str

    @property
    def shape(self) -> dict[str, int]: ...

    def split(self, number: int) -> Split: ...


@dataclass(frozen=True)
class Artificial:
    """friedman1-chain, -group or -ind; each split is a new draw."""

    kind: str
    noisy: bool = False
    metric = "macro-r²"

    @property
    def name(self) -> str:
        return f"friedman1-{self.kind}" + (" noisy" if self.noisy else "")

    @property
    def shape(self) -> dict[str, int]:
        p = 5 * N_OUTPUTS if self.kind == "ind" else 5
        return {"n": N_TRAIN, "p": p, "d": N_OUTPUTS * (1 + self.noisy)}

    def split(self, number: int) -> Split:
        n = N_TRAIN + N_TEST
        X, Y = _MAKE[self.kind](n, N_OUTPUTS, random_state=number)
        order = np.arange(n)
        if self.noisy:  # as many outputs again that X says nothing about
            rng = np.random.default_rng(number)
            parts = (order[:N_TRAIN], order[N_TRAIN:])  # training and test rows keep apart
            noise = [np.concatenate([rng.permutation(part) for part in parts]) for _ in Y.T]
            Y = np.hstack([Y, *(Y[rows, [j]][:, None] for j, rows in enumerate(noise))])
        return _split(X, Y, order, N_TRAIN, N_TEST)


@dataclass(frozen=True)
class Real:
    """A data set of the folder."""

    source: Source

    @property
    def name(self) -> str:
        return self.source.name

    @cached_property
    def metric(self) -> str:
        return self.source.problem.metric

    @property
    def shape(self) -> dict[str, int]:
        return self.source.problem.shape

    def split(self, number: int) -> Split:
        """The paper's sizes; where it gives no test size, half of the rows are for testing."""
        problem = self.source.problem
        n = problem.X.shape[0]
        n_train, n_test = paper.SIZES.get(paper.identity(self.name), (None, None))
        if n_test is None or n_train + n_test > n:
            n_train, n_test = n // 2, n - n // 2
        order = np.random.default_rng(number).permutation(n)
        return _split(problem.X, problem.Y, order, n_train, n_test)


def score(metric: str, Y: Any, predicted: np.ndarray, empty: str = "drop") -> float:
    """LRAP (equation 25) of the rows that have labels, or macro-r² (equation 26)."""
    if metric == "LRAP":
        if sparse.issparse(Y) and Y.nnz == 0:
            return 0.0
        return label_ranking_average_precision(Y, predicted, empty=empty)
    return macro_r2(Y, predicted)
