"""Forests on random projections of 1000 labels: a table, and the picture in demo.png.

The picture is the first figure of Joly, Geurts and Wehenkel (2014) on generated data: label ranking
average precision against the number m of components that trees are grown on. A few components per
tree rank as well as all labels do; one subspace shared by all trees needs more of them.
"""

import math
import os
import pickle
import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib as mpl
import numpy as np
from sklearn.ensemble import RandomForestRegressor as TheirForest

from pyrpo import RandomForestClassifier
from pyrpo.datasets import make_multilabel
from pyrpo.metrics import label_ranking_average_precision

mpl.use("Agg")
from matplotlib import pyplot as plt

N_LABELS = 1000
N_TRAIN, N_TEST = 6000, 2000
SEEDS = (0, 1, 2)
LOG_D = math.floor(0.5 + math.log(N_LABELS))
COMPONENTS = (1, 2, 4, LOG_D, 25, 100, 400)
THEIR_TREES = 5
N_JOBS = min(2, os.cpu_count() or 1)


class CountingFile:
    """Counts what is written to it: the size of a pickle that is never kept."""

    def __init__(self):
        self.size = 0

    def write(self, data):
        """Count."""
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes


def problem():
    """Training and test halves; features and labels sparse."""
    data = make_multilabel(N_TRAIN + N_TEST, n_features=600, n_labels=N_LABELS, random_state=0)
    return data.X[:N_TRAIN], data.Y[:N_TRAIN], data.X[N_TRAIN:], data.Y[N_TRAIN:]


def timed(call, *args):
    """Return the result and the seconds it took."""
    start = perf_counter()
    result = call(*args)
    return result, perf_counter() - start


def run(forest, data):
    """Fit, predict, save; return seconds, seconds, megabytes and precision."""
    X, Y, X_test, Y_test = data
    _, fit = timed(forest.fit, X, Y)
    scores, predict = timed(forest.predict_proba, X_test)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest.rpo"
        forest.save(path)
        size = path.stat().st_size / 1e6
    return fit, predict, size, label_ranking_average_precision(Y_test, scores)


def repeat(data, seeds=SEEDS, **parameters):
    """Run one setting for several seeds; one row per seed."""
    parameters = {"n_jobs": N_JOBS} | parameters
    forests = (RandomForestClassifier(random_state=s, **parameters) for s in seeds)
    return np.array([run(forest, data) for forest in forests])


def run_theirs(data):
    """Run scikit-learn's forest with a few trees, on dense arrays, which it is faster on."""
    X, Y, X_test, Y_test = data
    X, Y, X_test = X.toarray(), Y.toarray().astype(np.float64), X_test.toarray()
    forest = TheirForest(THEIR_TREES, max_features="sqrt", random_state=0, n_jobs=N_JOBS)
    _, fit = timed(forest.fit, X, Y)
    scores, predict = timed(forest.predict, X_test)
    file = CountingFile()
    pickle.dump(forest, file)
    return fit, predict, file.size / 1e6, label_ranking_average_precision(Y_test, scores)


def print_row(name, fit, predict, size, precision, spread=None, scaled=False):
    """Print one row of the table."""
    mark = "≈" if scaled else ""
    cells = [f"{mark}{fit:.2f}", f"{mark}{predict:.3f}", f"{mark}{size:,.1f}"]
    cells.append("" if precision is None else f"{precision:.4f}")
    cells[-1] += "" if spread is None else f" ± {spread:.4f}"
    print(f"{name:<38}{cells[0]:>9}{cells[1]:>11}{cells[2]:>11}   {cells[3]}", flush=True)


def print_ours(name, rows):
    """Print the mean over the seeds."""
    print_row(name, *rows.mean(axis=0), rows[:, 3].std(ddof=1) if len(rows) > 1 else None)


def draw(full, own, shared, path):
    """Draw precision against m."""
    m = np.array(COMPONENTS)
    figure, axes = plt.subplots(figsize=(7.2, 4.5), layout="constrained")
    curves = (
        ("own subspace for each tree (Algorithm 2)", own, "#0072B2", "o"),
        ("one subspace for all trees (Algorithm 1)", shared, "#D55E00", "s"),
    )
    level, spread = full[:, 3].mean(), full[:, 3].std(ddof=1)
    axes.axhspan(level - spread, level + spread, color="0.5", alpha=0.18, lw=0)
    axes.axhline(level, color="0.25", ls="--", lw=1.4, label=f"all {N_LABELS} labels")
    for label, results, color, marker in curves:
        precision = np.array([rows[:, 3] for rows in results])
        mean, spread = precision.mean(axis=1), precision.std(axis=1, ddof=1)
        axes.fill_between(m, mean - spread, mean + spread, color=color, alpha=0.18, lw=0)
        axes.plot(m, mean, color=color, marker=marker, ms=5, lw=1.8, label=label)
    axes.set_xscale("log")
    axes.set_xticks(m, [f"{k}\n(ln d)" if k == LOG_D else str(k) for k in m])
    axes.minorticks_off()
    axes.set_xlabel("m, components the trees are grown on")
    axes.set_ylabel("label ranking average precision")
    axes.set_title(
        f"100 trees, {N_TRAIN} rows, {N_LABELS} labels of power-law frequency; "
        f"mean ± deviation of {len(SEEDS)} seeds",
        fontsize=9,
        color="0.3",
    )
    axes.grid(color="0.9", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)


def main():
    """Print the table, save the picture."""
    start = perf_counter()
    data = problem()
    print(
        f"{N_TRAIN} training rows, {data[0].shape[1]} binary features, {N_LABELS} labels "
        f"({data[1].sum() / N_TRAIN:.1f} a row); {N_JOBS} threads, mean of {len(SEEDS)} seeds\n"
    )
    print(f"{'':<38}{'fit s':>9}{'predict s':>11}{'model MB':>11}   LRAP", flush=True)
    print_ours("m and k chosen by the forest", repeat(data))
    plain = {"max_features": "sqrt", "n_components": "log"}  # k, and m where there is a projection
    full = repeat(data, **plain)
    print_ours("all labels, 100 trees", full)
    results = {"own": [], "shared": []}
    for kind, rows in results.items():
        for m in COMPONENTS:
            setting = {"n_components": m, "shared_projection": kind == "shared"}
            rows.append(repeat(data, projection="gaussian", **(plain | setting)))
            print_ours(f"{kind} subspace, m = {m}" + " (ln d)" * (m == LOG_D), rows[-1])
    few = repeat(data, SEEDS[:1], n_estimators=THEIR_TREES, **plain)
    print_ours(f"all labels, {THEIR_TREES} trees", few)
    theirs = run_theirs(data)
    print_row(f"scikit-learn, {THEIR_TREES} trees", *theirs)
    scaled = [100 / THEIR_TREES * x for x in theirs[:3]]
    print_row("scikit-learn, 100 trees (scaled)", *scaled, None, scaled=True)
    draw(full, results["own"], results["shared"], "demo.png")
    print(f"\nPicture: demo.png ({perf_counter() - start:.0f} s in all)")


if __name__ == "__main__":
    main()
