"""OpenMP's threads wait briefly, unless the environment says how long; it stays as it was."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
words = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
before = [os.environ.get(word) for word in words]
import pyrpo
assert [os.environ.get(word) for word in words] == before
"""


def told(folder, **environment):
    """What GNU OpenMP tells of its settings when it is loaded."""
    known = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=known | {"OMP_DISPLAY_ENV": "verbose"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    if "GOMP_SPINCOUNT" not in run.stderr:
        pytest.skip("not GNU OpenMP")
    return run.stderr


def test_threads_wait_briefly(tmp_path):
    assert "GOMP_SPINCOUNT = '5000'" in told(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "turns"), [("OMP_WAIT_POLICY", "passive", 0), ("GOMP_SPINCOUNT", "77", 77)]
)
def test_the_environment_comes_first(tmp_path, name, value, turns):
    text = told(tmp_path, **{name: value})
    assert f"GOMP_SPINCOUNT = '{turns}'" in text
    assert "GOMP_SPINCOUNT = '5000'" not in text
