"""What forests do with parameters that are "auto", with ``max_time`` and with ``target_score``."""

from __future__ import annotations

import time
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from pyrpo._growth import FEW_ROWS, LOOK, Growth, Setting, Tuning, grow_until, race
from pyrpo._options import number
from pyrpo.projection import named_projection, resolve_components

RACED = ("gaussian", "rademacher", "sparse", "subsample")


def _sizes(shape: tuple[int, int], kind: str) -> list[int]:
    """The paper's m: 1, ln d, 2 ln d, and 25, as far as the kind allows."""
    d = shape[1]
    most = min(shape) if kind == "pca" else d
    wanted = (1, resolve_components("log", *shape), int(0.5 + 2 * log(d)), 25)
    return sorted({max(1, min(m, most)) for m in wanted})


CANNOT = (
    "nothing raced: errors are taken out of bag, which needs bootstrap=True, a y without missing "
    "entries, a sample_weight by row and strategy='joint'"
)


def _chosen(tuning: Tuning | None, among: list[Setting] | None = None) -> dict[str, Any] | None:
    """What an earlier race chose, if it is still among what trees may be grown on."""
    row = next((row for row in tuning.rows if row["chosen"]), None) if tuning else None
    if row is None or among is None:
        return row
    names = ("projection", "n_components")
    kept = any(all(setting.row()[name] == row[name] for name in names) for setting in among)
    return row if kept else None


class ChoosesItself:
    """The settings that race, and how a forest grows; a part of every forest."""

    def _is_auto(self, name: str) -> bool:
        value = getattr(self, name)
        return isinstance(value, str) and value == "auto"

    def _max_features(self):
        return "sqrt" if self._is_auto("max_features") else self.max_features

    def _components(self):
        return "log" if self._is_auto("n_components") else self.n_components

    def _races_outputs(self) -> bool:
        """Whether what trees are grown on is to be found; no race of what a user made."""
        named = isinstance(self.projection, str | None)
        return named and (self._is_auto("n_components") or self._is_auto("projection"))

    def _check_growth(self, outputs):
        target = self.target_score
        if isinstance(target, str) and target != "converged":
            raise ValueError(f"target_score must be a number, 'converged' or None, got {target!r}")
        if target is not None and not isinstance(target, str):
            number(target, "target_score", -np.inf)
        if target is not None and not self.bootstrap:
            raise ValueError(
                f"target_score={target!r} needs bootstrap=True: it is taken out of bag"
            )
        if target is not None and outputs.fallback is not None:
            raise ValueError(
                f"target_score={target!r} needs a y without missing entries and a sample_weight "
                "by row"
            )
        for setting in self._contestants(outputs.seen.shape, 1):
            if isinstance(setting.projection, str):
                named_projection(setting.projection, setting.n_components)

    def _contestants(self, shape: tuple[int, int], k: int) -> list[Setting]:
        """Settings of the first round; the first stands until another is clearly better."""
        kind, d = self.projection, shape[1]
        if not self._races_outputs():
            return [Setting(kind, self._components(), k)]
        if kind is not None and kind != "auto":
            sizes = _sizes(shape, kind)
            usual = min(resolve_components("log", *shape), sizes[-1])
            sizes.sort(key=lambda m: m != usual)
            return [Setting(kind, m, k) for m in sizes]
        plain = Setting(None, "log", k)
        if d == 1 or (d == 2 and self._indicator is False):  # two classes are one output
            return [plain]
        if not self._is_auto("n_components"):
            m = resolve_components(self.n_components, *shape)
            return [plain, *(Setting(name, m, k) for name in RACED if m <= d)]
        most = _sizes(shape, "subsample")[-1]
        some = [Setting("gaussian", m, k) for m in _sizes(shape, "gaussian")]
        return [plain, *some, *([Setting("subsample", most, k)] if most < d else [])]

    def _rounds(self, growth: Growth) -> list[list[Setting]]:
        k = int(growth.options["max_features"])
        p = growth.X.shape[1]
        first = self._contestants(growth.outputs.seen.shape, k)
        if not self._is_auto("max_features"):
            return [first]
        counts = (k, *sorted({min(count, p) for count in self._more_features(k, p)} - {k}))
        varied = [replace(first[0], max_features=count) for count in counts]
        return [first, varied] if len(first) > 1 else [varied]

    def _more_features(self, k: int, p: int) -> set[int]:
        return {2 * k, 4 * k}

    def _with(self, row: dict[str, Any], usual: Setting) -> Setting:
        """The usual setting, with what an earlier race chose in place of what may be chosen."""
        if self._races_outputs():
            parts = {name: row[name] for name in ("projection", "n_components")}
            parts["n_components"] = parts["n_components"] or "log"
            usual = replace(usual, **parts)
        if self._is_auto("max_features"):
            usual = replace(usual, max_features=row["max_features"])
        return usual

    def _grow(self, growth, earlier):
        begin = time.monotonic()
        rounds = self._rounds(growth)
        best = rounds[0][0]
        tuning = earlier.get("tuning_") if self.warm_start else None
        row = _chosen(tuning, rounds[0])
        if row is not None:
            best = self._with(row, best)
        elif sum(map(len, rounds)) > 1:
            best, tuning = self._race(growth, rounds, begin)
        if tuning is not None:
            self.tuning_ = tuning
        if self.max_time is None and self.target_score is None:
            if growth.left > 0:
                growth.grow(best, growth.left)
            return
        self.convergence_ = grow_until(growth, best, self.max_time, self.target_score, begin)

    def _race(self, growth, rounds, begin):
        """Race if that is possible; half of the time is for it."""
        outputs, best = growth.outputs, rounds[0][0]
        if not self.bootstrap or outputs.fallback is not None or self._single:
            return best, Tuning([], CANNOT)
        if growth.X.shape[0] < FEW_ROWS:
            return best, Tuning([], f"nothing raced: fewer than {FEW_ROWS} rows tell too little")
        if self.max_time is None:
            return race(growth, rounds)
        growth.grow(best, 1)
        if (time.monotonic() - begin) * LOOK > self.max_time / 2:
            return best, Tuning([], f"max_time={self.max_time!r} is too short for a race")
        return race(growth, rounds, begin + self.max_time / 2)

    def _resolved(self) -> dict[str, Any]:
        """What stands for parameters that were to choose themselves."""
        projection = None if self._is_auto("projection") else self.projection
        setting = Setting(projection, self._components(), self._max_features())
        row = _chosen(getattr(self, "tuning_", None))
        return vars(setting if row is None else self._with(row, setting))
