"""The paper's figures. Only this module needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.joly2017 import statistics
from bench.joly2017.plan import KINDS
from bench.joly2017.report import PLAIN, shown
from bench.joly2017.runs import curves
from bench.joly2017.statements import curve, of_kind
from bench.records import Records

NAMES = {
    "gaussian": "Gaussian",
    "achlioptas": "Achlioptas, s = 3",
    "sparse": "sparse, s = √d",
    "subsample": "subsampled output",
}


def _figure(size: tuple[float, float]):
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _finish(figure, path: Path) -> bool:
    """Write the picture if anything is in it."""
    drawn = [axes for axes in figure.axes if axes.lines]
    for axes in figure.axes:
        if axes.lines:
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
            axes.xaxis.set_minor_formatter("")
        else:
            axes.set_axis_off()
    if drawn:
        figure.savefig(path, dpi=75)
    return bool(drawn)


def _line(axes, found, label: str, seconds: bool = False, **style: Any) -> None:
    if found is not None:
        at, values, times = found
        axes.plot(times if seconds else at, values, marker=".", markersize=3, label=label, **style)


def artificial(results: Records, path: Path) -> bool:
    """Figures 1 and 4."""
    figure = _figure((11, 7))
    (first, second), (third, kinds) = figure.subplots(2, 2)
    for axes, data, letter in zip((first, second, third), PLAIN, "abc", strict=True):
        for method in ("single-gbrt", "gbmort", "gbrt-rpo-subsampled"):
            _line(axes, curve(results, data, method, projection=None), shown("", method), True)
        axes.set(title=f"Figure 1{letter}: {data}", xlabel="seconds", ylabel="macro-r²")
        axes.set(xscale="log", ylim=(0, None))
    for kind in KINDS:
        _line(kinds, of_kind(results, PLAIN[2], kind), NAMES[kind])
    kinds.set(title=f"Figure 4: {PLAIN[2]}, gbrt-rpo", xlabel="rounds", ylabel="macro-r²")
    kinds.set(xscale="log", ylim=(0, None))
    return _finish(figure, path)


def labels(results: Records, data: str, path: Path) -> bool:
    """Figures 2 and 3, 5 and 6 of a data set of many labels."""
    figure = _figure((13, 7))
    (kinds, gaussian, subsample), (final, seconds, _) = figure.subplots(2, 3)
    for kind in KINDS:
        _line(kinds, of_kind(results, data, kind), NAMES[kind])
    kinds.set(title="Figures 2, 3: gbrt-rpo", xlabel="rounds", ylabel="LRAP", xscale="log")
    base = curve(results, data, "gbmort")
    method = "gbrt-relabel-rpo-gaussian"
    for axes, kind, letter in ((gaussian, "gaussian", "a"), (subsample, "subsample", "b")):
        sizes = sorted({r["q"] for r in curves(results, data=data, method=method, projection=kind)})
        found = [curve(results, data, method, projection=kind, q=q) for q in sizes]
        for q, one in zip(sizes, found, strict=True):
            _line(axes, one, f"q = {q}", True)
        _line(axes, base, "gbmort", True, color="black")
        axes.set(title=f"Figure 5{letter}: relabelled, {NAMES[kind]}", xlabel="seconds")
        axes.set(ylabel="LRAP", xscale="log")
        if sizes:
            final.plot(sizes, [one[1][-1] for one in found], marker=".", label=NAMES[kind])
            seconds.plot(sizes, [one[2][-1] for one in found], marker=".", label=NAMES[kind])
    if base is not None and final.lines:
        rounds = base[0][-1]
        final.axhline(base[1][-1], color="black", label="gbmort")
        seconds.axhline(base[2][-1], color="black", label="gbmort")
        final.set(title=f"Figure 6a: LRAP after {rounds} rounds", xlabel="q", xscale="log")
        seconds.set(title=f"Figure 6b: seconds of {rounds} rounds", xlabel="q", xscale="log")
    figure.suptitle(f"{data}: stumps, k = p, µ = 0.1, logistic loss")
    return _finish(figure, path)


def _diagram(axes, metric: str, one: dict[str, Any], title: str) -> None:
    """A critical distance diagram (Demšar, 2006): bars join methods that do not differ."""
    ranks = sorted(one["ranks"].items(), key=lambda item: item[1])
    values = np.array([rank for _, rank in ranks])
    count, low = len(ranks), -0.6 * ((len(ranks) + 1) // 2) - 1
    axes.plot([1, count], [0, 0], color="black")
    for tick in range(1, count + 1):
        axes.plot([tick, tick], [0, 0.12], color="black")
        axes.text(tick, 0.2, str(tick), ha="center", fontsize=8)
    for i, (method, rank) in enumerate(ranks):
        left = i < (count + 1) // 2
        height = -0.6 * ((i if left else count - 1 - i) + 1) - 0.6
        edge = 0.6 if left else count + 0.4
        axes.plot([rank, rank, edge], [0, height, height], color="gray", linewidth=1)
        text = f"{shown(metric, method)} ({rank:.2f})"
        axes.text(edge, height, text, ha="right" if left else "left", va="center", fontsize=8)
    for i, (first, last) in enumerate(statistics.groups(values, one["distance"])):
        height = -0.2 - 0.18 * i
        axes.plot([values[first] - 0.05, values[last] + 0.05], [height] * 2, color="black", lw=3)
    axes.plot([1, 1 + one["distance"]], [0.8, 0.8], color="tab:red")
    axes.text(1, 0.9, f"critical distance {one['distance']:.2f}", color="tab:red", fontsize=8)
    axes.set(title=title, xlim=(-2.2, count + 3.2), ylim=(low, 1.4))
    axes.set_axis_off()


def ranks(found: dict[str, dict[str, Any]], path: Path) -> bool:
    """Figures 7 and 8, the paper's above ours."""
    figure = _figure((14, 7))
    panels = figure.subplots(2, 2)
    for column, (metric, one) in enumerate(found.items()):
        for row, source in enumerate(("paper, all", "ours")):
            axes = panels[row][column]
            if source not in one["sources"]:
                axes.set_axis_off()
                continue
            its = one["sources"][source]
            whose = "from the paper's tables" if row == 0 else "ours"
            title = f"Figure {7 + column}: {metric}, {its['data sets']} data sets, {whose}"
            _diagram(axes, metric, its, title)
    figure.savefig(path, dpi=75)
    return True
