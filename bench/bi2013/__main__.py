"""Bi and Kwok (2013), Tables 3 to 8 and Figure 1 on the multi-label data sets of a folder.

    python -m bench.bi2013 --data FOLDER            ten folds
    python -m bench.bi2013 --data FOLDER --quick    two folds of the small sets
    python -m bench.bi2013 --page-only              no run: the page of kept results

A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from bench.bi2013 import page
from bench.bi2013.runs import FOLDS, encodings, units
from bench.joly2014.data import Problem, find
from bench.joly2014.runs import Results

ROOT = Path(__file__).resolve().parents[2]
WANTED = ("cal500", "bibtex", "delicious")


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.bi2013",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
    add = parser.add_argument
    add("--data", type=Path, default=Path(folder), help="folder of the data files")
    add("--only", nargs="+", default=list(WANTED), metavar="NAME", help="these data sets")
    add("--folds", type=int, default=FOLDS, help="of the ten, how many to run")
    add("--slow", action="store_true", help="MOPLMS on hundreds of labels too")
    add("--quick", action="store_true", help="two folds of sets with fewer than 300 labels")
    add("--minutes", type=float, default=float("inf"), help="after which to stop")
    add("--results", type=Path, help="file of the results, resumed (one JSON object a line)")
    add("--out", type=Path, help="folder of the page")
    add("--page-only", action="store_true", help="no run")
    limits = parser.parse_args(given)
    name = "bi2013-quick" if limits.quick else "bi2013"
    limits.results = limits.results or ROOT / "build" / name / "results.jsonl"
    limits.out = limits.out or (ROOT / "build" / name if limits.quick else ROOT / "docs" / name)
    if limits.quick:
        limits.folds = min(limits.folds, 2)
    return limits


def run(limits: argparse.Namespace, results: Results) -> None:
    if not limits.data.is_dir():
        raise SystemExit(f"--data {limits.data} is no folder")
    options = [f"--folds {limits.folds}"] if limits.folds != FOLDS else []
    options += ["--slow"] * limits.slow + ["--quick"] * limits.quick
    if tuple(limits.only) != WANTED:
        options.append(f"--only {' '.join(limits.only)}")
    results.note(" ".join(["python -m bench.bi2013", *options]))
    started = time.monotonic()
    for unit in encodings(limits.quick):
        if unit not in results and time.monotonic() - started < 60 * limits.minutes:
            results.add(unit, GENERATED, unit.measure())
            print(unit.key, flush=True)
    for source in find(limits.data, {}):
        if source.name not in limits.only or source.problem.metric != "LRAP":
            continue
        if limits.quick and source.problem.Y.shape[1] >= 300:
            print(f"{source.name}: left out of a quick run")
            continue
        for unit in units(source.problem, limits.folds, limits.slow):
            if unit in results:
                results.check(unit, source.problem)
                continue
            if time.monotonic() - started > 60 * limits.minutes:
                print("stopped, out of time: run again to go on")
                return
            results.add(unit, source.problem, unit.measure(source.problem))
            print(unit.key, flush=True)


class _Generated(Problem):
    """Results want a shape; that of generated labels is in their own fields."""

    shape = {}  # noqa: RUF012


GENERATED = _Generated("dmoz's shape", None, None, "seconds")


def main(given: list[str] | None = None) -> None:
    limits = arguments(given)
    results = Results(limits.results)
    if not limits.page_only:
        try:
            run(limits, results)
        except KeyboardInterrupt:
            print("\nstopped: run again to go on")
    page.write(results, limits.out)
    print(f"{len(results.records)} results; page in {limits.out}")


if __name__ == "__main__":
    main()
