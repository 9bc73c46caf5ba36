"""The page: tables, pictures and what they say, as Markdown; CSV and JSON beside it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.joly2014.page import table
from bench.joly2017 import notes, paper, report, statements
from bench.joly2017.report import Cells, shown
from bench.machine import describe
from bench.records import Records


def _score(mean: float | None, deviation: float | None) -> str:
    return "–" if mean is None else f"{mean:.3f} ± {deviation:.3f}"


def _ours(row: dict[str, Any]) -> str:
    text = f"{row['mean']:.3f}" + (f" ± {row['deviation']:.3f}" if row["splits"] > 1 else "")
    return text if row["compared"] != row["mean"] else f"{text}{_distance(row)}"


def _distance(row: dict[str, Any]) -> str:
    if row["distance"] is None:
        return ""
    text = f"({row['distance']:+.1f})"
    return f" {text}" if abs(row["distance"]) <= 1 + 1e-9 else f" **{text}**"


def _p(p: float) -> str:
    if np.isnan(p):
        return "–"
    text = f"{abs(p):.2g}"
    return f"**{text}({'>' if p > 0 else '<'})**" if abs(p) < 0.05 else text


def _plain(value: Any) -> Any:
    """As JSON has it: no NaN, no numbers of numpy."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value


# ---- what was run -------------------------------------------------------------------------------


def _range(values: list) -> str:
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def extent(results: Records, rows: list[dict[str, Any]]) -> list[str]:
    """What was run, and what not."""
    lines = []
    for one in report.extent(results):
        limit = [f"{m} rounds" for m in one["models"] if m]
        limit += [f"{m} T" for m in one["multiple"] if m]
        whole = "10000 rounds" if limit and "rounds" in limit[0] else f"{one['times']} T"
        lines.append([one["table"], ", ".join(one["data"]), _range(one["splits"]),
                      _range(one["settings"]), ", ".join(limit), whole])  # fmt: skip
    header = ["table", "data sets", "splits (5)", "settings (40)", "limit", "paper's limit"]
    parts = ["## What was run, and what not"]
    parts.append(notes.EXTENT)
    parts += [table(header, lines, 2)] if lines else []
    done = {paper.identity(row["data"]) for row in rows}
    left = {
        metric: [n for n in report.paper_names(metric) if n not in done]
        for metric in report.MEASURES
    }
    text = [
        f"{m}: {', '.join(paper.NAMES[n] for n in names)}" for m, names in left.items() if names
    ]
    if text:
        parts.append(f"The paper's data sets that were not run: {'; '.join(text)}.")
    missing = [f"{data} ({', '.join(methods)})" for data, methods in report.missing(rows).items()]
    if missing:
        parts.append(f"Methods that were not run: {', '.join(missing)}.")
    few = {row["data"]: row["splits"] for row in rows if row["splits"] < 5}
    if few:
        text = ", ".join(f"{data} ({splits})" for data, splits in few.items())
        parts.append(f"Fewer than five splits, of some methods at least: {text}.")
    return parts


# ---- tables 4 to 7 ------------------------------------------------------------------------------


def artificial(cells: Cells, rows: list[dict[str, Any]]) -> list[str]:
    """Tables 4 to 7."""
    parts = []
    for name, title, matrices in (
        ("Table 4", "the artificial problems", paper.TABLE_5),
        ("Table 6", "with as many outputs of noise", paper.TABLE_7),
    ):
        mine = [row for row in rows if row["table"] == name]
        if not mine:
            continue
        noisy = name == "Table 6"
        header = ["problem", "method", "paper", "ours", "without refit"]
        header += ["half, paper", "half, ours"] if noisy else []
        lines = []
        for row in mine:
            line = [row["data"], row["method"], _score(row["paper"], row["paper_deviation"])]
            line += [_ours(row), f"{row['score_part']:.3f}"]
            if noisy:
                method = row["method"].replace("st-", "single-")
                theirs = paper.TABLE_6[row["data"].removesuffix(" noisy")].get(method)
                line += [f"{theirs[0]:.3f}" if theirs else "–", f"{row['half']:.3f}"]
            line += [f"{row['rounds']:.0f} of {row['models']}", row["settings"], row["splits"]]
            lines.append(line)
        header += ["rounds", "settings", "splits"]
        parts += [f"## {name}: {title}", notes.TABLE, table(header, lines, 2)]
        parts.append(f"### Table {5 + 2 * noisy}: Student's paired t-test")
        parts.append(notes.SIGNS)
        for data in dict.fromkeys(row["data"] for row in mine):
            methods, found = report.t_tests(cells, data)
            theirs = paper.p_values(matrices[data.removesuffix(" noisy")])
            names = [shown("", method) for method in methods]
            if theirs.shape != found.shape:
                theirs = np.full(found.shape, np.nan)
            lines = [
                [name, *(f"{_p(a)} / {_p(b)}" if i != j else "" for j, (a, b) in
                         enumerate(zip(ours, other, strict=True)))]
                for i, (name, ours, other) in enumerate(zip(names, found, theirs, strict=True))
            ]  # fmt: skip
            parts.append(table([f"{data}: ours / paper", *names], lines))
    return parts


