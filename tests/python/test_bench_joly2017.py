"""The reproduction of the boosting paper: its statistics, its search, and a run on small files."""

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(
        not (ROOT / "bench" / "joly2017").is_dir(), reason="the benchmarks are not here"
    ),
    pytest.mark.xdist_group("joly2017"),
]


# What is asked of the program's modules, which are not installed: one process answers all.
QUESTIONS = {
    "comparison": """
from bench.joly2017 import report
said = {m: report.comparison({}, m)["sources"]["paper, all"] for m in report.MEASURES}
said["methods"] = report.METHODS
""",
    "printed": """
from bench.joly2017 import paper
both = [*paper.TABLE_5.values(), *paper.TABLE_7.values()]
said = [np.nan_to_num(paper.p_values(text)).tolist() for text in both]
""",
    "student": """
from bench.joly2017.statistics import student
a, b = np.random.default_rng(0).normal(size=(2, 5))
said = [student(a, b), student(b, a), student(a, a), student(a[:1], b[:1])]
""",
    "groups": """
from bench.joly2017.statistics import groups
ranks = [1, 1.5, 2, 2.8, 5], [1, 3, 5], [1, 1, 1], [1, 2, 3]
said = [groups(np.array(one), 1.0) for one in ranks]
""",
    "grid": """
from dataclasses import astuple
from bench.joly2017.methods import drawn, feature_counts
few, more = ([astuple(s) for s in drawn("LRAP", 100, n, 3)] for n in (5, 40))
other = [astuple(s) for s in drawn("LRAP", 100, 5, 4)]
whole = [astuple(s) for s in drawn("macro-r²", 400, 1000, 0)]
said = [feature_counts(5), feature_counts(400), few, more, other, whole]
""",
    "splits": """
from bench.joly2017.data import Artificial
said = []
for kind in ("chain", "group", "ind"):
    plain, noisy = (Artificial(kind, n).split(1) for n in (False, True))
    n, train, test = 16, plain.train, plain.test
    halves = [(np.sort(noisy.Y[r, n:], 0), np.sort(plain.Y[r], 0)) for r in (train, test)]
    said.append({
        "shape": [*plain.X.shape, plain.Y.shape[1], noisy.Y.shape[1]],
        "declared": list(Artificial(kind, True).shape.values()),
        "rows": [len(train), len(test), len(plain.fit), len(plain.validation)],
        "apart": len({*plain.fit, *plain.validation, *test}),
        "kept": bool((noisy.Y[:, :n] == plain.Y).all()),
        "permuted": all(bool((a == b).all()) for a, b in halves),
        "noise": float(abs(np.corrcoef(noisy.Y[:, 0], noisy.Y[:, n])[0, 1])),
    })
""",
    "strategies": """
from bench.joly2017.data import Artificial
from bench.joly2017.runs import learnt, wide
Y = np.arange(12.0).reshape(3, 4)
problems = [Artificial(kind) for kind in ("chain", "group", "ind")]
pairs = [(problem, m) for problem in problems for m in ("artificial-gbrt", "gbmort")]
said = [[learnt(*pair, Y)[0], learnt(*pair, Y)[1].tolist()] for pair in pairs]
said.append(wide(np.array([1.0, 2.0]), 2).tolist())
""",
    "curves": """
from bench.joly2017.data import Artificial
from bench.joly2017.methods import boosting, stump
from bench.joly2017.runs import learning_curve, pace
from pyrpo.metrics import macro_r2
problem = Artificial("group")
split = problem.split(0)
train, test = split.train[:100], split.test[:50]
said = []
for method in ("gbmort", "single-gbrt"):
    model = boosting(method, stump("macro-r²", 5), 0)
    at, found = learning_curve(problem, method, model, split, (train, test), 25, 25)
    plain = boosting(method, stump("macro-r²", 5), 0, n_estimators=25)
    plain.fit(split.X[train], split.Y[train])
    last = macro_r2(split.Y[test], plain.predict(split.X[test]))
    said.append([at, found, last, pace(plain, split.X[train], split.Y[train], 1e-4)])
""",
    "limits": """
from types import SimpleNamespace
from bench.joly2017 import report
def final(multiple, settings, score):
    about = {"data": "emotions", "method": "gbmort", "split": 0, "metric": "LRAP"}
    return about | {"multiple": multiple, "settings": settings, "score": score}
kept = [final(100, 40, 0.8), final(100, 6, 0.7), final(1000, 6, 0.9), final(20, 6, 0.6)]
results = SimpleNamespace(records={f"final {i}": record for i, record in enumerate(kept)})
said = [report.scores(report.cells(results), "emotions", "gbmort"), report.other_limits(results)]
""",
    "statements": """
from bench.joly2017.statements import average, reached
records = [{"at": [10, 20], "scores": [0.1, s], "pace": t} for s, t in ((0.3, 1.0), (0.5, 3.0))]
at, values, seconds = average(records)
said = [at.tolist(), values.tolist(), seconds.tolist()]
said += [reached(at, values, 0.2), reached(at, values, 0.9)]
""",
}


