"""The best forest of this engine in the time of the plain one, on each data set.

    python bench/beyond.py --data folder              five or eight splits, fewer of the largest
    python bench/beyond.py --data folder --quick      one split, less to compare: four minutes
    python bench/beyond.py --page                     rewrite docs/beyond.md from the results only

The plain forest: 100 trees on the original outputs, k = sqrt(p), fully grown, leaves of the
bootstrap sample. Its CPU time, fit and prediction of the test rows on one thread, is the limit for
all others, whose number of trees is what fits into it. On each random split, of the papers' sizes,
settings are compared on random fifths of the training part. The best is then grown on the whole of
it and scored on the test part, beside the plain forest; where it turns out to take longer, with
fewer trees. Results are kept after each split: run again to go on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import machine
import numpy as np
from scipy import sparse
from sklearn.model_selection import ShuffleSplit

import pyrpo
from pyrpo.datasets import load_mulan, load_vw
from pyrpo.metrics import label_ranking_average_precision, macro_r2

ROOT = Path(__file__).resolve().parent.parent
PLAIN_TREES, MOST_TREES = 100, 500


@dataclass(frozen=True)
class Set:
    """A data set: rows to train on, splits, fifths to choose by, the paper's best of its rows."""

    name: str
    train: int
    splits: int = 8
    fifths: int = 10
    targets: int | None = None  # of regression: how many
    classes: bool = False  # one class a row; the files' own split
    paper: tuple[float, float] | None = None  # Table 1 (forests), Table 3 (extra-trees)


SETS = [
    Set("delicious", 12920, 2, 2, paper=(0.384, 0.360)),
    Set("bibtex", 4880, 3, 2, paper=(0.566, 0.584)),
    Set("scene", 1211, 5, 4, paper=(0.875, 0.878)),
    Set("yeast", 1500, 5, 4, paper=(0.759, 0.757)),
    Set("emotions", 391, paper=(0.810, 0.810)),
    Set("cal500", 376, fifths=5, paper=(0.506, 0.503)),
    Set("birds", 322),
    Set("atp1d", 168, targets=6),
    Set("oes97", 167, targets=16),
    Set("wq", 530, targets=14),
    Set("edm", 77, splits=40, fifths=20, targets=2),
    Set("aloi", 97200, 1, 1, classes=True),
]


# ---- settings -----------------------------------------------------------------------------------

PLAIN: dict = {"kind": "forest"}


def grid(data: Set, is_sparse: bool, quick: bool) -> list[dict]:
    """Settings to compare; `k` counts in sqrt(p), `m` in ln d."""
    full = {"kind": "forest", "leaf_rows": "all"}
    extra = {"kind": "extra"}
    found = [full | {"k": k, "max_samples": s} for k in (1, 2, 4) for s in (1.0, 0.5)]
    found += [full | {"k": k, "min_samples_leaf": 2} for k in (1, 2)]
    found += [extra | {"k": k, "min_samples_leaf": leaf} for k in (1, 2, 4) for leaf in (1, 2, 3)]
    if data.classes:
        found = [full | {"k": k} for k in (0.5, 1, 2)] + [extra | {"k": k} for k in (0.5, 1, 2)]
        gaussian = {"projection": "gaussian", "m": 1}
        found += [s | gaussian | {"k": k} for s in (PLAIN, extra) for k in (0.5, 1)]
        return [PLAIN, *found, full | {"max_samples": 0.7}]
    if is_sparse:
        found += [full | {"draw_non_constant": True, "max_samples": s} for s in (1.0, 0.5)]
        found += [extra | {"draw_non_constant": True, "min_samples_leaf": 2}]
    if not quick:
        found += [full | {"min_samples_leaf": 3}, PLAIN | {"min_samples_leaf": 2}]
        found += [extra | {"bootstrap": True, "leaf_rows": "all", "k": k} for k in (1, 2)]
        found += [extra | {"projection": "gaussian", "m": 2, "k": 2, "min_samples_leaf": 2}]
        gaussian = full | {"projection": "gaussian"}
        found += [gaussian | {"m": 1, "k": k} for k in (1, 2)]
        found += [gaussian | {"m": 2, "k": 2, "max_samples": s} for s in (1.0, 0.5)]
        found += [full | {"projection": "subsample", "m": 1, "k": k} for k in (1, 2)]
    if data.targets is not None:  # outputs in units of their own: most often scaled
        found = [c | {"output_scale": "std"} for c in found] + found[:6:2]
    return [PLAIN, *found]


