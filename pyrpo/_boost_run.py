"""The rounds of one boosting fit: how many at a time, when they end, which are kept."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from pyrpo._boost_learner import LearnerModel
from pyrpo._inputs import check_same_classes
from pyrpo._native_boost import Boost
from pyrpo._native_call import threads

SECONDS = 0.1  # of work between two looks at the clock and at early stopping
LOOK = 10  # rounds between two looks at a metric


class Run:
    """One fit: rounds until something ends them, and what is known of each."""

    def __init__(self, estimator, make, data, projection, stopping, patience, max_time) -> None:
        self.e, self.stopping, self.max_time = estimator, stopping, max_time
        self.patience = patience
        self.single = estimator.strategy == "single_target" and data.outputs > 1
        self.custom = callable(estimator.loss)
        self.parts = [data.column(j) for j in range(data.outputs)] if self.single else [data]
        self.boosts = [
            make(
                part.Y,
                weight=part.weight,
                entry_weight=part.entry_weight,
                watched=part.watched,
                start=part.start(estimator.loss),
                projection=projection,
                loss=part.block_loss(estimator.loss) if self.custom else None,
                n_jobs=estimator.n_jobs,
            )
            for part in self.parts
        ]
        self._by_loss = not self.stopping or (estimator.scoring == "loss" and not self.custom)
        self.best = [0] * len(self.boosts)
        self.limits = [estimator.n_estimators] * len(self.boosts)
        self.metric: list[list[tuple[int, float]]] = [[] for _ in self.boosts]
        self.train_score = np.empty(0)
        self.halted = False
        self.seen = 0  # rounds until it was clear which is the best: not how many were run

    def go(self, earlier: dict[str, Any], told: Callable[[int], Any] | None) -> None:
        """Boost, from the rounds of an earlier fit on if there are any."""
        told = told or (lambda rounds: None)
        if earlier:
            self._take_over(earlier)
        if not self.single:
            self._until_done(0, self.e.n_jobs, told)
            return
        jobs = threads(self.e.n_jobs)
        done = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(
            delayed(self._until_done)(j, 1, lambda rounds: None) for j in range(len(self.boosts))
        )
        try:
            for j, _ in enumerate(done):
                told(int((j + 1) / len(self.boosts) * self.e.n_estimators))
        finally:
            self.halted = True  # threads still at work after ^C give up

    def _keep_on(self, done: int, total: int) -> None:
        if self.halted:
            raise KeyboardInterrupt

    def _take_over(self, earlier: dict[str, Any]) -> None:
        model = earlier["_model"]
        now = self.e.n_features_in_, self.boosts[0].n_outputs
        if self.single or (model.n_inputs, model.n_outputs) != now or model.is_boosted is False:
            raise ValueError(
                "warm_start goes on with strategy='joint', as many features and as many outputs "
                f"only: the model has {model.n_inputs} and {model.n_outputs}, now there are {now}"
            )
        check_same_classes(self.e, earlier)
        if model.n_trees > self.e.n_estimators:
            raise ValueError(
                f"n_estimators={self.e.n_estimators} must be larger or equal to the "
                f"{model.n_trees} rounds already run when warm_start=True"
            )
        self.boosts[0].resume(model, self.e.n_jobs)
        self.train_score = earlier.get("train_score_", self.train_score)[: model.n_trees]

    def _until_done(self, j: int, n_jobs: int | None, told: Callable[[int], Any]) -> None:
        boost = self.boosts[j]
        began, step = perf_counter(), 1 if self._by_loss else LOOK
        if self.stopping and boost.rounds > 0 and self._has_stalled(j):
            return
        while boost.rounds < self.limits[j]:
            now = perf_counter()
            step = min(step, self.limits[j] - boost.rounds)
            self._keep_on(0, step)
            boost.run(step, n_jobs, progress=self._keep_on)
            told(boost.rounds)
            spent, elapsed = perf_counter() - now, perf_counter() - began
            if self.stopping and self._has_stalled(j):
                break
            if self.max_time is not None and elapsed >= self.max_time:
                break
            if not self._by_loss:
                step = LOOK  # whatever the time: it decides what is seen
                continue
            step = max(1, min(2 * step, int(step * SECONDS / max(spent, 1e-6)), 64))
            if self.max_time is not None:
                step = max(1, min(step, int((self.max_time - elapsed) / (spent / step + 1e-9))))
        if not self.stopping:
            self.best[j] = self.seen = boost.rounds

    def _has_stalled(self, j: int) -> bool:
        """Note the best round; true once `patience` rounds have passed since."""
        boost, e = self.boosts[j], self.e
        if self._by_loss:
            losses = boost.losses()[1]
            at = np.arange(len(losses))
        else:
            score = self._metric(j)
            if np.isnan(score):
                what = "loss" if e.scoring == "loss" else "scoring"
                raise ValueError(f"{what} must give numbers, got nan after {boost.rounds} rounds")
            self.metric[j].append((boost.rounds, -score))
            at, losses = (np.array(v) for v in zip(*self.metric[j], strict=True))
        lowest = np.minimum.accumulate(losses)
        better = losses[1:] < lowest[:-1] - e.tol * np.abs(lowest[:-1])
        best = np.maximum.accumulate(
            np.concatenate([[0], np.where(better, np.arange(1, len(losses)), 0)])
        )
        late = np.flatnonzero(at - at[best] >= self.patience)
        last = late[0] if len(late) else -1
        self.best[j], self.seen = max(int(at[best[last]]), 1), int(at[last])
        return len(late) > 0

    def _metric(self, j: int) -> float:
        part = self.parts[j]
        held, scores = part.held, self.boosts[j].scores(part.held_rows)
        if self.e.scoring == "loss":
            return -held.mean_loss(self.e.loss, scores)
        return self.e._score_held_out(held, scores)

    def finish(self) -> None:
        """Keep the best rounds and what is known of all."""
        e = self.e
        if self.single:
            e._model = Boost.join(self.boosts, self.best)
            e.n_estimators_ = max(self.best)
            return
        boost, rounds = self.boosts[0], self.best[0]
        e._model = boost.model(rounds)
        e.n_estimators_ = rounds
        if isinstance(e._model, LearnerModel):
            e.estimators_, e.steps_ = e._model.estimators, e._model.steps
        train, watched = boost.losses()
        known = self.train_score
        e.train_score_ = np.concatenate([known, train[len(known) : -1]])[: self.seen]
        if self.stopping:
            e.validation_score_ = watched[: self.seen + 1]
