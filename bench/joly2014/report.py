"""From results to what is compared: the tables' rows, the figures' statements, the times."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from bench.joly2014 import paper
from bench.joly2014.figures import Cells, curve, scores
from bench.joly2014.plan import IDENTITY_TREES, equal_trees, table_columns, timed_sizes
from bench.joly2014.runs import Fit, Results, Timing

TABLES = {"Table 1": "forest", "Table 3": "extra-trees"}
RULES = {"default": False, "until k": True}
SPLITS = 10  # of the paper's means
NEAR, NEAR_TREE = 0.002, 0.005  # forests and trees whose scores are nearer than this count as equal


def data_sets(results: Results) -> dict[str, dict[str, Any]]:
    """A record of each data set, small ones first."""
    found = {record["data"]: record for record in results.records.values() if "model" in record}
    return dict(sorted(found.items(), key=lambda item: item[1]["n"] * item[1]["d"]))


# ---- tables -------------------------------------------------------------------------------------


def table_rows(results: Results) -> list[dict[str, Any]]:
    """One row for each table, data set, column and rule by which features are drawn."""
    cells = results.cells()
    rows = []
    for table, model in TABLES.items():
        for data, about in data_sets(results).items():
            for column, setting in enumerate(table_columns(about["d"])):
                for rule, choice in RULES.items():
                    fit = Fit(data, model, draw_non_constant=choice, **setting)
                    # The tables' repetitions are splits; the figures', other seeds on split 0.
                    done = [r for r in cells.get(fit, []) if r["split"] == r["seed"]]
                    if done:
                        found = [record["score"] for record in done]
                        row = {"table": table, "data": data, "column": paper.COLUMNS[column]}
                        row |= {"rule": rule, "metric": about["metric"], "splits": len(found)}
                        row |= {"mean": float(np.mean(found)), "deviation": float(np.std(found))}
                        row |= _against(model, data, column, row["mean"])
                        row["fit_cpu"] = float(np.mean([record["fit_cpu"] for record in done]))
                        rows.append(row)
    return rows


def _against(model: str, data: str, column: int, mean: float) -> dict[str, Any]:
    """The paper's figure, and how far off ours is in the paper's deviations."""
    name = paper.identity(data)
    if name in paper.TABLES[model]:
        source, (theirs, deviation) = "paper", paper.TABLES[model][name][column]
    elif model == "forest" and column == 0 and name in paper.BOOSTING_PAPER:
        source, (theirs, deviation) = "boosting paper", paper.BOOSTING_PAPER[name]
    else:
        return {"source": None, "paper": None, "paper_deviation": None} | _verdict(None)
    found = {"source": source, "paper": theirs, "paper_deviation": deviation}
    return found | _verdict((mean - theirs) / deviation)


def _verdict(distance: float | None) -> dict[str, Any]:
    agrees = None if distance is None else abs(distance) <= 1 + 1e-9
    return {"distance": distance, "agrees": agrees}


def chance_below(row: dict[str, Any]) -> float:
    """How likely a row is more than one of the paper's deviations below by its splits alone.

    That is, if both means estimate the same precision, each from splits of its own deviation.
    """
    ours, paper_s = row["deviation"] ** 2 / row["splits"], row["paper_deviation"] ** 2 / SPLITS
    return float(ndtr(-row["paper_deviation"] / np.sqrt(ours + paper_s)))


def of_both(row: dict[str, Any]) -> float:
    """How far ours is from the paper's, in units of both deviations together."""
    return (row["mean"] - row["paper"]) / np.hypot(row["deviation"], row["paper_deviation"])


# ---- figures ------------------------------------------------------------------------------------


def _means(points) -> dict[int, float]:
    return {x: mean for x, mean, _, _ in points}


def converges_at(points, level: float, near: float) -> int | None:
    """Smallest m from which on all scores reach the level, or nearly."""
    found = None
    for x, mean, _, _ in reversed(points):
        if mean < level - near:
            break
        found = x
    return found