def name_of(setting: dict) -> str:
    """A setting in the words of the page."""
    s = {"k": 1, "max_samples": 1.0, "min_samples_leaf": 1} | setting
    words = ["extra-trees" if s["kind"] == "extra" else "forest"]
    if "projection" in s:
        words += [
            f"{s['projection']} m = {'' if s['m'] == 1 else s['m']}ln d".replace("2ln", "2 ln")
        ]
    words += [f"k = {'' if s['k'] == 1 else s['k']}√p"]
    words += ["k not constant"] if "draw_non_constant" in s else []
    words += [f"leaves of {s['min_samples_leaf']}"] if s["min_samples_leaf"] > 1 else []
    words += ["bootstrap"] if "bootstrap" in s else []
    words += [f"samples of {s['max_samples']:g} n"] if s["max_samples"] < 1 else []
    words += ["all rows in leaves"] if "leaf_rows" in s else []
    words += ["outputs scaled"] if "output_scale" in s else []
    return ", ".join(words)


def estimator(data: Set, setting: dict, X, Y, trees: int, seed: int):
    """An unfitted forest of a setting."""
    options = dict(setting)
    kind, k, m = options.pop("kind"), options.pop("k", 1), options.pop("m", 1)
    if options.get("max_samples") == 1.0:
        del options["max_samples"]
    outputs = len(np.unique(Y)) if data.classes else Y.shape[1]
    options["n_components"] = max(1, int(0.5 + m * np.log(outputs)))
    p = X.shape[1]
    names = {"forest": "RandomForest", "extra": "ExtraTrees"}
    cls = getattr(pyrpo, names[kind] + ("Classifier" if data.targets is None else "Regressor"))
    k = max(1, min(p, int(k * np.sqrt(p))))
    return cls(trees, max_features=k, random_state=seed, n_jobs=1, **options)


# ---- measuring ----------------------------------------------------------------------------------


def read(data: Set, folder: Path):
    """X and Y, the files' parts joined."""
    if data.classes:
        files = [folder / f"{data.name}-{part}.vw.gz" for part in ("train", "test")]
        if not all(f.exists() for f in files):
            return None
        parts = [load_vw(f, n_features=128) for f in files]
        return np.vstack([b.X.toarray() for b in parts]), np.concatenate([b.y for b in parts])
    files = sorted(folder.glob(f"{data.name}*.arff.gz"))
    if not files:
        return None
    parts = [load_mulan(f, n_targets=data.targets) for f in files]
    stack = sparse.vstack if sparse.issparse(parts[0].X) else np.vstack
    X, Y = stack([b.X for b in parts]), stack([b.Y for b in parts])
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    return X, (sparse.csr_array(Y) if data.targets is None else Y)


def run(data, setting, trees, seed, train, X):
    """CPU seconds of fit and prediction, and what is predicted for X."""
    forest = estimator(data, setting, *train, trees, seed)
    by_label = data.targets is None and not data.classes
    start = process_time()
    forest.fit(*train)
    p = forest.predict_proba(X) if by_label else forest.predict(X)
    return process_time() - start, p


def score(data, Y, p) -> float:
    """The number to raise."""
    if data.classes:
        return float(np.mean(p == Y))
    if data.targets is None:
        return label_ranking_average_precision(Y, p, empty="drop")
    return macro_r2(Y, p)


