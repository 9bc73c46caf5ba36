"""From results to what is compared: rows of the tables, tests, ranks, budgets, statements."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.joly2017 import paper, statistics
from bench.joly2017.methods import BOOSTING, FORESTS, grid
from bench.joly2017.plan import ARTIFICIAL, KINDS
from bench.joly2017.runs import MULTIPLE, curves, finals
from bench.records import Records

METHODS = (*FORESTS, *BOOSTING)
KINDS_OF = ("chain", "group", "ind")
PLAIN = tuple(f"friedman1-{kind}" for kind in KINDS_OF)
NEAR = 0.005  # scores nearer than this count as equal in figure 6

# By data set and method: a record for each split.
Cells = dict[str, dict[str, dict[int, dict[str, Any]]]]


def cells(results: Records) -> Cells:
    found: Cells = {}
    for record in finals(results):
        of_data = found.setdefault(record["data"], {})
        of_data.setdefault(record["method"], {})[record["split"]] = record
    return found


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
            row |= {"paper": theirs, "paper_deviation": deviation, "distance": None}
            if theirs is not None:
                row["distance"] = (row["mean"] - theirs) / deviation
            for name in ("score_part", "score_one", "half", "fit_cpu", "tuning_cpu", "rounds"):
                values = [r[name] for r in records.values() if r.get(name) is not None]
                row[name] = float(np.mean(values)) if values else None
            row["settings"] = min(r.get("settings", 0) for r in records.values())
            rows.append(row)
    return rows


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
            found.setdefault((record["data"], record["method"]), []).append(record)
    clocks = {r["data"]: r["T"] for k, r in results.records.items() if k.startswith("clock ")}
    rows = []
    for (data, method), trials in found.items():
        limit = sorted({t["models"] or t["multiple"] for t in trials})
        bound = [t["best_round"] > 0.9 * t["allowed"] for t in trials]
        row = {"data": data, "method": shown(trials[0]["metric"], method), "T": clocks.get(data)}
        row |= {"budget": trials[-1].get("budget"), "limits": limit, "trials": len(trials)}
        row |= {"allowed": float(np.median([t["allowed"] for t in trials]))}
        rows.append(row | {"at_limit": float(np.mean(bound))})
    return rows


def extent(results: Records) -> list[dict[str, Any]]:
    """How much of the paper's search each kind of table had."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in finals(results):
        if "settings" in record:
            groups.setdefault(table_of(record["data"], record["metric"]), []).append(record)
    rows = []
    for table, records in groups.items():
        metric, p = records[0]["metric"], max(r["p"] for r in records)
        row = {"table": table, "data": list(dict.fromkeys(r["data"] for r in records))}
        for name in ("settings", "models", "multiple"):
            row[name] = sorted({r[name] for r in records})
        row["splits"] = sorted({sum(1 for r in records if (r["data"], r["method"]) == one)
                                for one in {(r["data"], r["method"]) for r in records}})  # fmt: skip
        rows.append(row | {"grid": len(grid(metric, p)), "times": MULTIPLE[metric]})
    return rows


# ---- statements ---------------------------------------------------------------------------------

Statement = tuple[str, str, bool | None]


def _above(p: float) -> bool | None:
    """Whether a signed p-value says "above"; None where it leaves it open."""
    return None if np.isnan(p) or abs(p) >= 0.05 else p > 0


def _versus(cells: Cells, data: str, a: str, b: str) -> tuple[str, float]:
    means = [np.mean(list(scores(cells, data, m).values())) for m in (a, b)]
    p = paired(cells, data, a, b)
    return f"{means[0]:.3f} against {means[1]:.3f} (p = {abs(p):.2g})", p


