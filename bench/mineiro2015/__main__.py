"""Mineiro and Karampatziakis (2015): ALOI, and generated texts in place of ODP and LSHTC.

    python -m bench.mineiro2015 --data FOLDER            what a day's machine can do
    python -m bench.mineiro2015 --data FOLDER --quick    a glance, within minutes
    python -m bench.mineiro2015 --full                   the embedding of ODP's whole shape too
    python -m bench.mineiro2015 --page-only              no run: the page of kept results

A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from bench.joly2014.data import Problem
from bench.joly2014.runs import Results
from bench.mineiro2015 import page
from bench.mineiro2015.runs import Aloi, aloi, units

ROOT = Path(__file__).resolve().parents[2]


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.mineiro2015",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
    add = parser.add_argument
    add("--data", type=Path, default=Path(folder), help="folder of aloi-train.vw.gz and -test")
    add("--share", type=float, default=0.05, help="of ODP's size, for the largest texts")
    add("--full", action="store_true", help="the embedding of ODP's whole shape, in hours")
    add("--quick", action="store_true", help="a few units only")
    add("--minutes", type=float, default=float("inf"), help="after which to stop")
    add("--results", type=Path, help="file of the results, resumed (one JSON object a line)")
    add("--out", type=Path, help="folder of the page")
    add("--page-only", action="store_true", help="no run")
    limits = parser.parse_args(given)
    name = "mineiro2015-quick" if limits.quick else "mineiro2015"
    limits.results = limits.results or ROOT / "build" / name / "results.jsonl"
    limits.out = limits.out or (ROOT / "build" / name if limits.quick else ROOT / "docs" / name)
    return limits


def run(limits: argparse.Namespace, results: Results) -> None:
    options = ["--quick"] * limits.quick + ["--full"] * limits.full
    options += [f"--share {limits.share:g}"] if limits.share != 0.05 else []
    results.note(" ".join(["python -m bench.mineiro2015", *options]))
    started, here = time.monotonic(), (limits.data / "aloi-train.vw.gz").exists()
    if not here:
        print("ALOI is not in the folder: left out")
    for unit in units(limits.quick, limits.share, limits.full):
        if unit in results or (isinstance(unit, Aloi) and not here):
            continue
        if time.monotonic() - started > 60 * limits.minutes:
            print("stopped, out of time: run again to go on")
            return
        parts = aloi(limits.data) if isinstance(unit, Aloi) else ()
        outcome = unit.measure(*parts)
        problem = parts[0] if parts else GENERATED
        results.add(unit, problem, outcome)
        print(unit.key, {k: v for k, v in outcome.items() if k != "spectrum"}, flush=True)


class _Generated(Problem):
    """Results want a shape; that of generated texts is in their own fields."""

    shape = {}  # noqa: RUF012


GENERATED = _Generated("texts", None, None, "error")


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