def measure_times(data, settings, train, test, quick) -> dict[str, int]:
    """Trees of each setting in the plain forest's time; the least of some repeats counts."""

    def least(setting, repeats):
        return min(run(data, setting, PLAIN_TREES, 0, train, test[0])[0] for _ in range(repeats))

    repeats = 2 if quick or least(PLAIN, 2) > 0.3 else 5
    repeats = 1 if quick and least(PLAIN, 1) > 0.3 else repeats
    limit = least(PLAIN, 2 * repeats)
    trees = {}
    for setting in settings:
        share = limit / least(setting, repeats)
        trees[name_of(setting)] = int(min(MOST_TREES, max(1, 0.98 * PLAIN_TREES * share)))
    trees[name_of(PLAIN)] = PLAIN_TREES
    return trees


def choose(data, settings, trees, split, train, fifths) -> dict[str, float]:
    """Score of each setting on random fifths of the training part, their rows taken together."""
    X, Y = train
    predicted, held = {name_of(s): [] for s in settings}, []
    folds = ShuffleSplit(fifths, test_size=0.2, random_state=split)
    for number, (grown, rest) in enumerate(folds.split(np.arange(Y.shape[0]))):
        held.append(rest)
        for setting in settings:
            name = name_of(setting)
            _, p = run(data, setting, trees[name], 1000 + number, (X[grown], Y[grown]), X[rest])
            predicted[name].append(p)
    Y = Y[np.concatenate(held)]
    return {name: score(data, Y, np.concatenate(parts)) for name, parts in predicted.items()}


def compare(data, setting, trees, split, train, test) -> dict:
    """Plain forest and winner on the test part, the winner with trees enough for the time only."""
    seconds, found = {"plain": np.inf, "best": np.inf}, {}
    for attempt in range(12):
        for which, options, t in (("plain", PLAIN, PLAIN_TREES), ("best", setting, trees)):
            took, p = run(data, options, t, split, train, test[0])
            seconds[which], found[which] = min(seconds[which], took), score(data, test[1], p)
        if seconds["best"] > seconds["plain"] and trees > 1:
            trees = max(1, int(0.99 * trees * seconds["plain"] / seconds["best"]))
            seconds["best"] = np.inf
        elif attempt >= 2:
            break
    return {"trees": trees, "seconds": seconds, "score": found}


