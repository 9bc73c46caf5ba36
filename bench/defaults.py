"""Boosting with parameters that nobody tuned: what other defaults would gain or lose on which data.

    python bench/defaults.py --data FOLDER --try learning_rate=0.03 --try l2=3 min_samples_leaf=3

Each `--try` is a setting, held against no setting at all on the same random splits: label ranking
average precision or mean r2 (accuracy of classes), and the loss, as differences in percent of the
score and of the loss. Test parts of the files stay out of it: splits are made of the training
parts. Kept in --out; what is there is not run again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LABELS = ("emotions", "birds", "cal500", "yeast", "scene", "bibtex", "delicious")
TARGETS = {"edm": 2, "atp1d": 6, "oes97": 16, "wq": 14}
MOST = {"delicious": 2400, "bibtex": 2400}  # rows: more take long
SLOW = ("scene", "bibtex", "delicious", "100 of ALOI", "ind", "200 labels", "40 classes", "digits")

Data = tuple[Any, Any, str]  # X, Y, kind


def mulan(name: str, folder: Path) -> Data:
    from pyrpo.datasets import load_mulan

    files = [folder / f"{name}{part}.arff.gz" for part in ("-train", "")]
    data = load_mulan(next(f for f in files if f.exists()), n_targets=TARGETS.get(name))
    if name in TARGETS:
        deviation = data.Y.std(axis=0)
        return data.X, (data.Y - data.Y.mean(axis=0)) / np.where(deviation > 0, deviation, 1), "r2"
    return data.X, sparse.csr_array(data.Y), "lrap"


def friedman(kind: str) -> Data:
    from pyrpo import datasets

    X, Y = getattr(datasets, f"make_friedman1_{kind}")(600, 16, random_state=0)
    return X, Y / Y.std(axis=0), "r2"


def generated() -> dict[str, Callable[[], Data]]:
    """Problems that need no file."""
    from sklearn import datasets as made

    from pyrpo.datasets import make_multilabel

    def labels(n, d):
        data = make_multilabel(n, n_labels=d, random_state=0)
        return data.X, data.Y, "lrap"

    def classes(n, c, p=30):
        return *made.make_classification(
            n, p, n_informative=p // 2, n_classes=c, n_clusters_per_class=1, class_sep=0.7,
            flip_y=0.05, random_state=0,
        ), "accuracy"  # fmt: skip

    def hard(n):
        return *made.make_classification(n, 20, n_informative=5, flip_y=0.1, random_state=1), (
            "accuracy"
        )

    def known(name):
        data = getattr(made, f"load_{name}")()
        return data.data, data.target, "r2" if name == "diabetes" else "accuracy"

    def smooth(n):
        X, y = made.make_friedman1(n, 10, noise=1.0, random_state=0)
        return X, y / y.std(), "r2"

    return {
        "chain": lambda: friedman("chain"),
        "group": lambda: friedman("group"),
        "ind": lambda: friedman("ind"),
        "200 labels": lambda: labels(1500, 200),
        "4 classes": lambda: classes(2000, 4),
        "40 classes": lambda: classes(2000, 40, 20),
        "2 classes": lambda: hard(4000),
        "digits": lambda: known("digits"),
        "cancer": lambda: known("breast_cancer"),
        "diabetes": lambda: known("diabetes"),
        "smooth": lambda: smooth(4000),
    }


def aloi(folder: Path) -> Data:
    from pyrpo.datasets import load_vw

    data = load_vw(folder / "aloi-train.vw.gz", n_features=128)
    few = np.flatnonzero(data.y <= 100)
    return data.X[few].toarray(), data.y[few], "accuracy"


def problems(folder: Path) -> dict[str, Callable[[], Data]]:
    there = {
        name: lambda name=name: mulan(name, folder)
        for name in (*LABELS, *TARGETS)
        if list(folder.glob(f"{name}*.arff.gz"))
    }
    if (folder / "aloi-train.vw.gz").exists():
        there["100 of ALOI"] = lambda: aloi(folder)
    return there | generated()


def parts(name: str, data: Data, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Two thirds of the rows, and the others."""
    order = np.random.default_rng(split).permutation(data[0].shape[0])[: MOST.get(name)]
    return order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]


