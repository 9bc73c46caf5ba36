"""The problems of the benchmarks: read once, kept as .npz, loaded in each measuring process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pyrpo.datasets import load_mulan, load_vw, make_multilabel

FILES = {
    "delicious": ("delicious-train.arff.gz", "delicious-test.arff.gz", "delicious.xml"),
    "bibtex": ("bibtex-train.arff.gz", "bibtex-test.arff.gz", "bibtex.xml"),
    "scene": ("scene-train.arff.gz", "scene-test.arff.gz", "scene.xml"),
    "yeast": ("yeast-train.arff.gz", "yeast-test.arff.gz", "yeast.xml"),
    "wq": ("wq.arff.gz",),
    "aloi": ("aloi-train.vw.gz", "aloi-test.vw.gz"),
    "corel5k-like": (),
    "reals": (),
}


@dataclass
class Problem:
    """Training and test parts; label matrices and features sparse where the files are."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


def missing(name: str, folder: Path) -> list[str]:
    """Files of a problem that are not in the folder."""
    return [file for file in FILES[name] if not (folder / file).exists()]


def read(name: str, folder: Path) -> Problem:
    """Read or generate a problem."""
    if name == "corel5k-like":
        # Corel5k's sizes: 4500 + 500 pictures, 499 binary features (8.3 a row), 374 labels (3.5).
        data = make_multilabel(
            5000, n_features=499, n_labels=374, cardinality=3.52, density=8.26 / 499, random_state=0
        )
        return Problem(data.X[:4500], data.Y[:4500], data.X[4500:], data.Y[4500:])
    if name == "reals":
        # Many real outputs of dense features: 500 bent combinations of 100, a third of them noise.
        rng = np.random.default_rng(0)
        X = rng.normal(size=(5000, 100)).astype(np.float32)
        Y = np.tanh(X @ rng.normal(size=(100, 500)) / 10) + 0.4 * rng.normal(size=(5000, 500))
        return Problem(X[:4000], Y[:4000], X[4000:], Y[4000:])
    if name == "aloi":
        train, test = (load_vw(folder / file, n_features=128) for file in FILES[name])
        return Problem(train.X.toarray(), train.y, test.X.toarray(), test.y)
    if name == "wq":
        data = load_mulan(folder / FILES[name][0], n_targets=14)
        order = np.random.RandomState(0).permutation(len(data.Y))
        Y = (data.Y - data.Y.mean(axis=0)) / data.Y.std(axis=0)
        train, test = np.split(order, [len(order) // 2])
        return Problem(data.X[train], Y[train], data.X[test], Y[test])
    train, test = (load_mulan(folder / file) for file in FILES[name][:2])
    return Problem(train.X, train.Y, test.X, test.Y)


def save(problem: Problem, path: Path) -> None:
    """Write a problem so that loading it takes little more memory than it has."""
    arrays = {}
    for name, part in vars(problem).items():
        if sparse.issparse(part):
            arrays |= {
                f"{name}.data": part.data,
                f"{name}.indices": part.indices,
                f"{name}.indptr": part.indptr,
                f"{name}.shape": np.array(part.shape),
            }
        else:
            arrays[name] = part
    np.savez(path, **arrays)


def load(path: Path) -> Problem:
    """Read what `save` wrote."""
    with np.load(path) as file:

        def part(name):
            if name in file:
                return file[name]
            data, indices, indptr = (file[f"{name}.{k}"] for k in ("data", "indices", "indptr"))
            return sparse.csr_array((data, indices, indptr), shape=tuple(file[f"{name}.shape"]))

        return Problem(*(part(name) for name in ("X", "Y", "X_test", "Y_test")))


def dense(matrix: Any, dtype=None) -> np.ndarray:
    """Return as a numpy array."""
    array = matrix.toarray() if sparse.issparse(matrix) else matrix
    return array if dtype is None else array.astype(dtype)
