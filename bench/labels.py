"""Embeddings and regressors of labels beside omikuji and napkinXC; the embedding of many labels.

    python -m bench.labels --data FOLDER            all sets, some minutes; resumed if stopped
    python -m bench.labels --data FOLDER --quick    the smallest set, a small embedding
    python -m bench.labels --page                   print the tables of kept results

Models are made of an embedding of the labels and a regressor of its codes, or are this library's
trees on the labels themselves. Settings of each, and of the other tools, are chosen by label
ranking average precision on a fifth of the training rows; then all training rows are learnt and
the files' test rows are scored. Tools that are not installed are left out. One thread, CPU time.

*Scale* is a twentieth of the Rembrandt paper's ODP: 75 000 x 25 000 features, 5 000 classes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from threadpoolctl import threadpool_limits

from bench import machine
from bench.joly2014.page import table
from bench.mineiro2015.runs import Embedding
from pyrpo import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    LabelEmbeddingClassifier,
)
from pyrpo.datasets import load_mulan
from pyrpo.embedding import CPLST, MLCSSP, PLST, BinaryRelevance, Rembrandt
from pyrpo.metrics import label_ranking_average_precision, precision_at_k

ROOT = Path(__file__).resolve().parent.parent
SETS = ("emotions", "scene", "yeast", "birds", "cal500", "bibtex", "delicious")
RIDGES = (0.3, 1.0, 3.0, 10.0)
MOST_CODES = 150
ROUNDS = 100  # of boosting codes


# ---- models: a name, and settings to choose from, each a function that makes an estimator --------


class Linear(RegressorMixin, BaseEstimator):
    """Ridge regression of features that a scaler scales, all made dense."""

    def __init__(self, scaler, ridge):
        self.scaler, self.ridge = scaler, ridge

    def fit(self, X, T):
        """Cholesky."""
        model = make_pipeline(clone(self.scaler), Ridge(self.ridge, solver="cholesky"))
        self.model_ = model.fit(_dense(X), _dense(T))
        return self

    def predict(self, X):
        """Fitted values."""
        return self.model_.predict(_dense(X))


class Both(RegressorMixin, BaseEstimator):
    """Weighted mean of what ridge regression, of scaled features, and extra-trees predict."""

    def __init__(self, linear, trees, share):
        self.linear, self.trees, self.share = linear, trees, share

    def fit(self, X, T):
        """Both."""
        self.linear_, self.trees_ = clone(self.linear).fit(X, T), clone(self.trees).fit(X, T)
        return self

    def predict(self, X):
        """Weighted mean."""
        return self.share * self.trees_.predict(X) + (1 - self.share) * self.linear_.predict(X)


def embeddings(d: int) -> dict[str, Callable]:
    """The embeddings, of half as many codes as labels, or of MOST_CODES."""
    k = min(MOST_CODES, (d + 1) // 2)
    return {
        "none": BinaryRelevance,
        "PLST": lambda: PLST(k, center=True),
        "CPLST": lambda: CPLST(k),
        "Rembrandt": lambda: Rembrandt(k, center=True),
        "ML-CSSP": lambda: MLCSSP(k),
    }


def regressors(X) -> dict[str, list[Callable]]:
    """Regressors of codes, with their settings; features are scaled for the linear ones."""
    root = X.shape[1] ** 0.5
    scaler = Normalizer() if sparse.issparse(X) else StandardScaler()

    def linear(ridge):
        return Linear(scaler, ridge)

    def trees(leaf, width):
        k = max(1, min(X.shape[1], round(width * root)))
        return ExtraTreesRegressor(100, min_samples_leaf=leaf, max_features=k, random_state=0)

    ridges = RIDGES if sparse.issparse(X) else [100 * r for r in RIDGES]
    return {
        "ridge": [partial(linear, r) for r in ridges],
        "forest": [partial(trees, leaf, width) for leaf in (2, 3) for width in (2, 4)],
        "boosting": [lambda: GradientBoostingRegressor(ROUNDS, random_state=0)],
        "ridge and forest": [
            lambda r=r, share=share: Both(linear(r), trees(2, 4), share)
            for r in ridges[1:3]
            for share in (0.5, 0.7)
        ],
    }


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


def ours(X, d: int) -> Iterator[tuple[str, str, str, list[Callable]]]:
    """Embedding, regressor, decoder and settings."""

    def classifier(embed, regressor, decoder):
        return LabelEmbeddingClassifier(embed(), regressor(), decoder=decoder, random_state=0)

    parts = regressors(X)
    for name, embed in embeddings(d).items():
        for kind, settings in parts.items():
            if kind == "ridge and forest" and name not in ("none", "PLST"):
                continue
            made = [partial(classifier, embed, setting, "linear") for setting in settings]
            yield name, kind, "own", made
        if name in ("Rembrandt", "PLST"):
            made = [partial(classifier, embed, s, "logistic") for s in parts["ridge"]]
            yield name, "ridge", "logistic", made
    root = X.shape[1] ** 0.5

    def trees(leaf, width):
        k = max(1, min(X.shape[1], round(width * root)))
        return ExtraTreesClassifier(100, min_samples_leaf=leaf, max_features=k, random_state=0)

    yield (
        "–",
        "ExtraTreesClassifier",
        "–",
        [partial(trees, leaf, width) for leaf in (2, 3) for width in (2, 4)],
    )
    yield (
        "–",
        "GradientBoostingClassifier",
        "–",
        [lambda: GradientBoostingClassifier(random_state=0)],
    )


# ---- other tools ------------------------------------------------------------


class NapkinXC:
    """A probabilistic label tree, or a classifier for each label."""

    def __init__(self, kind: str, **options) -> None:
        self.kind, self.options = kind, options

    def fit(self, X, Y):
        """Liblinear."""
        from napkinxc import models

        self.folder, self.width = tempfile.TemporaryDirectory(), Y.shape[1]
        make = getattr(models, self.kind)
        self.model = make(self.folder.name, threads=1, seed=0, **self.options)
        labels = [part.tolist() for part in np.split(Y.indices, Y.indptr[1:-1])]
        self.model.fit(sparse.csr_matrix(X), labels)
        return self

    def predict_proba(self, X) -> np.ndarray:
        """All labels' probabilities."""
        rows = self.model.predict_proba(sparse.csr_matrix(X), top_k=self.width)
        return _scores(rows, self.width)


