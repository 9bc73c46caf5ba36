"""Boosting tools at equal time: the same random search for each, tuning included.

Of each split's training rows a fifth is for choosing. A tool draws settings and fits them to the
others, with early stopping on this fifth, for half of its seconds of processor time (one thread).
From the best of them down, settings are then fitted with the other fifths in turn left out, for as
long as there is time; a fit that has begun is finished, or cut short where rounds take long. What
the models of the best setting predict by the mean of its fifths, on average, is scored once on the
test rows. With --folds 1 all seconds go to the first fifth, and the best model by it is scored.

    python bench/tuned.py --data FOLDER [--sets yeast wq] [--splits 5] [--seconds 20]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SETS = ("emotions", "yeast", "scene", "wq", "atp1d", "oes97", "bibtex")
TARGETS = {"wq": 14, "atp1d": 6, "oes97": 16, "edm": 2}
ROUNDS, PATIENCE = 1000, 30
SLOW = {"bibtex": ("catboost", "scikit-learn")}  # minutes a fit, a round


def setting(rng: np.random.Generator) -> dict[str, float]:
    """A draw from the space that all tools share."""
    return {
        "rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
        "depth": int(rng.integers(3, 9)),
        "rows": float(rng.choice([0.5, 0.7, 1.0])),
        "features": float(rng.choice([0.1, 0.3, 0.6, 1.0])),
        "l2": float(np.exp(rng.uniform(np.log(0.1), np.log(10)))),
        "leaf": int(rng.choice([1, 3, 10])),
    }


class Deadline:
    """Ends a fit of xgboost or catboost between two rounds when the time is up."""

    at = np.inf

    def after_iteration(self, *_):
        return process_time() < Deadline.at


# Each tool: (training X and Y, choosing X and Y, setting, labels?) -> a function that predicts.


def pyrpo(X, Y, V, W, s, labels):
    from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor

    cls = GradientBoostingClassifier if labels else GradientBoostingRegressor
    model = cls(
        ROUNDS, learning_rate=s["rate"], max_depth=s["depth"], subsample=s["rows"],
        max_features=s["features"], l2=s["l2"], min_samples_leaf=s["leaf"],
        n_iter_no_change=PATIENCE, early_stopping=True, refit=False, random_state=0, n_jobs=1,
    ).fit(X, Y, eval_set=(V, W))  # fmt: skip
    return model.predict_proba if labels else model.predict


def xgboost_of(strategy: str) -> Callable:
    def run(X, Y, V, W, s, labels):
        import xgboost

        class Stop(Deadline, xgboost.callback.TrainingCallback):
            def after_iteration(self, *_):
                return process_time() >= Deadline.at

        cls = xgboost.XGBClassifier if labels else xgboost.XGBRegressor
        model = cls(
            n_estimators=ROUNDS, learning_rate=s["rate"], max_depth=s["depth"],
            subsample=s["rows"], colsample_bynode=s["features"], reg_lambda=s["l2"],
            min_child_weight=s["leaf"] * (0.25 if labels else 1.0), tree_method="hist",
            multi_strategy=strategy, early_stopping_rounds=PATIENCE, n_jobs=1, random_state=0,
            callbacks=[Stop()],
        ).fit(X, Y, eval_set=[(V, W)], verbose=False)  # fmt: skip
        return model.predict_proba if labels else model.predict

    return run


def by_output(fit: Callable) -> Callable:
    """A model an output; a constant where an output is one in training."""

    def run(X, Y, V, W, s, labels):
        models = [
            Y[0, j] if len(np.unique(Y[:, j])) < 2 else fit(X, Y[:, j], V, W[:, j], s, labels)
            for j in range(Y.shape[1])
        ]

        def predict(T):
            out = np.empty((T.shape[0], len(models)))
            for j, model in enumerate(models):
                if np.isscalar(model):
                    out[:, j] = model
                else:
                    out[:, j] = model.predict_proba(T)[:, 1] if labels else model.predict(T)
            return out

        return predict

    return run


@by_output
def lightgbm(X, y, V, w, s, labels):
    import lightgbm as tool

    cls = tool.LGBMClassifier if labels else tool.LGBMRegressor
    return cls(
        n_estimators=ROUNDS, learning_rate=s["rate"], max_depth=s["depth"],
        num_leaves=2 ** s["depth"], subsample=s["rows"], subsample_freq=1,
        feature_fraction_bynode=s["features"], reg_lambda=s["l2"], min_child_samples=s["leaf"],
        n_jobs=1, random_state=0, verbose=-1, early_stopping_round=PATIENCE,
    ).fit(X, y, eval_set=[(V, w)])  # fmt: skip


@by_output
def scikit(X, y, V, w, s, labels):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    cls = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
    return cls(
        max_iter=ROUNDS, learning_rate=s["rate"], max_depth=s["depth"], max_features=s["features"],
        l2_regularization=s["l2"], min_samples_leaf=s["leaf"], early_stopping=True,
        n_iter_no_change=PATIENCE, random_state=0,
    ).fit(_dense(X), y, X_val=_dense(V), y_val=w)  # fmt: skip


def catboost(X, Y, V, W, s, labels):
    import catboost as tool

    cls = tool.CatBoostClassifier if labels else tool.CatBoostRegressor
    model = cls(
        iterations=ROUNDS, learning_rate=s["rate"], depth=s["depth"], rsm=s["features"],
        l2_leaf_reg=s["l2"], bootstrap_type="Bernoulli", subsample=min(s["rows"], 0.999),
        loss_function="MultiLogloss" if labels else "MultiRMSE", thread_count=1, random_seed=0,
        verbose=False, allow_writing_files=False,
    )  # fmt: skip
    sets = {"eval_set": (_dense(V), W), "early_stopping_rounds": PATIENCE}
    model.fit(_dense(X), Y, callbacks=[Deadline()], **sets)
    predict = model.predict_proba if labels else model.predict
    return lambda T: predict(_dense(T))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else X


TOOLS: dict[str, Callable] = {
    "pyrpo": pyrpo,
    "xgboost, a tree a round": xgboost_of("multi_output_tree"),
    "xgboost, a tree an output": xgboost_of("one_output_per_tree"),
    "lightgbm, a model an output": lightgbm,
    "scikit-learn, a model an output": scikit,
    "catboost": catboost,
}


class Candidate:
    """A setting: its models, each with the score of the rows it was not fitted to."""

    def __init__(self, setting: dict[str, float]):
        self.setting = setting
        self.models: list[Callable] = []
        self.scores: list[float] = []

    def fit(self, tool: str, data, fold: Fold) -> None:
        labels = data.metric == "LRAP"
        model = TOOLS[tool](*fold.arrays, self.setting, labels)
        self.models.append(model)
        self.scores.append(data.score(fold.choose, model(fold.arrays[2])))

    @property
    def rank(self) -> tuple[int, float]:
        """More folds first: of those that have as many, the mean tells."""
        return len(self.models), float(np.mean(self.scores))

    def predict(self, X) -> np.ndarray:
        return np.mean([model(X) for model in self.models], axis=0)


class Fold:
    """Rows to fit to, and a fifth to choose by."""

    def __init__(self, data, rest: np.ndarray, choose: np.ndarray):
        def dense(Y):
            return np.asarray(Y.toarray(), dtype=np.int32) if data.metric == "LRAP" else Y

        self.choose = choose
        self.arrays = data.X[rest], dense(data.Y[rest]), data.X[choose], dense(data.Y[choose])


def search(tool: str, data, split: int, seconds: float, folds: int) -> dict[str, Any]:
    """One tool on one split."""
    rows, test = data.split(split)
    rng = np.random.default_rng(split)
    rows = rng.permutation(rows)
    ends = len(rows) * np.arange(6) // 5
    parts = [
        Fold(data, np.delete(rows, np.s_[ends[i] : ends[i + 1]]), rows[ends[i] : ends[i + 1]])
        for i in range(folds)
    ]
    start = process_time()
    Deadline.at = start + seconds
    candidates: list[Candidate] = []
    while process_time() - start < seconds * (0.5 if folds > 1 else 1.0):
        candidates.append(Candidate(setting(rng)))
        candidates[-1].fit(tool, data, parts[0])
    for candidate in sorted(candidates, key=lambda c: c.rank, reverse=True):
        for fold in parts[1:]:
            if process_time() - start < seconds:
                candidate.fit(tool, data, fold)
    used = process_time() - start
    best = max(candidates, key=lambda c: c.rank)
    score = data.score(test, best.predict(data.X[test]))
    whole = sum(len(c.models) == folds for c in candidates)
    return {"score": score, "chosen at": best.rank[1], "settings": len(candidates),
            "with all folds": whole, "models": len(best.models), "seconds": used}  # fmt: skip


def scores_of(results: dict[str, Any]):
    """Set by set, every tool's scores of the splits that all tools have."""
    for name in SETS:
        runs = runs_of(results, name)
        if runs:
            yield name, {t: np.array([r["score"] for r in own]) for t, own in runs.items()}


