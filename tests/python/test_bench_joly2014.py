"""The reproduction of the forest paper runs on a folder of small files, resumes, and reports."""

import csv
import gzip
import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(
        not (ROOT / "bench" / "joly2014").is_dir(), reason="the benchmarks are not here"
    ),
    pytest.mark.xdist_group("joly2014"),
]
NUMBERS = ("n", "p", "d")


def write_labels(folder, name, rng, rows, suffix=""):
    """Five features and four labels that depend on them; some rows have none."""
    lines = [f"@relation {name}", *(f"@attribute x{j} numeric" for j in range(5))]
    lines += [*(f"@attribute y{j} {{0,1}}" for j in range(4)), "@data"]
    for x in rng.normal(size=(rows, 5)):
        y = (x[:4] + 0.3 * rng.normal(size=4) > 0.5).astype(int)
        lines.append(",".join([f"{v:.3f}" for v in x] + [str(v) for v in y]))
    with gzip.open(folder / f"{name}{suffix}.arff.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    labels = "".join(f'<label name="y{j}"></label>' for j in range(4))
    xml = f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>'
    (folder / f"{name}.xml").write_text(xml)


def write_targets(folder, name, rng, rows):
    lines = [f"@relation {name}", *(f"@attribute x{j} numeric" for j in range(5)), "@data"]
    X = rng.normal(size=(rows, 3))
    lines += [",".join(f"{v:.3f}" for v in (*x, x[0] + 0.1 * x[1], x[2])) for x in X]
    (folder / f"{name}.arff").write_text("\n".join(lines) + "\n")


def write_classes(folder, name, rng, rows):
    lines = [f"{1 + (x[0] > 0)} | 0:{x[0]:.3f} 1:{x[1]:.3f}" for x in rng.normal(size=(rows, 2))]
    (folder / f"{name}.vw").write_text("\n".join(lines) + "\n")


def test_paper_is_the_one_of_the_accuracy_tests():
    script = "import json; from bench.joly2014 import paper; "
    script += "print(json.dumps([paper.TABLES, {n: s.n_train for n, s in paper.SIZES.items()}]))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    tables, n_train = json.loads(done.stdout)
    known = runpy.run_path(str(Path(__file__).with_name("test_accuracy.py")))["PAPER"]
    for name, (rows, *cells) in known.items():
        assert rows == n_train[name]
        for table, theirs in zip(tables.values(), cells, strict=True):
            assert [tuple(cell) for cell in table[name]] == theirs
    assert [len(table) for table in tables.values()] == [24, 23]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labels in two files, targets, classes, and an ARFF file of which nothing is known."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    write_labels(folder, "emotions", rng, 60, "-train")  # too few rows for the paper's split
    write_labels(folder, "emotions", rng, 30, "-test")
    write_targets(folder, "edm", rng, 60)
    write_targets(folder, "unknown", rng, 10)
    write_classes(folder, "classes", rng, 60)
    return folder


def run(folder, out, *arguments):
    """Output of the program, started from the repository as a user does."""
    command = [sys.executable, "-m", "bench.joly2014", "--data", folder, "--out", out]
    command += ["--results", out / "results.jsonl", *arguments]
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def records(out):
    lines = (out / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def quick(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return out, run(folder, out, "--quick")


def test_quick_run(quick):
    out, said = quick
    assert "unknown: left out, neither unknown.xml nor --targets unknown=NUMBER" in said
    fits = [record for record in records(out) if "model" in record]
    assert {record["data"] for record in fits} == {"emotions", "edm", "classes"}
    assert {record["metric"] for record in fits if record["data"] == "edm"} == {"macro-r²"}
    shapes = {tuple(r[n] for n in NUMBERS) for r in fits if r["data"] == "emotions"}
    assert shapes == {(90, 5, 4)}
    assert min(record["score"] for record in fits if record["data"] == "emotions") > 0.5
    assert len({record["key"] for record in records(out)}) == len(records(out))


def test_page(quick):
    out, _ = quick
    page = (out / "README.md").read_text()
    for heading in ("Table 1", "Table 3", "Other data sets", "Figures 1 to 4", "Section 4.6"):
        assert f"## {heading}" in page
    assert "--quick" in page
    assert str(out) not in page
    for name in ("emotions", "edm", "classes"):
        assert f"({name}.png)" in page
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_numbers(quick):
    out, _ = quick
    with (out / "tables.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = json.loads((out / "results.json").read_text())
    assert len(rows) == len(numbers["tables"])
    emotions = [r for r in numbers["tables"] if r["data"] == "emotions" and r["source"]]
    assert len(emotions) == 16  # 2 tables, 4 columns, 2 rules
    first = emotions[0]
    assert (first["table"], first["column"], first["paper"]) == ("Table 1", "original", 0.8)
    for row in emotions:
        distance = (row["mean"] - row["paper"]) / row["paper_deviation"]
        assert row["distance"] == pytest.approx(distance)
        assert row["agrees"] == (abs(distance) <= 1 + 1e-9)
    assert {row["m"] for row in numbers["times"]} >= {"original", 1}
    assert {row["data"] for row in numbers["equal times"]} == {"emotions", "edm", "classes"}


def test_resumes(quick, folder, tmp_path):
    """A second run does nothing; a line cut short, as by a crash, is made again."""
    out, _ = quick
    text = (out / "results.jsonl").read_text()
    assert f"0 new results, {len(records(out))} in all" in run(folder, out, "--quick")
    assert (out / "results.jsonl").read_text() == text
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if '"data": "edm"' in line]
    (tmp_path / "results.jsonl").write_text("".join(kept)[:-20])
    said = run(folder, tmp_path, "--quick", "--only", "edm")
    assert "2 new results" in said  # the command is the other
    again = (tmp_path / "results.jsonl").read_text().splitlines()
    broken, whole = again[len(kept) - 1], [json.loads(line) for line in again[len(kept) :]]
    assert not broken.endswith("}")
    made = next(record for record in whole if "command" not in record)
    cut = json.loads(kept[-1])
    assert {n: made.get(n) for n in ("key", "score")} == {n: cut.get(n) for n in ("key", "score")}


def test_refuses_results_of_other_data(quick, folder, tmp_path):
    out, _ = quick
    write_labels(tmp_path, "emotions", np.random.default_rng(1), 50)
    command = [sys.executable, "-m", "bench.joly2014", "--quick", "--data", str(tmp_path)]
    command += ["--results", str(out / "results.jsonl"), "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "has results of a data set emotions of shape" in done.stderr


def test_how_far_and_how_likely():
    """Against means of ten draws: below by more than a deviation in as many cases as foretold."""
    row = {"mean": 0.7, "deviation": 0.3, "splits": 10, "paper": 0.9, "paper_deviation": 0.4}
    script = f"from bench.joly2014 import report; row = {row}; "
    script += "print(report.of_both(row), report.chance_below(row))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    how_far, how_likely = map(float, done.stdout.split())
    assert how_far == pytest.approx(-0.4)
    rng = np.random.default_rng(0)
    ours, papers = (rng.normal(0, row[s], (20_000, 10)) for s in ("deviation", "paper_deviation"))
    below = ours.mean(axis=1) < papers.mean(axis=1) - row["paper_deviation"]
    assert how_likely == pytest.approx(below.mean(), abs=0.002)
