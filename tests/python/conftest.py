"""Tests run against the installed package, not the source tree, which has no compiled module."""

import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")

ROOT = Path(__file__).resolve().parents[2]
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != ROOT]


@pytest.fixture
def rng():
    return np.random.default_rng(0)