def runs_of(results: dict[str, Any], name: str) -> dict[str, list[dict[str, Any]]]:
    """What each tool found on the splits of a set that all tools have."""
    runs: dict[str, dict[str, Any]] = {}
    for key, result in results.items():
        where, split, tool = key.split("/")
        if where == name:
            runs.setdefault(tool, {})[split] = result
    splits = sorted(set.intersection(*map(set, runs.values()))) if runs else []
    return {tool: [runs[tool][s] for s in splits] for tool in TOOLS if splits and tool in runs}


def table(results: dict[str, Any]) -> str:
    """Mean and deviation over the splits; settings tried, and models where they are several."""
    lines = [f"| set | splits | {' | '.join(TOOLS)} |", "|---" * (len(TOOLS) + 2) + "|"]
    for name, scores in scores_of(results):
        runs = runs_of(results, name)
        top = max(scores, key=lambda tool: scores[tool].mean())
        cells = []
        for tool in TOOLS:
            if tool not in runs:
                cells.append("–")
                continue
            own, mark = scores[tool], "**" if tool == top else ""
            deviation = own.std(ddof=1) if len(own) > 1 else 0.0
            tried = f"{np.mean([r['settings'] for r in runs[tool]]):.0f}"
            if "models" in runs[tool][0]:
                tried += f", {np.mean([r['models'] for r in runs[tool]]):.1f}"
            cells.append(f"{mark}{own.mean():.4f} ± {deviation:.4f}{mark} ({tried})")
        lines.append(f"| {name} | {len(scores[top])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(folder))
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--folds", type=int, default=5, choices=(1, 5))
    parser.add_argument("--out", type=Path, help="default: bench/results/tuned.json, by folds")
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"{options.data} is not there: nothing to measure")
    from bench.joly2014.data import find
    from bench.machine import describe

    sources = {source.name: source for source in find(options.data, TARGETS)}
    name_of = "tuned.json" if options.folds > 1 else "tuned_one.json"
    options.out = options.out or ROOT / "bench/results" / name_of
    kept = json.loads(options.out.read_text()) if options.out.exists() else {"results": {}}
    for split in range(options.splits):
        for name in options.sets:
            for tool in TOOLS:
                key = f"{name}/{split}/{tool}"
                if key in kept["results"] or tool.split(",")[0] in SLOW.get(name, ()):
                    continue
                try:
                    result = search(
                        tool, sources[name].problem, split, options.seconds, options.folds
                    )
                except ImportError as error:
                    print(f"{key}: left out: {error}")
                    continue
                print(f"{key}: {result['score']:.4f}, {result['settings']} settings in "
                      f"{result['seconds']:.0f} s", flush=True)  # fmt: skip
                kept["results"][key] = result
                kept |= {"seconds": options.seconds, "machine": describe()}
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(kept["results"]))


if __name__ == "__main__":
    main()