def scores(model: Any, X: Any, Y: Any, kind: str) -> tuple[float, float]:
    """The score and the loss."""
    from sklearn.metrics import r2_score

    from pyrpo.metrics import label_ranking_average_precision

    if kind == "r2":
        predicted = model.predict(X)
        return r2_score(Y, predicted), float(np.mean((predicted - Y) ** 2))
    p = np.clip(model.predict_proba(X), 1e-7, 1 - 1e-7)
    if kind == "lrap":
        y = Y.toarray()
        loss = -np.mean(np.where(y > 0, np.log(p), np.log1p(-p)))
        return label_ranking_average_precision(Y, p, empty="drop"), float(loss)
    at = np.searchsorted(model.classes_, Y)
    known = (at < len(model.classes_)) & (model.classes_[np.minimum(at, p.shape[1] - 1)] == Y)
    loss = -np.log(p[np.flatnonzero(known), at[known]]).mean()
    return float((p.argmax(axis=1)[known] == at[known]).mean()), float(loss)


def measure(name: str, data: Data, setting: dict[str, Any], split: int) -> dict[str, float]:
    from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor

    X, Y, kind = data
    train, test = parts(name, data, split)
    cls = GradientBoostingRegressor if kind == "r2" else GradientBoostingClassifier
    model = cls(random_state=split, n_jobs=1, **setting)
    began = process_time()
    model.fit(X[train], Y[train])
    seconds = process_time() - began
    score, loss = scores(model, X[test], Y[test], kind)
    return {"score": score, "loss": loss, "seconds": seconds, "rounds": model.n_estimators_}


def value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def splits_of(name: str, wanted: int) -> int:
    return max(1, wanted // 3) if name in SLOW else wanted


def compare(kept: dict[str, Any], names: list[str], setting: str, splits: int) -> None:
    """Mean differences to no setting, with the standard errors of the mean."""
    print(f"\n{setting}\n{'':14s} {'score':>7s} {'Δ %':>6s} ±      {'loss':>7s} {'Δ %':>6s} ±     "
          "rounds  seconds")  # fmt: skip
    means = []
    for name in names:
        own = range(splits_of(name, splits))
        pair = [[kept.get(f"{s}/{name}/{i}") for i in own] for s in ("", setting)]
        if any(one is None for side in pair for one in side):
            continue
        old, new = ({k: np.array([r[k] for r in side]) for k in side[0]} for side in pair)
        change = [100 * (new[k] - old[k]) / np.abs(old[k]).mean() for k in ("score", "loss")]
        error = [c.std(ddof=1) / len(c) ** 0.5 if len(c) > 1 else np.nan for c in change]
        slower = np.log(new["seconds"].mean() / old["seconds"].mean())
        means.append([*(c.mean() for c in change), slower])
        print(f"{name:14s} {old['score'].mean():7.4f} {change[0].mean():+6.2f} {error[0]:5.2f}  "
              f"{old['loss'].mean():7.4f} {change[1].mean():+6.2f} {error[1]:5.2f}  "
              f"{old['rounds'].mean():5.0f} {new['rounds'].mean():5.0f}  "
              f"{old['seconds'].mean():5.1f} {new['seconds'].mean():5.1f}")  # fmt: skip
    if means:
        m = np.mean(means, axis=0)
        print(f"{'mean':14s} {'':7s} {m[0]:+6.2f} {'':5s}  {'':7s} {m[1]:+6.2f}   "
              f"time × {np.exp(m[2]):.2f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(folder))
    parser.add_argument("--try", nargs="+", action="append", default=[], dest="settings")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--skip", nargs="+", default=[])
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/defaults.json")
    options = parser.parse_args()
    known = problems(options.data)
    names = [n for n in known if (not options.only or n in options.only) and n not in options.skip]
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    settings = ["", *(" ".join(words) for words in options.settings)]
    for name in names:
        data = None
        for setting in settings:
            for split in range(splits_of(name, options.splits)):
                key = f"{setting}/{name}/{split}"
                if key in kept:
                    continue
                data = data or known[name]()
                given = dict(word.split("=", 1) for word in setting.split())
                given = {key: value_of(text) for key, text in given.items()}
                kept[key] = measure(name, data, given, split)
                options.out.write_text(json.dumps(kept, indent=0) + "\n")
    for setting in settings[1:]:
        compare(kept, names, setting, options.splits)


if __name__ == "__main__":
    main()
