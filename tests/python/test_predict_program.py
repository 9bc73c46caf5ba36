"""rpo-predict, which scores text files without Python, beside Python on the same model."""

import gzip
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from pyrpo import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from pyrpo.datasets import load_svmlight_multilabel, load_xmc

PROGRAM = shutil.which("rpo-predict", path=sysconfig.get_path("scripts"))
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="rpo-predict is not installed")

N_FEATURES, N_LABELS = 30, 12


def run(*words, text=None, status=0):
    done = subprocess.run([PROGRAM, *map(str, words)], input=text, capture_output=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def problem(rng, rows):
    X = sparse.random_array((rows, N_FEATURES), density=0.3, rng=rng, format="csr")
    X.data = np.round(20 * X.data - 10, rng.integers(1, 6))
    Y = sparse.csr_array((X[:, :N_LABELS].toarray() > 1).astype(np.int8))
    return X, Y


def rows_of(X, Y, first=0):
    """Lines of svmlight."""
    lines = []
    for x, y in zip(X, Y, strict=True):
        x, y = x.tocoo(), y.tocoo()
        labels = ",".join(str(j) for j in y.coords[-1])
        pairs = " ".join(
            f"{j + first}:{v!r}" for j, v in zip(x.coords[-1], x.data.tolist(), strict=True)
        )
        lines.append(f"{labels} {pairs}\n")
    return lines


def as_rows(X):
    return [X[[i]] for i in range(X.shape[0])]


def write(path, X, Y, *, header=False, first=0):
    lines = rows_of(as_rows(X), as_rows(Y), first)
    if header:
        lines.insert(0, f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
    path.write_text("".join(lines))
    return path


def read_topk(printed):
    pairs = [[p.split(":") for p in line.split()] for line in printed.splitlines()]
    return np.array([[int(p[0]) for p in row] for row in pairs]), np.array(
        [[float(p[1]) for p in row] for row in pairs]
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A forest, the folder of its file and of test rows, in svmlight from 1 and with a header."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("predict")
    X, Y = problem(rng, 300)
    forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, Y)
    forest.save(folder / "forest.rpo")
    X_test, Y_test = problem(rng, 150)
    write(folder / "test.svm", X_test, Y_test, first=1)
    write(folder / "test.txt", X_test, Y_test, header=True)
    return forest, folder, X_test


@pytest.mark.parametrize("threads", [1, 2])
def test_equals_python(saved, threads):
    forest, folder, X = saved
    labels, scores = forest.predict_topk(X, 4)
    words = ["-k", 4, "--digits", 17, "--threads", threads, folder / "forest.rpo"]
    printed = run(*words, folder / "test.txt")
    found, values = read_topk(printed)
    np.testing.assert_array_equal(found, labels)
    np.testing.assert_array_equal(values, scores)
    assert run("--one-based", *words, folder / "test.svm") == printed
    assert run(*words, "-", text=(folder / "test.txt").read_bytes()) == printed


def test_all_scores(saved):
    forest, folder, X = saved
    printed = run("--all", "-d", 17, folder / "forest.rpo", folder / "test.txt")
    found = np.array([line.split() for line in printed.splitlines()], dtype=float)
    np.testing.assert_array_equal(found, forest.predict_proba(X))


def test_equals_python_on_what_python_reads(saved, tmp_path):
    forest, folder, _ = saved
    words = ["-s", "-k", 2, "-d", 17, folder / "forest.rpo"]
    data = load_xmc(folder / "test.txt")
    np.testing.assert_array_equal(
        read_topk(run(*words, folder / "test.txt"))[1], forest.predict_topk(data.X, 2)[1]
    )
    data = load_svmlight_multilabel(folder / "test.svm", n_features=N_FEATURES, zero_based=False)
    np.testing.assert_array_equal(
        read_topk(run("-1", *words, folder / "test.svm"))[1], forest.predict_topk(data.X, 2)[1]
    )


def test_boosting(saved, tmp_path):
    _, folder, X = saved
    data = load_xmc(folder / "test.txt", dtype=np.float64)
    boosting = GradientBoostingClassifier(n_estimators=10, early_stopping=False, random_state=0)
    boosting.fit(data.X, data.Y).save(tmp_path / "boosting.rpo")
    labels, p = boosting.predict_topk(X, 3)
    printed = run("-p", "-k", 3, "-d", 17, tmp_path / "boosting.rpo", folder / "test.txt")
    found, values = read_topk(printed)
    np.testing.assert_array_equal(found, labels)
    np.testing.assert_allclose(values, p, rtol=1e-12)
    assert "kind: boosted trees" in run("--info", tmp_path / "boosting.rpo")


def test_many_blocks(saved, rng):
    """More rows and more text than a block holds; the last line without an end."""
    forest, folder, X = saved
    lines = (folder / "test.txt").read_text().splitlines(keepends=True)[1:]
    text = "".join(lines * 160).rstrip("\n").encode()
    assert len(text) > 2 << 20
    words = ["-k", 1, "-d", 17, folder / "forest.rpo"]
    once = run(*words, "-", text="".join(lines).encode())
    assert run(*words, "-", text=text) == once * 160
    assert run(*words, "-", text=text.replace(b"\n", b"\r\n")) == once * 160
    assert len(once.splitlines()) == len(forest.predict_topk(X, 1)[0])


def test_long_line(tmp_path):
    """A row longer than the first buffer."""
    n = 120_000
    X = sparse.csr_array(np.linspace(1, 2, 2 * n).reshape(2, n))
    RandomForestRegressor(n_estimators=2, max_features=3, random_state=0).fit(
        X, [[0.0, 1.0], [1.0, 0.0]]
    ).save(tmp_path / "wide.rpo")
    text = "".join(rows_of(as_rows(X), as_rows(sparse.csr_array((2, 1))))).encode()
    assert len(text.splitlines()[0]) > 2 << 20
    assert len(run("--all", tmp_path / "wide.rpo", "-", text=text).splitlines()) == 2


def test_empty_rows_and_missing_values(saved):
    forest, folder, _ = saved
    words = ["-a", "-d", 17, folder / "forest.rpo", "-"]
    X = np.zeros((3, N_FEATURES))
    X[1, 2] = np.nan
    printed = run(*words, text=b"3 30 12\n\n1 2:nan\n 4:0\n")
    found = np.array([line.split() for line in printed.splitlines()], dtype=float)
    np.testing.assert_array_equal(found, forest.predict_proba(X))
    assert run(*words, text=b"") == ""
    assert run(*words, text=b"\n# nothing\n\n") == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"0 1:1\n0 x:1\n", "standard input, line 2: expected 'feature:value', found 'x:1'"),
        (b"0 1:1\n\n0 30:1", "line 3: feature 30 is beyond the last of the model, 29"),
        (b"2 30 12\n0 1:1\n", "line 3: the header says 2 rows, the file ends after 1"),
        (b"1 30 12\n0 1:1\n0 1:1\n", "line 3: more rows than the header's 1"),
        (b"1 31 12\n0 1:1\n", "line 1: the header says 31 features, the model has 30"),
        (b"0 1:1 1:2\n", "line 1: feature 1 occurs twice"),
        (gzip.compress(b"0 1:1\n", mtime=0), "is compressed"),
    ],
)
def test_malformed(saved, text, message):
    _, folder, _ = saved
    assert message in run(folder / "forest.rpo", "-", text=text, status=1)


