"""The reproductions of the two papers on label spaces and bench/labels.py run and report."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(
        not (ROOT / "bench" / "bi2013").is_dir(), reason="the benchmarks are not here"
    ),
    pytest.mark.xdist_group("label_space"),
]


def run(name, out, *arguments):
    command = [sys.executable, "-m", f"bench.{name}", "--out", out]
    command += ["--results", out / "results.jsonl", *arguments]
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty labels that depend on six features, named as one of the paper's sets."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    lines = ["@relation cal500", *(f"@attribute x{j} numeric" for j in range(6))]
    lines += [*(f"@attribute y{j} {{0,1}}" for j in range(20)), "@data"]
    mixing = rng.normal(size=(6, 20))
    for x in rng.normal(size=(120, 6)):
        y = (x @ mixing > 0.5).astype(int)
        lines.append(",".join([f"{v:.3f}" for v in x] + [str(v) for v in y]))
    (folder / "cal500.arff").write_text("\n".join(lines) + "\n")
    labels = "".join(f'<label name="y{j}"></label>' for j in range(20))
    xml = f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>'
    (folder / "cal500.xml").write_text(xml)
    return folder


def test_bi2013(folder, tmp_path):
    run("bi2013", tmp_path, "--data", folder, "--quick")
    records = [json.loads(line) for line in (tmp_path / "results.jsonl").open()]
    cells = [record for record in records if "rmse" in record]
    assert len({record["key"] for record in records}) == len(records)
    assert {record["fold"] for record in cells} == {0, 1}
    assert {"ML-CSSP", "BMD09", "PLST", "CPLST", "MOPLMS", "CL", "BR"} < {
        record["method"] for record in cells
    }
    relevance = np.mean([record["rmse"] for record in cells if record["method"] == "BR"])
    assert relevance < 2.0
    page = (tmp_path / "README.md").read_text()
    for heading in ("Table 3", "Table 4", "Table 5", "Tables 6 to 8", "Figure 1"):
        assert f"## {heading}" in page
    assert "PLST's encoding error is the smallest" in page
    assert str(folder) not in page
    done = run("bi2013", tmp_path, "--data", folder, "--quick")
    assert "fold" not in done  # nothing left to do


def test_mineiro2015(tmp_path):
    """Two seconds of it: what follows the time limit is left for the next run."""
    said = run("mineiro2015", tmp_path, "--data", tmp_path, "--quick", "--minutes", "0.02")
    assert "ALOI is not in the folder: left out" in said
    assert "siblings seed=0" in said
    page = (tmp_path / "README.md").read_text()
    assert "## Table 4: siblings" in page
    records = [json.loads(line) for line in (tmp_path / "results.jsonl").open()]
    for record in records:
        if "PLST" in record:
            assert record["Rembrandt"] >= record["PLST"] > record["CS"]


def test_labels(folder, tmp_path):
    for end in ("arff", "xml"):
        (tmp_path / f"emotions.{end}").write_bytes((folder / f"cal500.{end}").read_bytes())
    out = tmp_path / "labels.json"
    command = [sys.executable, "-m", "bench.labels", "--quick", "--data", tmp_path, "--out", out]
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept = json.loads(out.read_text())
    assert kept["scale"]["rows"] == 7500
    found = {tuple(key.split(": ")[1].split(", ")[:2]): r for key, r in kept["results"].items()}
    assert {"none", "PLST", "CPLST", "Rembrandt", "ML-CSSP", "–"} == {e for e, _ in found}
    assert found["none", "ridge"]["LRAP"] > 0.8  # the labels are linear
    assert found["none", "ridge"]["LRAP"] > found["ML-CSSP", "ridge"]["LRAP"]
