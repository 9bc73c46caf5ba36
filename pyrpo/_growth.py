"""Forests that grow in batches: settings in a race, or until time is over or precision reached.

Errors are squared errors on rows that a tree has not seen. For a row, the mean over *pairs* of
trees of the products of their errors estimates, without bias and from few trees, the error of
infinitely many; one tree's error minus that is the variance V, which t trees divide by t. Scores of
few trees, ranking scores above all, say little about a hundred: their ties and noise differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from pyrpo._inputs import Outputs
from pyrpo._native import Features, Model
from pyrpo._native_call import Matrix
from pyrpo._options import stream
from pyrpo.projection import resolve_projection

ROWS = 2000  # scored at most
LOOK = 6  # trees a setting in a look
FEWEST = 3  # of these
FEW_ROWS = 100  # fewer tell settings apart by chance only
SURE = 2.0  # standard errors of the difference that make a setting clearly better
CONVERGED = 0.005  # of R2 that infinitely many trees would add


@dataclass(frozen=True, eq=False)
class Setting:
    """What trees are grown on, and how many features they draw."""

    projection: Any
    n_components: Any
    max_features: int

    @property
    def key(self) -> tuple:
        """Equal for equal settings; matrices and objects are what they are."""
        name = self.projection
        if not isinstance(name, str | None):
            name = id(name)
        return name, self.n_components, self.max_features

    def row(self) -> dict[str, Any]:
        named, name = isinstance(self.projection, str), self.projection
        if not (named or name is None):
            name = type(name).__name__
        components = self.n_components if named else None
        return {"projection": name, "n_components": components, "max_features": self.max_features}


class Growth:
    """A forest on its way: batches of trees, numbered one after the other."""

    def __init__(
        self, options: dict[str, float], X: Any, bins: int, outputs: Outputs, **how
    ) -> None:
        self.options, self.X, self.outputs = options, X, outputs
        self.shared, self.n_jobs = how["shared"], how["n_jobs"]
        self.progress: Callable[[int, int], Any] | None = None
        self.features = Features(X, bins, n_jobs=self.n_jobs)
        self.views = outputs.views()
        self.models: list[Model] = []
        self.grown = 0
        self.wanted = int(options["n_trees"])

    @property
    def left(self) -> int:
        return self.wanted - self.grown

    def _told(self, done: int, total: int) -> Any:
        return self.progress(self.grown + done, self.wanted)

    def grow(self, setting: Setting, trees: int) -> Model:
        """So many trees more."""
        spec, target = resolve_projection(
            setting.projection,
            setting.n_components,
            self.outputs.seen,
            seed=int(self.options["seed"]),
            shared=self.shared,
        )
        target_view, label_view = self.views
        if target is not None:
            target_view, label_view = Matrix(target), label_view or target_view
        first = int(self.options.get("first_tree", 0)) + self.grown
        more = {"n_trees": trees, "first_tree": first, "max_features": setting.max_features}
        model = Model.fit(
            self.options | more,
            self.features,
            target_view,
            label_view,
            fallback=self.outputs.fallback,
            weight=self.outputs.weight,
            projection=spec,
            n_jobs=self.n_jobs,
            progress=None if self.progress is None else self._told,
        )
        self.models.append(model)
        self.grown += trees
        return model

    def result(self) -> Model:
        """All trees grown, as one model."""
        return join(self.models)

    def relabelled(self) -> Model:
        """The same with all rows in the leaves."""
        labels = self.views[1] or self.views[0]
        weight = self.outputs.weight
        return self.result().relabel(self.features, labels, weight, self.n_jobs)


class SingleTargets(Growth):
    """A forest of its own for each output, side by side in one model.

    All have the seed: an output's forest is the one it would have alone.
    """

    def grow(self, setting: Setting, trees: int) -> Model:
        """All the trees, those of each output in turn."""
        Y, d = self.outputs.Y, self.outputs.Y.shape[1]
        Y = Y.tocsc() if sparse.issparse(Y) else Y
        scale = self.options["impurity_scale"] * d
        options = self.options | {"max_features": setting.max_features, "impurity_scale": scale}
        models = []
        for j in range(d):
            column = Y[:, [j]]
            column = column.tocsr() if sparse.issparse(column) else np.ascontiguousarray(column)
            models.append(
                Model.fit(
                    options,
                    self.features,
                    Matrix(column, ones=self.outputs.ones),
                    weight=self.outputs.weight,
                    n_jobs=self.n_jobs,
                    progress=None if self.progress is None else self._told,
                )
            )
            self.grown = int((j + 1) / d * trees)
        self.models, self.grown = [Model.beside(models)], trees
        return self.models[0]

    def _told(self, done: int, total: int) -> Any:
        return self.progress(self.grown, self.wanted)


def join(models: list[Model]) -> Model:
    """The trees of all models, in order."""
    if len(models) == 1:
        return models[0]
    return Model.pick(models, [(i, t) for i, m in enumerate(models) for t in range(m.n_trees)])


class Errors:
    """Sums over trees and over pairs of trees, by row, from any number of batches."""

    def __init__(self) -> None:
        self.sums: Any = 0.0

    def add(self, agreement: np.ndarray) -> None:
        b = agreement[:, 0]
        self.sums = self.sums + np.column_stack([b, agreement[:, 1], b * (b - 1), agreement[:, 2]])

    def by_row(self) -> tuple[np.ndarray, np.ndarray]:
        """Error of infinitely many trees and one tree's variance; NaN where no two were free."""
        trees, singles, pairs, products = self.sums.T
        with np.errstate(invalid="ignore"):
            limit = products / pairs
            return limit, singles / trees - limit

    def estimate(self, weight: np.ndarray) -> tuple[float, float]:
        """Error of infinitely many trees, and the variance that each tree adds to it."""
        rows = np.column_stack(self.by_row())
        used = ~np.isnan(rows[:, 0])  # rows of fewer trees than two lack both
        total = weight[used].sum()
        if not total > 0:
            return np.nan, np.nan
        limit, variance = weight[used] @ rows[used] / total
        return float(limit), float(variance)