# ---- tables 8 to 12 -----------------------------------------------------------------------------


def real(rows: list[dict[str, Any]]) -> list[str]:
    """Tables 10 to 12."""
    parts = []
    for name in ("Tables 10 and 11", "Table 12"):
        mine = [row for row in rows if row["table"] == name]
        lines = []
        for row in mine:
            line = [row["data"], row["method"], _score(row["paper"], row["paper_deviation"])]
            part = "–" if row["score_part"] is None else f"{row['score_part']:.3f}"
            tuning = "–" if row["tuning_cpu"] is None else f"{row['tuning_cpu']:.1f}"
            line += [_ours(row), part]
            if name == "Tables 10 and 11":
                own = row["compared"] != row["mean"]
                line.append(f"{row['score_one']:.3f}" + (_distance(row) if own else ""))
            lines.append([*line, f"{row['fit_cpu']:.2f}", tuning, row["splits"]])
        if lines:
            header = ["data set", "method", "paper", "ours", "without refit"]
            header += ["empty rows count 1"] if name == "Tables 10 and 11" else []
            header += ["fit, s", "tuning, s", "splits"]
            metric = "LRAP" if name == "Tables 10 and 11" else "macro-r²"
            parts += [f"## {name}: {metric}", notes.TABLE, table(header, lines, 2)]
            named = {paper.identity(row["data"]) for row in mine}
            parts += [text for data, text in notes.DATA.items() if data in named]
    return parts


def comparisons(found: dict[str, dict[str, Any]], pictured: bool) -> list[str]:
    """Figures 7 and 8, tables 8 and 9."""
    parts = ["## Figures 7 and 8: mean ranks"]
    parts += ["![critical distances](ranks.png)"] if pictured else []
    for metric, one in found.items():
        sources = one["sources"]
        names = sorted(report.METHODS, key=lambda m: sources["paper, all"]["ranks"][m])
        header = [metric, *(f"{s} ({its['data sets']})" for s, its in sources.items())]
        lines = [[shown(metric, m), *(f"{its['ranks'][m]:.2f}" for its in sources.values())]
                 for m in names]  # fmt: skip
        lines.append(["Friedman's p", *(f"{its['friedman']:.2g}" for its in sources.values())])
        lines.append(["critical distance", *(f"{s['distance']:.2f}" for s in sources.values())])
        parts.append(table(header, lines))
    parts.append(notes.RANKS)
    for metric, one in found.items():
        if "ours" in one["sources"]:
            names = [shown(metric, method) for method in report.METHODS]
            ours, theirs = (one["sources"][s]["wilcoxon"] for s in ("ours", "paper, all"))
            lines = [
                [name, *("" if i == j else f"{_p(ours[i][j])} / {_p(theirs[i][j])}"
                         for j in range(len(names)))]
                for i, name in enumerate(names)
            ]  # fmt: skip
            number = 8 if metric == "LRAP" else 9
            parts += [f"### Table {number}: Wilcoxon's signed rank test, {metric}", notes.SIGNS]
            parts.append(table(["ours / paper's tables", *names], lines))
    return parts


def budgets(results: Records) -> list[str]:
    """What a multiple of T allows here."""
    rows = [row for row in report.budget_rows(results) if row["T"] is not None]
    if not rows:
        return []
    methods = list(dict.fromkeys(row["method"].replace("br-", "st-") for row in rows))
    lines = []
    for data, multiple in dict.fromkeys((row["data"], row["multiple"]) for row in rows):
        chosen = [r for r in rows if (r["data"], r["multiple"]) == (data, multiple)]
        mine = {r["method"].replace("br-", "st-"): r for r in chosen}
        line = [data, f"{1000 * chosen[0]['T']:.2f}", f"{multiple} T", f"{chosen[0]['budget']:.2f}"]
        for method in methods:
            row = mine.get(method)
            line.append(f"{row['allowed']:.0f} ({100 * row['at_limit']:.0f} %)" if row else "–")
        lines.append(line)
    head = ["data set", "T, ms", "limit", "budget, s"]
    head += [m.replace("st-", "br-/st-") for m in methods]
    parts = ["## Budgets", notes.BUDGETS, table(head, lines)]
    others = report.other_limits(results)
    if others:
        lines = [
            [r["data"], r["method"], _score(r["paper"], r["paper_deviation"]), f"{r['usual']:.3f}",
             f"{r['mean']:.3f}", f"{r['usual_multiple']} T", f"{r['multiple']} T", r["settings"],
             r["splits"]]
            for r in others
        ]  # fmt: skip
        head = ["data set", "method", "paper", "ours, usual", "ours, other", "usual limit"]
        head += ["other limit", "settings", "splits"]
        parts += ["### Other limits", notes.LIMITS, table(head, lines, 2)]
    return parts


# ---- figures ------------------------------------------------------------------------------------


