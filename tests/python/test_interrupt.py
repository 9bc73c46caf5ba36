"""^C, threads, fork and damaged files: the process stays healthy."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import pyrpo

pytestmark = pytest.mark.alone
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
LIMIT = 0.5  # seconds from ^C to KeyboardInterrupt


@pytest.fixture(autouse=True)
def _handled():
    """Processes in the background of a shell begin with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def labels(n=2000, p=300, d=400, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, p), density=0.2, rng=rng, format="csr")
    return X, sparse.csr_array((rng.random((n, d)) < 0.03).astype(float))


def interrupted(work, after=0.3):
    """Seconds from the signal to the exception that it must raise."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.perf_counter() - sent[0]
    finally:
        timer.cancel()
        timer.join()


def healthy():
    X, Y = labels(200, 20, 10)
    models = [
        pyrpo.RandomForestClassifier(3, random_state=0, n_jobs=j).fit(X, Y).predict_proba(X)
        for j in (1, 2)
    ]
    np.testing.assert_array_equal(*models)


@POSIX
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"projection": "gaussian", "n_components": 50},
        {"max_features": None, "max_leaf_nodes": 500},
    ],
    ids=str,
)
def test_fit(n_jobs, options):
    X, Y = labels()
    model = pyrpo.RandomForestClassifier(100_000, n_jobs=n_jobs, random_state=0, **options)
    assert interrupted(lambda: model.fit(X, Y)) < LIMIT
    assert not hasattr(model, "n_features_in_")
    healthy()


@POSIX
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fit_of_one_large_tree(n_jobs):
    """Polled inside large nodes too."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50_000, 300)), rng.normal(size=(50_000, 12))
    model = pyrpo.RandomForestRegressor(1, max_features=1.0, n_jobs=n_jobs)
    assert interrupted(lambda: model.fit(X, Y), after=2.0) < LIMIT
    healthy()


@POSIX
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("method", ["predict_proba", "predict_topk", "apply", "weights"])
def test_predict(method, n_jobs):
    X, Y = labels()
    model = pyrpo.RandomForestClassifier(30, n_jobs=n_jobs, random_state=0).fit(X, Y)
    many = sparse.vstack([X] * 100)
    arguments = (5,) if method == "predict_topk" else ()

    def work():
        deadline = time.perf_counter() + 30
        while time.perf_counter() < deadline:
            getattr(model, method)(many, *arguments)

    assert interrupted(work) < LIMIT
    healthy()


@POSIX
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"projection": None, "leaf": "mean", "loss": "exponential"},
        {"relabel": False, "early_stopping": False},
        {"strategy": "single_target", "early_stopping": False},
        {"scoring": "lrap"},
    ],
    ids=str,
)
def test_boosting(n_jobs, options):
    X, Y = labels()
    model = pyrpo.GradientBoostingClassifier(3, n_jobs=n_jobs, random_state=0).fit(X, Y)
    before, state = model.predict_proba(X), None
    model.set_params(n_estimators=10**6, n_iter_no_change=10**6, **options)
    state = dict(vars(model))
    assert interrupted(lambda: model.fit(X, Y)) < LIMIT
    assert vars(model) == state
    time.sleep(0.2)
    began = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - began < 0.15  # no thread goes on
    np.testing.assert_array_equal(model.predict_proba(X), before)


