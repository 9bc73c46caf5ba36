"""Random forests whose parameters choose themselves, beside those of fixed ones.

    python bench/auto.py --data FOLDER [SET ...]

Mean scores and CPU seconds of a fit on one thread over random splits of the paper's sizes: the
plain forest (original outputs, k = sqrt(p); of targets k = p too, which is scikit-learn's default)
and the forest with no parameter set. Labels by label ranking average precision over rows that have
some, targets by the mean of their R2. `overhead`: seconds of the fit by default that grow no trees,
less those of the plain forest, over all of its seconds: scoring the race, joining its trees. Of
labels also the best of the columns of the forest paper's Table 1, by its mean on the same splits,
the best that the paper has, and how many of their deviations the default is off. Prints
the tables of docs/tuning.md; all numbers go to bench/results/auto.json.
"""

from __future__ import annotations

import argparse
import json
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import beyond
import machine
import numpy as np
import rows
from joly2014.paper import TABLES

from pyrpo import RandomForestClassifier, RandomForestRegressor
from pyrpo._native import Model

SPLITS = {"bibtex": 5, "delicious": 3}
PLAIN = {"projection": None, "n_components": "log", "max_features": "sqrt"}
ARMS: dict[str, dict[str, Any]] = {"k = √p": PLAIN, "by default": {}}
TABLE_1 = {"m = 1": 1, "m = ln d": "log", "m = d": None}  # its other fixed choices


@contextmanager
def growing():
    """Yield a list that gets the CPU seconds of each call that grows trees, meanwhile."""
    fit, seconds = Model.fit, []

    def timed(*args, **kwargs):
        start = process_time()
        model = fit(*args, **kwargs)
        seconds.append(process_time() - start)
        return model

    with patch.object(Model, "fit", timed):
        yield seconds


def measure(data: beyond.Set, options: dict, seed: int, train: tuple, test: tuple) -> dict:
    """Score, CPU seconds of the fit, and those of them that grew trees; least of three."""
    kind = RandomForestRegressor if data.targets else RandomForestClassifier
    took = []
    for _ in range(3):
        forest = kind(100, random_state=seed, n_jobs=1, **options)
        with growing() as grown:
            start = process_time()
            forest.fit(*train)
            took.append((process_time() - start, sum(grown)))
    p = forest.predict(test[0]) if data.targets else forest.predict_proba(test[0])
    seconds, grown = min(took)
    raced = hasattr(forest, "tuning_") and len(forest.tuning_.rows) > 0
    return {
        "score": beyond.score(data, test[1], p),
        "seconds": seconds,
        "grown": grown,
        "raced": raced,
    }


def fixed(found: dict, data: beyond.Set, seed: int, train: tuple, test: tuple) -> None:
    """Scores of Table 1's other columns."""
    for name, m in TABLE_1.items():
        size = train[1].shape[1] if m is None else m
        options = {"projection": "gaussian", "n_components": size, "max_features": "sqrt"}
        forest = RandomForestClassifier(100, random_state=seed, **options).fit(*train)
        scored = beyond.score(data, test[1], forest.predict_proba(test[0]))
        found.setdefault(name, []).append({"score": scored})


def study(data: beyond.Set, folder: Path) -> dict | None:
    """Arms on the same random splits; None: no file."""
    read = beyond.read(data, folder)
    if read is None:
        return None
    X, Y = read
    arms = ARMS if data.targets is None else {"k = p": PLAIN | {"max_features": None}, **ARMS}
    found: dict[str, list] = {name: [] for name in arms}
    for seed in range(SPLITS.get(data.name, 10)):
        order = np.random.default_rng(seed).permutation(X.shape[0])
        fit, held = order[: data.train], order[data.train :]
        train, test = (X[fit], Y[fit]), (X[held], Y[held])
        for name, options in arms.items():
            found[name].append(measure(data, options, seed, train, test))
        if data.targets is None:
            fixed(found, data, seed, train, test)
    return {
        name: {key: [run[key] for run in runs] for key in runs[0]} for name, runs in found.items()
    }


def shown(arm: dict) -> str:
    return f"{np.mean(arm['score']):.4f} ± {np.std(arm['score']):.4f}"


def against_paper(name: str, score: float) -> list[str]:
    """Best of Table 1's columns as the paper has it, and how far off the score is."""
    if name not in TABLES["forest"]:
        return ["", ""]
    mean, deviation = max(TABLES["forest"][name], key=lambda cell: cell[0])
    return [f"{mean:.3f} ± {deviation:.3f}", f"{(score - mean) / deviation:+.1f}"]


def line(name: str, found: dict) -> str:
    """A row of the table."""
    cells = [name]
    for arm in (arm for name, arm in found.items() if name not in TABLE_1):
        cells += [shown(arm), f"{np.mean(arm['seconds']):.3f}"]
    plain, default = ({k: np.sum(v) for k, v in found[a].items()} for a in ARMS)
    rest = (default["seconds"] - default["grown"]) - (plain["seconds"] - plain["grown"])
    overhead = rest / default["seconds"]
    cells += [f"{100 * overhead:.0f} %" if default["raced"] else "—"]
    if "m = d" in found:
        best = max(["k = √p", *TABLE_1], key=lambda arm: np.mean(found[arm]["score"]))
        off = np.mean(found["by default"]["score"]) - np.mean(found[best]["score"])
        off /= np.std(found[best]["score"])
        cells += [f"{best}: {shown(found[best])}", f"{off:+.1f}"]
        cells += against_paper(name, np.mean(found["by default"]["score"]))
    return f"| {' | '.join(cells)} |"


def table(results: dict, targets: bool) -> str:
    """All sets of labels, or of targets."""
    mine = {d.name: d for d in beyond.SETS if not d.classes and (d.targets is not None) == targets}
    arms = [*(["k = p"] if targets else []), *ARMS]
    head = ["set", *(word for arm in arms for word in (arm, "s")), "overhead"]
    head += [] if targets else ["best fixed", "off", "paper", "off"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(line(n, results[n]) for n in mine if n in results)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the files")
    out = rows.ROOT / "bench" / "results" / "auto.json"
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("sets", nargs="*", help="names; all unless given")
    wanted = parser.parse_args()
    kept = json.loads(wanted.out.read_text()) if wanted.out.exists() else {"sets": {}}
    for data in beyond.SETS:
        if data.classes or (wanted.sets and data.name not in wanted.sets):
            continue
        found = study(data, wanted.data)
        if found is not None:
            kept["sets"][data.name] = found
            kept |= {"machine": machine.describe(), "date": rows.today()}
            rows.keep(wanted.out, kept)
            print(line(data.name, found), flush=True)
    for targets in (False, True):
        print("\n" + table(kept["sets"], targets))


if __name__ == "__main__":
    main()
