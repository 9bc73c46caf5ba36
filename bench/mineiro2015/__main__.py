"""Mineiro and Karampatziakis (2015): ALOI, and generated texts in place of ODP and LSHTC.

    python -m bench.mineiro2015 --data FOLDER            what a day's machine can do
    python -m bench.mineiro2015 --data FOLDER --quick    a glance, within minutes
    python -m bench.mineiro2015 --full                   the embedding of ODP's whole shape too
    python -m bench.mineiro2015 --page-only              no run: the page of kept results

A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import time

from bench import papers
from bench.joly2014.data import Problem
from bench.joly2014.runs import Results
from bench.mineiro2015 import page
from bench.mineiro2015.runs import Aloi, aloi, units


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = papers.Arguments("mineiro2015", __doc__, "folder of aloi-train.vw.gz and -test")
    add = parser.add_argument
    add("--share", type=float, default=0.05, help="of ODP's size, for the largest texts")
    add("--full", action="store_true", help="the embedding of ODP's whole shape, in hours")
    add("--quick", action="store_true", help="a few units only")
    add("--minutes", type=float, default=float("inf"), help="after which to stop")
    return parser.read(given)


def run(limits: argparse.Namespace, results: Results) -> bool:
    """Do what is not done yet; False when the time ended first."""
    here = (limits.data / "aloi-train.vw.gz").exists()
    if not here:
        print("ALOI is not in the folder: left out")
    for unit in units(limits.quick, limits.share, limits.full):
        if unit in results or (isinstance(unit, Aloi) and not here):
            continue
        if time.monotonic() > limits.deadline:
            return False
        parts = aloi(limits.data) if isinstance(unit, Aloi) else ()
        outcome = unit.measure(*parts)
        problem = parts[0] if parts else GENERATED
        results.add(unit, problem, outcome)
        print(unit.key, {k: v for k, v in outcome.items() if k != "spectrum"}, flush=True)
    return True


class _Generated(Problem):
    """Results want a shape; that of generated texts is in their own fields."""

    shape = {}  # noqa: RUF012


GENERATED = _Generated("texts", None, None, "error")


def main(given: list[str] | None = None) -> None:
    limits = arguments(given)
    results = Results(limits.results)
    papers.go(limits, results, lambda: run(limits, results), page.write)


if __name__ == "__main__":
    main()
