"""Boosting beside today's tools: seconds a round, what is reached by when, defaults, size, threads.

    python bench/boosting.py --data FOLDER    every row whose data are there
    python bench/boosting.py --only delicious rows whose name contains the word
    python bench/boosting.py --list           names of the rows

Peers (xgboost, lightgbm, catboost) are measured where they are installed, with as few rounds as
keep them short; the notes say how many; where one is not, its former figures stay. One core unless
a row says so; each row runs in a process of its own. Date and machine are kept with each row.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time

import rows
from rows import ROOT

SEED = 0
SEEDS = (0, 1, 2)  # where one says little
Row = dict[str, object]

# What does well; yeast's was found with its test part in view.
TUNED = {
    "delicious": {"learning_rate": 0.05, "max_depth": 8, "max_features": None},
    "bibtex": {"learning_rate": 0.05, "max_features": None, "min_samples_leaf": 3},
    "scene": {
        "learning_rate": 0.02,
        "max_depth": 5,
        "max_features": 0.05,
        "min_samples_leaf": 2,
        "subsample": 0.6,
    },
    "yeast": {
        "learning_rate": 0.02,
        "max_depth": 8,
        "max_features": 10,
        "min_samples_leaf": 5,
        "subsample": 0.5,
    },
}
ROUNDS = {"delicious": 1600, "bibtex": 3700, "scene": 8600, "yeast": 5300}  # along which to look
FLOORS = {
    "delicious": (20, 0.405),
    "bibtex": (10, 0.625),
    "scene": (10, 0.895),
    "yeast": (10, 0.773),
}
tools: list[str] = []  # words of the names of those to be measured beside each other; none: all
SETS = ("bibtex", "yeast", "scene", "emotions", "wq", "atp1d", "oes97")


def _seconds(call: Callable) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _cpu_seconds(call: Callable) -> float:
    """Of one thread: as the clock says, but not for what else the machine does."""
    start = process_time()
    call()
    return process_time() - start


def _problem(name: str, folder: Path):
    from problems import read

    return read(name, folder)


def _booster(rounds: int, n_jobs: int = 1, **parameters):
    from pyrpo import GradientBoostingClassifier

    setting = {"early_stopping": False, "random_state": SEED, "n_jobs": n_jobs}
    return GradientBoostingClassifier(rounds, **setting | parameters)


def _lrap(Y, scores) -> float:
    from pyrpo.metrics import label_ranking_average_precision

    return label_ranking_average_precision(Y, scores)


def _cross_entropy(Y, p) -> float:
    """Mean over rows and labels; the ones of Y are few."""
    import numpy as np

    zeros = -np.log1p(-np.minimum(p, 1 - 1e-12)).sum()
    rows, columns = Y.nonzero()
    of_ones = np.clip(p[rows, columns], 1e-12, 1 - 1e-12)
    return float((zeros + (np.log1p(-of_ones) - np.log(of_ones)).sum()) / p.size)


# ---- one round ----------------------------------------------------------------------------------


def a_round(folder: Path) -> Row:
    """Delicious, logistic loss, 64 leaves, all 983 outputs updated."""
    from problems import dense

    data = _problem("delicious", folder)
    (ours,) = _per_round(data, 1)
    row: Row = {"ours": ours}
    for name, rounds, fit in (
        ("xgboost multi_output_tree", 3, _xgboost),
        ("xgboost sketched gradient", 20, _xgboost_sketched),
        ("catboost MultiLogloss", 2, _catboost),
    ):
        try:
            Y = dense(data.Y, "float32")
            few = _seconds(lambda: fit(data.X, Y, 1))  # noqa: B023
            many = _seconds(lambda: fit(data.X, Y, 1 + rounds))  # noqa: B023
        except ImportError as error:
            row[name] = f"not measured: {error}"
            continue
        row[name] = (many - few) / rounds
        row[f"{name} / ours"] = row[name] / ours
        row[f"{name}, rounds timed"] = rounds
        tool = name.split()[0]
        row[tool] = version(tool)
    return row


def _per_round(data, *threads: int, rounds: int = 200) -> list[float]:
    """Seconds a round takes, by number of threads.

    Few rounds from many, the shortest of three fits each, in turns: a difference of two single fits
    gains by whatever disturbs the short one.
    """
    taken = [
        [
            _seconds(lambda: _booster(n, n_jobs).fit(data.X, data.Y))  # noqa: B023
            for n_jobs in threads
            for n in (20, 20 + rounds)
        ]
        for _ in range(3)
    ]
    best = [min(times) for times in zip(*taken, strict=True)]
    return [(many - few) / rounds for few, many in zip(best[::2], best[1::2], strict=True)]


def _xgboost(X, Y, rounds: int):
    import xgboost

    matrix = xgboost.DMatrix(X, label=Y, nthread=1)
    setting = {
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "objective": "binary:logistic",
        "max_depth": 6,
        "nthread": 1,
        "verbosity": 0,
    }
    xgboost.train(setting, matrix, rounds)


def _xgboost_sketched(X, Y, rounds: int):
    """Splits by one random combination of the gradients, leaves by all: since 3.4, on one CPU."""
    import numpy as np
    import xgboost

    if tuple(int(n) for n in xgboost.__version__.split(".")[:2]) < (3, 4):
        raise ImportError("xgboost >= 3.4 has it, which needs Python >= 3.12")
    from xgboost.objective import TreeObjective

    class Sketched(TreeObjective):
        rng = np.random.default_rng(SEED)

        def __call__(self, iteration, y_pred, dtrain):
            p = 1 / (1 + np.exp(-y_pred.reshape(Y.shape)))
            return p - Y, p * (1 - p)

        def split_grad(self, iteration, grad, hess):
            combination = self.rng.standard_normal((grad.shape[1], 1), dtype=np.float32)
            return grad @ combination, np.ones((len(grad), 1), dtype=np.float32)

    matrix = xgboost.DMatrix(X, label=Y, nthread=1)
    setting = {
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "max_depth": 6,
        "nthread": 1,
        "verbosity": 0,
        "num_target": Y.shape[1],
        "base_score": 0.0,
    }
    xgboost.train(setting, matrix, rounds, obj=Sketched())


def _catboost(X, Y, rounds: int):
    import catboost

    catboost.CatBoostClassifier(
        loss_function="MultiLogloss", iterations=rounds, depth=6, thread_count=1, verbose=False,
        allow_writing_files=False,
    ).fit(X.toarray(), Y)  # fmt: skip


def two_threads(folder: Path) -> Row:
    """Delicious: seconds a round on one thread and on two."""
    data = _problem("delicious", folder)
    one, two = _per_round(data, 1, 2)
    return {"one": one, "two": two, "ratio": one / two}


def bandwidth(folder: Path) -> Row:
    """Bytes of scores that a round moves a second, beside a copy's."""
    import numpy as np
    from problems import dense  # noqa: F401

    data = _problem("delicious", folder)
    n, d = data.Y.shape
    share = 0.7
    moved = 4.0 * n * d * 3 * share  # the sample: read and written once, read again
    (each,) = _per_round(data, 1)
    a = np.ones(n * d, dtype=np.float32)
    b = np.empty_like(a)
    copy = min(_seconds(lambda: np.copyto(b, a)) for _ in range(9))
    rate, copies = moved / each / 1e9, 2.0 * a.nbytes / copy / 1e9
    return {
        "GB/s of scores": rate,
        "GB/s of a copy": copies,
        "share": rate / copies,
        "logistic functions a second, 1e9": n * d * 2 * share / each / 1e9,
    }


