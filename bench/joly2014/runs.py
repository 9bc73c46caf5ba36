"""The unit of work: one model, data set, setting and split gives one line of the results' file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import pyrpo
from bench.joly2014.data import Problem, Source
from pyrpo.projection import GaussianProjection

CLASSIFIERS = {
    "tree": pyrpo.DecisionTreeClassifier,
    "forest": pyrpo.RandomForestClassifier,
    "extra-trees": pyrpo.ExtraTreesClassifier,
}
REGRESSORS = {
    "tree": pyrpo.DecisionTreeRegressor,
    "forest": pyrpo.RandomForestRegressor,
    "extra-trees": pyrpo.ExtraTreesRegressor,
}


@dataclass(frozen=True)
class Fit:
    """A model to be fitted on one split and scored. None: the original outputs, the default k."""

    data: str
    model: str = "forest"
    projection: str | None = None
    m: int | None = None
    k: int | None = None
    shared: bool = False
    draw_non_constant: bool = False
    trees: int = 100
    split: int = 0
    seed: int = 0

    @property
    def key(self) -> str:
        """Data set, model and what differs from the defaults."""
        rest = [f for f in fields(self)[2:] if getattr(self, f.name) != f.default]
        return " ".join(
            [self.data, self.model, *(f"{f.name}={getattr(self, f.name)}" for f in rest)]
        )

    @property
    def cell(self) -> Fit:
        """What repetitions have in common."""
        return replace(self, split=0, seed=0)

    @property
    def repetition(self) -> int:
        return max(self.split, self.seed)

    def estimator(self, problem: Problem) -> Any:
        """Its k is √p and n_min = 1; for regression p/3 and 5, as in the paper on boosting."""
        labels = problem.metric == "LRAP"
        options: dict[str, Any] = {"random_state": self.seed}
        if self.model != "tree":
            k = "sqrt" if labels else max(1, problem.X.shape[1] // 3)
            options |= {"n_estimators": self.trees, "max_features": k}
            options |= {"shared_projection": self.shared}
        if self.k is not None:
            options["max_features"] = self.k
        if self.projection == "identity":
            options["projection"] = np.eye(problem.Y.shape[1])
        elif self.projection is not None:
            options |= {"projection": self.projection, "n_components": self.m}
        cls = (CLASSIFIERS if labels else REGRESSORS)[self.model]
        n_min = 2 if labels else 5
        return cls(draw_non_constant=self.draw_non_constant, min_samples_split=n_min, **options)

    def measure(self, problem: Problem) -> dict[str, Any]:
        train, test = problem.split(self.split)
        X, Y, X_test = problem.X[train], problem.Y[train], problem.X[test]
        model = self.estimator(problem)
        cpu, wall = process_time(), perf_counter()
        model.fit(X, Y)
        times = {"fit_cpu": process_time() - cpu, "fit_wall": perf_counter() - wall}
        cpu = process_time()
        predicted = (
            model.predict_proba(X_test) if problem.metric == "LRAP" else model.predict(X_test)
        )
        times["predict_cpu"] = process_time() - cpu
        sizes = {"n_train": len(train), "n_test": len(test)}
        return {"score": problem.score(test, predicted)} | times | sizes


@dataclass(frozen=True)
class Timing:
    """Seconds to load a data set (m = 0), or to draw Φ and project the training outputs."""

    data: str
    m: int = 0
    repetition = 0

    @property
    def key(self) -> str:
        return f"{self.data} " + (f"project m={self.m}" if self.m else "load")

    @property
    def cell(self) -> Timing:
        return self

    def measure(self, problem: Problem, source: Source) -> dict[str, Any]:
        Y = problem.Y[problem.split(0)[0]]
        cpu, wall = process_time(), perf_counter()
        if self.m:
            GaussianProjection(self.m, random_state=0).fit_transform(Y)
        else:
            replace(source).problem  # noqa: B018  read again: a copy has nothing cached
        return {"cpu": process_time() - cpu, "wall": perf_counter() - wall}


class Results:
    """A file of one JSON object a line, added to as work is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, dict[str, Any]] = {}
        self._whole = True
        if path.exists():
            text = path.read_text(encoding="utf-8")
            self._whole = text == "" or text.endswith("\n")
            for record in _records(text):
                self.records[record["key"]] = record

    def __contains__(self, unit: Any) -> bool:
        return unit is not None and unit.key in self.records

    def __getitem__(self, unit: Any) -> dict[str, Any]:
        return self.records[unit.key]

    def add(self, unit: Any, problem: Problem, outcome: dict[str, Any]) -> None:
        """Keep an outcome, in the file too."""
        about = {"metric": problem.metric, "date": date.today().isoformat()}
        versions = {"pyrpo": pyrpo.__version__}
        self._append({"key": unit.key} | asdict(unit) | outcome | problem.shape | about | versions)

    def note(self, command: str) -> None:
        """Remember by which commands the results were made."""
        key = f"command: {command}"
        if key not in self.records:
            self._append({"key": key, "command": command})

    def _append(self, record: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            # A run that was stopped in the middle of a line must not spoil the next one.
            file.write(("" if self._whole else "\n") + json.dumps(record) + "\n")
        self._whole = True
        self.records[record["key"]] = record

    def check(self, unit: Any, problem: Problem) -> None:
        """Refuse to mix results of two data sets of one name."""
        found = {name: self[unit][name] for name in problem.shape}
        if found != problem.shape:
            raise SystemExit(
                f"{self.path} has results of a data set {problem.name} of shape {found}, not of "
                f"{problem.shape}: give another --results"
            )

    def cells(self) -> dict[Fit, list[dict[str, Any]]]:
        """Fits by what their repetitions have in common."""
        names = {field.name for field in fields(Fit)}
        cells: dict[Fit, list[dict[str, Any]]] = defaultdict(list)
        for record in self.records.values():
            if "model" in record:
                fit = Fit(**{name: record[name] for name in names})
                cells[fit.cell].append(record)
        return cells


def _records(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue  # the rest of a line that was being written when a run was stopped