def weighted(rows: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Mean of the rows that are not NaN, and its standard error, unknown of few rows."""
    used = ~np.isnan(rows)
    if not weight[used].any():
        return np.nan, np.nan
    w = weight[used] / weight[used].sum()
    mean = float(w @ rows[used])
    known = used.sum() >= FEW_ROWS
    return mean, float(np.linalg.norm(w * (rows[used] - mean))) if known else np.inf


class Watched:
    """The fixed rows that errors are taken on."""

    def __init__(self, growth: Growth) -> None:
        n, options = growth.X.shape[0], growth.options
        count = min(ROWS, n)
        rng = stream(int(options["seed"]), "watched")
        self.rows = np.sort(rng.permutation(n)[:count])
        outputs, self._growth = growth.outputs, growth
        self.weight = np.ones(count) if outputs.weight is None else outputs.weight[self.rows]
        if not self.weight.any():
            self.weight = np.ones(count)
        X = growth.X[self.rows]
        self.X, self.Y = X.tocsr() if sparse.issparse(X) else X, outputs.Y[self.rows]
        w, Y = self.weight / self.weight.sum(), self.Y
        squares = Y.multiply(Y) if sparse.issparse(Y) else (Y - w @ Y) ** 2
        self.variance = float((w @ squares).sum())
        if sparse.issparse(Y):
            self.variance -= float(((w @ Y) ** 2).sum())

    def agreement(self, model: Model) -> np.ndarray:
        growth = self._growth
        return model.agreement(self.X, self.Y, self.rows, growth.outputs.weight, growth.n_jobs)

    def r2(self, error: float) -> float:
        return 1.0 - error / self.variance if self.variance > 0 else np.nan


class _Record:
    """Rows of equal columns."""

    rows: list[dict[str, Any]]

    def __str__(self) -> str:
        if not self.rows:
            return ""
        cells = [[_cell(v) for v in row.values()] for row in self.rows]
        names = list(self.rows[0])
        width = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        lines = [names, *cells]
        return "\n".join(
            "  ".join(v.rjust(w) for v, w in zip(line, width, strict=True)) for line in lines
        )

    __repr__ = __str__


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(repr=False)
class Tuning(_Record):
    """What a race between settings tried and chose.

    Attributes
    ----------
    rows : list of dict
        By setting: ``projection``, ``n_components``, ``max_features``; the ``trees`` grown, which
        the forest keeps; ``work``, operations counted per tree; ``r2_limit``, the share of the
        outputs' variance that infinitely many such trees explain out of bag; ``r2``, that of as
        many trees as cost the work of ``n_estimators`` trees of the first setting, which decides;
        ``chosen``.
    note : str
        Why there was no race, if there was none.
    """

    rows: list[dict[str, Any]]
    note: str = ""

    def plot(self, ax: Any = None) -> Any:
        """Draw each setting's precision against its work per tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        ax : matplotlib Axes
        """
        import matplotlib.pyplot as plt

        ax = ax or plt.gca()
        for row in self.rows:
            style = {"marker": "*", "s": 160} if row["chosen"] else {"marker": "o"}
            ax.scatter(row["work"], row["r2"], **style)
            name = row["projection"] or "original"
            label = name if row["n_components"] is None else f"{name}, m={row['n_components']}"
            ax.annotate(f"{label}, k={row['max_features']}", (row["work"], row["r2"]))
        ax.set(xscale="log", xlabel="operations per tree", ylabel="R2 at equal work, out of bag")
        return ax


@dataclass(repr=False)
class Convergence(_Record):
    """How a forest's precision grew with its trees.

    Attributes
    ----------
    rows : list of dict
        After each batch: ``trees``; ``seconds``; ``work``, operations counted; ``r2``, the share
        of the outputs' variance explained out of bag; ``r2_limit``, that of infinitely many such
        trees. Both are NaN without bootstrap or with missing outputs.
    stopped : str
        "n_estimators", "max_time" or "target_score".
    """

    rows: list[dict[str, Any]]
    stopped: str = "n_estimators"

    def plot(self, ax: Any = None) -> Any:
        """Draw precision against trees.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        ax : matplotlib Axes
        """
        import matplotlib.pyplot as plt

        ax = ax or plt.gca()
        trees = [row["trees"] for row in self.rows]
        ax.plot(trees, [row["r2"] for row in self.rows], label="forest")
        ax.plot(trees, [row["r2_limit"] for row in self.rows], "--", label="infinitely many trees")
        ax.set(xlabel="trees", ylabel="R2, out of bag")
        ax.legend()
        return ax


class _Arm:
    """One setting in a race."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.errors = setting, Errors()
        self.trees, self.total = 0, 0.0
        self.limit = self.spread = 0.0

    def look(self, growth: Growth, watched: Watched, trees: int) -> None:
        model = growth.grow(self.setting, trees)
        self.errors.add(watched.agreement(model))
        self.trees += trees
        self.total += model.work
        self.limit, self.spread = self.errors.estimate(watched.weight)

    @property
    def work(self) -> float:
        return self.total / self.trees

    def error(self, work: float) -> float:
        """Of as many trees as the work allows."""
        error = self._error(work, self.limit, self.spread)
        return np.inf if np.isnan(error) else error

    def _error(self, work: float, limit: Any, spread: Any) -> Any:
        return limit + spread * self.work / work

    def beats(self, other: _Arm, work: float, weight: np.ndarray) -> bool:
        """Whether the errors are smaller by more than chance makes them."""
        mine, others = (arm._error(work, *arm.errors.by_row()) for arm in (self, other))
        gain, deviation = weighted(others - mine, weight)
        return gain > SURE * deviation


class _Late(Exception):
    """A race would not end in time."""


class _Course:
    """The arms of a race, and the time that is left for it."""

    def __init__(self, growth: Growth, first: Setting, ends: float) -> None:
        self.growth, self.watched, self.ends = growth, Watched(growth), ends
        self.arms: dict[tuple, _Arm] = {}
        self._first, self._pace = first, 0.0

    @property
    def budget(self) -> float:
        """Work that is to be spent: that of a forest of the first setting."""
        return self.growth.wanted * self.arms[self._first.key].work

    def look(self, setting: Setting, trees: int, looks: int = 1) -> None:
        """Look at a setting unless it was looked at so often."""
        arm = self.arms.setdefault(setting.key, _Arm(setting))
        if arm.trees >= looks * trees:
            return
        begin = time.monotonic()
        if begin + self._pace * setting.max_features > self.ends:
            raise _Late
        arm.look(self.growth, self.watched, trees)
        if self._pace == 0.0:
            self._pace = (time.monotonic() - begin) / setting.max_features

    def tuning(self, best: Setting, note: str = "") -> Tuning:
        """What was found."""
        arms = [arm for arm in self.arms.values() if arm.trees > 0]
        rows = [
            arm.setting.row()
            | {"trees": arm.trees, "work": arm.work, "r2_limit": self.watched.r2(arm.limit)}
            | {"r2": self.watched.r2(arm.error(self.budget))}
            | {"chosen": arm.setting.key == best.key}
            for arm in arms
        ]
        return Tuning(rows, note)


def race(
    growth: Growth, rounds: list[list[Setting]], ends: float = np.inf
) -> tuple[Setting, Tuning]:
    """Grow a few trees of each setting; who wins a round enters the next, as its first.

    The first setting of all says what work is to be spent. Two looks a round: at all settings, then
    again at the first and at the best of the others, which wins if it is clearly better. No look is
    begun that would not be over when the clock says `ends`.
    """
    trees, best = trees_a_look(growth.wanted, rounds), rounds[0][0]
    if trees < FEWEST:
        need = FEWEST * (2 * _settings(rounds) + 2)
        return best, Tuning([], f"{growth.wanted} trees are too few for a race: it needs {need}")
    course = _Course(growth, best, ends)
    try:
        course.look(best, trees)
        if course.budget == 0.0:
            return best, Tuning([], "nothing raced: trees have no splits")
        for number, contestants in enumerate(rounds):
            if number > 0:  # a later round varies max_features only
                contestants = [replace(best, max_features=s.max_features) for s in contestants]
            for setting in contestants:
                course.look(setting, trees)
            first, *others = (course.arms[s.key] for s in contestants)
            if not others:
                continue
            rival = min(others, key=lambda arm: arm.error(course.budget))
            for arm in (first, rival):
                course.look(arm.setting, trees, looks=2)
            if rival.beats(first, course.budget, course.watched.weight):
                best = rival.setting
    except _Late:
        return best, course.tuning(best, "max_time ended the race")
    return best, course.tuning(best)


def trees_a_look(wanted: int, rounds: list[list[Setting]]) -> int:
    """Of each setting: all of a race are about half of the forest at most."""
    return min(LOOK, wanted // (2 * _settings(rounds) + 2))


def _settings(rounds: list[list[Setting]]) -> int:
    return 1 + sum(len(r) - 1 for r in rounds)


def batches(growth: Growth) -> Iterator[int]:
    """Sizes that grow with the forest, so that looking at it stays cheap."""
    while growth.left > 0:
        yield min(growth.left, max(8, growth.grown // 4))


def grow_until(
    growth: Growth,
    setting: Setting,
    max_time: float | None,
    target: float | str | None,
    begin: float,
) -> Convergence:
    """Grow until the seconds since `begin` are over or the precision is reached."""
    can_watch = growth.options["bootstrap"] and growth.outputs.fallback is None
    watched = Watched(growth) if can_watch else None
    errors, rows = Errors(), []

    def is_enough(model: Model) -> bool:
        """Record what these trees add."""
        work = sum(m.work for m in growth.models)
        row = {"trees": growth.grown, "seconds": time.monotonic() - begin, "work": work}
        rows.append(row | {"r2": np.nan, "r2_limit": np.nan})
        if watched is None:
            return False
        errors.add(watched.agreement(model))
        limit, spread = errors.estimate(watched.weight)
        r2 = watched.r2(limit + spread / growth.grown)
        rows[-1] |= {"r2": r2, "r2_limit": watched.r2(limit)}
        return _is_reached(target, r2, rows[-1]["r2_limit"])

    if growth.models and is_enough(growth.result()):
        return Convergence(rows, "target_score")
    for size in batches(growth):
        if max_time is not None and growth.grown > 0:
            now = time.monotonic() - begin
            fits = int((max_time - now) * growth.grown / now)
            if fits < 1:
                return Convergence(rows, "max_time")
            size = min(size, fits)
        elif max_time is not None:
            size = 1
        if is_enough(growth.grow(setting, size)):
            return Convergence(rows, "target_score")
    return Convergence(rows)


def _is_reached(target: float | str | None, r2: float, limit: float) -> bool:
    if target is None:
        return False
    return limit - r2 <= CONVERGED if target == "converged" else r2 >= target
