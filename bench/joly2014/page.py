"""The page: tables, pictures and what they say, as Markdown; CSV and JSON beside it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from bench.joly2014 import paper, report
from bench.joly2014.plan import IDENTITY_TREES
from bench.joly2014.runs import Results
from bench.machine import describe

TITLE = """# Random forests on random projections of the output space, measured again

Tables and figures of Joly, Geurts and Wehenkel, *Random forests with random projections of the
output space for high dimensional multi-label classification* (2014), made again with pyrpo by
`python -m bench.joly2014 --data FOLDER` on the data sets of a folder."""

PROTOCOL = """100 fully grown trees, k = √p features drawn at a node, label ranking average
precision (LRAP) over the test rows that have labels; random splits of the paper's sizes, mean ±
standard deviation. Data sets the paper does not list are split 2/3 to 1/3. Multi-target regression,
which the paper has not, follows the same authors' paper on boosting (2017): outputs of unit
variance, k = p/3, no node of fewer than 5 rows is split, half of the rows for testing, macro-r².

Features are drawn by two rules. *Default* is scikit-learn's of today: k features, constant in the
node or not, and more only until one is not constant. *Until k* (`draw_non_constant=True`) draws
until k are not constant. The paper used scikit-learn 0.14-dev, between 0.13, where *until k* held
for both, and [a change of February 2014](https://github.com/scikit-learn/scikit-learn/pull/2829),
whose description says what held before it: extra-trees drew *until k*; forests counted draws from
the first feature that is not constant, which is near the *default*. So Table 1 is best held against
the default and Table 3 against *until k*. On dense features the rules hardly differ."""

TABLE_NOTE = """In brackets: how far ours is from the paper, in the paper's standard deviations;
**bold** where it is more than one."""

MANY = 100  # outputs from which on the paper's statements on delicious are looked at
CHANCE = """Two means of ten random splits differ by more than one deviation of a split in about one
case of forty by chance alone; means of fewer splits more often."""


def table(header: list[str], rows: list[list[Any]], left: int = 1) -> str:
    """A Markdown table; the first columns are aligned to the left, the others to the right."""
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    lines = [header, rule, *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _plain(mean: float | None, deviation: float | None) -> str:
    return "–" if mean is None else f"{mean:.3f} ± {deviation:.3f}"


def _ours(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    text = f"{row['mean']:.4f}" + (f" ± {row['deviation']:.4f}" if row["splits"] > 1 else "")
    if row["distance"] is None:
        return text
    distance = f"({row['distance']:+.1f})"
    return f"{text} {distance if row['agrees'] else f'**{distance}**'}"


def _pairs(rows: list[dict[str, Any]]) -> dict[tuple, dict[str, dict[str, Any]]]:
    """Rows of both rules by table, data set and column."""
    pairs: dict[tuple, dict[str, dict[str, Any]]] = {}
    for row in rows:
        pairs.setdefault((row["table"], row["data"], row["column"]), {})[row["rule"]] = row
    return pairs


def _lines(pairs: dict, wanted) -> list[list[str]]:
    lines = []
    for (name, data, column), rules in pairs.items():
        row = next(iter(rules.values()))
        if wanted(name, row):
            counts = sorted({r["splits"] for r in rules.values()})
            ours = [_ours(rules.get(rule)) for rule in report.RULES]
            theirs = _plain(row["paper"], row["paper_deviation"])
            lines.append([data, column, theirs, *ours, "/".join(map(str, counts))])
    return lines


def tables(rows: list[dict[str, Any]]) -> list[str]:
    """Tables 1 and 3, then the data sets the paper has not."""
    header = ["data set", "column", "paper", "ours, default", "ours, until k", "splits"]
    pairs, parts = _pairs(rows), []
    titles = {"Table 1": "Random Forests", "Table 3": "Extra Trees"}
    for name, title in titles.items():
        lines = _lines(pairs, lambda n, row, name=name: n == name and row["source"] == "paper")
        if lines:
            parts += [f"## {name}: {title}", TABLE_NOTE, table(header, lines, 2)]
    other = {row["data"] for row in rows} - {r["data"] for r in rows if r["source"] == "paper"}
    for metric, title in (("LRAP", "Other data sets"), ("macro-r²", "Multi-output regression")):
        mine = {row["data"] for row in rows if row["metric"] == metric} & other
        lines = []
        for name in titles:
            part = _lines(
                pairs, lambda n, row, name=name, mine=mine: n == name and row["data"] in mine
            )
            lines += [[line[0], titles[name], *line[1:]] for line in part]
        if lines:
            note = (
                f"{metric}. The column *paper* is the boosting paper's `mo-rf`, where it has one."
            )
            head = [header[0], "model", *header[1:]]
            notes = [text for name, text in paper.NOTES.items() if name in mine]
            parts += [f"## {title}", note, table(head, lines, 3), *notes]
    return parts


def summary(rows: list[dict[str, Any]]) -> str:
    """How many cells agree."""
    lines = []
    for rule in report.RULES:
        for name in report.TABLES:
            mine = [
                r for r in rows if (r["rule"], r["table"], r["source"]) == (rule, name, "paper")
            ]
            off = [abs(r["distance"]) for r in mine]
            if mine:
                within = [sum(o <= limit + 1e-9 for o in off) for limit in (1, 2)]
                above = sum(r["distance"] > 1 for r in mine)
                lines.append([name, rule, len(mine), *within, len(mine) - within[1], above])
    header = [
        "table",
        "rule",
        "cells",
        "within 1 deviation",
        "within 2",
        "beyond 2",
        "above by > 1",
    ]
    if not lines:
        return "No data set of the paper's has been run."
    near = [r for r in rows if r["source"] == "paper" and paper.RULES[r["table"]] == r["rule"]]
    agree = [sum(abs(r["distance"]) <= limit + 1e-9 for r in near) for limit in (1, 2)]
    text = (
        f"By the rule nearest to the paper's, {agree[0]} of {len(near)} cells lie within one of "
        f"the paper's standard deviations and {agree[1]} within two; "
        f"{sum(abs(report.of_both(r)) <= 1 for r in near)} within one of both deviations together "
        f"(the root of the sum of their squares). {sum(r['distance'] < -1 for r in near)} are more "
        f"than one of the paper's below; were ours the very forests of the paper, "
        f"{sum(map(report.chance_below, near)):.1f} would be, by the chance of the splits alone."
    )
    return f"{text}\n\n{table(header, lines, 2)}"


def differences(rows: list[dict[str, Any]]) -> list[str]:
    """Cells more than one deviation away by either rule, and why."""
    groups: dict[str, list[str]] = {}
    for (name, data, column), rules in _pairs(rows).items():
        off = {rule: row for rule, row in rules.items() if row["agrees"] is False}
        if not off or next(iter(off.values()))["source"] != "paper":
            continue
        distances = ", ".join(f"{rule} {row['distance']:+.1f}" for rule, row in rules.items())
        cell = f"{name}, {data}, {column} ({distances})"
        groups.setdefault(paper.reason(name, data, column, rules), []).append(cell)
    if not groups:
        return []
    parts = ["## Where ours differs by more than one deviation, and why", CHANCE]
    for why, cells in groups.items():
        parts += [why, "\n".join(f"- {cell}" for cell in cells)]
    return parts


def both_papers(rows: list[dict[str, Any]]) -> list[str]:
    """Plain forests in the paper, in the paper on boosting, and here."""
    lines = []
    for (name, data, column), rules in _pairs(rows).items():
        other = paper.BOOSTING_PAPER.get(paper.identity(data))
        row = rules.get("default", {})
        if name == "Table 1" and column == "original" and other and row.get("source") == "paper":
            distance = (row["mean"] - other[0]) / other[1]
            lines.append(
                [data, _plain(row["paper"], row["paper_deviation"]), _plain(*other), _ours(row)]
            )
            lines[-1].append(f"{distance:+.1f}")
    if not lines:
        return []
    text = (
        "The same authors' paper on boosting (2017) has forests on the original outputs too "
        "(`mo-rf`, by scikit-learn 0.16, five splits). On delicious and bibtex the two papers are "
        "about three deviations apart: both cannot be met."
    )
    header = ["data set", "Table 1", "boosting paper", "ours, default", "off the boosting paper"]
    return ["### The two papers", text, table(header, lines)]


def times(results: Results) -> list[str]:
    """Section 4.6."""
    rows = report.time_rows(results)
    if not rows:
        return []
    lines = []
    for row in rows:
        theirs = paper.FIT_SECONDS.get(None if row["m"] == "original" else row["m"])
        project = row["project_cpu"]
        mark = "≈" if row["scaled_from_trees"] else ""
        lines.append(
            [
                row["data"],
                row["m"],
                f"{row['load_cpu']:.2f}",
                f"{mark}{row['fit_cpu']:.3f}",
                f"{mark}{row['fit_wall']:.3f}",
                "–" if project is None else f"{project:.4f}",
                theirs if row["data"] == "delicious" and theirs else "–",
            ]
        )
    header = ["data set", "m", "load", "fit, CPU", "fit, wall", "project once", "paper"]
    parts = [
        "## Section 4.6: times",
        "Seconds of one thread, 100 trees, default rule; the projections of all trees are in the "
        'fit. The row "as sums of d columns" is the paper\'s way to split on the original outputs, '
        f"≈ scaled from {IDENTITY_TREES} trees; the row above it is pyrpo's, which touches only "
        "the labels a row has. The paper's seconds (loading and fitting, 2.26 GHz Xeon) are for "
        "delicious. Wall times are of a machine that had other work too.",
        table(header, lines, 2),
    ]
    equal = report.equal_rows(results)
    if equal:
        header = [
            "data set",
            "m",
            "trees",
            "CPU: 100 original",
            "CPU: m",
            "original",
            "m, equal time",
        ]
        header += ["gain", "splits"]
        lines = [
            [
                row["data"],
                row["m"],
                row["trees"],
                f"{row['original_cpu']:.2f}",
                f"{row['equal_time_cpu']:.2f}",
                f"{row['original']:.4f}",
                f"{row['equal_time']:.4f}",
                f"{row['gain']:+.4f} ± {row['gain_deviation']:.4f}",
                row["splits"],
            ]
            for row in equal
        ]
        parts += [
            "### More trees for the same seconds",
            "The paper: for a fixed time, projecting allows more trees and so improves over "
            "forests on the original outputs. Here 100 trees on the original outputs against as "
            "many on m components as take the same CPU time; gain over the same splits.",
            table(header, lines, 1),
        ]
    return parts


def figures(results: Results, out: Path) -> tuple[list[str], dict[str, list]]:
    """Pictures, those the paper shows first, and the paper's statements about them."""
    from bench.joly2014.figures import draw

    cells, parts, checked = results.cells(), [], {}
    sets = report.data_sets(results)
    for data in sorted(sets, key=lambda name: name != "delicious"):
        about = sets[data]
        picture = out / f"{data}.png"
        try:
            drawn = draw(cells, data, about["metric"], about["d"], picture)
        except ImportError:
            return ["## Figures\n\nNot drawn: matplotlib is not installed."], {}
        if not drawn:
            continue
        parts += [f"### {data}", f"![figures 1 to 4 on {data}]({picture.name})"]
        found = report.statements(cells, data, about["p"])
        if found and about["d"] >= MANY:
            checked[data] = found
            marks = {True: "yes", False: "no", None: "–"}
            lines = [[f["statement"], f["measured"], marks[f["holds"]]] for f in found]
            whose = "the paper says" if data == "delicious" else "the paper says of delicious"
            parts.append(table([whose, "ours", "holds (–: open)"], lines, 3))
    counts = [len(r) for fit, r in cells.items() if fit.k or fit.model == "tree"]
    note = (
        "Default rule; one split, other seeds. The paper's figures are of delicious and, figure 2, "
    )
    note += "of drug-interaction; here they are of every data set."
    if counts:
        repeats = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
        note += f" Repetitions of a setting: {repeats}."
    return (["## Figures 1 to 4", note, *parts] if parts else []), checked


def write(results: Results, out: Path) -> None:
    """README.md, tables.csv, results.json and a picture a data set."""
    out.mkdir(parents=True, exist_ok=True)
    rows, machine = report.table_rows(results), describe()
    pictures, checked = figures(results, out)
    records = [record for record in results.records.values() if "date" in record]
    dates = sorted({record["date"] for record in records})
    commands = [r["command"] for r in results.records.values() if "command" in r]
    numbers = {
        "machine": machine,
        "dates": dates,
        "commands": commands,
        "tables": rows,
        "statements": checked,
        "times": report.time_rows(results),
        "equal times": report.equal_rows(results),
    }
    text = json.dumps(numbers, indent=1, ensure_ascii=False)
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
    parts = [TITLE, made, PROTOCOL, "## In short", summary(rows), *tables(rows)]
    parts += [*differences(rows), *both_papers(rows), *pictures, *times(results)]
    files = "All numbers: [tables.csv](tables.csv), [results.json](results.json)."
    page = "\n\n".join([*parts, files]) + "\n"
    (out / "README.md").write_text(page, encoding="utf-8")
