"""Files of every released version stay loadable and predict what they did: tests/corpus."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyrpo
from pyrpo import _native_files

CORPUS = Path(__file__).parents[1] / "corpus"
FILES = sorted(p for p in CORPUS.glob("*/*.rpo") if ".expected" not in p.name)


def expected(path):
    return _native_files.load_arrays(path.with_suffix(".expected.rpo"), mmap=False)[0]


def test_there_is_a_corpus():
    if not CORPUS.exists():
        pytest.skip("the corpus is not here")
    assert len(FILES) >= 18
    assert max(p.stat().st_size for p in CORPUS.glob("*/*.rpo")) < 25_000


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_files_predict_what_they_did(path, mmap):
    model, said = pyrpo.load(path, mmap=mmap), expected(path)
    if "codes" in said:
        np.testing.assert_allclose(model.transform(said["Y"]), said["codes"], atol=1e-12)
        np.testing.assert_allclose(
            model.inverse_transform(said["codes"]), said["scores"], atol=1e-9
        )
        return
    found = model.predict(said["X"])
    if found.dtype.kind == "U":
        found = np.searchsorted(model.classes_, found)
    np.testing.assert_array_equal(found, said["predict"])
    if "proba" in said:
        np.testing.assert_allclose(model.predict_proba(said["X"]), said["proba"], atol=1e-9)
        return
    trees = model._model
    np.testing.assert_array_equal(trees.predict(said["X"]), said["scores"])
    np.testing.assert_array_equal(trees.apply(said["X"]), said["leaves"])
    index, score = trees.predict_topk(said["X"], 1)
    np.testing.assert_array_equal(index, said["topk"])
    np.testing.assert_array_equal(score, said["topk_scores"])


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_files_are_saved_the_same_again(path, tmp_path):
    """A file of this version and what its model saves are the same; an older one loads at least."""
    pyrpo.load(path).save(tmp_path / "again.rpo")
    if path.parent.name == pyrpo.__version__:
        assert (tmp_path / "again.rpo").read_bytes() == path.read_bytes()


@pytest.mark.skipif(not FILES, reason="the corpus is not here")
def test_the_script_overwrites_nothing(tmp_path):
    before = {p: p.read_bytes() for p in CORPUS.glob("*/*")}
    if not (CORPUS / pyrpo.__version__).exists():
        pytest.skip("this version has no files yet")
    run = subprocess.run(
        [sys.executable, str(CORPUS / "make.py")],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert (
        run.stdout.count("is there: kept") == len(list((CORPUS / pyrpo.__version__).glob("*"))) / 2
    )
    assert {p: p.read_bytes() for p in CORPUS.glob("*/*")} == before