@pytest.fixture(scope="module")
def answers():
    """The answers."""
    parts = [f"{code}\nanswers[{name!r}] = said" for name, code in QUESTIONS.items()]
    script = "\n".join(["import json, numpy as np", "answers = {}", *parts])
    script += "\nprint(json.dumps(answers))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- the paper's tables, by the statistics used on ours -----------------------------------------


def test_ranks_are_the_paper_s(answers):
    labels, targets = answers["comparison"]["LRAP"], answers["comparison"]["macro-r²"]
    assert (labels["data sets"], targets["data sets"]) == (21, 8)
    assert labels["distance"] == pytest.approx(2.29, abs=0.005)
    assert labels["friedman"] == pytest.approx(1.36e-10, rel=1)  # the scores are rounded in print
    assert 0.1 < targets["friedman"] < 0.5
    assert min(labels["ranks"], key=labels["ranks"].get) == "gbrt-relabel-rpo-gaussian"
    assert max(labels["ranks"], key=labels["ranks"].get) == "single-gbrt"
    # The brackets of Tables 10 and 11, birds and emotions for example, sum up to these.
    gaussian = [1, 1, 2, 1, 1.5, 1, 1, 1, 5.5, 2.5, 3, 3, 1.5, 2.5, 1, 2.5, 4, 2, 1, 2, 1]
    assert labels["ranks"]["gbrt-relabel-rpo-gaussian"] == pytest.approx(np.mean(gaussian))


def test_wilcoxon_is_the_paper_s(answers):
    """Table 8's entries, up to the rounding of the scores it is computed from."""
    comparison = answers["comparison"]
    order, found = comparison["methods"], np.array(comparison["LRAP"]["wilcoxon"])
    for a, b, printed in (
        ("single-gbrt", "single-rf", 0.79),
        ("single-gbrt", "gbmort", -0.001),
        ("single-gbrt", "gbrt-relabel-rpo-gaussian", -6e-5),
        ("gbmort", "gbrt-relabel-rpo-gaussian", -0.001),
        ("gbmort", "mo-rf", 0.02),
        ("gbrt-relabel-rpo-gaussian", "gbrt-rpo-gaussian", 0.005),
        ("gbrt-rpo-subsampled", "mo-rf", 0.04),
    ):
        p = found[order.index(a), order.index(b)]
        assert p == pytest.approx(printed, rel=0.4)
        assert found[order.index(b), order.index(a)] == -p


def test_printed_p_values_have_opposite_signs(answers):
    tables = answers["printed"]
    assert [len(table) for table in tables] == [5, 5, 5, 4, 4, 4]
    for table in map(np.array, tables):
        signed = np.abs(table) < 0.05
        assert (np.sign(table)[signed] == -np.sign(table.T)[signed]).all()


# ---- statistics ---------------------------------------------------------------------------------


def test_student_against_scipy(answers):
    a, b = np.random.default_rng(0).normal(size=(2, 5))
    there, back, same, one = answers["student"]
    assert abs(there) == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert back == -there
    assert np.sign(there) == np.sign(a.mean() - b.mean())
    assert np.isnan([same, one]).all()


def test_groups_are_the_longest_runs(answers):
    assert answers["groups"] == [[[0, 2], [2, 3]], [], [[0, 2]], [[0, 1], [1, 2]]]


# ---- the search ---------------------------------------------------------------------------------


def test_grid(answers):
    small, large, few, more, other, whole = answers["grid"]
    assert small == [1, 2, 5]
    assert large == [20, 40, 80, 200, 400]
    assert len(few) == 5
    assert more[:5] == few != other
    assert len({tuple(s) for s in whole}) == len(whole) == 490
    assert {s[3] for s in whole} == {"squared", "absolute"}
    assert {s[3] for s in more} == {"squared", "logistic"}


def test_splits(answers):
    for one, p in zip(answers["splits"], (5, 5, 80), strict=True):
        assert one["shape"] == [4300, p, 16, 32]
        assert one["declared"] == [300, p, 32]
        assert one["rows"] == [300, 4000, 240, 60]
        assert one["apart"] == 4300
        assert one["kept"]
        assert one["permuted"]
        assert one["noise"] < 0.1


def test_artificial_strategies(answers):
    said = answers["strategies"]
    Y = np.arange(12.0).reshape(3, 4)
    assert said[0] == ["gbmort", Y[:, :1].tolist()]
    assert said[2] == ["gbmort", Y.mean(axis=1, keepdims=True).tolist()]
    assert said[4] == ["single-gbrt", Y.tolist()]
    assert said[1] == said[3] == said[5] == ["gbmort", Y.tolist()]
    assert said[6] == [[1, 1], [2, 2]]


def test_curves_end_where_fits_do(answers):
    """Scores by round, of all outputs at once or one after the other, are those of plain fits."""
    for at, found, last, pace in answers["curves"]:
        assert at == [10, 20, 25]
        assert found[0] < found[-1]
        assert found[-1] == pytest.approx(last, abs=1e-6)
        assert pace > 0