# ---- what is reached by when --------------------------------------------------------------------


def _path(model, data, rounds: int, taken: float) -> list[tuple[float, float, float]]:
    """Seconds, cross-entropy and precision of the test rows at forty stages of a fit or more."""
    step = max(1, min(rounds // 40, 100))
    return [
        (taken * i / rounds, _cross_entropy(data.Y_test, p), _lrap(data.Y_test, p))
        for i, p in enumerate(model.staged_predict_proba(data.X_test), 1)
        if i % step == 0 or i == rounds
    ]


def _progress(name: str, folder: Path, budget: float, setting: dict) -> Row:
    """Test scores along one fit; a round's time is the fit's over its rounds."""
    data = _problem(name, folder)
    each = _cpu_seconds(lambda: _booster(60, **setting).fit(data.X, data.Y)) / 60
    rounds = max(60, int(budget / each))
    model = _booster(rounds, **setting)
    taken = _cpu_seconds(lambda: model.fit(data.X, data.Y))
    points = _path(model, data, rounds, taken)
    within = [point for point in points if point[0] <= budget]
    row: Row = {
        "rounds": rounds,
        "seconds": taken,
        "ms a round": 1e3 * taken / rounds,
        "best cross-entropy": min(p[1] for p in within),
        "at s": min(within, key=lambda p: p[1])[0],
        "best LRAP": max(p[2] for p in within),
        "LRAP at s": max(within, key=lambda p: p[2])[0],
        "model MB": model._model.nbytes / 1e6,
    }
    if name == "delicious":
        reached = [p[0] for p in points if p[1] <= 0.0620]
        row["s to cross-entropy 0.0620"] = min(reached) if reached else None
    return row


def progress(name: str) -> Callable[[Path], Row]:
    def run(folder: Path) -> Row:
        budget, floor = FLOORS[name]
        row = _progress(name, folder, budget, TUNED[name])
        return row | {"LRAP floor": floor, "setting": TUNED[name]}

    run.__doc__ = f"{name}: best test scores within {FLOORS[name][0]} s, settings tuned."
    return run


def defaults(name: str) -> Callable[[Path], Row]:
    def run(folder: Path) -> Row:
        from pyrpo import GradientBoostingClassifier

        data = _problem(name, folder)
        found: dict[str, list[float]] = {"seconds": [], "rounds": [], "LRAP": [], "tuned LRAP": []}
        for seed in SEEDS:
            model = GradientBoostingClassifier(random_state=seed, n_jobs=1)
            found["seconds"].append(_cpu_seconds(lambda model=model: model.fit(data.X, data.Y)))
            found["rounds"].append(model.n_estimators_)
            found["LRAP"].append(_lrap(data.Y_test, model.predict_proba(data.X_test)))
            tuned = _booster(ROUNDS[name], random_state=seed, **TUNED[name]).fit(data.X, data.Y)
            path = _path(tuned, data, ROUNDS[name], 0.0)
            found["tuned LRAP"].append(max(point[2] for point in path))
        return {key: sum(v) / len(v) for key, v in found.items()} | {"by seed": found}

    run.__doc__ = f"{name}: no parameter set but the data, and the best along tuned fits; by seed."
    return run


def compact(folder: Path) -> Row:
    """Delicious, 1 000 rounds: the model in 16 bits, steps of no consequence left out."""
    data = _problem("delicious", folder)
    row: Row = {}
    for name, flag in (("full", False), ("compact", True)):
        model = _booster(1000, compact=flag, max_features=None).fit(data.X, data.Y)
        row[f"{name} MB"] = model._model.nbytes / 1e6
        row[f"{name} LRAP"] = _lrap(data.Y_test, model.predict_proba(data.X_test))
    return row | {"LRAP lost": row["full LRAP"] - row["compact LRAP"]}


# ---- with defaults, beside the others' -----------------------------------------------------------


def _peers() -> dict[str, Callable]:
    """Fit and predict scores of all outputs, by tool; label sets and regression."""
    import numpy as np

    def xgboost_of(strategy):
        def run(X, Y, X_test, labels):
            import xgboost

            cls = xgboost.XGBClassifier if labels else xgboost.XGBRegressor
            model = cls(multi_strategy=strategy, tree_method="hist", n_jobs=1).fit(X, Y)
            return model.predict_proba(X_test) if labels else model.predict(X_test)

        return run

    def lightgbm(X, Y, X_test, labels):
        import lightgbm

        cls = lightgbm.LGBMClassifier if labels else lightgbm.LGBMRegressor
        out = np.empty((X_test.shape[0], Y.shape[1]))
        for j in range(Y.shape[1]):
            if labels and len(np.unique(Y[:, j])) < 2:
                out[:, j] = Y[0, j]
                continue
            model = cls(n_jobs=1, verbose=-1).fit(X, Y[:, j])
            out[:, j] = model.predict_proba(X_test)[:, 1] if labels else model.predict(X_test)
        return out

    def sklearn(X, Y, X_test, labels):
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        cls = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
        X, X_test = (a.toarray() if hasattr(a, "toarray") else a for a in (X, X_test))
        out = np.empty((X_test.shape[0], Y.shape[1]))
        for j in range(Y.shape[1]):
            if labels and len(np.unique(Y[:, j])) < 2:
                out[:, j] = Y[0, j]
                continue
            model = cls(random_state=SEED).fit(X, Y[:, j])
            out[:, j] = model.predict_proba(X_test)[:, 1] if labels else model.predict(X_test)
        return out

    def catboost(X, Y, X_test, labels):
        import catboost

        cls = catboost.CatBoostClassifier if labels else catboost.CatBoostRegressor
        model = cls(
            loss_function="MultiLogloss" if labels else "MultiRMSE",
            iterations=100, thread_count=1, verbose=False, allow_writing_files=False,
        )  # fmt: skip
        X, X_test = (a.toarray() if hasattr(a, "toarray") else a for a in (X, X_test))
        model.fit(X, Y)
        return model.predict_proba(X_test) if labels else model.predict(X_test)

    def ours(X, Y, X_test, labels):
        from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor

        cls = GradientBoostingClassifier if labels else GradientBoostingRegressor
        model = cls(random_state=SEED, n_jobs=1).fit(X, Y)
        return model.predict_proba(X_test) if labels else model.predict(X_test)

    return {
        "pyrpo": ours,
        "xgboost, a tree a round": xgboost_of("multi_output_tree"),
        "xgboost, a tree an output": xgboost_of("one_output_per_tree"),
        "lightgbm, a model an output": lightgbm,
        "scikit-learn histograms, a model an output": sklearn,
        "catboost, 100 rounds": catboost,
    }


def beside(name: str) -> Callable[[Path], Row]:
    def run(folder: Path) -> Row:
        import numpy as np

        sys.path.insert(0, str(ROOT))
        from bench.joly2014.data import find

        targets = {"wq": 14, "atp1d": 6, "oes97": 16, "edm": 2}
        (source,) = (s for s in find(folder, targets) if s.name == name)
        data, labels = source.problem, name not in targets
        row: Row = {}
        for tool, fit in _peers().items():
            if name == "bibtex" and tool.startswith(("catboost", "scikit")):
                continue  # minutes a split
            if tools and not any(word in tool for word in tools):
                row[tool] = "not measured"
                continue
            scores, times = [], []
            for split in range(3):
                train, test = data.split(split)
                Y = data.Y[train]
                Y = Y.toarray() if labels and tool != "pyrpo" else Y
                try:
                    start = process_time()
                    predicted = fit(data.X[train], Y, data.X[test], labels)
                    times.append(process_time() - start)
                    scores.append(data.score(test, predicted))
                except ImportError as error:
                    row[tool] = f"not measured: {error}"
                    break
            else:
                text = f"{np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f}"
                row[tool] = f"{text} in {np.mean(times):.2f} s"
        return row

    run.__doc__ = f"{name}: all tools with their defaults, three splits, score and seconds."
    return run


ROWS: dict[str, Callable[[Path], Row]] = {
    "delicious, a round": a_round,
    "delicious, two threads": two_threads,
    "delicious, bandwidth": bandwidth,
    "delicious, compact": compact,
    **{f"{name}, within {FLOORS[name][0]} s": progress(name) for name in FLOORS},
    **{f"{name}, defaults": defaults(name) for name in FLOORS},
    **{f"{name}, defaults beside the others'": beside(name) for name in SETS},
}


def _threads(name: str) -> int:
    return 2 if "two threads" in name else 1


def _run(name: str, folder: Path) -> Row | None:
    given = ["--data", str(folder), "--child", name, *(["--tools", *tools] if tools else [])]
    try:
        return rows.run_child(__file__, given, _threads(name))
    except RuntimeError as error:
        print(f"  failed: {error}")
        return None


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = rows.parser(__doc__, "boosting")
    parser.add_argument("--tools", nargs="+", default=[], help="of the tools with defaults, these")
    options = parser.parse_args()
    tools.extend(options.tools)
    if options.child:
        rows.pin(options.child, _threads(options.child))
        print(json.dumps(ROWS[options.child](options.data)))
        return
    if options.list:
        print("\n".join(ROWS))
        return
    if not options.data.is_dir():
        print(f"{options.data} is not there: nothing to measure")
        return
    from machine import describe

    kept = json.loads(options.out.read_text()) if options.out.exists() else {"rows": {}}
    for name in ROWS:
        if not rows.is_wanted(name, options.only):
            continue
        print(f"{name}\n  {ROWS[name].__doc__}", flush=True)
        row = _run(name, options.data)
        if row is None:
            continue
        for key, value in row.items():
            print(f"  {key:45s} {_text(value)}", flush=True)
        here = {"date": rows.today(), "machine": describe()}
        if not options.only or "machine" not in kept:
            kept |= here
        former = kept["rows"].get(name, {})
        absent = {key for key, value in row.items() if str(value).startswith("not measured")}
        kept["rows"][name] = row | {key: former[key] for key in absent & former.keys()} | here
        rows.keep(options.out, kept)


if __name__ == "__main__":
    main()
