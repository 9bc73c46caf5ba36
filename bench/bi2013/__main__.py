"""Bi and Kwok (2013), Tables 3 to 8 and Figure 1 on the multi-label data sets (ARFF) of a folder.

    python -m bench.bi2013 --data FOLDER            ten folds
    python -m bench.bi2013 --data FOLDER --quick    two folds of the small sets
    python -m bench.bi2013 --page-only              no run: the page of kept results

A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import time

from bench import papers
from bench.bi2013 import page
from bench.bi2013.runs import FOLDS, encodings, units
from bench.joly2014.data import Problem, find
from bench.joly2014.runs import Results


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = papers.Arguments("bi2013", __doc__)
    add = parser.add_argument
    add("--only", nargs="+", metavar="NAME", help="these data sets")
    add("--folds", type=int, default=FOLDS, help="of the ten, how many to run")
    add("--slow", action="store_true", help="MOPLMS on hundreds of labels too")
    add("--quick", action="store_true", help="two folds of sets with fewer than 300 labels")
    add("--minutes", type=float, default=float("inf"), help="after which to stop")
    limits = parser.read(given)
    if limits.quick:
        limits.folds = min(limits.folds, 2)
    return limits


def run(limits: argparse.Namespace, results: Results) -> bool:
    """Do what is not done yet; False when the time ended first."""
    papers.check_folder(limits)
    for unit in encodings(limits.quick):
        if unit in results:
            continue
        if time.monotonic() > limits.deadline:
            return False
        results.add(unit, GENERATED, unit.measure())
        print(unit.key, flush=True)
    for source in find(limits.data, {}):
        if limits.only and source.name not in limits.only:
            continue
        if source.kind == "vw" or source.problem.metric != "LRAP":
            continue  # classes, targets
        if limits.quick and source.problem.Y.shape[1] >= 300:
            print(f"{source.name}: left out of a quick run")
            continue
        for unit in units(source.problem, limits.folds, limits.slow):
            if unit in results:
                results.check(unit, source.problem)
                continue
            if time.monotonic() > limits.deadline:
                return False
            results.add(unit, source.problem, unit.measure(source.problem))
            print(unit.key, flush=True)
    return True


class _Generated(Problem):
    """Results want a shape; that of generated labels is in their own fields."""

    shape = {}  # noqa: RUF012


GENERATED = _Generated("dmoz's shape", None, None, "seconds")


def main(given: list[str] | None = None) -> None:
    limits = arguments(given)
    results = Results(limits.results)
    papers.go(limits, results, lambda: run(limits, results), page.write)


if __name__ == "__main__":
    main()