def _above(ours: list[float], theirs: list[float], by: float = 0.0) -> bool | None:
    """Whether a mean is above another one; None where the deviations leave it open."""
    gain, noise = np.mean(ours) - np.mean(theirs) - by, np.std(ours) + np.std(theirs)
    return None if abs(gain) < noise else bool(gain > 0)


def _since(m: int | None) -> str:
    return "for no m" if m is None else f"from m = {m} on"


def statements(cells: Cells, data: str, p: int) -> list[dict[str, Any]]:
    """What the paper reads off its figures of delicious, beside ours."""
    level = scores(cells, Fit(data))
    tree_level = scores(cells, Fit(data, "tree"))
    curves = {
        kind: curve(cells, Fit(data, projection=kind), "m")
        for kind in ("gaussian", "rademacher", "hadamard", "achlioptas", "sparse", "subsample")
    }
    pca = curve(cells, Fit(data, projection="pca"), "m")
    if not (level and tree_level and pca and all(curves.values())):
        return []
    repeated, level, tree_level = level, float(np.mean(level)), float(np.mean(tree_level))
    tree = curve(cells, Fit(data, "tree", projection="gaussian"), "m")
    shared = curve(cells, Fit(data, projection="gaussian", shared=True), "m")
    means = {kind: _means(points) for kind, points in curves.items()}
    at_tree = converges_at(tree, tree_level, NEAR_TREE)
    at_own, at_shared = (converges_at(c, level, NEAR) for c in (curves["gaussian"], shared))
    best = {kind: max(values.items(), key=lambda item: item[1]) for kind, values in means.items()}
    beats = {
        kind: _above(scores(cells, Fit(data, projection=kind, m=m)), repeated)
        for kind, (m, _) in best.items()
    }
    thinnest, thin = scores(cells, Fit(data, projection="sparse", m=1)), best["sparse"][0]
    beaten = _above(scores(cells, Fit(data, projection="sparse", m=thin)), thinnest)
    dense = [
        abs(means[kind][m] - value)
        for kind in ("rademacher", "hadamard")
        for m, value in means["gaussian"].items()
        if m in means[kind]
    ]
    small = [m for m in means["achlioptas"] if 1 < m <= 25 and m in means["rademacher"]]
    faster = [means["achlioptas"][m] - means["rademacher"][m] for m in small]
    behind = [means["gaussian"][m] - mean for m, mean, _, _ in pca if 1 < m <= 100]
    found: list[tuple[str, str, bool | None]] = [
        (
            "Figure 1: a single tree converges around m = 200",
            f"within {NEAR_TREE} of the original outputs' {tree_level:.4f} {_since(at_tree)}",
            None,
        ),
        (
            "Figure 1: forests are almost twice as accurate as trees",
            f"{level:.4f} against {tree_level:.4f}, {level / tree_level:.2f} times",
            1.5 < level / tree_level < 2.5,
        ),
        (
            "Figure 1: own subspaces need fewer components (25) than a shared one (75)",
            f"within {NEAR} of the original outputs {_since(at_own)}, shared {_since(at_shared)}",
            at_own is not None and (at_shared is None or at_own < at_shared),
        ),
        (
            "Figure 1: own subspaces slightly outperform the original outputs",
            f"at best {best['gaussian'][1]:.4f} (m = {best['gaussian'][0]}) against {level:.4f}",
            beats["gaussian"],
        ),
        (
            "Figure 3a: Rademacher and Hadamard behave as Gaussian projections",
            f"at most {max(dense):.4f} apart",
            max(dense) < 2 * NEAR,
        ),
        (
            "Figure 3b: Achlioptas (s = 3) converges faster than s = 1",
            f"{np.mean(faster):+.4f} on average for m from 2 to 25" if faster else "not run",
            _above(faster, [0.0]) if faster else None,
        ),
        (
            "Figure 3b: s = √d is best at m = 1, and better than the original outputs",
            f"m = 1 {np.mean(thinnest):.4f}, best {best['sparse'][1]:.4f} (m = {thin}), original "
            f"{level:.4f}",
            False if thin != 1 and beaten else _above(thinnest, repeated),
        ),
        (
            "Figure 3b: subsampled outputs improve notably over the original outputs",
            f"at best {best['subsample'][1]:.4f} (m = {best['subsample'][0]}) against {level:.4f}",
            beats["subsample"],
        ),
        (
            "Figure 3c: PCA is far less effective than Gaussian projections",
            f"{np.mean(behind):.4f} behind on average for m from 2 to 100" if behind else "not run",
            _above(behind, [0.0]) if behind else None,
        ),
    ]
    found += _robustness(cells, data, p)
    names = ("statement", "measured", "holds")
    return [dict(zip(names, one, strict=True)) for one in found]


