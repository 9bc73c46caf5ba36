"""Kept inputs of tests/fuzz/fuzz_text.py, each shorter and longer by a little too."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "fuzz"
CORPUS = sorted((FOLDER / "corpus" / "text").iterdir())


@pytest.fixture(scope="module")
def fuzz_text():
    spec = importlib.util.spec_from_file_location("fuzz_text", FOLDER / "fuzz_text.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_arrays_or_a_value_error(path, fuzz_text, tmp_path):
    data = path.read_bytes()
    fuzz_text.check(data, tmp_path)
    for place in range(1, len(data), max(1, len(data) // 60)):
        for damaged in (data[:place], data[:place] + b"\xff" + data[place:]):
            fuzz_text.check(damaged, tmp_path)


def test_seeds_are_read(fuzz_text, tmp_path):
    """Most of what is kept by name is a data set: else the fuzzing would see refusals only."""
    named = [path for path in CORPUS if "-" in path.name and len(path.name) < 30]
    refused = [path.name for path in named if fuzz_text.check(path.read_bytes(), tmp_path)]
    assert len(refused) < len(named) / 2, refused