class Omikuji:
    """Three trees of linear classifiers."""

    def __init__(self, **options) -> None:
        self.options = options

    def fit(self, X, Y):
        """By way of a file: it reads no arrays."""
        import omikuji

        X, self.width = sparse.csr_array(X), Y.shape[1]
        options = omikuji.Model.default_hyper_param()
        for name, value in self.options.items():
            setattr(options, name, value)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            with path.open("w") as file:
                file.write(f"{X.shape[0]} {X.shape[1]} {self.width}\n")
                for row in range(X.shape[0]):
                    labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
                    pairs = " ".join(f"{j}:{v:.7g}" for j, v in _pairs(X, row))
                    file.write(f"{','.join(map(str, labels))} {pairs}\n")
            self.model = omikuji.Model.train_on_data(str(path), options, n_threads=1)
        self.model.init_prediction_thread_pool(1)
        return self

    def predict_proba(self, X) -> np.ndarray:
        """All labels' scores: the beam is as wide as the tree."""
        X = sparse.csr_array(X)
        rows = [
            self.model.predict(_pairs(X, row), beam_size=self.width, top_k=self.width)
            for row in range(X.shape[0])
        ]
        return _scores(rows, self.width)


def _pairs(X, row: int) -> list[tuple[int, float]]:
    part = slice(X.indptr[row], X.indptr[row + 1])
    return list(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))


def _scores(rows, width: int) -> np.ndarray:
    scores = np.zeros((len(rows), width))
    for row, pairs in enumerate(rows):
        for label, p in pairs:
            scores[row, int(label)] = p
    return scores


def theirs() -> Iterator[tuple[str, str, str, list[Callable]]]:
    """The other tools that are installed, their defaults among the settings."""
    tools = {
        "omikuji": [lambda c=c: Omikuji(linear_c=c) for c in (1.0, 0.3)],
        "napkinxc": [lambda c=c: NapkinXC("PLT", liblinear_c=c) for c in (10, 1)],
        "napkinxc, a model a label": [lambda c=c: NapkinXC("BR", liblinear_c=c) for c in (10, 1)],
    }
    for name, settings in tools.items():
        try:
            found = version(name.split(",")[0])
        except PackageNotFoundError:
            print(f"{name} is not installed: left out")
            continue
        yield (
            "–",
            name.replace("napkinxc", f"napkinXC {found}").replace("omikuji", f"omikuji {found}"),
            "–",
            settings,
        )


# ---- runs ------------------------------------------------------------


def read(folder: Path, name: str):
    """Training and test rows, labels as CSR; a third for testing where the files have no split."""
    if _file(folder, f"{name}-test") is not None:
        parts = [load_mulan(_file(folder, f"{name}-{part}")) for part in ("train", "test")]
        rows = [(part.X, sparse.csr_array(part.Y).astype(np.float64)) for part in parts]
    else:
        whole = load_mulan(_file(folder, name))
        Y = sparse.csr_array(whole.Y).astype(np.float64)
        split = train_test_split(np.arange(Y.shape[0]), test_size=1 / 3, random_state=0)
        rows = [(whole.X[part], Y[part]) for part in split]
    # Ranking is not defined for rows without labels.
    return [(X[kept], Y[kept]) for X, Y in rows for kept in [np.diff(Y.indptr) > 0]]


