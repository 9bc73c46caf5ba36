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
pytestmark = pytest.mark.skipif(
    not (ROOT / "bench" / "joly2017").is_dir(), reason="the benchmarks are not here"
)


def inside(script):
    """What a script says that runs in the repository, as the program does."""
    script = f"import json\nimport numpy as np\n{script}\nprint(json.dumps(said))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- the paper's tables, by the statistics used on ours -----------------------------------------


@pytest.fixture(scope="module")
def comparison():
    return inside(
        "from bench.joly2017 import report\n"
        "one = {m: report.comparison({}, m)['sources']['paper, all'] for m in report.MEASURES}\n"
        "said = {'methods': report.METHODS, **one}"
    )


def test_ranks_are_the_paper_s(comparison):
    labels, targets = comparison["LRAP"], comparison["macro-r²"]
    assert (labels["data sets"], targets["data sets"]) == (21, 8)
    assert labels["distance"] == pytest.approx(2.29, abs=0.005)
    assert labels["friedman"] == pytest.approx(1.36e-10, rel=1)  # the scores are rounded in print
    assert 0.1 < targets["friedman"] < 0.5
    assert min(labels["ranks"], key=labels["ranks"].get) == "gbrt-relabel-rpo-gaussian"
    assert max(labels["ranks"], key=labels["ranks"].get) == "single-gbrt"
    # The brackets of Tables 10 and 11, birds and emotions for example, sum up to these.
    gaussian = [1, 1, 2, 1, 1.5, 1, 1, 1, 5.5, 2.5, 3, 3, 1.5, 2.5, 1, 2.5, 4, 2, 1, 2, 1]
    assert labels["ranks"]["gbrt-relabel-rpo-gaussian"] == pytest.approx(np.mean(gaussian))


def test_wilcoxon_is_the_paper_s(comparison):
    """Table 8's entries, up to the rounding of the scores it is computed from."""
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


def test_printed_p_values_have_opposite_signs():
    tables = inside(
        "from bench.joly2017 import paper\n"
        "both = [*paper.TABLE_5.values(), *paper.TABLE_7.values()]\n"
        "said = [np.nan_to_num(paper.p_values(text)).tolist() for text in both]"
    )
    assert [len(table) for table in tables] == [5, 5, 5, 4, 4, 4]
    for table in map(np.array, tables):
        signed = np.abs(table) < 0.05
        # One pair is not symmetric in print: 9e-05 and 6e-06, gbmort and others on friedman1-ind.
        assert (np.sign(table)[signed] == -np.sign(table.T)[signed]).all()


# ---- statistics ---------------------------------------------------------------------------------


def test_student_against_scipy():
    a, b = np.random.default_rng(0).normal(size=(2, 5))
    script = f"from bench.joly2017.statistics import student\na, b = {a.tolist()}, {b.tolist()}\n"
    there, back, same, one = inside(
        script + "said = [student(a, b), student(b, a), student(a, a), student(a[:1], b[:1])]"
    )
    p = stats.ttest_rel(a, b).pvalue
    assert abs(there) == pytest.approx(p)
    assert back == -there
    assert np.sign(there) == np.sign(a.mean() - b.mean())
    assert np.isnan([same, one]).all()


def test_groups_are_the_longest_runs():
    said = inside(
        "from bench.joly2017.statistics import groups\n"
        "said = [groups(np.array(r), 1.0) for r in "
        "([1, 1.5, 2, 2.8, 5], [1, 3, 5], [1, 1, 1], [1, 2, 3])]"
    )
    assert said == [[[0, 2], [2, 3]], [], [[0, 2]], [[0, 1], [1, 2]]]


# ---- the search ---------------------------------------------------------------------------------


def test_grid():
    said = inside(
        "from bench.joly2017.methods import drawn, feature_counts, grid\n"
        "from dataclasses import astuple\n"
        "few, more = ([astuple(s) for s in drawn('LRAP', 100, n, 3)] for n in (5, 40))\n"
        "other = [astuple(s) for s in drawn('LRAP', 100, 5, 4)]\n"
        "whole = [astuple(s) for s in drawn('macro-r²', 400, 1000, 0)]\n"
        "said = [feature_counts(5), feature_counts(400), few, more, other, whole]"
    )
    small, large, few, more, other, whole = said
    assert small == [1, 2, 5]
    assert large == [20, 40, 80, 200, 400]
    assert len(few) == 5
    assert more[:5] == few != other
    assert len({tuple(s) for s in whole}) == len(whole) == 490
    assert {s[3] for s in whole} == {"squared", "absolute"}
    assert {s[3] for s in more} == {"squared", "logistic"}