@POSIX
@pytest.mark.parametrize("options", [{"projection": None}, {"loss": "absolute"}], ids=str)
def test_boosting_with_long_rounds(options):
    """Polled inside a round, too, once rounds are known to be long."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30_000, 40)), rng.normal(size=(30_000, 60))
    model = pyrpo.GradientBoostingRegressor(10**6, max_depth=8, early_stopping=False, **options)
    assert interrupted(lambda: model.fit(X, Y), after=4.0) < 2 * LIMIT
    assert not hasattr(model, "n_features_in_")


@POSIX
def test_boosting_with_a_python_loss():
    X, Y = labels()
    model = pyrpo.GradientBoostingRegressor(10**6, loss=lambda y, f: ((y - f) ** 2 / 2, f - y))
    model.set_params(early_stopping=False)
    assert interrupted(lambda: model.fit(X, Y)) < LIMIT
    assert not hasattr(model, "n_features_in_")


@POSIX
def test_a_fitted_model_survives():
    X, Y = labels()
    model = pyrpo.RandomForestClassifier(5, random_state=0).fit(X, Y)
    before = model.predict_proba(X)
    model.set_params(n_estimators=100_000)
    interrupted(lambda: model.fit(X, Y))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_exceptions_in_the_progress_bar_come_out(monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto")

    class Broken:
        def __init__(self, **options):
            self.n = 0

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda *a: None  # noqa: E731

        def update(self, n):
            raise ZeroDivisionError("in the bar")

    monkeypatch.setattr(tqdm, "tqdm", Broken)
    X, Y = labels()
    with pytest.raises(ZeroDivisionError, match="in the bar"):
        pyrpo.RandomForestClassifier(100_000, verbose=1).fit(X, Y)
    for strategy in ("joint", "single_target"):
        boosting = pyrpo.GradientBoostingClassifier(3, verbose=1, strategy=strategy)
        with pytest.raises(ZeroDivisionError, match="in the bar"):
            boosting.fit(X[:200], Y[:200, :5])
    healthy()


def fit_and_send(pipe, X, Y, n_jobs):
    model = pyrpo.RandomForestClassifier(5, n_jobs=n_jobs, random_state=0).fit(X, Y)
    pipe.send(model.predict_proba(X))
    pipe.close()


@POSIX
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fork_after_a_parallel_fit(n_jobs):
    X, Y = labels(500, 50, 50)
    model = pyrpo.RandomForestClassifier(5, n_jobs=2, random_state=0).fit(X, Y)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=fit_and_send, args=(theirs, X, Y, n_jobs))
    child.start()
    try:
        assert ours.poll(30), "the child hangs"
        np.testing.assert_array_equal(ours.recv(), model.predict_proba(X))
        child.join(10)
        assert child.exitcode == 0
    finally:
        child.kill()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_two_python_threads_at_once(n_jobs):
    problems = [labels(800, 60, 60, seed) for seed in range(4)]

    def fit(X, Y):
        model = pyrpo.RandomForestClassifier(20, n_jobs=n_jobs, random_state=0).fit(X, Y)
        return model.predict_proba(X)

    expected = [fit(X, Y) for X, Y in problems]
    found = [None] * 4

    def work(i):
        found[i] = fit(*problems[i])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_model_predicts_in_two_threads():
    X, Y = labels(800, 60, 60)
    model = pyrpo.RandomForestClassifier(20, n_jobs=2, random_state=0).fit(X, Y)
    expected, found = model.predict_proba(X), []
    workers = [
        threading.Thread(target=lambda: found.append(model.predict_proba(X))) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(found) == 4
    for p in found:
        np.testing.assert_array_equal(p, expected)


@POSIX
def test_ctrl_c_in_a_script(tmp_path):
    """The default handler, from outside: exit by KeyboardInterrupt, soon."""
    code = """
import numpy as np, pyrpo
X, Y = np.random.default_rng(0).normal(size=(2, 3000, 30))
print("growing", flush=True)
pyrpo.RandomForestRegressor(1_000_000, n_jobs=2).fit(X, Y)
"""

    def seconds_to_end():
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout.readline() == "growing\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            sent = time.perf_counter()
            _, errors = process.communicate(timeout=60)
            assert "KeyboardInterrupt" in errors
            return time.perf_counter() - sent
        finally:
            process.kill()

    # With the interpreter's own end. A busy machine may be late, but not each time.
    assert any(seconds_to_end() < 2.0 for _ in range(4))


# ---- damaged files ----


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    X, Y = labels(100, 20, 10)
    path = tmp_path_factory.mktemp("models") / "model.rpo"
    pyrpo.RandomForestClassifier(3, random_state=0).fit(X, Y).save(path)
    return path


def test_truncated_files(file, tmp_path):
    whole, damaged = file.read_bytes(), tmp_path / "damaged.rpo"
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        damaged.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="model"):
            pyrpo.load(damaged)
    damaged.write_bytes(whole + b"x")
    with pytest.raises(ValueError, match="model"):
        pyrpo.load(damaged)


def test_changed_bytes(file, tmp_path):
    whole, damaged = file.read_bytes(), tmp_path / "damaged.rpo"
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        damaged.write_bytes(changed)
        with pytest.raises(ValueError, match="model"):
            pyrpo.load(damaged)


@pytest.mark.parametrize("content", [b"", b"\0" * 1000, b"RPOMODEL", b"PK\x03\x04" * 100])
def test_other_files(content, tmp_path):
    path = tmp_path / "other.rpo"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="model"):
        pyrpo.load(path)


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"estimator": "os.system", "params": {}, "fitted": {}}',
        b'{"estimator": "RandomForestClassifier", "params": {"no_such": 1}, "fitted": {}}',
        b'{"estimator": "RandomForestClassifier", "params": [], "fitted": {}}',
        b'{"estimator": "RandomForestClassifier", "params": {"projection": {"projection": "np"}},'
        b'"fitted": {}}',
        b"\xff\xfe",
    ],
)
def test_foreign_notes(file, note, tmp_path):
    """A model of the C library, or another program's."""
    path = tmp_path / "foreign.rpo"
    pyrpo.load(file)._model.save(path, note)
    with pytest.raises(ValueError, match="no estimator saved by pyrpo"):
        pyrpo.load(path)


def test_damaged_pickles(file):
    from pyrpo._native import Model

    whole = pyrpo.load(file)._model.dump()
    with pytest.raises(ValueError, match="model"):
        Model.parse(whole[:-1])
    with pytest.raises(ValueError, match="model"):
        Model.parse(np.zeros(0, np.uint8))


def test_folders_are_no_files(tmp_path):
    with pytest.raises(OSError, match=tmp_path.name):
        pyrpo.load(tmp_path)
