"""Joly, Geurts and Wehenkel (2014), its tables and figures on every data set of a folder.

    python -m bench.joly2014 --data FOLDER            the paper's whole protocol
    python -m bench.joly2014 --data FOLDER --quick    a glance, within 5 minutes
    python -m bench.joly2014 --page-only              no run: page and pictures of kept results

A run that was stopped goes on where it was; everything done so far is in the page it writes. ARFF
files (Mulan's, plain or .gz) need their XML, or --targets; .vw files have one label a row.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from bench.joly2014 import page
from bench.joly2014.data import Source, find
from bench.joly2014.plan import Options, stages
from bench.joly2014.runs import Results, Timing
from bench.records import Progress, command

ROOT = Path(__file__).resolve().parents[2]
QUICK_MINUTES, QUICK_ROWS = 4.0, 30_000


def run(sources: list[Source], options: Options, results: Results, limits) -> bool:
    """Do what is not done yet; False when the budget ended first."""
    by_name, progress = {source.name: source for source in sources}, Progress()
    problems = [source.problem for source in sources]
    for stage, units in stages(problems, options, results):
        for done, unit in enumerate(units):
            source = by_name[unit.data]
            if unit in results:
                results.check(unit, source.problem)
                continue
            if time.process_time() > 60 * limits.budget or time.monotonic() > limits.deadline:
                progress.close()
                return False
            if too_dear(unit, source.problem.X.shape[0], results, limits):
                continue
            progress.show(stage, done, len(units), unit.key)
            given = (source.problem, source) if isinstance(unit, Timing) else (source.problem,)
            results.add(unit, source.problem, unit.measure(*given))
    progress.close()
    return True


def too_dear(unit, n_rows: int, results: Results, limits) -> bool:
    """Whether a setting projects too many numbers for each tree, or has had its CPU seconds."""
    if limits.max_work is not None and n_rows * (unit.m or 0) > limits.max_work:
        return True
    if unit.repetition == 0 or limits.cell_seconds is None or unit.cell not in results:
        return False
    first = results[unit.cell]
    return (unit.repetition + 1) * (first["fit_cpu"] + first["predict_cpu"]) > limits.cell_seconds


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.joly2014",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
    add = parser.add_argument
    add("--data", type=Path, default=Path(folder), help="folder of the data files")
    add("--only", nargs="+", metavar="NAME", help="these data sets")
    add("--skip", nargs="+", default=[], metavar="NAME", help="not these data sets")
    add("--targets", nargs="+", default=[], metavar="NAME=NUMBER",
        help="of an ARFF file without XML: its last NUMBER attributes are targets")  # fmt: skip
    add("--parts", nargs="+", default=[], choices=["tables", "figures", "times"])
    add("--quick", action="store_true", help="one split, few settings, at most 4 minutes")
    add("--splits", type=int, default=10, help="random splits of the tables")
    add("--repeats", type=int, default=10, help="repetitions in the figures")
    add("--max-m", type=int, help="largest m of the figures")
    add("--max-work", type=float, help="leave out fits with more rows × m than this")
    add("--cell-seconds", type=float, help="repeat a setting no longer than this, once at least")
    add("--budget", type=float, default=float("inf"), help="CPU minutes after which to stop")
    add("--results", type=Path, help="file of the results, resumed (one JSON object a line)")
    add("--out", type=Path, help="folder of the page, its pictures, CSV and JSON")
    add("--page-only", action="store_true", help="no run")
    limits = parser.parse_args(given)
    limits.command = command(parser, limits)
    name = "joly2014-quick" if limits.quick else "joly2014"
    limits.results = limits.results or ROOT / "build" / name / "results.jsonl"
    limits.out = limits.out or (ROOT / "build" / name if limits.quick else ROOT / "docs" / name)
    limits.deadline = float("inf")
    if limits.quick:
        limits.splits = limits.repeats = 1
        limits.deadline = time.monotonic() + 60 * QUICK_MINUTES
        limits.max_work = min(limits.max_work or 2e6, 2e6)
    return limits


def sources(limits: argparse.Namespace) -> list[Source]:
    """Data sets that are wanted, small ones first."""
    if not limits.data.is_dir():
        raise SystemExit(f"--data {limits.data} is no folder")
    targets = {name: int(n) for name, _, n in (text.partition("=") for text in limits.targets)}
    found = [s for s in find(limits.data, targets) if s.name not in limits.skip]
    if limits.only:
        missing = set(limits.only) - {source.name for source in found}
        if missing:
            raise SystemExit(f"--only: no {', '.join(sorted(missing))} in {limits.data}")
        found = [source for source in found if source.name in limits.only]
    if limits.quick:
        large = [s.name for s in found if s.problem.X.shape[0] > QUICK_ROWS]
        print(*(f"{name}: left out of a quick run, too large" for name in large), sep="\n")
        found = [source for source in found if source.name not in large]
    return sorted(found, key=lambda s: s.problem.X.shape[0] * s.problem.Y.shape[1])


def main(given: list[str] | None = None) -> None:
    limits = arguments(given)
    results = Results(limits.results)
    before = len(results.records)
    if not limits.page_only:
        options = Options(
            limits.splits, limits.repeats, limits.max_m, limits.quick, tuple(limits.parts)
        )
        try:
            results.note(limits.command)
            if not run(sources(limits), options, results, limits):
                print("stopped, out of time: run again to go on")
        except KeyboardInterrupt:
            print("\nstopped: run again to go on")
    page.write(results, limits.out)
    print(f"{len(results.records) - before} new results, {len(results.records)} in all; "
          f"page in {limits.out}")  # fmt: skip


if __name__ == "__main__":
    main()