# What section 4.2.3 says: problem, the better method, the other one.
_BETTER = (
    ("friedman1-chain", "artificial-gbrt", "single-gbrt"),
    ("friedman1-chain", "gbrt-relabel-rpo-subsampled", "single-gbrt"),
    ("friedman1-chain", "gbrt-rpo-subsampled", "single-gbrt"),
    ("friedman1-group", "artificial-gbrt", "gbrt-rpo-subsampled"),
    ("friedman1-group", "artificial-gbrt", "gbmort"),
    ("friedman1-group", "gbrt-relabel-rpo-subsampled", "single-gbrt"),
    ("friedman1-group", "gbrt-relabel-rpo-subsampled", "gbrt-rpo-subsampled"),
    ("friedman1-ind", "single-gbrt", "gbrt-rpo-subsampled"),
    ("friedman1-ind", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
    ("friedman1-ind", "gbrt-relabel-rpo-subsampled", "gbmort"),
    ("friedman1-chain noisy", "gbrt-rpo-subsampled", "gbmort"),
    ("friedman1-chain noisy", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
    ("friedman1-chain noisy", "gbmort", "single-gbrt"),
    ("friedman1-group noisy", "gbrt-rpo-subsampled", "gbmort"),
    ("friedman1-group noisy", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
    ("friedman1-group noisy", "gbmort", "single-gbrt"),
    ("friedman1-ind noisy", "single-gbrt", "gbrt-rpo-subsampled"),
    ("friedman1-ind noisy", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
)


def artificial_statements(cells: Cells) -> list[Statement]:
    """Tables 4 to 7: who is significantly better than whom."""
    found = []
    for data, better, other in _BETTER:
        if scores(cells, data, better) and scores(cells, data, other):
            text, p = _versus(cells, data, better, other)
            name = f"{data}: {shown('', better)} is better than {shown('', other)}"
            found.append((name, text, _above(p)))
    return found


def average(records: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rounds, scores and seconds of a curve, averaged over its repetitions."""
    at = np.array(records[0]["at"])
    same = [r for r in records if r["at"] == records[0]["at"]]
    values = np.mean([r["scores"] for r in same], axis=0)
    return at, values, at * np.mean([r["pace"] for r in same])


def reached(at: np.ndarray, values: np.ndarray, level: float) -> float | None:
    """Where a curve first has a level."""
    above = np.flatnonzero(values >= level)
    return float(at[above[0]]) if len(above) else None


def _longest(results: Records, **wanted: Any) -> list[dict[str, Any]]:
    """Curves of most rounds."""
    found = curves(results, **wanted)
    most = max((r["rounds"] for r in found), default=0)
    return [r for r in found if r["rounds"] == most]


def curve(results: Records, data: str, method: str, **wanted: Any):
    """An averaged curve, or None."""
    records = _longest(results, data=data, method=method, **wanted)
    return average(records) if records else None


def of_kind(results: Records, data: str, kind: str):
    """Of gbrt-rpo (Algorithm 3) by a kind of projections."""
    plain = data in PLAIN and kind == "subsample"
    method = "gbrt-rpo-subsampled" if plain else "gbrt-rpo-gaussian"
    return curve(results, data, method, projection=None if plain else kind)


def figure_1_statements(results: Records) -> list[Statement]:
    """Convergence on the artificial problems."""
    found = []
    for data in PLAIN:
        single = curve(results, data, "single-gbrt")
        others = {m: curve(results, data, m) for m in ("gbmort", "gbrt-rpo-subsampled")}
        if single is None or None in others.values():
            continue
        level = 0.95 * single[1].max()
        slow = reached(single[2], single[1], level)
        for method, one in others.items():
            fast = reached(one[2], one[1], level)
            ratio = "never" if fast is None else f"{slow / fast:.1f} times"
            text = f"to 95 % of st-gbrt's best {single[1].max():.3f}: {ratio} as fast"
            if data == "friedman1-ind":
                name = f"Figure 1, {data}: {method} is as fast as st-gbrt"
                found.append((name, text, fast is not None and 0.5 < slow / fast < 2))
            else:
                name = f"Figure 1, {data}: {method} is more than 100 times faster than st-gbrt"
                found.append((name, text, fast is not None and slow / fast > 100))
        if data == "friedman1-ind":
            best = {"st-gbrt": single[1].max()} | {m: c[1].max() for m, c in others.items()}
            text = ", ".join(f"{m} {v:.3f}" for m, v in best.items())
            order = best["st-gbrt"] > best["gbrt-rpo-subsampled"] > best["gbmort"]
            name = f"Figure 1, {data}: best optimum st-gbrt, then gbrt-rpo-subsampled, then gbmort"
            found.append((name, text, bool(order)))
    return found


def kind_statements(results: Records, data: str) -> list[Statement]:
    """Figures 2 to 4: whether one subsampled output is faster or slower than mixtures of many."""
    found = {kind: of_kind(results, data, kind) for kind in KINDS}
    if None in found.values():
        return []
    best = {kind: float(c[1].max()) for kind, c in found.items()}
    text = "best " + ", ".join(f"{kind} {value:.3f}" for kind, value in best.items())
    figure = {"friedman1-ind": "4", "delicious": "3"}.get(data, "3 is of delicious")
    name = f"Figure {figure}; {data}: subsampling one output leads to faster convergence"
    dense = max(value for kind, value in best.items() if kind != "subsample")
    gap = best["subsample"] - dense
    return [(name, text, None if abs(gap) < 1e-3 else gap > 0)]


def size_statements(results: Records, data: str) -> list[Statement]:
    """Figures 5 and 6: relabelled trees of q components against gbmort."""
    records = curves(results, data=data, method="gbrt-relabel-rpo-gaussian", projection="gaussian")
    sizes = sorted({r["q"] for r in records})
    base = curve(results, data, "gbmort")
    if base is None or len(sizes) < 3:
        return []
    by_q = {
        q: curve(results, data, "gbrt-relabel-rpo-gaussian", projection="gaussian", q=q)
        for q in sizes
    }
    budget = min(c[2][-1] for c in by_q.values())
    at_time = {q: float(c[1][c[2] <= budget][-1]) for q, c in by_q.items()}
    last = {q: float(c[1][-1]) for q, c in by_q.items()}
    near = next((q for q in sizes if all(last[s] > base[1][-1] - NEAR for s in sizes if s >= q)), 0)
    middle = sizes[1]
    speed = base[2][-1] / by_q[middle][2][-1]
    some = [sizes[0], middle, sizes[-1]]
    return [
        (
            f"Figure 5, {data}: at a fixed time q = 1 is best",
            ", ".join(f"q = {q} {at_time[q]:.3f}" for q in some) + f" after {budget:.2g} s",
            at_time[sizes[0]] >= max(at_time.values()) - 1e-9,
        ),
        (
            f"Figure 6a, {data}: after 100 rounds q ≥ 20 equals gbmort",
            f"within {NEAR} of its {base[1][-1]:.3f} from q = {near} on, after {base[0][-1]} rounds",
            0 < near <= 20,
        ),
        (
            f"Figure 6b, {data}: q = 20 takes 7 times less time than gbmort",
            f"{speed:.1f} times less at q = {middle}",
            speed > 5,
        ),
    ]


def rank_statements(found: dict[str, Any], metric: str) -> list[Statement]:
    """Section 4.4."""
    ours = found["sources"].get("ours")
    if ours is None:
        return []
    ranks = ours["ranks"]
    best = min(ranks, key=ranks.get)
    where = "Figure 7" if metric == "LRAP" else "Figure 8"
    pairs = (
        ("gbrt-relabel-rpo-gaussian", "gbrt-rpo-gaussian"),
        ("gbrt-relabel-rpo-subsampled", "gbrt-rpo-subsampled"),
        ("gbrt-relabel-rpo-gaussian", "gbrt-relabel-rpo-subsampled"),
        ("gbrt-rpo-gaussian", "gbrt-rpo-subsampled"),
    )
    text = f"{shown(metric, best)} {ranks[best]:.2f}, it {ranks[pairs[0][0]]:.2f}"
    out = [
        (f"{where}: gbrt-relabel-rpo-gaussian has the best mean rank", text, best == pairs[0][0])
    ]
    if metric == "LRAP":
        for a, b in pairs:
            text = f"mean ranks {ranks[a]:.2f} and {ranks[b]:.2f}"
            out.append((f"{where}: {a} is better than {b}", text, bool(ranks[a] < ranks[b])))
    worst = max(ranks, key=ranks.get)
    name = f"{where}: {shown(metric, 'single-gbrt')} has the worst mean rank"
    text = f"{shown(metric, worst)} {ranks[worst]:.2f}, it {ranks['single-gbrt']:.2f}"
    out.append((name, text, worst == "single-gbrt"))
    return out
