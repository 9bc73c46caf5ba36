"""The units of work: a classifier of ALOI, or one measurement on generated texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from bench.joly2014.data import Problem
from bench.machine import peak_memory
from pyrpo import LabelEmbeddingClassifier
from pyrpo._products import product
from pyrpo.datasets import load_vw, make_xmc
from pyrpo.decoder import LogisticDecoder
from pyrpo.embedding import PLST, CompressedSensing, Rembrandt
from pyrpo.feature_map import RandomFourierFeatures
from pyrpo.linalg import randomized_pca
from pyrpo.metrics import precision_at_k

ALOI_K = (10, 20, 30, 50, 70, 100)
ODP = {"n_samples": 1_500_000, "n_features": 500_000, "n_labels": 100_000, "words": 135}
RIDGES = (1.0, 1e4, 1e5, 1e6)  # of ALOI: 97 200 rows of values up to 1
EPOCHS = 14  # of the decoders of generated texts
RIDGE = 10.0
NOISY = {"noise": 0.92, "own": 0.005}  # of texts; else 0.85 and 0.02
BANDWIDTHS = tuple(4.0**-i for i in range(5))  # to choose from, as multiples of the default


@cache
def aloi(folder: Path) -> tuple[Problem, Problem]:
    """Training and test rows, features dense."""
    train = load_vw(folder / "aloi-train.vw.gz")
    test = load_vw(folder / "aloi-test.vw.gz", n_features=train.X.shape[1])
    return tuple(Problem("aloi", part.X.toarray(), _one_hot(part.y), "error")
                 for part in (train, test))  # fmt: skip


def _one_hot(y: np.ndarray) -> sparse.csr_array:
    shape = (len(y), 1000)
    return sparse.csr_array((np.ones(len(y), np.float32), y - 1, np.arange(len(y) + 1)), shape)


def _classes(Y: sparse.csr_array) -> np.ndarray:
    return Y.indices[Y.indptr[:-1]]


@dataclass(frozen=True)
class Aloi:
    """A classifier of Table 2 and Figure 1a."""

    method: str
    k: int = 0
    seed: int = 0
    data: str = "aloi"

    @property
    def key(self) -> str:
        return f"aloi {self.method} k={self.k} seed={self.seed}"

    def measure(self, train: Problem, test: Problem) -> dict[str, Any]:
        options, cpu = {}, process_time()
        if self.method == "RE":
            options["ridge"] = best_ridge(self.k, self.seed, train.X, train.Y)
        tuned = {"tuning_cpu": process_time() - cpu} | options
        start, cpu = perf_counter(), process_time()
        predict = classifier(self.method, self.k, self.seed, train.X, train.Y, **options)
        times = {"fit_wall": perf_counter() - start, "fit_cpu": process_time() - cpu} | tuned
        error = float(np.mean(predict(test.X) != _classes(test.Y)))
        times["rows_per_second"] = len(test.X) / least_time(lambda: predict(test.X), 5)
        if self.method == "RE":
            embedding = Rembrandt(self.k, random_state=self.seed, **options)
            times["embed_cpu"] = least_time(lambda: embedding.fit(train.X, train.Y), 2)
        return {"error": error} | times


def least_time(
    call: Callable[[], Any], repeats: int, clock: Callable[[], float] = process_time
) -> float:
    """CPU seconds of all threads unless told otherwise: the machine may have other work."""
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def best_ridge(k: int, seed: int, X: Any, Y: Any) -> float:
    """Rembrandt's, of least error on a tenth of the rows after few epochs."""
    rows = np.random.default_rng(seed).permutation(len(X))
    held, rest = rows[: len(rows) // 10], rows[len(rows) // 10 :]

    def error(ridge: float) -> float:
        predict = classifier("RE", k, seed, X[rest], Y[rest], ridge=ridge, max_epochs=12)
        return float(np.mean(predict(X[held]) != _classes(Y[held])))

    return min(RIDGES, key=error)


def classifier(method: str, k: int, seed: int, X: Any, Y: Any, ridge: float = 1.0, **options):
    """Fit a classifier of the paper's; returns what predicts classes."""
    loss = "logistic" if method == "OAA" else "softmax"
    decoder = LogisticDecoder(loss, random_state=seed, **options)
    if method in ("RE", "CS"):
        part = Rembrandt(k, ridge=ridge) if method == "RE" else CompressedSensing(k)
        model = LabelEmbeddingClassifier(part, decoder=decoder, random_state=seed)
        model.fit(X, _classes(Y))
        return model.predict
    if method == "PCA":
        V, _ = randomized_pca(X, k, center=True, random_state=seed)
        V = V.astype(X.dtype)
        decoder.fit(X @ V, Y)
        return lambda X: decoder.predict_topk(X @ V, 1)[0][:, 0]
    decoder.fit(X, Y)
    return lambda X: decoder.predict_topk(X, 1)[0][:, 0]


@dataclass(frozen=True)
class Texts:
    """One classifier of generated texts in ODP's proportions: Table 3.

    In noisy texts fewer words tell of the labels: ODP's are hard, too.
    """

    method: str
    k: int
    share: float  # of ODP's size
    seed: int = 0
    noisy: bool = False
    data: str = "texts"

    @property
    def key(self) -> str:
        kind = "noisy texts" if self.noisy else "texts"
        return f"{kind} {self.method} k={self.k} share={self.share:g} seed={self.seed}"

    def measure(self) -> dict[str, Any]:
        data = generated(self.share, self.seed, **NOISY if self.noisy else {})
        n = 2 * data.X.shape[0] // 3
        y, cpu = _classes(data.Y), process_time()
        decoder = LogisticDecoder(max_epochs=EPOCHS, random_state=self.seed)
        if self.method == "PCA":
            V, _ = randomized_pca(data.X[:n], self.k, random_state=self.seed)
            decoder.fit(data.X[:n] @ V, data.Y[:n])
            found = decoder.predict_topk(data.X[n:] @ V, 1)[0][:, 0]
        else:
            part = CompressedSensing(self.k) if self.method == "CS" else Rembrandt(
                self.k, ridge=RIDGE)  # fmt: skip
            model = LabelEmbeddingClassifier(
                part, decoder=decoder, ridge=RIDGE, random_state=self.seed
            ).fit(data.X[:n], y[:n])
            found = model.predict(data.X[n:])
        return {"error": float(np.mean(found != y[n:])), "fit_cpu": process_time() - cpu}


@cache
def generated(share: float, seed: int, cardinality: float = 1.0, **drawn: float) -> Any:
    sizes = {name: max(2, round(share * size)) for name, size in ODP.items() if name != "words"}
    return make_xmc(
        **sizes, words=ODP["words"], cardinality=cardinality, random_state=seed, **drawn
    )


@dataclass(frozen=True)
class Embedding:
    """Seconds and memory of an embedding of generated texts."""

    share: float
    k: int = 300
    seed: int = 0
    data: str = "texts"

    @property
    def key(self) -> str:
        return f"embed share={self.share:g} k={self.k}"

    def measure(self) -> dict[str, Any]:
        data = generated(self.share, self.seed)
        start, cpu = perf_counter(), process_time()
        model = Rembrandt(self.k, ridge=RIDGE, random_state=self.seed)
        model.fit(data.X, data.Y)
        times = {"wall": perf_counter() - start, "cpu": process_time() - cpu}
        sizes = {"rows": data.X.shape[0], "non_zeros": data.X.nnz / data.X.shape[0]}
        return times | sizes | {"peak_mb": peak_memory()}


@dataclass(frozen=True)
class Growth:
    """CPU seconds of an embedding as one size grows, the others as they are."""

    n: int = 20_000
    features: int = 10_000
    classes: int = 2_000
    codes: int = 100
    data: str = "texts"

    @property
    def key(self) -> str:
        return f"growth n={self.n} p={self.features} d={self.classes} k={self.codes}"

    def measure(self) -> dict[str, Any]:
        data = make_xmc(self.n, self.features, self.classes, words=ODP["words"], random_state=0)
        # As many iterations for all: the condition of X changes with its size.
        model = Rembrandt(self.codes, ridge=RIDGE, tol=0.0, max_iter=10, random_state=0)
        return {"cpu": least_time(lambda: model.fit(data.X, data.Y), 1)}


GROWTH = {
    "n": [Growth(n=2500 * 2**i) for i in range(6)],
    "features": [Growth(features=5000 * 2**i) for i in range(6)],
    "classes": [Growth(classes=500 * 4**i) for i in range(5)],
    "codes": [Growth(codes=25 * 2**i) for i in range(5)],
}


@dataclass(frozen=True)
class Speed:
    """Rows a second of a model of ODP's shape, its coefficients random: the time is the same.

    By CPU time of one thread, by the clock where there are more.
    """

    k: int = 300
    threads: int = 1
    data: str = "texts"

    @property
    def key(self) -> str:
        return f"speed k={self.k}" + (f" threads={self.threads}" if self.threads > 1 else "")

    def measure(self) -> dict[str, Any]:
        rng = np.random.default_rng(0)
        p, d = ODP["n_features"], ODP["n_labels"]
        data = make_xmc(2000, p, d, words=ODP["words"], random_state=0)
        coef = rng.standard_normal((p, self.k), dtype=np.float32)
        decoder = LogisticDecoder()
        decoder.coef_ = rng.standard_normal((self.k, d), dtype=np.float32) / self.k
        decoder.intercept_ = np.zeros(d, dtype=np.float32)
        found = {"rows": 2000}
        for name, best in (
            ("best", lambda codes: decoder.best(codes, 1)),  # the class, as predict gives it
            ("five", lambda codes: decoder.predict_topk(codes, 5)),
        ):
            clock = process_time if self.threads == 1 else perf_counter
            with threadpool_limits(self.threads):
                seconds = least_time(
                    lambda best=best: best(product(data.X, coef, n_jobs=self.threads)), 3, clock
                )
            found[f"rows_per_second_{name}"] = 2000 / seconds
        return found


@dataclass(frozen=True)
class Siblings:
    """Table 4: how often the nearest label is a sibling; and the spectrum of Figure 1b."""

    seed: int
    share: float = 1 / 60
    k: int = 100
    data: str = "texts"

    @property
    def key(self) -> str:
        return f"siblings seed={self.seed} share={self.share:g}"

    def measure(self) -> dict[str, Any]:
        data = generated(self.share, self.seed, 3.2)
        X, Y, parents = data.X, data.Y.astype(np.float32), data.parents
        mine = parents[: Y.shape[1]]
        seen = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        outcome: dict[str, Any] = {}
        for name, part in (
            ("CS", CompressedSensing(self.k, random_state=self.seed)),
            ("PLST", PLST(self.k)),
            ("Rembrandt", Rembrandt(self.k, ridge=RIDGE, random_state=self.seed)),
        ):
            codes = part.fit(X, Y).components_.T[seen]
            codes = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
            likeness = codes @ codes.T
            np.fill_diagonal(likeness, -np.inf)
            nearest = likeness.argmax(axis=1)
            outcome[name] = float(np.mean(mine[seen] == mine[seen][nearest]))
        outcome["Most fraternal"] = float(np.bincount(mine[seen]).max() / seen.sum())
        _, sigma = randomized_pca(Y, min(500, Y.shape[1]), random_state=0)
        return outcome | {"spectrum": [float(v) for v in (sigma / sigma[0]) ** 2]}


@dataclass(frozen=True)
class Recipe:
    """Table 5: independent logistic regressions on 4000 Laplacian features of the codes."""

    feature_map: bool
    k: int = 100
    share: float = 1 / 150
    seed: int = 0
    data: str = "texts"

    @property
    def key(self) -> str:
        return f"recipe {'4000 tuned features' if self.feature_map else 'plain'} k={self.k}"

    def measure(self) -> dict[str, Any]:
        data = generated(self.share, self.seed, 3.2)
        n = 3 * data.X.shape[0] // 4
        X, Y, found = data.X[:n], data.Y[:n], {}
        if self.feature_map:
            found["bandwidth"] = self.choose(X, Y)
        cpu = process_time()
        model = self.fit(X, Y, found.get("bandwidth"))
        found["fit_cpu"], start = process_time() - cpu, perf_counter()
        top = model.predict_topk(data.X[n:], 5)
        found["rows_per_second"] = (data.X.shape[0] - n) / (perf_counter() - start)
        return found | {f"P@{j}": float(precision_at_k(data.Y[n:], top, j)) for j in (1, 3, 5)}

    def choose(self, X: Any, Y: Any) -> float:
        """The kernel's bandwidth, by a fifth of the training rows, as the paper tunes it."""
        n = 4 * X.shape[0] // 5
        usual = self.fit(X[:n], Y[:n], None, 8).feature_map_.gamma_

        def score(factor: float) -> float:
            model = self.fit(X[:n], Y[:n], factor * usual)
            return float(precision_at_k(Y[n:], model.predict_topk(X[n:], 1), 1))

        return usual * max(BANDWIDTHS, key=score)

    def fit(self, X: Any, Y: Any, gamma: float | None, components: int = 4000) -> Any:
        features = None
        if self.feature_map:
            features = RandomFourierFeatures(
                components, kernel="laplacian", gamma="scale" if gamma is None else gamma
            )
        return LabelEmbeddingClassifier(
            Rembrandt(self.k, ridge=RIDGE),
            feature_map=features,
            decoder=LogisticDecoder("logistic", max_epochs=EPOCHS),
            ridge=RIDGE,
            random_state=self.seed,
        ).fit(X, Y)


def units(quick: bool, share: float, full: bool) -> Iterator[Any]:
    """What the tables are made of, the most important ones first."""
    yield Aloi("RE", 50)
    if not quick:
        yield from (Aloi(method, k) for k in (50,) for method in ("PCA", "CS"))
        yield from (Aloi(method) for method in ("LR", "OAA"))
        yield from (Aloi("RE", 50, seed) for seed in (1, 2))
    yield from (Siblings(seed, 1 / 300 if quick else 1 / 60) for seed in range(2 if quick else 5))
    sizes = (share / 8, share / 4) if quick else (share / 8, share / 4, share / 2, share)
    yield from (Embedding(size, 100 if quick else 300) for size in sizes)
    if not quick:
        sizes = [(k, seed) for k in (20, 50, 100) for seed in range(3)]
        methods = [(m, k, seed) for k, seed in sizes for m in ("RE", "CS", "PCA")]
        yield from (Texts(m, k, share / 4, s, noisy) for noisy in (True, False)
                    for m, k, s in methods)  # fmt: skip
        yield from dict.fromkeys(unit for row in GROWTH.values() for unit in row)
        yield from (Speed(), Speed(threads=2))
    yield from (Recipe(mapped) for mapped in (False, True) if not quick)
    if not quick:
        yield from (Aloi(method, k) for k in ALOI_K if k != 50 for method in ("RE", "PCA", "CS"))
    if full:
        yield Embedding(1.0)
