"""What forests do with parameters that are "auto", with ``max_time`` and with ``target_score``."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from pyrpo._growth import Growth, Setting, Tuning, grow_until, race
from pyrpo._options import number
from pyrpo.projection import named_projection, resolve_components

RACED = ("gaussian", "rademacher", "sparse", "subsample")


def _sizes(shape: tuple[int, int], kind: str) -> list[int]:
    """The paper's m: 1, ln d, 2 ln d, and 25, as far as the kind allows."""
    d = shape[1]
    most = min(shape) if kind == "pca" else d
    wanted = (1, resolve_components("log", *shape), int(0.5 + 2 * np.log(d)), 25)
    return sorted({min(m, most) for m in wanted})


def _chosen(tuning: Tuning) -> Setting | None:
    for row in tuning.rows:
        if row["chosen"]:
            return Setting(row["projection"], row["n_components"] or "log", row["max_features"])
    return None


class ChoosesItself:
    """The settings that race, and how a forest grows; a part of every forest."""

    def _is_auto(self, name: str) -> bool:
        value = getattr(self, name)
        return isinstance(value, str) and value == "auto"

    def _max_features(self):
        return "sqrt" if self._is_auto("max_features") else self.max_features

    def _races_outputs(self) -> bool:
        return self._is_auto("n_components") or self._is_auto("projection")

    def _check_growth(self, outputs):
        if self.max_time is not None and not number(self.max_time, "max_time", 0.0):
            raise ValueError("max_time must be positive, got 0")
        target = self.target_score
        if isinstance(target, str) and target != "converged":
            raise ValueError(f"target_score must be a number, 'converged' or None, got {target!r}")
        if target is not None and not isinstance(target, str):
            number(target, "target_score", -np.inf)
        if target is not None and not self.bootstrap:
            raise ValueError(
                f"target_score={target!r} needs bootstrap=True: it is taken out of bag"
            )
        if self._is_auto("n_components") and not isinstance(self.projection, str | None):
            raise ValueError(
                "n_components='auto' needs a projection by name, 'auto' or None, "
                f"got {self.projection!r}"
            )
        chooses = self._races_outputs() or self._is_auto("max_features") or target is not None
        if chooses and outputs.fallback is not None:
            raise ValueError(
                "n_components, projection or max_features 'auto' and target_score need a y without "
                "missing entries and a sample_weight by row"
            )
        for setting in self._contestants(outputs.seen.shape, 1):
            if isinstance(setting.projection, str):
                named_projection(setting.projection, setting.n_components)

    def _contestants(self, shape: tuple[int, int], k: int) -> list[Setting]:
        """Settings of the first round: the original outputs, then projections of them."""
        plain = Setting(None, "log", k)
        if not self._races_outputs():
            return [Setting(self.projection, self.n_components, k)]
        if shape[1] == 1:
            return [plain]
        kind = self.projection
        if kind is not None and kind != "auto":
            return [plain, *(Setting(kind, m, k) for m in _sizes(shape, kind))]
        if not self._is_auto("n_components"):
            m = resolve_components(self.n_components, *shape)
            return [plain, *(Setting(name, m, k) for name in RACED if m <= shape[1])]
        most = _sizes(shape, "subsample")[-1]
        some = [Setting("gaussian", m, k) for m in _sizes(shape, "gaussian")]
        return [plain, *some, Setting("subsample", most, k)]

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

    def _plain(self, options):
        k = int(options["max_features"])
        if self._races_outputs():
            return Setting(None, "log", k)
        return Setting(self.projection, self.n_components, k)

    def _grow(self, growth, earlier):
        begin = time.monotonic()
        rounds = self._rounds(growth)
        tuning = earlier.get("tuning_") if self.warm_start else None
        best = self._plain(growth.options)
        if tuning is not None:
            best = _chosen(tuning) or best
        elif sum(map(len, rounds)) > 1:
            best, tuning = race(growth, rounds)
        if tuning is not None:
            self.tuning_ = tuning
        if self.max_time is None and self.target_score is None:
            if growth.left > 0:
                growth.grow(best, growth.left)
            return
        self.convergence_ = grow_until(growth, best, self.max_time, self.target_score, begin)

    def _resolved(self) -> dict[str, Any]:
        """What stands for parameters that were to choose themselves."""
        names = [n for n in ("projection", "n_components", "max_features") if self._is_auto(n)]
        best = _chosen(self.tuning_) if names and hasattr(self, "tuning_") else None
        plain = {"projection": None, "n_components": "log", "max_features": "sqrt"}
        if best is not None and self._races_outputs():
            names += ["projection", "n_components"]
        return {n: plain[n] if best is None else getattr(best, n) for n in names}
