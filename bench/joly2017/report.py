"""From results to what is compared: rows of the tables, tests, ranks, budgets, statements."""

from __future__ import annotations

from collections import Counter
from math import log
from typing import Any

import numpy as np

from bench.joly2017 import paper, statistics
from bench.joly2017.methods import BOOSTING, FORESTS, grid
from bench.joly2017.plan import ARTIFICIAL
from bench.joly2017.runs import MULTIPLE, finals
from bench.records import Records

METHODS = (*FORESTS, *BOOSTING)
MEASURES = ("LRAP", "macro-r²")
KINDS_OF = ("chain", "group", "ind")
PLAIN = tuple(f"friedman1-{kind}" for kind in KINDS_OF)

# By data set and method: a record for each split.
Cells = dict[str, dict[str, dict[int, dict[str, Any]]]]


def usual(results: Records) -> list[dict[str, Any]]:
    """Scores under the time limit that is nearest to the paper's multiple of T."""
    found = list(finals(results))
    limits: dict[str, int] = {}
    for record in found:
        if limit := record.get("multiple", 0):
            theirs, known = MULTIPLE[record["metric"]], limits.get(record["data"], limit)
            limits[record["data"]] = min(known, limit, key=lambda m: abs(log(m / theirs)))
    return [r for r in found if r.get("multiple", 0) in (0, limits.get(r["data"]))]


def cells(results: Records) -> Cells:
    found: Cells = {}
    for record in usual(results):
        of_data = found.setdefault(record["data"], {})
        of_data.setdefault(record["method"], {})[record["split"]] = record
    return found


def other_limits(results: Records) -> list[dict[str, Any]]:
    """Scores under other time limits, beside those of the same splits under the usual one."""
    base = {(r["data"], r["method"], r["split"]): r for r in usual(results)}
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for record in finals(results):
        name = record["data"], record["method"], record["split"]
        if record.get("multiple", 0) != base.get(name, record).get("multiple", 0):
            groups.setdefault((*name[:2], record["multiple"]), []).append(record)
    rows = []
    for (data, method, multiple), records in groups.items():
        same = [base[data, method, r["split"]] for r in records]
        row = {"data": data, "method": shown(records[0]["metric"], method), "multiple": multiple}
        row |= {"usual_multiple": same[0]["multiple"], "splits": len(records)}
        row |= {"settings": min(r["settings"] for r in records)}
        row |= {"mean": float(np.mean([r["score"] for r in records]))}
        row |= {"usual": float(np.mean([r["score"] for r in same]))}
        row["paper"], row["paper_deviation"] = printed(data, method)
        rows.append(row)
    return rows


def scores(cells: Cells, data: str, method: str, what: str = "score") -> dict[int, float]:
    """By split."""
    return {s: r[what] for s, r in cells.get(data, {}).get(method, {}).items() if what in r}


def shown(metric: str, method: str) -> str:
    """The paper's name of a method."""
    return method.replace("single", "br" if metric == "LRAP" else "st")


def printed(data: str, method: str) -> tuple[float | None, float | None]:
    """The paper's mean and deviation."""
    name = data.removesuffix(" noisy")
    if name in PLAIN:
        table = paper.TABLE_6 if name != data else paper.TABLE_4
        return (table[name].get(method) or (None, None))[-2:]
    return paper.SCORES.get(paper.identity(data), {}).get(method, (None, None))


def table_of(data: str, metric: str) -> str:
    """Where the paper prints a data set's scores."""
    if data.startswith("friedman1-"):
        return "Table 6" if data.endswith("noisy") else "Table 4"
    return "Tables 10 and 11" if metric == "LRAP" else "Table 12"


def table_rows(cells: Cells) -> list[dict[str, Any]]:
    """One row for each data set and method."""
    rows = []
    for data, methods in cells.items():
        for method in [m for m in ("artificial-gbrt", *METHODS) if m in methods]:
            records = methods[method]
            first = next(iter(records.values()))
            found = list(scores(cells, data, method).values())
            theirs, deviation = printed(data, method)
            row = {"table": table_of(data, first["metric"]), "data": data}
            row |= {"method": shown(first["metric"], method), "splits": len(found)}
            row |= {"mean": float(np.mean(found)), "deviation": float(np.std(found, ddof=0))}
            for name in ("score_part", "score_one", "half", "fit_cpu", "tuning_cpu", "rounds"):
                values = [r[name] for r in records.values() if r.get(name) is not None]
                row[name] = float(np.mean(values)) if values else None
            one = paper.identity(data) in paper.EMPTY_COUNT
            row["compared"] = row["score_one"] if one else row["mean"]
            row |= {"paper": theirs, "paper_deviation": deviation, "distance": None}
            if theirs is not None:
                row["distance"] = (row["compared"] - theirs) / deviation
            for name in ("settings", "models"):
                row[name] = min(r.get(name, 0) for r in records.values())
            rows.append(row)
    return rows


