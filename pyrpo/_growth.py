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
from pyrpo.projection import resolve_projection

ROWS = 2000  # scored at most
LOOK = 6  # trees a setting in a look
CONVERGED = 0.005  # of R2 that infinitely many trees would add


@dataclass(frozen=True)
class Setting:
    """What trees are grown on, and how many features they draw."""

    projection: Any
    n_components: Any
    max_features: int

    def row(self) -> dict[str, Any]:
        name = self.projection
        if not isinstance(name, str | None):
            name = type(name).__name__
        components = None if name is None else self.n_components
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

    def grow(self, setting: Setting, trees: int, weight: np.ndarray | None = None) -> Model:
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
            weight=self.outputs.weight if weight is None else weight,
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


class SingleTargets(Growth):
    """A forest of its own for each output, side by side in one model.

    All have the seed: an output's forest is the one it would have alone.
    """

    def grow(self, setting: Setting, trees: int, weight: np.ndarray | None = None) -> Model:
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

    def estimate(self, weight: np.ndarray) -> tuple[float, float]:
        """Error of infinitely many trees, and the variance that each tree adds to it."""
        trees, singles, pairs, products = self.sums.T
        used = pairs > 0
        if not used.any():
            return np.nan, np.nan
        w = weight[used] / weight[used].sum()
        limit = float(w @ (products[used] / pairs[used]))
        return limit, float(w @ (singles[used] / trees[used])) - limit


class Watched:
    """The fixed rows that errors are taken on."""

    def __init__(self, growth: Growth) -> None:
        n, options = growth.X.shape[0], growth.options
        self.bootstrap = bool(options["bootstrap"])
        count = min(ROWS, n if self.bootstrap else max(1, n // 5))
        rng = np.random.default_rng([int(options["seed"]), 1])
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

    def held_out(self) -> np.ndarray | None:
        """Weights of the fit that leave the rows out, where no bootstrap does."""
        if self.bootstrap:
            return None
        n, weight = self._growth.X.shape[0], self._growth.outputs.weight
        kept = np.ones(n) if weight is None else weight.copy()
        kept[self.rows] = 0.0
        return kept if kept.any() else None

    def agreement(self, model: Model) -> np.ndarray:
        weight = self._growth.outputs.weight if self.bootstrap else None
        return model.agreement(self.X, self.Y, self.rows, weight, self._growth.n_jobs)

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
        model = growth.grow(self.setting, trees, watched.held_out())
        self.errors.add(watched.agreement(model))
        self.trees += trees
        self.total += model.work
        self.limit, self.spread = self.errors.estimate(watched.weight)

    @property
    def work(self) -> float:
        return self.total / self.trees

    def error(self, work: float) -> float:
        """Of as many trees as the work allows."""
        error = self.limit + self.spread * self.work / work
        return np.inf if np.isnan(error) else error


def race(growth: Growth, rounds: list[list[Setting]]) -> tuple[Setting, Tuning]:
    """Grow a few trees of each setting; the best setting of a round enters the next, as its first.

    The first setting of all says what work is to be spent. Two looks a round: at all settings, then
    again at the two best.
    """
    settings = 1 + sum(len(r) - 1 for r in rounds)
    trees = min(LOOK, growth.wanted // (2 * settings + 2))
    best = rounds[0][0]
    if trees < 3:
        need = 3 * (2 * settings + 2)
        return best, Tuning([], f"{growth.wanted} trees are too few for a race: it needs {need}")
    watched, arms = Watched(growth), {}

    def error(arm: _Arm) -> float:
        return arm.error(growth.wanted * arms[rounds[0][0]].work)

    for number, contestants in enumerate(rounds):
        field = contestants
        if number > 0:  # a later round varies max_features only
            field = [replace(best, max_features=s.max_features) for s in contestants]
        for setting in field:
            if setting not in arms:
                arms[setting] = _Arm(setting)
                arms[setting].look(growth, watched, trees)
        for arm in sorted((arms[s] for s in field), key=error)[:2]:
            if arm.trees == trees:
                arm.look(growth, watched, trees)
        best = min(field, key=lambda s: error(arms[s]))
    rows = [
        arm.setting.row()
        | {"trees": arm.trees, "work": arm.work, "r2_limit": watched.r2(arm.limit)}
        | {"r2": watched.r2(error(arm)), "chosen": arm.setting == best}
        for arm in arms.values()
    ]
    return best, Tuning(rows)


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
    errors, rows, work = Errors(), [], sum(m.work for m in growth.models)
    if watched is not None and growth.models:
        errors.add(watched.agreement(growth.result()))
    for size in batches(growth):
        if max_time is not None and growth.grown > 0:
            now = time.monotonic() - begin
            fits = int((max_time - now) * growth.grown / now)
            if fits < 1:
                return Convergence(rows, "max_time")
            size = min(size, fits)
        elif max_time is not None:
            size = 1
        model = growth.grow(setting, size)
        work += model.work
        row = {"trees": growth.grown, "seconds": time.monotonic() - begin, "work": work}
        row |= {"r2": np.nan, "r2_limit": np.nan}
        if watched is not None:
            errors.add(watched.agreement(model))
            limit, spread = errors.estimate(watched.weight)
            reached = watched.r2(limit + spread / growth.grown)
            row |= {"r2": reached, "r2_limit": watched.r2(limit)}
            if _is_reached(target, reached, row["r2_limit"]):
                rows.append(row)
                return Convergence(rows, "target_score")
        rows.append(row)
    return Convergence(rows)


def _is_reached(target: float | str | None, r2: float, limit: float) -> bool:
    if target is None:
        return False
    return limit - r2 <= CONVERGED if target == "converged" else r2 >= target