def study(data: Set, folder: Path, quick: bool, kept: dict, save) -> None:
    """All splits of one set that are not kept yet."""
    problem = read(data, folder)
    if problem is None:
        print(f"{data.name}: no file in {folder}, left out", flush=True)
        return
    X, Y = problem
    settings = grid(data, sparse.issparse(X), quick)
    outcome = kept.setdefault(data.name, {"splits": []})
    for split in range(len(outcome["splits"]), 1 if quick else data.splits):
        rows = np.arange(X.shape[0])
        order = rows if data.classes else np.random.default_rng(split).permutation(rows)
        train, test = ((X[i], Y[i]) for i in np.split(order, [data.train]))
        if "trees" not in outcome:
            outcome["trees"] = measure_times(data, settings, train, test, quick)
        fifths = max(1, data.fifths // 3) if quick else data.fifths
        scores = choose(data, settings, outcome["trees"], split, train, fifths)
        best = max(settings, key=lambda s: scores[name_of(s)])
        name = name_of(best)
        found = compare(data, best, outcome["trees"][name], split, train, test)
        outcome["splits"].append({"chosen": name, "validation": scores} | found)
        print(
            f"{data.name:10} {split}  plain {found['score']['plain']:.4f}  "
            f"best {found['score']['best']:.4f}  {found['seconds']['plain']:.3f} s "
            f"{found['seconds']['best']:.3f} s  {found['trees']} trees: {name}",
            flush=True,
        )
        save()


# ---- the page -----------------------------------------------------------------------------------


def figures(data: Set, outcome: dict) -> dict:
    """What the page says of one set."""
    plain, best = (np.array([s["score"][w] for s in outcome["splits"]]) for w in ("plain", "best"))
    seconds = {w: np.mean([s["seconds"][w] for s in outcome["splits"]]) for w in ("plain", "best")}
    chosen = [s["chosen"] for s in outcome["splits"]]
    common = max(dict.fromkeys(chosen), key=chosen.count)
    trees = [s["trees"] for s in outcome["splits"] if s["chosen"] == common]
    return {
        "plain": plain,
        "best": best,
        "seconds": seconds,
        "common": common,
        "times": chosen.count(common),
        "trees": int(np.median(trees)),
        "paper": max(data.paper) if data.paper else None,
    }


def row(data: Set, f: dict) -> str:
    gain, n = f["best"] - f["plain"], len(f["best"])
    paper = "—" if f["paper"] is None else f"{f['paper']:.3f}"
    beyond = [f["best"].mean() > f["plain"].mean()]
    if f["paper"] is not None:
        beyond.append(f["best"].mean() > f["paper"])
    return (
        f"| {data.name} | {f['plain'].mean():.4f} ± {f['plain'].std():.4f} "
        f"| **{f['best'].mean():.4f}** ± {f['best'].std():.4f} "
        f"| {gain.mean():+.4f} ({(gain > 0).sum()} of {n}) | {paper} "
        f"| {' / '.join('yes' if b else 'no' for b in beyond)} "
        f"| {f['seconds']['plain']:.3f} | {f['seconds']['best']:.3f} "
        f"| {f['trees']} × {f['common']} ({f['times']} of {n}) |"
    )


HEAD = """# Beyond the plain forest

The best forest of this engine on each data set in no more CPU time, fit and prediction together,
than its plain forest: 100 fully grown trees on the original outputs, k = √p, leaves of the
bootstrap sample. `bench/beyond.py` makes this page; its head says how settings are chosen. No test
row takes part in a choice.

"""

COLUMNS = (
    "data set", "plain", "best", "gain (splits better)", "paper", "above plain / paper",
    "plain, s", "best, s", "chosen most often",
)  # fmt: skip
TABLE = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"


def page(results: dict) -> str:
    """docs/beyond.md from what is kept."""
    about = ", ".join(f"{k} {v}" for k, v in results["machine"].items())
    parts = [HEAD, f"{results['date']}; {about}; one thread.\n"]
    kinds = {
        "Labels: label ranking average precision": lambda d: d.targets is None and not d.classes,
        "Regression: mean of the outputs' R²": lambda d: d.targets is not None,
        "Classes: accuracy, on the files' own split": lambda d: d.classes,
    }
    for title, mine in kinds.items():
        kept = [(d, results["sets"].get(d.name)) for d in SETS if mine(d)]
        rows = [row(d, figures(d, outcome)) for d, outcome in kept if outcome]
        if rows:
            parts += [f"\n## {title}\n\n", TABLE, "\n".join(rows), "\n"]
    parts += ["\n", (ROOT / "bench" / "beyond.md").read_text()]
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=ROOT / "data", help="folder of the files")
    parser.add_argument("--quick", action="store_true", help="one split, fewer settings")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--out", type=Path)
    parser.add_argument("sets", nargs="*", help="names; all unless given")
    arguments = parser.parse_args()
    name = "beyond-quick.json" if arguments.quick else "beyond.json"
    out = arguments.out or ROOT / "bench" / "results" / name
    results = json.loads(out.read_text()) if out.exists() else {"sets": {}}

    def save():
        results["machine"] = machine.describe()
        results["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")

    warnings.simplefilter("ignore")
    for data in SETS:
        if arguments.quick and data.classes:
            continue  # a minute of its own
        if not arguments.page and (not arguments.sets or data.name in arguments.sets):
            study(data, arguments.data, arguments.quick, results["sets"], save)
    if not arguments.quick:
        (ROOT / "docs" / "beyond.md").write_text(page(results))


if __name__ == "__main__":
    main()