def _file(folder: Path, stem: str) -> Path | None:
    files = [folder / f"{stem}{end}" for end in (".arff.gz", ".arff")]
    return next((file for file in files if file.exists()), None)


def scores_of(Y, scores) -> dict[str, float]:
    best = {f"P@{k}": precision_at_k(Y, scores, k) for k in (1, 3, 5) if k <= Y.shape[1]}
    found = {"LRAP": label_ranking_average_precision(Y, scores)} | best
    return {name: float(value) for name, value in found.items()}


def measure(settings: list[Callable], train, test) -> dict:
    """Choose on a fifth of the training rows, learn all of them, score the test rows."""
    (X, Y), (X_test, Y_test) = train, test
    chosen = 0
    if len(settings) > 1:
        fit, held = train_test_split(np.arange(Y.shape[0]), test_size=0.2, random_state=1)
        quality = [
            label_ranking_average_precision(Y[held], s().fit(X[fit], Y[fit]).predict_proba(X[held]))
            for s in settings
        ]
        chosen = int(np.argmax(quality))
    start = process_time()
    scores = settings[chosen]().fit(X, Y).predict_proba(X_test)
    return {"setting": chosen, "seconds": process_time() - start} | scores_of(Y_test, scores)


def compare(name: str, folder: Path, results: dict, save: Callable) -> None:
    """All models on a data set; those that are kept are not run again."""
    train, test = read(folder, name)
    models = [*theirs(), *ours(train[0], train[1].shape[1])]
    for embed, regressor, decoder, settings in models:
        key = f"{name}: {embed}, {regressor}, {decoder}"
        if key in results:
            continue
        about = {"data": name, "embedding": embed, "regressor": regressor, "decoder": decoder}
        results[key] = about | measure(settings, train, test)
        save()
        print(key, {k: round(v, 4) for k, v in list(results[key].items())[4:]}, flush=True)


def page(kept: dict) -> str:
    """Tables of the results, as Markdown."""
    parts = []
    results = list(kept["results"].values())
    for data in dict.fromkeys(r["data"] for r in results):
        rows = sorted((r for r in results if r["data"] == data), key=lambda r: -r["LRAP"])
        marks = [m for m in ("LRAP", "P@1", "P@3", "P@5") if m in rows[0]]
        top = {m: max(r[m] for r in rows) for m in marks}
        lines = [
            [r["embedding"], r["regressor"], r["decoder"]]
            + [f"**{r[m]:.4f}**" if r[m] == top[m] else f"{r[m]:.4f}" for m in marks]
            + [f"{r['seconds']:.1f}"]
            for r in rows
        ]
        header = ["embedding", "regressor or model", "decoder", *marks, "CPU s"]
        parts.append(f"{data}:\n\n{table(header, lines, 3)}")
    return "\n\n".join(parts)


def run(arguments: argparse.Namespace) -> None:
    out = arguments.out or (None if arguments.quick else ROOT / "bench/results/labels.json")
    kept = json.loads(out.read_text()) if out is not None and out.exists() else {"results": {}}
    if arguments.page:
        print(page(kept))
        return
    kept |= {"machine": machine.describe(), "date": datetime.date.today().isoformat()}

    def save() -> None:
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")

    scale = Embedding(0.005 if arguments.quick else 0.05, k=100 if arguments.quick else 300)
    if arguments.quick or "scale" not in kept:
        kept["scale"] = scale.measure()
        save()
    print("Rembrandt,", scale.key, {k: round(v, 1) for k, v in kept["scale"].items()}, flush=True)
    for name in SETS[:1] if arguments.quick else arguments.only:
        if _file(arguments.data, name) or _file(arguments.data, f"{name}-train"):
            compare(name, arguments.data, kept["results"], save)
        else:
            print(f"{name} is not in the folder: left out")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.labels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    folder = Path(os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--quick", action="store_true", help="the smallest set only")
    parser.add_argument("--data", type=Path, default=folder, help="folder of ARFF files")
    parser.add_argument("--only", nargs="+", default=SETS, metavar="NAME", help="these data sets")
    parser.add_argument("--page", action="store_true", help="print tables, no run")
    parser.add_argument("--out", type=Path, help="file of the results, resumed")
    with threadpool_limits(1):
        run(parser.parse_args())


if __name__ == "__main__":
    main()
