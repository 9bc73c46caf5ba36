"""OpenMP's threads wait briefly, unless the environment says how long; it stays as it was."""

import ctypes
import os
import subprocess
import sys

import pytest

from pyrpo import _waiting

WORDS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
LOAD = """
import ctypes, runpy, sys
with runpy.run_path(sys.argv[1])["waiting_briefly"]():
    ctypes.CDLL("libgomp.so.1")
"""
IMPORT = """
import pathlib, joblib, numpy, scipy.sparse, sklearn.base
maps = pathlib.Path("/proc/self/maps")
loaded = "libgomp.so.1" in maps.read_text()
import pyrpo
print(not loaded and "libgomp.so.1" in maps.read_text())
"""


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    for word in WORDS:
        monkeypatch.delenv(word, raising=False)


@pytest.mark.parametrize("fails", [False, True])
def test_the_environment_is_as_before(fails):
    before = dict(os.environ)
    try:
        with _waiting.waiting_briefly():
            assert os.environ["GOMP_SPINCOUNT"] == "5000"
            if fails:
                raise ImportError
    except ImportError:
        assert fails
    assert dict(os.environ) == before


@pytest.mark.parametrize("word", WORDS)
def test_what_was_said_comes_first(monkeypatch, word):
    monkeypatch.setenv(word, "77")
    before = dict(os.environ)
    with _waiting.waiting_briefly():
        assert dict(os.environ) == before
    assert dict(os.environ) == before


def run(folder, program, **said):
    """What a process prints, and what GNU OpenMP tells there of its settings when it is loaded."""
    return subprocess.run(
        [sys.executable, "-c", program, _waiting.__file__],
        cwd=folder,
        env=dict(os.environ) | {"OMP_DISPLAY_ENV": "verbose"} | said,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize(("said", "turns"), [({}, 5000), ({"OMP_WAIT_POLICY": "passive"}, 0)])
def test_gnu_openmp_takes_it(tmp_path, said, turns):
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        pytest.skip("there is no GNU OpenMP")
    assert f"GOMP_SPINCOUNT = '{turns}'" in run(tmp_path, LOAD, **said).stderr


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc/self/maps")
def test_the_package_loads_its_library_so(tmp_path):
    told = run(tmp_path, IMPORT)
    if told.stdout.strip() != "True":
        pytest.skip("pyrpo is not what loads GNU OpenMP")
    assert "GOMP_SPINCOUNT = '5000'" in told.stderr