def test_rows_before_a_malformed_line_are_scored(saved):
    _, folder, _ = saved
    words = [PROGRAM, "-k", "1", str(folder / "forest.rpo"), "-"]
    done = subprocess.run(words, input=b"0 1:1\n0 2:2\n0 3:\n0 4:4\n", capture_output=True)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2


def test_files_that_are_not_there(saved, tmp_path):
    _, folder, _ = saved
    forest = folder / "forest.rpo"
    assert "No such file" in run(forest, tmp_path / "none", status=1)
    assert "none" in run(tmp_path / "none", folder / "test.txt", status=1)
    damaged = tmp_path / "damaged.rpo"
    damaged.write_bytes(forest.read_bytes()[:-1])
    assert "damaged" in run(damaged, folder / "test.txt", status=1)
    if Path("/dev/full").exists():
        words = [PROGRAM, str(forest), str(folder / "test.txt")]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 1
        assert b"cannot write" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "MODEL?"),
        (["MODEL"], "FILE?"),
        (["MODEL", "FILE", "FILE"], "one file"),
        (["--none", "MODEL", "FILE"], "there is no option --none"),
        (["-k", "0", "MODEL", "FILE"], "-k must be a whole number from 1"),
        (["-k", "2x", "MODEL", "FILE"], "got '2x'"),
        (["-k", "13", "MODEL", "FILE"], "at most the model's 12 outputs, got 13"),
        (["MODEL", "FILE", "-k"], "a number must follow -k"),
        (["--all", "-k", "2", "MODEL", "FILE"], "either --all or --k"),
    ],
)
def test_misuse(saved, words, message):
    _, folder, _ = saved
    places = {"MODEL": folder / "forest.rpo", "FILE": folder / "test.txt"}
    assert message in run(*(places.get(w, w) for w in words), status=2)


def test_about(saved):
    _, folder, _ = saved
    assert "usage: rpo-predict" in run("--help")
    assert run("--version").strip() == run("-V").strip() != ""
    info = run("--info", folder / "forest.rpo")
    assert "kind: forest\nfeatures: 30\noutputs: 12\ntrees: 20\n" in info
