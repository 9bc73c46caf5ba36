"""The best forest of this engine in the time of the plain one, on each data set.

    python bench/beyond.py --data folder              five or eight splits, fewer of the largest
    python bench/beyond.py --data folder --quick      one split, less to compare: four minutes
    python bench/beyond.py --page                     rewrite docs/beyond.md from the results only

The plain forest: 100 trees on the original outputs, k = sqrt(p), fully grown, leaves of the
bootstrap sample. Its CPU time, fit and prediction of the test rows on one thread, is the limit for
all others, whose number of trees is what fits into it; also of two forests side by side, half the
trees of each, their predictions averaged. On each random split, of the papers' sizes, settings are
compared on random fifths of the training part, by one standard error: the plain forest beside plain
extra-trees stands until another is better by more than the error of the difference. The best is
then grown on the whole part and scored on the test part, beside the plain forest; where it turns
out to take longer, with fewer trees. Results are kept after each split: run again to go on.
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
from pyrpo._native_scores import scores_precision
from pyrpo.datasets import load_mulan, load_vw
from pyrpo.metrics import macro_r2

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
    Set("bibtex", 4880, 10, 2, paper=(0.566, 0.584)),
    Set("scene", 1211, 5, 4, paper=(0.875, 0.878)),
    Set("yeast", 1500, 5, 4, paper=(0.759, 0.757)),
    Set("emotions", 391, paper=(0.810, 0.810)),
    Set("cal500", 376, fifths=5, paper=(0.506, 0.503)),
    Set("birds", 322),
    Set("atp1d", 168, targets=6),
    Set("oes97", 167, targets=16),
    Set("wq", 530, targets=14),
    Set("edm", 77, splits=100, fifths=20, targets=2),
    Set("aloi", 97200, 1, 3, classes=True),
]


# ---- settings -----------------------------------------------------------------------------------

PLAIN: dict = {"kind": "forest"}
EXTRA: dict = {"kind": "extra"}
Parts = list[tuple[dict, int]]  # settings side by side, and the trees of each


def grid(data: Set, is_sparse: bool, quick: bool) -> list[dict]:
    """Settings to compare, plain ones first; `k` counts in sqrt(p), `m` in ln d."""
    full = PLAIN | {"leaf_rows": "all"}
    found = [full | {"k": k, "max_samples": s} for k in (1, 2, 4) for s in (1.0, 0.5)]
    found += [full | {"k": k, "min_samples_leaf": 2} for k in (1, 2)]
    found += [PLAIN | {"bootstrap": False}]
    found += [EXTRA | {"k": k} for k in (2, 4)]
    found += [EXTRA | {"k": k, "min_samples_leaf": leaf} for k in (1, 2, 4) for leaf in (2, 3)]
    if data.classes:
        found = [s | {"k": k} for s in (full, EXTRA) for k in (0.5, 1, 2)]
        found.remove(EXTRA | {"k": 1})
        found += [PLAIN | {"bootstrap": False, "k": k} for k in (0.5, 1)]
        gaussian = {"projection": "gaussian", "m": 1}
        found += [s | gaussian | {"k": k} for s in (PLAIN, EXTRA) for k in (0.5, 1)]
        return [PLAIN, EXTRA, *found, full | {"max_samples": 0.7}]
    if is_sparse:
        found += [full | {"draw_non_constant": True, "max_samples": s} for s in (1.0, 0.5)]
        found += [EXTRA | {"draw_non_constant": True, "min_samples_leaf": 2}]
    if not quick:
        found += [full | {"min_samples_leaf": 3}, PLAIN | {"min_samples_leaf": 2}]
        found += [EXTRA | {"bootstrap": True, "leaf_rows": "all", "k": k} for k in (1, 2)]
        found += [EXTRA | {"projection": "gaussian", "m": 2, "k": 2, "min_samples_leaf": 2}]
        gaussian = full | {"projection": "gaussian"}
        found += [gaussian | {"m": 1, "k": k} for k in (1, 2)]
        found += [gaussian | {"m": 2, "k": 2, "max_samples": s} for s in (1.0, 0.5)]
        found += [full | {"projection": "subsample", "m": 1, "k": k} for k in (1, 2)]
    if data.targets is None:
        return [PLAIN, EXTRA, *found]
    scale = {"output_scale": "std"}  # outputs in units of their own: most often scaled
    return [PLAIN, EXTRA | scale, *(c | scale for c in found), *found[:6:2]]


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
    words += [f"{'' if s['bootstrap'] else 'no '}bootstrap"] if "bootstrap" in s else []
    words += [f"samples of {s['max_samples']:g} n"] if s["max_samples"] < 1 else []
    words += ["all rows in leaves"] if "leaf_rows" in s else []
    words += ["outputs scaled"] if "output_scale" in s else []
    return ", ".join(words)


def label(parts: Parts) -> str:
    """Forests side by side in the words of the page."""
    return " + ".join(name_of(setting) for setting, _ in parts)


def trees_of(trees: list[int]) -> str:
    """How many trees the winner has: "50", or "50 + 41" side by side."""
    return " + ".join(map(str, trees))


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
        classes = np.unique(np.concatenate([b.y for b in parts]), return_inverse=True)[1]
        return np.vstack([b.X.toarray() for b in parts]), classes
    files = sorted(folder.glob(f"{data.name}*.arff.gz"))
    if not files:
        return None
    parts = [load_mulan(f, n_targets=data.targets) for f in files]
    stack = sparse.vstack if sparse.issparse(parts[0].X) else np.vstack
    X, Y = stack([b.X for b in parts]), stack([b.Y for b in parts])
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    return X, (sparse.csr_array(Y) if data.targets is None else Y)


def run(data, parts, seed, train, X):
    """CPU seconds of fit and prediction of forests side by side, and what they predict for X."""
    took, total = 0.0, 0.0
    for setting, trees in parts:
        forest = estimator(data, setting, *train, trees, seed)
        start = process_time()
        forest.fit(*train)
        p = forest.predict(X) if data.targets is not None else forest.predict_proba(X)
        total = total + p if len(parts) > 1 else p
        took += process_time() - start
    return took, total / len(parts) if len(parts) > 1 else total


def score(data, Y, p) -> float:
    """The number to raise."""
    return macro_r2(Y, p) if data.targets is not None else float(np.nanmean(score_rows(data, Y, p)))


def score_rows(data, Y, p) -> np.ndarray:
    """What each row adds to the score, NaN for nothing; of R², with the variance of all of Y."""
    if data.classes:
        return (p.argmax(axis=1) == Y).astype(float)
    if data.targets is None:
        return scores_precision(p, Y)
    return np.mean(1 - (Y - p) ** 2 / np.var(Y, axis=0), axis=1)


def measure_times(data, settings, train, test, quick) -> dict[str, int]:
    """Trees of each setting in the plain forest's time.

    Both are timed in turns, as machines do other work at times; the least of some repeats counts.
    """

    def seconds(setting) -> float:
        return run(data, [(setting, PLAIN_TREES)], 0, train, test[0])[0]

    long = min(seconds(PLAIN) for _ in range(2)) > 0.3
    repeats = (1 if quick else 2) if long else (2 if quick else 5)
    trees = {}
    for setting in settings:
        plain, own = np.array([(seconds(PLAIN), seconds(setting)) for _ in range(repeats)]).min(0)
        trees[name_of(setting)] = int(min(MOST_TREES, max(1, PLAIN_TREES * plain / own)))
    trees[name_of(PLAIN)] = PLAIN_TREES
    return trees


def halves(*wholes: Parts) -> Parts:
    """Forests side by side, each with its share of the trees it would have alone."""
    return [(s, max(1, t // len(wholes))) for parts in wholes for s, t in parts]


def choose(data, settings, trees, split, train, fifths) -> tuple[Parts, dict[str, float]]:
    """The best forest on random fifths of the training part, by one standard error.

    What stands at first is the plain forest beside plain extra-trees, half of each. Candidates are
    the settings alone, and the best random forest beside the best extra-trees. One takes its place
    that is better by more than the standard error of the difference; the one of the most more.
    """
    X, Y = train
    folds = list(ShuffleSplit(fifths, test_size=0.2, random_state=split).split(X))
    held = np.concatenate([rest for _, rest in folds])

    def by_row(parts: Parts) -> np.ndarray:
        predicted = [
            run(data, parts, 1000 + number, (X[grown], Y[grown]), X[rest])[1]
            for number, (grown, rest) in enumerate(folds)
        ]
        return score_rows(data, Y[held], np.concatenate(predicted))

    alone = [[(s, trees[name_of(s)])] for s in settings]
    kinds = [[p for p in alone if p[0][0]["kind"] == kind] for kind in ("forest", "extra")]
    plain = halves(*(parts[0] for parts in kinds))
    found = {label(p): by_row(p) for p in [plain, *alone]}
    both = halves(*(max(parts, key=lambda p: np.nanmean(found[label(p)])) for parts in kinds))
    found[label(both)] = by_row(both)

    def more(parts: Parts) -> float:
        # The error of a mean over parts that share rows: Nadeau and Bengio (2003).
        gain = found[label(parts)] - found[label(plain)]
        rows = np.count_nonzero(~np.isnan(gain)) / fifths
        error = np.nanstd(gain) * np.sqrt((1 / fifths + 1 / 4) / rows)
        return np.nanmean(gain) - error

    best = max([plain, *alone, both], key=more)
    return best, {name: float(np.nanmean(v)) for name, v in found.items()}


def compare(data, parts: Parts, split, train, test) -> dict:
    """Plain forest and winner on the test part, the winner with trees enough for the time only."""
    plain = [(PLAIN, PLAIN_TREES)]
    for _ in range(12):
        seconds = {"plain": np.inf, "best": np.inf}
        found = {}
        for _ in range(3):
            for which, p in (("plain", plain), ("best", parts)):
                took, predicted = run(data, p, split, train, test[0])
                seconds[which] = min(seconds[which], took)
                found[which] = score(data, test[1], predicted)
        measured = {"trees": [t for _, t in parts], "seconds": seconds, "score": found}
        share = seconds["plain"] / seconds["best"]
        if share >= 1 or all(t == 1 for _, t in parts):
            return measured
        parts = [(s, max(1, int(min(0.99, share) * t))) for s, t in parts]
    raise RuntimeError(f"{data.name}: no number of trees takes the plain forest's time")


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
        best, scores = choose(data, settings, outcome["trees"], split, train, fifths)
        found = compare(data, best, split, train, test)
        outcome["splits"].append({"chosen": label(best), "validation": scores} | found)
        print(
            f"{data.name:10} {split}  plain {found['score']['plain']:.4f}  "
            f"best {found['score']['best']:.4f}  {found['seconds']['plain']:.3f} s "
            f"{found['seconds']['best']:.3f} s  {trees_of(found['trees'])} × {label(best)}",
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
    trees = np.median(trees, axis=0).astype(int).tolist()
    return {
        "plain": plain,
        "best": best,
        "seconds": seconds,
        "common": common,
        "times": chosen.count(common),
        "trees": trees_of(trees),
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
