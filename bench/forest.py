"""Forests beside scikit-learn's: fit, predict, size, memory; one core each unless a row says so.

    python bench/forest.py                    every row whose data are there
    python bench/forest.py --quick            the same in a few minutes, from fewer trees
    python bench/forest.py --only delicious   rows whose name contains the word
    python bench/forest.py --list             names of the rows
    python bench/forest.py --update-readme    no run: the kept results into README.md

Each row runs in a process of its own, ours and the peer in turn. "≈" marks what was scaled to 100
trees from the few that are named; short fits are repeated, the median counts.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import rows
from rows import ROOT

TREES = 100
SEED = 0


# ---- what a measurement gives -------------------------------------------------------------------


@dataclass
class Result:
    """One row's outcome; `value` is what is held against the target."""

    value: float
    ours: str = ""
    peer: str = ""
    notes: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)


def compare(ours: float, peer: float, unit: str, peer_trees: int = TREES, notes=(), **numbers):
    """Return the result "ours is peer / ours times faster or smaller"."""
    mark = "" if peer_trees == TREES else "≈"
    notes = [*notes, *([f"peer scaled from {peer_trees} of {TREES} trees"] if mark else [])]
    numbers |= {"ours": ours, "peer": peer}
    texts = (f"{_short(ours)} {unit}", f"{mark}{_short(peer)} {unit}")
    return Result(peer / ours, *texts, list(notes), numbers)


def _short(x: float) -> str:
    return (
        f"{x:.4f}" if x < 0.01 else f"{x:.3f}" if x < 1 else f"{x:.2f}" if x < 100 else f"{x:,.0f}"
    )


def seconds(call: Callable) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def median_seconds(calls: list[Callable], repeats: int) -> list[float]:
    """Median time of each call; they take turns, so that a slow moment hits all."""
    import numpy as np

    return np.median([[seconds(call) for call in calls] for _ in range(repeats)], axis=0).tolist()


# ---- ours and the peer --------------------------------------------------------------------------


def our_forest(kind: str, trees: int = TREES, n_jobs: int = 1, **parameters):
    import pyrpo

    cls = {
        "RF": pyrpo.RandomForestRegressor,
        "ET": pyrpo.ExtraTreesRegressor,
        "RFC": pyrpo.RandomForestClassifier,
    }[kind]
    setting = {"max_features": "sqrt", "n_components": "log"}  # nothing is left to a race
    return cls(trees, random_state=SEED, n_jobs=n_jobs, **(setting | parameters))


def their_forest(kind: str, trees: int = TREES):
    from sklearn import ensemble

    cls = {
        "RF": ensemble.RandomForestRegressor,
        "ET": ensemble.ExtraTreesRegressor,
        "RFC": ensemble.RandomForestClassifier,
    }[kind]
    return cls(trees, max_features="sqrt", random_state=SEED, n_jobs=1)


def for_them(problem):
    """Dense arrays of the types they compute in, so that no conversion is timed."""
    import numpy as np
    from problems import dense

    Y = problem.Y if problem.Y.ndim == 1 else dense(problem.Y, np.float64)
    return np.ascontiguousarray(dense(problem.X, np.float32)), Y


def precision(forest, problem) -> float:
    from problems import dense
    from sklearn.metrics import label_ranking_average_precision_score

    return label_ranking_average_precision_score(
        dense(problem.Y_test), forest.predict(dense(problem.X_test))
    )


# ---- measurements -------------------------------------------------------------------------------


def fit(kind: str, peer_trees: int = TREES, repeats: int = 3, lrap: bool = False, **parameters):
    """Fit time of our 100 trees against theirs."""

    def measure(problem, quick) -> Result:
        few = min(peer_trees, 2 if peer_trees < 25 else 25) if quick else peer_trees
        X, Y = for_them(problem)
        ours, theirs = our_forest(kind, **parameters), their_forest(kind, few)
        calls = [lambda: ours.fit(problem.X, problem.Y), lambda: theirs.fit(X, Y)]
        if few == TREES:
            our_time, their_time = median_seconds(calls, 1 if quick else repeats)
        else:
            (our_time,) = median_seconds(calls[:1], 1 if quick else repeats)
            their_time = seconds(calls[1]) * TREES / few
        result = compare(our_time, their_time, "s", few)
        if lrap:
            same = our_forest(kind, few, **parameters).fit(problem.X, problem.Y)
            scores = precision(same, problem), precision(theirs, problem), precision(ours, problem)
            result.notes.append(
                f"label ranking average precision of {few} trees: ours {scores[0]:.4f}, "
                f"theirs {scores[1]:.4f}; of our {TREES}: {scores[2]:.4f}"
            )
            result.numbers |= dict(zip(("lrap", "lrap_peer", "lrap_all"), scores, strict=True))
        return result

    return measure


