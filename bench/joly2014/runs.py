"""The unit of work: one model, data set, setting and split gives one line of the results' file."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields, replace
from time import perf_counter, process_time
from typing import Any

import numpy as np

import pyrpo
from bench.joly2014.data import Problem, Source
from bench.records import Records
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
            options |= {"n_estimators": self.trees, "max_features": k, "n_components": "log"}
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


class Results(Records):
    """The file of results."""

    def cells(self) -> dict[Fit, list[dict[str, Any]]]:
        """Fits by what their repetitions have in common."""
        names = {field.name for field in fields(Fit)}
        cells: dict[Fit, list[dict[str, Any]]] = defaultdict(list)
        for record in self.records.values():
            if "model" in record:
                fit = Fit(**{name: record[name] for name in names})
                cells[fit.cell].append(record)
        return cells