def test_the_paper_s_limit_and_the_longest_search_count(answers):
    """Scores under other time limits are kept apart."""
    found, others = answers["limits"]
    assert found == {"0": 0.8}
    assert [(row["multiple"], row["mean"], row["usual"]) for row in others] == [
        (1000, 0.9, 0.8),
        (20, 0.6, 0.8),
    ]
    assert {(row["paper"], row["usual_multiple"]) for row in others} == {(0.794, 100)}


def test_curves_are_averaged(answers):
    at, values, seconds, first, never = answers["statements"]
    assert (at, seconds) == ([10, 20], [20, 40])
    assert values == pytest.approx([0.1, 0.4])
    assert (first, never) == (20, None)


# ---- a run --------------------------------------------------------------------------------------


def write_labels(folder, name, rng, rows, n_labels):
    """Five features and labels that depend on them; some rows have none."""
    lines = [f"@relation {name}", *(f"@attribute x{j} numeric" for j in range(5))]
    lines += [*(f"@attribute y{j} {{0,1}}" for j in range(n_labels)), "@data"]
    for x in rng.normal(size=(rows, 5)):
        y = (np.resize(x, n_labels) + 0.3 * rng.normal(size=n_labels) > 0.5).astype(int)
        lines.append(",".join([f"{v:.3f}" for v in x] + [str(v) for v in y]))
    with gzip.open(folder / f"{name}.arff.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    labels = "".join(f'<label name="y{j}"></label>' for j in range(n_labels))
    xml = f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>'
    (folder / f"{name}.xml").write_text(xml)


def write_targets(folder, name, rng, rows):
    lines = [f"@relation {name}", *(f"@attribute x{j} numeric" for j in range(5)), "@data"]
    X = rng.normal(size=(rows, 3))
    lines += [",".join(f"{v:.3f}" for v in (*x, x[0] + 0.1 * x[1], x[2])) for x in X]
    (folder / f"{name}.arff").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    write_labels(folder, "emotions", rng, 60, 4)
    write_labels(folder, "cal500", rng, 40, 100)
    write_targets(folder, "edm", rng, 60)
    return folder


FEW = ["--splits", 2, "--settings", 1, "--models", 20, "--multiple", 0.02]
FEW += ["--rounds", 20, "--many-rounds", 10]


def run(folder, out, *arguments):
    """Output of the program, started from the repository as a user does."""
    command = [sys.executable, "-m", "bench.joly2017", "--data", folder, "--out", out]
    command += ["--results", out / "results.jsonl", *FEW, *arguments]
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def done(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return out, run(folder, out)


def records(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def test_page(done):
    out, _ = done
    page = (out / "README.md").read_text()
    for heading in ("Table 4", "Table 6", "Tables 10 and 11", "Table 12", "Budgets", "Figures 7"):
        assert f"## {heading}" in page
    for heading in ("### Table 5", "### Table 7", "### Table 8", "What was run, and what not"):
        assert heading in page
    assert "--splits 2" in page
    assert str(out) not in page
    assert "mediamill" in page  # among what was not run
    for name in ("friedman1", "cal500", "ranks"):
        assert f"({name}.png)" in page
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_numbers(done):
    out, _ = done
    with (out / "tables.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = json.loads((out / "results.json").read_text())
    assert len(rows) == len(numbers["tables"]) == 15 + 12 + 3 * 8
    for row in numbers["tables"]:
        assert row["splits"] == 2
        if row["paper"] is not None:
            distance = (row["compared"] - row["paper"]) / row["paper_deviation"]
            assert row["distance"] == pytest.approx(distance)
    ours = numbers["comparisons"]["LRAP"]["sources"]["ours"]
    assert ours["data sets"] == 2
    assert sum(ours["ranks"].values()) == pytest.approx(36)
    assert {row["data"] for row in numbers["budgets"]} >= {"emotions", "cal500", "edm"}


def test_records(done):
    out, _ = done
    found = records(out)
    assert len({record["key"] for record in found}) == len(found)
    trials = [record for record in found if record["key"].startswith("trial edm")]
    assert {record["multiple"] for record in trials} == {10}  # 500 T times 0.02
    for record in trials:
        assert 1 <= record["best_round"] <= record["last_round"] == record["allowed"]
    finals = [record for record in found if record["key"].startswith("final")]
    assert {(r["n_train"], r["n_test"]) for r in finals if r["data"] == "edm"} == {(30, 30)}
    curve = next(r for r in found if r["key"].startswith("convergence cal500 gbrt-relabel"))
    assert curve["at"][-1] == 10
    assert curve["pace"] > 0


def test_resumes(done, folder, tmp_path):
    """A second run does nothing; a line cut short, as by a crash, is made again."""
    out, _ = done
    text = (out / "results.jsonl").read_text()
    assert f"0 new results, {len(records(out))} in all" in run(folder, out)
    assert (out / "results.jsonl").read_text() == text
    (tmp_path / "results.jsonl").write_text(text[:-20])
    assert "1 new results" in run(folder, tmp_path)
    last = json.loads(text.splitlines()[-1])
    again = (tmp_path / "results.jsonl").read_text().splitlines()[-1]
    assert json.loads(again)["score"] == last["score"]
