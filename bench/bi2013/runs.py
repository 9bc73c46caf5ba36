"""The unit of work: one method on one fold of one data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse

from bench.joly2014.data import Problem
from pyrpo import LabelEmbeddingClassifier
from pyrpo.embedding import (
    CPLST,
    MLCSSP,
    MOPLMS,
    PLST,
    BinaryRelevance,
    CompressedLabeling,
    KernelMLCSSP,
)
from pyrpo.metrics import micro_auprc

FOLDS = 10
FIGURE_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FIGURE_METHODS = ("ML-CSSP", "PLST", "CPLST", "MOPLMS")


def embedding(method: str, k: int, seed: int) -> Any:
    """The methods of the paper, and two ways of sampling it compares with."""
    return {
        "ML-CSSP": lambda: MLCSSP(k, random_state=seed),
        "BMD09": lambda: MLCSSP(k, method="two-stage", random_state=seed),
        "uniform": lambda: MLCSSP(k, method="uniform", random_state=seed),
        "ML-CSSP-Knl": lambda: KernelMLCSSP(k, random_state=seed),
        "MOPLMS": lambda: MOPLMS(k),
        "PLST": lambda: PLST(k),
        "PLST, centred": lambda: PLST(k, center=True),
        "CPLST": lambda: CPLST(k),
        "CL": lambda: CompressedLabeling(k, random_state=seed),
        "BR": BinaryRelevance,
    }[method]()


def one_tenth(problem: Problem) -> int:
    """The paper's number of codes, k = 0.1 d."""
    return max(1, round(0.1 * problem.Y.shape[1]))


@dataclass(frozen=True)
class Cell:
    """A method with k codes on a fold, linear regression of the codes."""

    data: str
    method: str
    k: int
    fold: int = 0

    @property
    def key(self) -> str:
        return f"{self.data} {self.method} k={self.k} fold={self.fold}"

    def split(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        folds = np.array_split(np.random.default_rng(0).permutation(n), FOLDS)
        return np.concatenate(folds[: self.fold] + folds[self.fold + 1 :]), folds[self.fold]

    def measure(self, problem: Problem) -> dict[str, Any]:
        train, test = self.split(problem.X.shape[0])
        Y = sparse.csr_array(problem.Y.astype(np.float64))
        X, X_test, Y, Y_test = problem.X[train], problem.X[test], Y[train], Y[test]
        method = embedding(self.method, self.k, self.fold)
        cpu, wall = process_time(), perf_counter()
        method.fit(X, Y)
        outcome = {"encode_cpu": process_time() - cpu, "encode_wall": perf_counter() - wall}
        for name in ("n_trials", "ratio", "full_rank", "n_components"):
            value = getattr(method, f"{name}_", None)
            outcome[name] = None if value is None else float(value)
        model = LabelEmbeddingClassifier(method, decoder="linear", ridge=0.0, random_state=0)
        model.fit(X, Y)
        scores = model.predict_proba(X_test)  # clipped to 0, ..., 1
        wrong = (scores > 0.5) != Y_test.toarray()
        outcome["rmse"] = float(np.sqrt(wrong.sum() / len(test)))
        outcome["auprc"] = float(micro_auprc(Y_test, scores))
        return outcome


@dataclass(frozen=True)
class Errors:
    """Figure 1: training and encoding error of all rows."""

    data: str
    method: str
    k: int
    fold: int = 0

    @property
    def key(self) -> str:
        return f"{self.data} errors {self.method} k={self.k}"

    def measure(self, problem: Problem) -> dict[str, Any]:
        Y = problem.Y.toarray().astype(np.float64)
        model = LabelEmbeddingClassifier(
            embedding(self.method, self.k, 0), decoder="linear", ridge=0.0
        ).fit(problem.X, problem.Y)
        codes = model.embedding_.transform(Y)
        training = np.linalg.norm(model.transform_codes(problem.X) - codes)
        encoding = np.linalg.norm(Y - model.embedding_.inverse_transform(codes))
        about = {"n_components": int(model.embedding_.n_components_)}
        return {"training_error": float(training), "encoding_error": float(encoding)} | about


@dataclass(frozen=True)
class Encoding:
    """Encoding labels in the shape of the paper's dmoz, which is not at hand."""

    method: str
    fold: int = 0  # the seed
    k: int = 300
    n: int = 40_000
    d: int = 35_437
    data: str = "dmoz's shape"

    @property
    def key(self) -> str:
        return f"encoding {self.method} {self.n} x {self.d} k={self.k} fold={self.fold}"

    def measure(self) -> dict[str, Any]:
        Y, method = hierarchy(self.n, self.d), embedding(self.method, self.k, self.fold)
        cpu = process_time()
        method.fit(Y)
        outcome = {"cpu": process_time() - cpu, "non_zeros": Y.nnz}
        for name in ("n_trials", "ratio", "full_rank"):
            value = getattr(method, f"{name}_", None)
            outcome[name] = None if value is None else float(value)
        return outcome


def hierarchy(n: int, d: int) -> sparse.csr_array:
    """Labels with all their ancestors in a random tree, some leaves far more often than others."""
    rng = np.random.default_rng(0)
    parent = (rng.random(d) * np.arange(d)).astype(np.int64)
    label = d - 1 - rng.zipf(1.3, size=n) % d
    label = np.where(rng.random(n) < 0.7, label, rng.integers(d, size=n))
    rows, columns, row = [], [], np.arange(n)
    while len(label):
        rows.append(row)
        columns.append(label)
        row, label = row[label > 0], parent[label[label > 0]]
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, d))


def encodings(quick: bool) -> Iterator[Encoding]:
    """Three seeds of the methods that draw."""
    size = {"n": 4000, "d": 3500, "k": 30} if quick else {}
    for method, seeds in (("ML-CSSP", 3), ("BMD09", 3), ("uniform", 3), ("PLST", 1)):
        yield from (Encoding(method, seed, **size) for seed in range(1 if quick else seeds))


def units(problem: Problem, folds: int, slow: bool) -> Iterator[Any]:
    """All of one data set, the tables first."""
    k, d = one_tenth(problem), problem.Y.shape[1]
    methods = ["ML-CSSP", "BMD09", "uniform", "PLST", "PLST, centred", "CPLST", "ML-CSSP-Knl", "BR"]
    if slow or d < 300:
        methods.append("MOPLMS")
    methods.append("CL")
    for fold in range(folds):
        for method in methods:
            yield Cell(problem.name, method, k, fold)
    if problem.name == "cal500":
        for method in FIGURE_METHODS:
            for share in FIGURE_SHARES:
                yield Errors(problem.name, method, max(1, min(d, round(share * d))))