def test_splits():
    said = inside(
        "from bench.joly2017.data import Artificial\n"
        "said = []\n"
        "for kind in ('chain', 'group', 'ind'):\n"
        "    plain, noisy = (Artificial(kind, n).split(1) for n in (False, True))\n"
        "    n = 16\n"
        "    said.append({\n"
        "        'shape': [*plain.X.shape, plain.Y.shape[1], noisy.Y.shape[1]],\n"
        "        'declared': list(Artificial(kind, True).shape.values()),\n"
        "        'rows': [len(plain.train), len(plain.test), len(plain.fit)],\n"
        "        'apart': len({*plain.fit, *plain.validation, *plain.test}),\n"
        "        'kept': bool((noisy.Y[:, :n] == plain.Y).all()),\n"
        "        'permuted': bool((np.sort(noisy.Y[plain.train, n:], 0)\n"
        "                          == np.sort(plain.Y[plain.train], 0)).all()),\n"
        "        'noise': float(abs(np.corrcoef(noisy.Y[:, 0], noisy.Y[:, n])[0, 1])),\n"
        "    })"
    )
    for one, p in zip(said, (5, 5, 80), strict=True):
        assert one["shape"] == [4300, p, 16, 32]
        assert one["declared"] == [300, p, 32]
        assert one["rows"] == [300, 4000, 240]
        assert one["apart"] == 4300
        assert one["kept"]
        assert one["permuted"]
        assert one["noise"] < 0.1


def test_artificial_strategies():
    said = inside(
        "from bench.joly2017.data import Artificial\n"
        "from bench.joly2017.runs import learnt, wide\n"
        "Y = np.arange(12.0).reshape(3, 4)\n"
        "said = [[learnt(Artificial(k), m, Y)[0], learnt(Artificial(k), m, Y)[1].tolist()]\n"
        "        for k in ('chain', 'group', 'ind') for m in ('artificial-gbrt', 'gbmort')]\n"
        "said.append(wide(np.array([1.0, 2.0]), 2).tolist())"
    )
    Y = np.arange(12.0).reshape(3, 4)
    assert said[0] == ["gbmort", Y[:, :1].tolist()]
    assert said[2] == ["gbmort", Y.mean(axis=1, keepdims=True).tolist()]
    assert said[4] == ["single-gbrt", Y.tolist()]
    assert said[1] == said[3] == said[5] == ["gbmort", Y.tolist()]
    assert said[6] == [[1, 1], [2, 2]]


def test_curves_end_where_fits_do():
    """Scores by round, of all outputs at once or one after the other, are those of plain fits."""
    said = inside(
        "from bench.joly2017.data import Artificial\n"
        "from bench.joly2017.methods import boosting, stump\n"
        "from bench.joly2017.runs import learning_curve, pace\n"
        "from pyrpo.metrics import macro_r2\n"
        "problem = Artificial('group')\n"
        "split = problem.split(0)\n"
        "train, test = split.train[:100], split.test[:50]\n"
        "said = []\n"
        "for method in ('gbmort', 'single-gbrt'):\n"
        "    model = boosting('macro-r²', method, stump('macro-r²', 5), 0)\n"
        "    at, found = learning_curve(problem, method, model, split, (train, test), 25, 25)\n"
        "    plain = boosting('macro-r²', method, stump('macro-r²', 5), 0, n_estimators=25)\n"
        "    plain.fit(split.X[train], split.Y[train])\n"
        "    said.append([at, found, macro_r2(split.Y[test], plain.predict(split.X[test]))])\n"
        "    assert pace(plain, split.X[train], split.Y[train], 1e-4) > 0"
    )
    for at, found, last in said:
        assert at == [10, 20, 25]
        assert found[0] < found[-1]
        assert found[-1] == pytest.approx(last, abs=1e-6)


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
            distance = (row["mean"] - row["paper"]) / row["paper_deviation"]
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
