"""Units of work: each gives one line of the results' file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import clone

from bench.joly2017.data import Problem, Split, score
from bench.joly2017.methods import STUMP, Setting, boosting, forest_scores, stump
from bench.records import Records

LOOK = 10  # rounds between two looks of early stopping at a metric
MULTIPLE = {"LRAP": 100, "macro-r²": 500}  # of the time of one round: section 4.1.2
PILOT = 8  # outputs whose models are timed instead of all
POINTS = 60  # of a curve are kept


# ---- methods on outputs -------------------------------------------------------------------------


def columns(Y: Any) -> Iterator[Any]:
    """Outputs, each as a matrix: a label of no row stays an indicator."""
    return (Y[:, [j]] for j in range(Y.shape[1]))


def learnt(problem: Problem, method: str, Y: Any) -> tuple[str, Any]:
    """Method and outputs; those of artificial-gbrt follow the problem's structure (4.2.1).

    In a chain the first output has the least noise; the mean of a group has less than any; of
    independent outputs each has a model of its own. Predictions are repeated for all outputs.
    """
    if method != "artificial-gbrt":
        return method, Y
    kind = problem.name.removeprefix("friedman1-")
    if kind == "ind":
        return "single-gbrt", Y
    return "gbmort", Y[:, :1] if kind == "chain" else Y.mean(axis=1, keepdims=True)


def wide(predicted: np.ndarray, d: int) -> np.ndarray:
    """Predictions of one output that stands for all, repeated."""
    predicted = predicted[:, None] if predicted.ndim == 1 else predicted
    return np.broadcast_to(predicted, (len(predicted), d))


def values(model: Any, X: Any) -> np.ndarray:
    return model.predict_proba(X) if model.loss == "logistic" else model.predict(X)


# ---- rounds -------------------------------------------------------------------------------------


def pace(model: Any, X: Any, Y: Any, wanted: float = 0.02) -> float:
    """CPU seconds of a round, what comes before the first one not counted."""

    def seconds(rounds: int) -> float:
        began = process_time()
        clone(model).set_params(n_estimators=rounds).fit(X, Y)
        return process_time() - began

    first, rounds = seconds(1), 4
    while (more := seconds(1 + rounds) - first) < wanted and rounds < 4096:
        rounds *= 4
    return max(more, 1e-6) / rounds


def round_pace(model: Any, X: Any, Y: Any) -> float:
    """The same; where each output has its models, a round has one of each, timed on a few."""
    d = Y.shape[1]
    if model.strategy == "joint" or d <= PILOT:
        return pace(model, X, Y)
    some = np.random.default_rng(0).choice(d, PILOT, replace=False)
    return pace(model, X, Y[:, some]) * d / PILOT


Curve = tuple[list[int], list[float]]


def scored(
    model: Any, metric: str, train: tuple, watched: tuple, rounds: int, patience: int, told=None
) -> Curve:
    """Scores of the watched rows at some rounds; stops where they have not risen for long.

    `told` gets predictions and returns their score, by default that of the watched outputs.
    """
    scores: list[float] = []

    def look(_, predicted):
        scores.append(told(predicted) if told else score(metric, watched[1], predicted))
        return scores[-1]

    stop = {"early_stopping": True, "scoring": look, "n_iter_no_change": patience}
    model.set_params(n_estimators=rounds, **stop).fit(*train, eval_set=watched)
    at = [min(rounds, LOOK * (i + 1)) for i in range(len(scores))]
    best = at[int(np.argmax(scores))]
    if model.n_estimators_ != best:
        raise AssertionError(f"the best round is {model.n_estimators_}, not {best}: another LOOK?")
    return at, scores


def scored_by_output(
    model: Any, metric: str, train: tuple, watched: tuple, rounds: int, patience: int
) -> Curve:
    """The same where each output has its models: all have as many (section 4.1.2).

    Targets whose own r² has not risen for long keep their last predictions.
    """
    X, X_watched = train[0], watched[0]
    seen: list[list[np.ndarray]] = []
    model = model.set_params(strategy="joint", projection=None)
    for j, (y, y_watched) in enumerate(zip(columns(train[1]), columns(watched[1]), strict=True)):
        mine: list[np.ndarray] = []

        def told(predicted, mine=mine, y=y_watched):
            predicted = predicted.reshape(len(predicted), 1)
            mine.append(predicted.astype(np.float32))
            return len(mine) if metric == "LRAP" else score(metric, y, predicted)

        one = clone(model).set_params(random_state=model.random_state + j)
        scored(one, metric, (X, y), (X_watched, y_watched), rounds, patience, told)
        seen.append(mine)
    looks = range(max(map(len, seen)))
    scores = [
        score(metric, watched[1], np.hstack([mine[min(i, len(mine) - 1)] for mine in seen]))
        for i in looks
    ]
    return [min(rounds, LOOK * (i + 1)) for i in looks], scores


def learning_curve(
    problem: Problem, method: str, model: Any, split: Split, rows: tuple, rounds: int, patience: int
) -> Curve:
    """Scores of `rows[1]` while rows[0] train."""
    train, watched = ((split.X[r], split.Y[r]) for r in rows)
    if method == "single-gbrt":
        return scored_by_output(model, problem.metric, train, watched, rounds, patience)
    _, y = learnt(problem, method, train[1])
    _, y_watched = learnt(problem, method, watched[1])
    d = watched[1].shape[1]
    return scored(
        model,
        problem.metric,
        (train[0], y),
        (watched[0], y_watched),
        rounds,
        patience,
        lambda predicted: score(problem.metric, watched[1], wide(predicted, d)),
    )


# ---- units --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """What a line of the file is of."""

    data: str
    method: str = ""
    split: int = 0

    @property
    def key(self) -> str:
        rest = [f"{f.name}={getattr(self, f.name)}" for f in fields(self)[2:]]
        return " ".join([type(self).__name__.lower(), self.data, self.method, *rest])

    def measure(self, problem: Problem, results: Records) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Clock(Unit):
    """T: seconds of a round of gbmort with stumps and the ℓ₂ loss, the unit of budgets."""

    def measure(self, problem: Problem, results: Records) -> dict[str, Any]:
        split = problem.split(0)
        setting = stump(problem.metric, split.X.shape[1], "squared")
        model = boosting("gbmort", setting, 0)
        return {"T": pace(model, split.X[split.fit], split.Y[split.fit], 0.1)}


@dataclass(frozen=True)
class Trial(Unit):
    """One setting of a method: its best round on the validation rows.

    With `models` a number of rounds limits it, else the time budget, `multiple` times T. Where that
    is more than the paper's, a quarter of its rounds, and 50, without a rise end it; labels learnt
    one by one, which are scored in the end, go on.
    """

    setting: Setting = STUMP
    multiple: int = 0
    models: int = 0

    def measure(self, problem: Problem, results: Records) -> dict[str, Any]:
        began = process_time()
        split = problem.split(self.split)
        method, y = learnt(problem, self.method, split.Y[split.fit])
        seed = self.split + (1000 if method != self.method else 0)
        model = boosting(method, self.setting, seed)
        outcome: dict[str, Any] = {}
        rounds = patience = self.models
        if self.models:
            patience = max(50, round(20 / self.setting.learning_rate))
        else:
            budget = self.multiple * results[Clock(self.data)]["T"]
            outcome = {"pace": round_pace(model, split.X[split.fit], y), "budget": budget}
            rounds = patience = max(1, int(budget / outcome["pace"]))
            if self.multiple > MULTIPLE[problem.metric]:
                patience = max(50, rounds // 4)
        name = method if method == "single-gbrt" else self.method
        at, scores = learning_curve(
            problem, name, model, split, (split.fit, split.validation), rounds, patience
        )
        best = int(np.argmax(scores))
        outcome |= {"validation": scores[best], "best_round": at[best], "allowed": rounds}
        return outcome | {"last_round": at[-1], "cpu": process_time() - began}


@dataclass(frozen=True)
class Final(Unit):
    """The best of a number of trials, fitted on all training rows: the one look at the test rows.

    `score_part`: the same fitted without the validation rows, as when it was chosen.
    """

    trials: tuple[Trial, ...] = ()

    @property
    def key(self) -> str:
        first = self.trials[0]
        limit = f"models={first.models}" if first.models else f"multiple={first.multiple}"
        return f"final {self.data} {self.method} split={self.split} {limit} of {len(self.trials)}"

    def measure(self, problem: Problem, results: Records) -> dict[str, Any]:
        best = max(self.trials, key=lambda trial: results[trial]["validation"])
        found = results[best]
        split = problem.split(self.split)
        outcome = {"score_part": self._score(problem, split, split.fit, best, found)["score"]}
        began = process_time()
        outcome |= self._score(problem, split, split.train, best, found)
        outcome["fit_cpu"] = process_time() - began
        outcome |= {"validation": found["validation"], "rounds": found["best_round"]}
        tuning = sum(results[trial]["cpu"] for trial in self.trials)
        return outcome | {"best": asdict(best.setting), "settings": len(self.trials)} | {
            "n_train": len(split.train), "n_test": len(split.test), "tuning_cpu": tuning,
            "trials": None, "multiple": best.multiple, "models": best.models,
        }  # fmt: skip

    def _score(self, problem, split, rows, best, found) -> dict[str, float]:
        method, y = learnt(problem, self.method, split.Y[rows])
        seed = self.split + (1000 if method != self.method else 0)
        model = boosting(method, best.setting, seed, n_estimators=found["best_round"])
        predicted = values(model.fit(split.X[rows], y), split.X[split.test])
        return scores(problem, split, wide(predicted, split.Y.shape[1]))


@dataclass(frozen=True)
class Forest(Unit):
    """A forest, of all outputs or one an output."""

    def measure(self, problem: Problem, results: Records) -> dict[str, Any]:
        split = problem.split(self.split)
        train = split.X[split.train], split.Y[split.train]
        began = process_time()
        predicted = forest_scores(
            problem.metric, self.method, self.split, *train, split.X[split.test]
        )
        seconds = {"fit_cpu": process_time() - began}
        sizes = {"n_train": len(split.train), "n_test": len(split.test)}
        return scores(problem, split, predicted) | seconds | sizes


def scores(problem: Problem, split: Split, predicted: np.ndarray) -> dict[str, float]:
    """Of the test rows; also of the outputs that are not noise, and where empty rows count 1."""
    Y = split.Y[split.test]
    found = {"score": score(problem.metric, Y, predicted)}
    if problem.metric == "LRAP":
        found["score_one"] = score(problem.metric, Y, predicted, "one")
    elif problem.name.endswith("noisy"):
        half = Y.shape[1] // 2
        found["half"] = score(problem.metric, Y[:, :half], predicted[:, :half])
    return found


@dataclass(frozen=True)
class Convergence(Unit):
    """Figures 1 to 6: test scores by rounds and seconds; stumps, k = p, µ = 0.1."""

    projection: str | None = None
    q: int = 1
    rounds: int = 100

    def measure(self, problem: Problem, results: Records) -> dict[str, Any]:
        split = problem.split(self.split)
        setting = stump(problem.metric, split.X.shape[1])
        kind = {"projection": self.projection, "n_components": self.q} if self.projection else {}
        model = boosting(self.method, setting, self.split, **kind)
        began = process_time()
        seconds = round_pace(model, split.X[split.train], split.Y[split.train])
        rows = split.train, split.test
        at, found = learning_curve(
            problem, self.method, model, split, rows, self.rounds, self.rounds
        )
        kept = np.unique(np.geomspace(1, len(at), POINTS).astype(int)) - 1
        curve = {"at": [at[i] for i in kept], "scores": [round(found[i], 6) for i in kept]}
        best = int(np.argmax(found))
        curve |= {"best": found[best], "best_round": at[best]}
        return curve | {"pace": seconds, "cpu": process_time() - began}


def finals(results: Records) -> Iterator[dict[str, Any]]:
    """Scores of methods by data set, split and limit; of several searches the longest."""
    longest: dict[tuple, dict[str, Any]] = {}
    for key, record in results.records.items():
        if key.startswith(("final ", "forest ")):
            limit = record.get("multiple", 0)
            name = record["data"], record["method"], record["split"], limit
            rank = record.get("models", 0), record.get("settings", 0)
            known = longest.get(name)
            if known is None or rank >= (known.get("models", 0), known.get("settings", 0)):
                longest[name] = record
    yield from longest.values()


def curves(results: Records, **wanted: Any) -> list[dict[str, Any]]:
    """Records of convergence."""
    return [
        record
        for key, record in results.records.items()
        if key.startswith("convergence ")
        and all(record[name] == value for name, value in wanted.items())
    ]