def fit_ready_targets(problem, quick) -> Result:
    """Our m = 25, projection included, against their forest on 25 ready columns."""
    from pyrpo.projection import GaussianProjection

    few = 10 if quick else TREES
    X, _ = for_them(problem)
    Z = GaussianProjection(25, random_state=SEED).fit_transform(problem.Y)
    ours = our_forest("RF", projection="gaussian", n_components=25)
    (our_time,) = median_seconds([lambda: ours.fit(problem.X, problem.Y)], 1 if quick else 3)
    their_time = seconds(lambda: their_forest("RF", few).fit(X, Z)) * TREES / few
    return compare(our_time, their_time, "s", few)


def predict(problem, quick) -> Result:
    """Prediction of the test rows; a quick run extends theirs from two sizes in a straight line."""
    import numpy as np
    from problems import dense

    few = 4 if quick else TREES
    X, Y = for_them(problem)
    X_test = np.ascontiguousarray(dense(problem.X_test, np.float32))
    ours = our_forest("RF").fit(problem.X, problem.Y)
    theirs = their_forest("RF", few).fit(X, Y)
    half = their_forest("RF", few // 2)
    half.__dict__ |= theirs.__dict__ | {"estimators_": theirs.estimators_[: few // 2]}
    half.n_estimators = few // 2
    ours_time, low, high = median_seconds(
        [
            lambda: ours.predict(problem.X_test),
            lambda: half.predict(X_test),
            lambda: theirs.predict(X_test),
        ],
        3 if quick else 7,
    )
    step = (high - low) / (few - few // 2)
    return compare(ours_time, high + (TREES - few) * step, "s", few)


class CountingFile:
    """Counts what is written to it."""

    size = 0

    def write(self, data):
        n = memoryview(data).nbytes
        self.size += n
        return n


def model_size(problem, quick) -> Result:
    """Compare the file `save` writes with a pickle."""
    few = 1 if quick else 3
    ours = our_forest("RF").fit(problem.X, problem.Y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest.rpo"
        ours.save(path)
        size = path.stat().st_size
    file = CountingFile()
    pickle.dump(their_forest("RF", few).fit(*for_them(problem)), file)
    return compare(size / 1e6, file.size / 1e6 * TREES / few, "MB", few)


def fit_memory(problem, quick) -> Result:
    """Peak resident size while fitting, above what data and libraries hold before."""
    import machine

    our_forest("RF", 1).fit(problem.X[:50], problem.Y[:50])  # loads what is loaded on first use
    before = machine.memory()
    forest = our_forest("RF").fit(problem.X, problem.Y)
    above = machine.peak_memory() - before
    model = forest._model.nbytes / 1e6
    return Result(above, f"{above:.1f} MB", "", [f"the model itself is {model:.1f} MB"])


def two_threads(problem, quick) -> Result:
    """Our fit by one thread over our fit by two."""
    forests = [our_forest("RF", n_jobs=n) for n in (1, 2)]
    calls = [lambda f=f: f.fit(problem.X, problem.Y) for f in forests]
    one, two = median_seconds(calls, 1 if quick else 5)
    return Result(one / two, f"{two:.2f} s", f"{one:.2f} s", [], {"one": one, "two": two})


def growth(problem, quick) -> Result:
    """Fit time over d, for subsets of the labels: the most frequent, and random ones."""
    import numpy as np

    rng = np.random.RandomState(SEED)
    d = problem.Y.shape[1]
    orders = {
        "frequent": np.argsort(-np.asarray(problem.Y.sum(axis=0)).ravel(), kind="stable"),
        "random": rng.permutation(d),
    }
    notes, numbers, worst = [], {}, 0.0
    for name, order in orders.items():
        points = []
        for size in (100, 200, 400, d):
            Y = problem.Y[:, np.sort(order[:size])]
            call = lambda Y=Y: our_forest("RF").fit(problem.X, Y)  # noqa: E731
            (time,) = median_seconds([call], 1 if quick else 3)
            points.append((size, Y.sum() / Y.shape[0], time))
        texts = [f"d={s}: {c:.1f} labels a row, {t:.2f} s" for s, c, t in points]
        notes.append(f"{name} labels: " + "; ".join(texts))
        numbers |= {f"{name} {s}": t for s, _, t in points}
        by_d, by_labels, by_time = (
            last / first for first, last in zip(points[0], points[-1], strict=True)
        )
        notes.append(
            f"{name} labels: d ×{by_d:.1f}, labels a row ×{by_labels:.1f}, fit time ×{by_time:.1f}"
        )
        worst = max(worst, by_time / by_labels)
    return Result(worst, f"×{worst:.2f}", "", notes, numbers)


def hot_loop(kind: str, per_visit: Callable, **parameters):
    """Compare the fit with a plain column scan of its trees at the machine's peak rates."""

    def measure(problem, quick) -> Result:
        import machine
        import numpy as np
        from scipy import sparse

        trees = 20 if quick else TREES
        forest = our_forest(kind, trees, **parameters)
        (time,) = median_seconds([lambda: forest.fit(problem.X, problem.Y)], 1 if quick else 3)
        n, p = problem.X.shape
        visited = smaller = nodes = 0
        for i in range(0, trees, 5):  # every fifth tree; their sums vary by a percent
            tree = forest.estimators_[i].tree_
            inner = np.flatnonzero(tree.children_left >= 0)
            count = tree.n_node_samples
            visited += 5 * count[inner].sum()
            children = count[tree.children_left[inner]], count[tree.children_right[inner]]
            smaller += 5 * np.minimum(*children).sum()
            nodes += 5 * len(inner)
        drawn = int(p**0.5)
        full = problem.X.nnz / (n * p) if sparse.issparse(problem.X) else 1.0
        visits, entries = visited * drawn, visited * drawn * full
        updates = entries * per_visit(problem)
        peak = machine.limits()
        floor = updates / (peak["additions 1e9/s"] * 1e9)
        gathered = updates / (peak["gathers 1e9/s"] * 1e9)
        notes = [
            f"{trees} trees, {nodes:.3g} splits, {drawn} features drawn at each; a scan of the "
            f"drawn columns visits {visits:.3g} (row, feature) pairs, {entries:.3g} of them not "
            f"zero, and makes {updates:.3g} additions to target sums; the smaller children alone "
            f"have {smaller:.3g} rows",
            f"{1e9 * time / visits:.3g} ns a pair, {1e9 * time / entries:.3g} ns an entry, "
            f"{1e9 * time / updates:.3g} ns an addition (the whole fit, encoding included)",
            "measured peaks: " + ", ".join(f"{k} {v:.3g}" for k, v in peak.items()),
            f"those additions take {floor:.3g} s where they stream through cache and "
            f"{gathered:.3g} s where each is gathered: the fit runs at {100 * floor / time:.3g} % "
            f"of the first limit and {100 * gathered / time:.3g} % of the second. "
            + _meaning(gathered / time),
        ]
        numbers = {"fit": time, "visits": visits, "entries": entries, "updates": updates} | peak
        return Result(floor / time, f"{time:.2f} s", f"{floor:.2f} s", notes, numbers)

    return measure


def _meaning(share: float) -> str:
    if share > 1:
        return (
            "Above 100 %: statistics taken by subtraction and walks of the smaller child leave out "
            "most of that scan."
        )
    return (
        "A node's rows lie scattered, so the second limit is the nearer one; drawing features, "
        "sorting, scoring cuts and partitioning take the rest and add to no sum."
    )


def label_count(problem) -> float:
    """Labels of a row: additions of the cursor at each entry (one to S_j, one to the score)."""
    return 2 * problem.Y.sum() / problem.Y.shape[0]


# ---- the rows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    work: str
    against: str
    data: str
    measure: Callable
    target: float | None
    unit: str = "×"
    at_most: bool = False
    threads: int = 1

    def reached(self, value: float) -> bool | None:
        if self.target is None:
            return None
        return value <= self.target if self.at_most else value >= self.target

    def target_text(self) -> str:
        if self.target is None:
            return "–"
        return f"{'≤' if self.at_most else '≥'} {self.target:g}{self.unit}"

    def value_text(self, value: float) -> str:
        if self.unit == "%":
            return f"{100 * value:.3g} %"
        digits = 2 if value < 10 else 1 if value < 100 else 0
        return f"{value:,.{digits}f}{self.unit}"


RF = "scikit-learn RandomForestRegressor"
ET = "scikit-learn ExtraTreesRegressor"
M25 = {"projection": "gaussian", "n_components": 25}

ROWS = [
    Row("delicious-all", "fit delicious, all 983 outputs", RF, "delicious",
        fit("RF", 5, lrap=True), 100),
    Row("delicious-m25", "fit delicious, m = 25 Gaussian components", RF, "delicious",
        fit("RF", 5, lrap=True, **M25), 150),
    Row("delicious-ready", "fit delicious, m = 25 Gaussian components",
        f"{RF} on ready 25-column targets", "delicious", fit_ready_targets, 8),
    Row("bibtex-rf", "fit bibtex, all 159 outputs", RF, "bibtex", fit("RF", 10, 5, lrap=True), 20),
    Row("bibtex-et", "fit bibtex, all 159 outputs, extra-trees", ET, "bibtex",
        fit("ET", 10, 5, lrap=True), 20),
    Row("corel5k-rf", "fit corel5k-like, all 374 outputs", RF, "corel5k-like",
        fit("RF", 10, 5, lrap=True), 20),
    Row("corel5k-et", "fit corel5k-like, all 374 outputs, extra-trees", ET, "corel5k-like",
        fit("ET", 10, 5, lrap=True), 20),
    Row("scene-rf", "fit scene, 6 outputs", RF, "scene", fit("RF", repeats=7), 3),
    Row("scene-et", "fit scene, 6 outputs, extra-trees", ET, "scene", fit("ET", repeats=7), 2),
    Row("yeast-rf", "fit yeast, 14 outputs", RF, "yeast", fit("RF", repeats=7), 3),
    Row("yeast-et", "fit yeast, 14 outputs, extra-trees", ET, "yeast", fit("ET", repeats=7), 2),
    Row("wq-rf", "fit wq, 14 real outputs", RF, "wq", fit("RF", repeats=9), 3),
    Row("wq-et", "fit wq, 14 real outputs, extra-trees", ET, "wq", fit("ET", repeats=9), 2),
    Row("reals-rf", "fit 4000 × 100 generated, 500 real outputs", RF, "reals", fit("RF", 3), 10),
    Row("reals-et", "fit the same, extra-trees", ET, "reals", fit("ET", 5), 10),
    Row("aloi", "fit ALOI, 1000 classes", "scikit-learn RandomForestClassifier", "aloi",
        fit("RFC", 5), 50),
    Row("predict", "predict delicious's 3185 test rows", RF, "delicious", predict, 8),
    Row("size", "model on disk, delicious", "pickle of " + RF, "delicious", model_size, 500),
    Row("memory", "memory above the data, fitting delicious", "", "delicious", fit_memory, 100,
        " MB", at_most=True),
    Row("threads", "fit delicious by 2 threads, all outputs", "1 thread, ours", "delicious",
        two_threads, 1.9, threads=2),
    Row("growth", "growth of fit time over growth of labels a row, d = 100 → 983", "", "delicious",
        growth, 1, at_most=True),
    Row("limit-delicious-all", "fit delicious, all outputs", "additions at the machine's peak",
        "delicious", hot_loop("RF", label_count), None, "%"),
    Row("limit-delicious-m25", "fit delicious, m = 25", "additions at the machine's peak",
        "delicious", hot_loop("RF", lambda problem: 25, **M25), None, "%"),
    Row("limit-scene", "fit scene", "additions at the machine's peak", "scene",
        hot_loop("RF", lambda problem: 6), None, "%"),
]  # fmt: skip


# ---- running: one process a row -----------------------------------------------------------------


def run_child(arguments: list[str], threads: int = 1):
    return rows.run_child(__file__, arguments, threads)


def child(arguments: argparse.Namespace) -> None:
    """In the child: prepare a problem, describe the machine, or measure a row."""
    import machine
    import problems

    if arguments.child == "machine":
        print(json.dumps(machine.describe()))
    elif arguments.child.startswith("prepare "):
        name = arguments.child.removeprefix("prepare ")
        problems.save(problems.read(name, arguments.data), arguments.cache)
    else:
        row = next(row for row in ROWS if row.name == arguments.child)
        rows.pin(row.name, row.threads)
        result = row.measure(problems.load(arguments.cache), arguments.quick)
        print(json.dumps(vars(result), default=float))


def run_row(row: Row, cache: Path, quick: bool) -> dict:
    """Measure one row and print it."""
    arguments = ["--child", row.name, "--cache", str(cache), *(["--quick"] if quick else [])]
    outcome = run_child(arguments, row.threads)
    reached = row.reached(outcome["value"])
    texts = {
        "ratio": row.value_text(outcome["value"]),
        "target": row.target_text(),
        "reached": {True: "yes", False: "NO", None: ""}[reached],
    }
    against = f" against {row.against}" if row.against else ""
    print(f"{row.name}: {row.work}{against}")
    print(f"    ours {outcome['ours']}" + (f", peer {outcome['peer']}" if outcome["peer"] else ""))
    print(f"    {texts['ratio']}   target {texts['target']}   {texts['reached']}")
    for note in outcome["notes"]:
        print(f"    - {note}")
    sys.stdout.flush()
    about = {"name": row.name, "work": row.work, "against": row.against, "date": rows.today()}
    return about | outcome | texts | {"quick": quick}


def run(arguments: argparse.Namespace) -> None:
    """Measure the rows that are wanted and can be."""
    wanted = [row for row in ROWS if rows.is_wanted(row.name, arguments.only)]
    about = run_child(["--child", "machine"])
    print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    kept = json.loads(arguments.out.read_text()) if _merging(arguments) else {}
    results = {row["name"]: row for row in kept.get("rows", [])}
    first = kept.get("machine", about)  # rows of another one say so
    where = {} if about["cpu"] == first["cpu"] else {"cpu": about["cpu"]}
    with tempfile.TemporaryDirectory() as folder:
        for row in wanted:
            cache = Path(folder) / f"{row.data}.npz"
            if not cache.exists() and not prepare(row.data, arguments.data, cache):
                print(f"{row.name}: left out, no {row.data} in the data folder", flush=True)
                continue
            try:
                results[row.name] = run_row(row, cache, arguments.quick) | where
            except RuntimeError as error:
                print(f"{row.name}: failed, {error}", flush=True)
                continue
            write(arguments.out, first, results)


def _merging(arguments: argparse.Namespace) -> bool:
    return bool(arguments.only) and arguments.out.exists()


def prepare(name: str, data: Path, cache: Path) -> bool:
    """Read a problem into the cache; False when its files are absent."""
    import problems

    if problems.missing(name, data):
        return False
    run_child(["--child", f"prepare {name}", "--cache", str(cache), "--data", str(data)])
    return True


def write(path: Path, about: dict, results: dict) -> None:
    """Keep the results, in the order of the table."""
    kept = [results[row.name] for row in ROWS if row.name in results]
    rows.keep(path, {"machine": about, "rows": kept})


# ---- README -------------------------------------------------------------------------------------


def readme_table(results: dict) -> str:
    """Return the table of README.md."""
    lines = [
        "| work | against | ours | peer | ratio | target |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in results["rows"]:
        if row["name"].startswith("limit-"):
            continue
        where = f" ({row['cpu']})" if "cpu" in row else ""
        cells = (row["work"] + where, row["against"] or "–", row["ours"], row["peer"] or "–")
        lines.append("| " + " | ".join([*cells, f"**{row['ratio']}**", row["target"]]) + " |")
    about, dates = results["machine"], sorted(row["date"] for row in results["rows"])
    quick = (
        " A provisional run with few repeats." if any(r["quick"] for r in results["rows"]) else ""
    )
    lines += [
        "",
        f"{about['cpu']}, Python {about['python']}, scikit-learn {about['scikit-learn']}, "
        f"numpy {about['numpy']}; {dates[-1]}.{quick}",
    ]
    return "\n".join(lines)


def update_readme(path: Path, results: dict) -> None:
    """Write the table between README.md's markers."""
    text = path.read_text()
    head, start, rest = text.partition("<!-- bench -->\n")
    _, end, tail = rest.partition("<!-- /bench -->")
    if not (start and end):
        raise SystemExit(f"{path.name} has no <!-- bench --> and <!-- /bench --> markers")
    path.write_text(head + start + readme_table(results) + "\n" + end + tail)


def main() -> None:
    parser = rows.parser(__doc__, "forest")
    parser.add_argument("--quick", action="store_true", help="fewer trees of the peer, one repeat")
    parser.add_argument("--update-readme", action="store_true", help="no run, only the table")
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
    elif arguments.list:
        print(*(f"{row.name:<22}{row.work}" for row in ROWS), sep="\n")
    elif arguments.update_readme:
        update_readme(ROOT / "README.md", json.loads(arguments.out.read_text()))
    else:
        run(arguments)


if __name__ == "__main__":
    main()