def pictures(results: Records, found: dict, out: Path) -> tuple[list[str], bool]:
    """Figures 1 to 6 as parts of the page; and whether figures 7 and 8 are there."""
    try:
        from bench.joly2017 import figures

        drawn = figures.artificial(results, out / "friedman1.png")
        ranked = figures.ranks(found, out / "ranks.png")
    except ImportError:
        return ["## Figures\n\nNot drawn: matplotlib is not installed."], False
    parts = ["## Figures 1 and 4", "![figures 1 and 4](friedman1.png)"] if drawn else []
    parts += [notes.FIGURES] if drawn else []
    sets = [r["data"] for k, r in results.records.items() if k.startswith("convergence ")]
    many = [data for data in dict.fromkeys(sets) if not data.startswith("friedman1-")]
    many.sort(key=lambda name: name != "delicious")
    for data in many:
        if figures.labels(results, data, out / f"{data}.png"):
            parts += [f"## Figures 2, 3, 5 and 6: {data}", f"![figures]({data}.png)"]
    return parts, ranked


def statements_of(results: Records, cells: Cells, found: dict) -> list[statements.Statement]:
    """All that the paper says, in its order."""
    sets = [r["data"] for k, r in results.records.items() if k.startswith("convergence ")]
    many = [data for data in dict.fromkeys(sets) if not data.startswith("friedman1-")]
    out = statements.figure_1_statements(results) + statements.artificial_statements(cells)
    for data in [*many, "friedman1-ind"]:
        out += statements.kind_statements(results, data)
    for data in many:
        out += statements.size_statements(results, data)
    for metric in report.MEASURES:
        out += statements.rank_statements(found[metric], metric)
    return out


def summary(rows: list[dict[str, Any]]) -> str:
    """How many cells agree."""
    lines = []
    for name in dict.fromkeys(row["table"] for row in rows):
        mine = [r for r in rows if r["table"] == name and r["distance"] is not None]
        off = [r["distance"] for r in mine]
        parts = [r for r in mine if r["score_part"] and r["compared"] == r["mean"]]
        near = sum(abs(r["score_part"] - r["paper"]) <= r["paper_deviation"] for r in parts)
        if mine:
            within = sum(abs(o) <= 1 + 1e-9 for o in off)
            below = sum(o < -1 - 1e-9 for o in off)
            line = [name, len(off), within, len(off) - within - below, below]
            lines.append([*line, f"{near} of {len(parts)}"])
    header = ["table", "cells", "within 1 deviation of the paper", "above by more", "below by more"]
    header.append("within 1, without refit")
    return table(header, lines) if lines else "Nothing the paper has too has been run."


def below(rows: list[dict[str, Any]]) -> list[str]:
    """Cells below the paper's by more than a deviation."""
    off = [r for r in rows if r["distance"] is not None and r["distance"] < -1 - 1e-9]
    if not off:
        return ["## Differences", notes.DIFFERENCES]
    lines = [f"- {r['table']}, {r['data']}, {r['method']}: {r['compared']:.3f} against "
             f"{r['paper']:.3f} ({r['distance']:+.1f})" for r in off]  # fmt: skip
    text = "Below the paper's by more than one of its deviations:"
    return ["## Differences", notes.DIFFERENCES, text, "\n".join(lines)]


def write(results: Records, out: Path) -> None:
    """README.md, tables.csv, results.json and pictures."""
    out.mkdir(parents=True, exist_ok=True)
    cells, machine = report.cells(results), describe()
    rows = report.table_rows(cells)
    found = {metric: report.comparison(cells, metric) for metric in report.MEASURES}
    drawn, ranked = pictures(results, found, out)
    said = statements_of(results, cells, found)
    records = [record for record in results.records.values() if "date" in record]
    dates = sorted({record["date"] for record in records})
    commands = [r["command"] for r in results.records.values() if "command" in r]
    names = ("statement", "measured", "holds")
    numbers = {
        "machine": machine,
        "dates": dates,
        "commands": commands,
        "tables": rows,
        "extent": report.extent(results),
        "budgets": report.budget_rows(results),
        "other limits": report.other_limits(results),
        "comparisons": found,
        "statements": [dict(zip(names, one, strict=True)) for one in said],
    }
    text = json.dumps(_plain(numbers), indent=1, ensure_ascii=False)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    if rows:
        with (out / "tables.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    when = " to ".join(sorted({dates[0], dates[-1]})) if dates else "nothing run yet"
    versions = ", ".join(f"{name} {value}" for name, value in machine.items() if name != "cpu")
    made = f"{when}; {machine['cpu']}; {versions}."
    if commands:
        made += " Commands: " + "; ".join(f"`{command}`" for command in commands) + "."
    marks = {True: "yes", False: "no", None: "–"}
    lines = [[name, measured, marks[holds]] for name, measured, holds in said]
    parts = [notes.TITLE, made, notes.PROTOCOL, "## In short", summary(rows)]
    parts += extent(results, rows)
    if lines:
        parts += ["## What the paper says", notes.STATEMENTS]
        parts.append(table(["the paper says", "ours", "holds (–: open)"], lines, 3))
    parts += [*below(rows), *artificial(cells, rows), *real(rows), *budgets(results)]
    parts += [*drawn, *comparisons(found, ranked)]
    parts.append("All numbers: [tables.csv](tables.csv), [results.json](results.json).")
    (out / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
