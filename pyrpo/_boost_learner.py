"""Boosting of any scikit-learn regressor (Joly, Wehenkel and Geurts, 2017, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils.validation import has_fit_parameter

from pyrpo._native import Features
from pyrpo._native_boost import Boost
from pyrpo._options import number, stream


def check_learner(learner: Any, estimator: Any) -> None:
    """Refuse what a learner other than our trees cannot do."""
    if not isinstance(learner, BaseEstimator) or not is_regressor(learner):
        raise TypeError(f"base_estimator must be a scikit-learn regressor, got {learner!r}")
    if estimator.relabel and estimator.projection is not None:
        raise ValueError(
            "base_estimator: relabel=True needs trees, whose leaves take all outputs; use "
            "relabel=False (Algorithm 3) or projection=None (Algorithm 2)"
        )
    if estimator.strategy == "single_target":
        raise ValueError("base_estimator: strategy='single_target' needs trees; use 'joint'")
    if estimator.warm_start:
        raise ValueError("base_estimator: warm_start=True needs trees; use False")


def _seeded(learner: Any, rng: np.random.Generator) -> Any:
    """Clone whose random states are whole numbers, also those of its parts."""
    copy = clone(learner)
    names = [n for n in copy.get_params() if n.split("__")[-1] == "random_state"]
    return copy.set_params(**{n: int(rng.integers(2**31 - 1)) for n in sorted(names)})


def _says(learner: Any, X: Any, columns: int) -> np.ndarray:
    values = np.asarray(learner.predict(X))
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != (X.shape[0], columns):
        raise ValueError(
            f"base_estimator predicts an array of shape {values.shape} for {X.shape[0]} rows "
            f"of {columns} targets"
        )
    values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError("base_estimator: predictions must be finite in single precision")
    return values


class LearnerBoost(Boost):
    """A run whose rounds fit clones of a learner to the projected gradients."""

    def __init__(self, learner: Any, X: Any, seed: int, options: Any, Y: Any, **more: Any) -> None:
        blank = Features(np.zeros((X.shape[0], 1), dtype=np.float32))  # no tree looks at it
        super().__init__(options, blank, Y, **more)
        self._learner, self._X, self._rng = learner, X, stream(seed, "learners")
        weight = more.get("weight") if has_fit_parameter(learner, "sample_weight") else None
        self._weight = None if weight is None else np.asarray(weight)
        self._fitted: list[Any] = []
        self._steps: list[np.ndarray] = []

    def run(self, rounds: int, n_jobs: int | None = None, progress=None) -> None:
        """Lines 4 to 8 of Algorithms 2 and 3, `rounds` times."""
        for _ in range(rounds):
            rows, z = self.project(n_jobs)
            weight = {} if self._weight is None else {"sample_weight": self._weight[rows]}
            target = z.ravel() if z.shape[1] == 1 else z
            learner = _seeded(self._learner, self._rng).fit(self._X[rows], target, **weight)
            self._steps.append(self.add(_says(learner, self._X, z.shape[1]), n_jobs))
            self._fitted.append(learner)

    def model(self, rounds: int) -> LearnerModel:
        """Make the model of the first rounds."""
        return LearnerModel(
            self.start, self._fitted[:rounds], np.array(self._steps[:rounds]), self._components
        )


class LearnerModel:
    """Constants and steps along what learners say: F = rho_0 + sum of mu rho_m g_m(x)."""

    def __init__(
        self, start: np.ndarray, estimators: list[Any], steps: np.ndarray, columns: int
    ) -> None:
        self.start, self.estimators, self.steps = start, estimators, steps
        self._columns = columns
        self.n_outputs, self.n_trees = len(start), len(estimators)

    def staged(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round: one array, changed by the next."""
        scores = np.repeat(self.start[None].astype(np.float32), X.shape[0], axis=0)
        for learner, step in zip(self.estimators, self.steps, strict=True):
            scores += _says(learner, X, self._columns) * step
            yield scores

    def predict(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Scores."""
        *_, scores = self.staged(X)
        return scores.astype(np.float64)

    def predict_topk(self, X: Any, k: int, n_jobs: int | None = None):
        """The k largest scores of each row."""
        number(k, "k", 1, self.n_outputs, whole=True)
        scores = self.predict(X)
        index = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return index, np.take_along_axis(scores, index, axis=1)

    def apply(self, X: Any, n_jobs: int | None = None):
        """Refuse."""
        raise ValueError("apply: a model with base_estimator has no leaves")

    def importances(self):
        """Refuse."""
        raise AttributeError("feature_importances_: a model with base_estimator has none")

    def save(self, path: Any, note: bytes):
        """Refuse."""
        raise ValueError("save: a model with base_estimator holds Python objects; pickle it")
