"""The data sets of a folder, found by their file names, and their random splits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import label_ranking_average_precision_score, r2_score

from bench.joly2014 import paper
from pyrpo.datasets import load_mulan, load_vw

_FILE = re.compile(r"(?P<name>.+?)(-train|-test)?\.(?P<kind>arff|vw)(\.gz)?")
DENSE = 0.3  # share of non-zeros from which features are kept as an array


@dataclass(frozen=True)
class Source:
    """Files of one data set: one, or a training and a test part."""

    name: str
    kind: str
    files: tuple[Path, ...]
    n_targets: int | None = None

    @cached_property
    def problem(self) -> Problem:
        if self.kind == "vw":
            return _multiclass(self.name, [load_vw(file) for file in self.files])
        parts = [load_mulan(file, n_targets=self.n_targets) for file in self.files]
        X, Y = _pool([part.X for part in parts]), _pool([part.Y for part in parts])
        if self.n_targets is None:
            return Problem(self.name, _features(X), sparse.csr_array(Y), "LRAP")
        deviation = Y.std(axis=0)
        Y = (Y - Y.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        return Problem(self.name, _features(X), Y, "macro-r²")


@dataclass(frozen=True)
class Problem:
    """A data set in memory, all its rows in one."""

    name: str
    X: Any
    Y: Any
    metric: str

    @property
    def shape(self) -> dict[str, int]:
        return {"n": self.X.shape[0], "p": self.X.shape[1], "d": self.Y.shape[1]}

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows for training and testing: the paper's sizes where it has them, else 2/3 and 1/3.

        Of regression half are for testing, as in the paper on boosting.
        """
        n, sizes = self.X.shape[0], paper.SIZES.get(paper.identity(self.name))
        if sizes is not None and sizes.n_test is None:
            folds = np.array_split(np.random.default_rng(0).permutation(n), 10)
            return np.concatenate(folds[:number] + folds[number + 1 :]), folds[number]
        n_train, n_test = n // 2 if self.metric != "LRAP" else 2 * n // 3, n
        if sizes is not None and sizes.n_train + sizes.n_test <= n:
            n_train, n_test = sizes.n_train, sizes.n_test
        order = np.random.default_rng(number).permutation(n)
        return order[:n_train], order[n_train:][:n_test]

    def score(self, rows: np.ndarray, predicted: np.ndarray) -> float:
        """LRAP of the rows that have labels (equation 6), or the mean of the outputs' r²."""
        if self.metric != "LRAP":
            return float(r2_score(self.Y[rows], predicted, multioutput="uniform_average"))
        Y = self.Y[rows]
        seen = np.flatnonzero(np.diff(Y.indptr))
        total = 0.0
        for part in np.array_split(seen, max(1, len(seen) * Y.shape[1] // 10**7)):
            score = label_ranking_average_precision_score(Y[part].toarray(), predicted[part])
            total += score * len(part)
        return total / len(seen)


def _pool(parts: list[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack(parts))
    return np.concatenate(parts)


def _features(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) and X.nnz > DENSE * X.shape[0] * X.shape[1] else X


def _multiclass(name: str, parts: list[Any]) -> Problem:
    """One label a row."""
    width = max(part.X.shape[1] for part in parts)
    for part in parts:
        part.X.resize(part.X.shape[0], width)
    classes, y = np.unique(np.concatenate([part.y for part in parts]), return_inverse=True)
    Y = (np.ones(len(y), dtype=np.int8), y, np.arange(len(y) + 1))
    Y = sparse.csr_array(Y, shape=(len(y), len(classes)))
    return Problem(name, _features(_pool([part.X for part in parts])), Y, "LRAP")


def find(folder: Path, targets: dict[str, int]) -> Iterable[Source]:
    """All data sets of the folder that can be read; says which cannot.

    An ARFF file needs its XML, or a number of `targets`.
    """
    files: dict[str, list[re.Match]] = {}
    for file in sorted(folder.iterdir()):
        if match := _FILE.fullmatch(file.name):
            files.setdefault(match["name"], []).append(match)
    for name, matches in files.items():
        paths = tuple(folder / match.string for match in matches)
        known = paper.TARGETS | targets
        n_targets = None if (folder / f"{name}.xml").exists() else known.get(name)
        kind = matches[0]["kind"]
        if kind == "arff" and n_targets is None and not (folder / f"{name}.xml").exists():
            print(f"{name}: left out, neither {name}.xml nor --targets {name}=NUMBER")
            continue
        yield Source(name, kind, paths, n_targets)