def _robustness(cells: Cells, data: str, p: int) -> list[tuple[str, str, bool | None]]:
    original = _means(curve(cells, Fit(data), "k"))
    projected = _means(curve(cells, Fit(data, projection="gaussian", m=1), "k"))
    if p not in original or p not in projected:
        return []
    falls = max(original.values()) - original[p], max(projected.values()) - projected[p]
    return [
        (
            "Figure 4: few components make large k less harmful",
            f"from the best k to k = p: original outputs -{falls[0]:.4f}, m = 1 -{falls[1]:.4f}",
            falls[1] < falls[0],
        ),
        (
            "Figure 4: baseline forests are not improved over by tuning m and k together",
            f"best of all k: original {max(original.values()):.4f}, m = 1 "
            f"{max(projected.values()):.4f}",
            None,
        ),
    ]


# ---- times --------------------------------------------------------------------------------------


def time_rows(results: Results) -> list[dict[str, Any]]:
    """CPU and wall seconds of 100 trees on the original outputs and on m components."""
    rows = []
    for data, about in data_sets(results).items():
        dense = Fit(data, projection="identity", trees=IDENTITY_TREES)
        settings = {"original": Fit(data), "original, as sums of d columns": dense}
        settings |= {m: Fit(data, projection="gaussian", m=m) for m in timed_sizes(about["d"])}
        for m, fit in settings.items():
            if fit not in results or Timing(data) not in results:
                continue
            scale, record = 100 / fit.trees, results[fit]
            row = {"data": data, "m": m, "scaled_from_trees": fit.trees if scale > 1 else None}
            row |= {"fit_cpu": record["fit_cpu"] * scale, "fit_wall": record["fit_wall"] * scale}
            row["load_cpu"] = results[Timing(data)]["cpu"]
            projection = Timing(data, fit.m) if fit.m else None
            row["project_cpu"] = results[projection]["cpu"] if projection in results else None
            rows.append(row)
    return rows


def equal_rows(results: Results) -> list[dict[str, Any]]:
    """100 trees on the original outputs against those that m components allow in their time."""
    cells, rows = results.cells(), []
    for data, about in data_sets(results).items():
        baseline = {r["split"]: r for r in cells.get(Fit(data), []) if r["split"] == r["seed"]}
        for m in timed_sizes(about["d"]):
            trees = equal_trees(data, m, results)
            fit = Fit(data, projection="gaussian", m=m, trees=trees or 0)
            done = [r for r in cells.get(fit, []) if r["split"] == r["seed"]]
            done = [r for r in done if r["split"] in baseline]
            if not done:
                continue
            ours = np.array([r["score"] for r in done])
            theirs = np.array([baseline[r["split"]]["score"] for r in done])
            rows.append(
                {
                    "data": data,
                    "m": m,
                    "trees": trees,
                    "splits": len(done),
                    "original": float(theirs.mean()),
                    "equal_time": float(ours.mean()),
                    "gain": float((ours - theirs).mean()),
                    "gain_deviation": float((ours - theirs).std()),
                    "original_cpu": float(np.mean([baseline[r["split"]]["fit_cpu"] for r in done])),
                    "equal_time_cpu": float(np.mean([r["fit_cpu"] for r in done])),
                }
            )
    return rows
