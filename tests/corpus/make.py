"""Writes small model files of every form, with what they must predict: ``python make.py``.

Files of every released version stay loadable, so those that are here are never written again: only
those that are missing are made, in the folder of the version at hand. Beside NAME.rpo lies
NAME.expected.rpo, whose named arrays are the inputs and the answers; C and Python read both.
"""

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

import pyrpo
from pyrpo import _native_files, embedding

ROWS, ASKED = 60, 12


def labels(rng, columns, share):
    Y = (rng.random((ROWS, columns)) < share).astype(float)
    Y[np.arange(ROWS), rng.integers(columns, size=ROWS)] = 1.0
    return sparse.csr_array(Y)


def cases(rng):
    """Name, estimator, X, y, what the file must have (name of a section: its type)."""
    X = np.round(rng.normal(size=(ROWS, 5)), 2)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    real = np.round(rng.normal(size=(ROWS, 3)), 2)
    gaps = real.copy()
    gaps[rng.random(real.shape) < 0.2] = np.nan
    few, many = labels(rng, 6, 0.2), labels(rng, 40, 0.03)
    classes = np.array(["ant", "bee", "cat", "dog"])[rng.integers(4, size=ROWS)]
    weight = 0.25 + rng.random(ROWS)
    forest, trees = pyrpo.RandomForestClassifier, pyrpo.ExtraTreesRegressor
    boosted = pyrpo.GradientBoostingClassifier
    seed = {"random_state": 0}
    boost = seed | {"n_estimators": 4, "early_stopping": False}
    yield "forest-rows", trees(3, **seed), holes, real, {"rows": "uint16", "values": None}
    yield "forest-rows-sparse", forest(3, **seed), X, few, {"rows": "uint16", "value columns": None}
    yield (
        "forest-rows-weighted",
        pyrpo.RandomForestRegressor(3, bootstrap=False, **seed),
        X,
        (real, weight),
        {"row weights": "float64"},
    )
    yield "forest-table", trees(4, max_depth=2, **seed), X, real, {"values": "float64"}
    yield "forest-rows-many", forest(3, max_depth=2, **seed), X, many, {"row weights": "uint8"}
    sparse_table = {"leaf sizes": None, "value columns": None}
    yield "forest-classes", forest(3, **seed), holes, classes, sparse_table
    yield "forest-missing-outputs", trees(3, **seed), X, gaps, {"fallback": "float64"}
    yield "forest-all-rows", forest(3, leaf_rows="all", **seed), X, few, {"sample weights": None}
    yield "tree", pyrpo.DecisionTreeRegressor(**seed), X, real[:, 0], {}
    yield "boosted-dense", boosted(**boost), holes, few, {"constants": None, "values": "float32"}
    yield "boosted-half", boosted(compact=True, **boost), X, few, {"values": "float16"}
    yield (
        "boosted-sparse",
        boosted(strategy="single_target", **boost),
        X,
        few,
        {"value columns": None, "values": "float32"},
    )
    yield "boosted-steps", boosted(relabel=False, **boost), X, few, {"steps": "float32"}
    yield "boosted-softmax", boosted(**boost), X, classes, {"constants": None}
    part = pyrpo.LabelEmbeddingClassifier
    yield "embedding-rembrandt", embedding.Rembrandt(3, center=True, **seed), X, few, {}
    yield "embedding-labeling", embedding.CompressedLabeling(5, **seed), X, few, {}
    yield "label-embedding", part(embedding.PLST(3), decoder="linear", **seed), X, few, {}
    yield (
        "label-embedding-forest",
        part(embedding.MLCSSP(2), pyrpo.RandomForestRegressor(2), decoder="linear", **seed),
        X,
        few,
        {},
    )


def answers(model, X, y):
    """What the model says, as arrays."""
    if isinstance(model, embedding._base.Embedding):
        codes = model.transform(y[:ASKED])
        return {"Y": y[:ASKED].toarray(), "codes": codes, "scores": model.inverse_transform(codes)}
    X = X[:ASKED]
    found = model.predict(X)
    if found.dtype.kind == "U":
        found = np.searchsorted(model.classes_, found)
    say = {"X": X, "predict": found}
    if hasattr(model, "_model"):
        say |= {"scores": model._model.predict(X), "leaves": model._model.apply(X)}
        say["topk"], say["topk_scores"] = model._model.predict_topk(X, 1)
    else:
        say["proba"] = model.predict_proba(X)
    return say


def main() -> int:
    folder = Path(__file__).parent / pyrpo.__version__
    folder.mkdir(exist_ok=True)
    for name, model, X, y, sections in cases(np.random.default_rng(0)):
        path = folder / f"{name}.rpo"
        if path.exists():
            print(f"{path} is there: kept")
            continue
        y, weight = y if isinstance(y, tuple) else (y, None)
        model.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
        model.save(path)
        there = {s.name: s.dtype for s in pyrpo.inspect_model(path).sections}
        for section, dtype in sections.items():
            if section not in there or dtype not in (None, there[section]):
                path.unlink()
                raise SystemExit(f"{name} has not the form it stands for: {section}, {there}")
        expected = folder / f"{name}.expected.rpo"
        _native_files.save_arrays(expected, answers(model, X, y), b"")
        print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