def missing(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Methods that a data set of tables 10 to 12 has not been given."""
    found = {}
    for data in dict.fromkeys(r["data"] for r in rows if not r["data"].startswith("friedman1-")):
        mine = [row for row in rows if row["data"] == data]
        metric = "macro-r²" if mine[0]["table"] == "Table 12" else "LRAP"
        done = {row["method"] for row in mine}
        left = [shown(metric, m) for m in METHODS if shown(metric, m) not in done]
        if left:
            found[data] = left
    return found


# ---- tests and ranks ----------------------------------------------------------------------------


def paired(cells: Cells, data: str, a: str, b: str) -> float:
    """Signed p-value of Student's test on the splits that both have."""
    ours, theirs = scores(cells, data, a), scores(cells, data, b)
    both = sorted(ours.keys() & theirs.keys())
    return statistics.student(
        np.array([ours[s] for s in both]), np.array([theirs[s] for s in both])
    )


def t_tests(cells: Cells, data: str) -> tuple[list[str], np.ndarray]:
    """Methods, and p-values of a row's method against a column's."""
    order = ("artificial-gbrt", "single-gbrt", "gbmort", *ARTIFICIAL[2:4])
    methods = [m for m in order if scores(cells, data, m)]
    return methods, np.array([[paired(cells, data, a, b) for b in methods] for a in methods])


def complete(cells: Cells, metric: str) -> tuple[list[str], np.ndarray]:
    """Data sets on which all methods have been run, and their mean scores."""
    names = [
        data
        for data, methods in cells.items()
        if not data.startswith("friedman1-")
        and all(method in methods for method in METHODS)
        and next(iter(methods["mo-rf"].values()))["metric"] == metric
    ]
    means = np.empty((len(names), len(METHODS)))
    for i, data in enumerate(names):
        common = set.intersection(*(set(scores(cells, data, m)) for m in METHODS))
        splits = sorted(common) or [0]
        for j, method in enumerate(METHODS):
            found = scores(cells, data, method)
            means[i, j] = np.mean([found[s] for s in splits if s in found] or [np.nan])
    return names, means


def paper_scores(names: list[str]) -> np.ndarray:
    """The paper's mean scores of some data sets."""
    return np.array([[paper.SCORES[name][method][0] for method in METHODS] for name in names])


def paper_names(metric: str) -> list[str]:
    return [n for n in paper.SCORES if (n in paper.REGRESSION) == (metric != "LRAP")]


def comparison(cells: Cells, metric: str) -> dict[str, Any]:
    """Figures 7 and 8, tables 8 and 9: ours, and what the paper's tables give."""
    names, means = complete(cells, metric)
    shared = [paper.identity(name) for name in names if paper.identity(name) in paper.SCORES]
    sources = {"paper, all": paper_scores(paper_names(metric))}
    if shared:
        sources["paper, the same"] = paper_scores(shared)
    if names:
        sources["ours"] = means
    found: dict[str, Any] = {"data": names, "sources": {}}
    for source, table in sources.items():
        found["sources"][source] = {
            "data sets": len(table),
            "ranks": dict(zip(METHODS, statistics.ranks(table).mean(axis=0), strict=True)),
            "friedman": statistics.friedman(table),
            "distance": statistics.critical_distance(len(METHODS), len(table)),
            "wilcoxon": [[statistics.wilcoxon(a, b) for b in table.T] for a in table.T],
        }
    return found


# ---- budgets ------------------------------------------------------------------------------------


def budget_rows(results: Records) -> list[dict[str, Any]]:
    """Of each data set and method: T, the budget, the rounds it allowed, how many ran into it."""
    found: dict[tuple, list[dict[str, Any]]] = {}
    for key, record in results.records.items():
        if key.startswith("trial "):
            found.setdefault((record["data"], record["method"], record["multiple"]), []).append(
                record
            )
    clocks = {r["data"]: r["T"] for k, r in results.records.items() if k.startswith("clock ")}
    rows = []
    for (data, method, multiple), trials in found.items():
        bound = [t["best_round"] > 0.9 * t["allowed"] for t in trials]
        row = {"data": data, "method": shown(trials[0]["metric"], method), "T": clocks.get(data)}
        row |= {"budget": trials[-1].get("budget"), "multiple": multiple, "trials": len(trials)}
        row |= {"allowed": float(np.median([t["allowed"] for t in trials]))}
        rows.append(row | {"at_limit": float(np.mean(bound))})
    return rows


def extent(results: Records) -> list[dict[str, Any]]:
    """How much of the paper's search each kind of table had."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in usual(results):
        if "settings" in record:
            groups.setdefault(table_of(record["data"], record["metric"]), []).append(record)
    rows = []
    for table, records in groups.items():
        metric, p = records[0]["metric"], max(r["p"] for r in records)
        row = {"table": table, "data": list(dict.fromkeys(r["data"] for r in records))}
        for name in ("settings", "models", "multiple"):
            row[name] = sorted({r[name] for r in records})
        cells = Counter((r["data"], r["method"]) for r in records)
        row["splits"] = sorted(set(cells.values()))
        rows.append(row | {"grid": len(grid(metric, p)), "times": MULTIPLE[metric]})
    return rows
