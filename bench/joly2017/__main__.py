"""Joly, Wehenkel and Geurts (2017), its tables and figures on every data set of a folder.

    python -m bench.joly2017 --data FOLDER            the paper's whole protocol: days
    python -m bench.joly2017 --data FOLDER --quick    a glance, within 10 minutes
    python -m bench.joly2017 --page-only              no run: page and pictures of kept results

A run that was stopped goes on where it was; everything done so far is in the page it writes. ARFF
files (Mulan's, plain or .gz) need their XML, or --targets.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from bench.joly2014.data import find
from bench.joly2017 import page
from bench.joly2017.data import Artificial, Problem, Real
from bench.joly2017.methods import METHODS
from bench.joly2017.plan import Options, stages
from bench.records import Progress, Records, command

ROOT = Path(__file__).resolve().parents[2]
QUICK_MINUTES, QUICK_SIZE = 8.0, 5_000_000


def run(problems: list[Problem], options: Options, results: Records, limits) -> bool:
    """Do what is not done yet; False when the budget ended first."""
    made = [Artificial(kind, noisy) for kind in ("chain", "group", "ind") for noisy in (0, 1)]
    by_name = {problem.name: problem for problem in [*made, *problems]}
    progress = Progress()
    for stage, units in stages(problems, options):
        for done, unit in enumerate(units):
            problem = by_name[unit.data]
            if unit in results:
                results.check(unit, problem)
                continue
            if time.process_time() > 60 * limits.budget or time.monotonic() > limits.deadline:
                progress.close()
                return False
            progress.show(stage, done, len(units), unit.key)
            results.add(unit, problem, unit.measure(problem, results))
    progress.close()
    return True


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.joly2017",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
    whole = Options()
    add = parser.add_argument
    add("--data", type=Path, default=Path(folder), help="folder of the data files")
    add("--only", nargs="+", metavar="NAME", help="these data sets")
    add("--skip", nargs="+", default=[], metavar="NAME", help="not these data sets")
    add("--targets", nargs="+", default=[], metavar="NAME=NUMBER",
        help="of an ARFF file without XML: its last NUMBER attributes are targets")  # fmt: skip
    add("--parts", nargs="+", default=[], choices=["artificial", "tables", "figures"])
    add("--methods", nargs="+", default=[], metavar="METHOD", choices=METHODS,
        help="these methods in the tables: %(choices)s")  # fmt: skip
    add("--quick", action="store_true", help="two splits, few settings and rounds, 8 minutes")
    add("--splits", type=int, default=whole.splits, help="random splits")
    add("--settings", type=int, default=whole.settings, help="random settings of the grid")
    add("--models", type=int, default=whole.models, help="most rounds of artificial problems")
    add("--multiple", type=float, default=whole.multiple,
        help="time budgets, of the paper's 100 T and 500 T")  # fmt: skip
    add("--rounds", type=int, default=whole.rounds, help="of figures 1 and 4")
    add("--many-rounds", type=int, default=whole.many_rounds, help="of figures 2 and 3")
    add("--budget", type=float, default=float("inf"), help="CPU minutes after which to stop")
    add("--results", type=Path, help="file of the results, resumed (one JSON object a line)")
    add("--out", type=Path, help="folder of the page, its pictures, CSV and JSON")
    add("--page-only", action="store_true", help="no run")
    limits = parser.parse_args(given)
    limits.command = command(parser, limits)
    name = "joly2017-quick" if limits.quick else "joly2017"
    limits.results = limits.results or ROOT / "build" / name / "results.jsonl"
    limits.out = limits.out or (ROOT / "build" / name if limits.quick else ROOT / "docs" / name)
    limits.deadline = float("inf")
    if limits.quick:
        limits.splits, limits.settings = min(limits.splits, 2), min(limits.settings, 3)
        limits.multiple = min(limits.multiple, 0.2)
        limits.models, limits.rounds = min(limits.models, 500), min(limits.rounds, 500)
        limits.many_rounds = min(limits.many_rounds, 50)
        limits.deadline = time.monotonic() + 60 * QUICK_MINUTES
    return limits


def problems(limits: argparse.Namespace) -> list[Problem]:
    """Data sets that are wanted, small ones first; one label a row is another problem."""
    if not limits.data.is_dir():
        raise SystemExit(f"--data {limits.data} is no folder")
    targets = {name: int(n) for name, _, n in (text.partition("=") for text in limits.targets)}
    found = [s for s in find(limits.data, targets) if s.name not in limits.skip and s.kind != "vw"]
    if limits.only:
        missing = set(limits.only) - {source.name for source in found}
        if missing:
            raise SystemExit(f"--only: no {', '.join(sorted(missing))} in {limits.data}")
        found = [source for source in found if source.name in limits.only]
    sets = [Real(source) for source in found]
    size = {one.name: one.shape["n"] * one.shape["d"] for one in sets}
    if limits.quick:
        large = [name for name in size if size[name] > QUICK_SIZE]
        print(*(f"{name}: left out of a quick run, too large" for name in large), sep="\n")
        sets = [one for one in sets if one.name not in large]
    return sorted(sets, key=lambda one: size[one.name])


def main(given: list[str] | None = None) -> None:
    limits = arguments(given)
    results = Records(limits.results)
    before = len(results.records)
    if not limits.page_only:
        names = ("splits", "settings", "models", "multiple", "rounds", "many_rounds")
        parts, methods = tuple(limits.parts), tuple(limits.methods)
        options = Options(*(getattr(limits, name) for name in names), parts, methods)
        try:
            results.note(limits.command)
            if not run(problems(limits), options, results, limits):
                print("stopped, out of time: run again to go on")
        except KeyboardInterrupt:
            print("\nstopped: run again to go on")
    page.write(results, limits.out)
    print(f"{len(results.records) - before} new results, {len(results.records)} in all; "
          f"page in {limits.out}")  # fmt: skip


if __name__ == "__main__":
    main()
