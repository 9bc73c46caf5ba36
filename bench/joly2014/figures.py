"""The paper's figures 1 to 4, one picture a data set. Only this module needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.joly2014.plan import log_size
from bench.joly2014.runs import Fit

Cells = dict[Fit, list[dict[str, Any]]]

NAMES = {
    "gaussian": "Gaussian",
    "rademacher": "Rademacher, s = 1",
    "hadamard": "Hadamard",
    "achlioptas": "Achlioptas, s = 3",
    "sparse": "sparse, s = √d",
    "subsample": "subsampled outputs",
    "pca": "PCA",
}


def scores(cells: Cells, fit: Fit) -> list[float]:
    """Scores of the figures' repetitions: one split, other seeds."""
    return [r["score"] for r in cells.get(fit, []) if r["split"] == 0]


def curve(cells: Cells, base: Fit, axis: str) -> list[tuple[int, float, float, int]]:
    """Of the fits that differ from `base` in `axis` only: its value, mean, deviation, count."""
    points = []
    for fit in cells:
        value = getattr(fit, axis)
        same = {**vars(fit), axis: None} == {**vars(base), axis: None}
        if value is not None and same and (found := scores(cells, fit)):
            points.append((value, float(np.mean(found)), float(np.std(found)), len(found)))
    return sorted(points)


def _draw(axes, points, label, **style) -> None:
    if points:
        x, mean, deviation, _ = map(np.array, zip(*points, strict=True))
        (line,) = axes.plot(x, mean, marker=".", label=label, **style)
        axes.fill_between(x, mean - deviation, mean + deviation, alpha=0.2, color=line.get_color())


def _level(axes, values, label) -> None:
    """What does not depend on the axis."""
    if values:
        mean, deviation = np.mean(values), np.std(values)
        axes.axhline(mean, color="green", label=label)
        axes.axhspan(mean - deviation, mean + deviation, color="green", alpha=0.12)


def _finish(axes, metric: str) -> None:
    """Ticks where the points are."""
    axes.set_ylabel(metric)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    points = [line.get_xdata() for line in axes.lines if line.get_marker() == "."]
    ticks = sorted({x for line in points for x in line})
    if ticks:
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks], fontsize=7, rotation=45)
        axes.set_xticks([], minor=True)


def _against_m(axes, cells: Cells, data: str, kinds: tuple[str, ...], title: str) -> None:
    _level(axes, scores(cells, Fit(data)), "original outputs")
    for kind in kinds:
        _draw(axes, curve(cells, Fit(data, projection=kind), "m"), NAMES[kind])
    axes.set(title=title, xlabel="m", xscale="log")


def draw(cells: Cells, data: str, metric: str, d: int, path: Path) -> bool:
    """Write the picture of a data set; False if its figures have not been run."""
    from matplotlib.figure import Figure

    if not scores(cells, Fit(data, "tree")):
        return False
    figure = Figure(figsize=(13, 7), layout="constrained")
    (tree, forest, input_output), (dense, thin, pca) = figure.subplots(2, 3)

    gaussian = {"projection": "gaussian"}
    _level(tree, scores(cells, Fit(data, "tree")), "original outputs")
    _draw(tree, curve(cells, Fit(data, "tree", **gaussian), "m"), "Gaussian")
    tree.set(title="Figure 1, left: a single tree", xlabel="m", xscale="log")

    _level(forest, scores(cells, Fit(data)), "original outputs")
    own, shared = Fit(data, **gaussian), Fit(data, **gaussian, shared=True)
    _draw(forest, curve(cells, own, "m"), "own subspaces (Algorithm 2)", color="tab:orange")
    _draw(forest, curve(cells, shared, "m"), "shared subspace (Algorithm 1)", color="tab:blue")
    forest.set(title="Figure 1, right: forests", xlabel="m", xscale="log")

    _draw(input_output, curve(cells, Fit(data), "k"), "original outputs", color="green")
    m = log_size(d)
    for size, label in {1: "m = 1", m: f"m = ln d = {m}", 2 * m: f"m = 2 ln d = {2 * m}"}.items():
        _draw(input_output, curve(cells, Fit(data, m=size, **gaussian), "k"), label)
    input_output.set(title="Figures 2 and 4: features drawn", xlabel="k", xscale="log")

    dense_kinds = ("gaussian", "rademacher", "hadamard")
    _against_m(dense, cells, data, dense_kinds, "Figure 3a: dense projections")
    thin_kinds = ("rademacher", "achlioptas", "sparse", "subsample")
    _against_m(thin, cells, data, thin_kinds, "Figure 3b: sparse projections")
    _against_m(pca, cells, data, ("gaussian", "pca"), "Figure 3c: PCA")

    for axes in figure.axes:
        if axes.lines:
            _finish(axes, metric)
        else:
            axes.set_axis_off()
    figure.suptitle(f"{data}: d = {d}; 100 trees, bands are standard deviations")
    figure.savefig(path, dpi=75)
    return True
