"""Joly, Geurts and Wehenkel (2014), its tables and figures on every data set of a folder.

    python -m bench.joly2014 --data FOLDER            the paper's whole protocol
    python -m bench.joly2014 --data FOLDER --quick    a glance, within 5 minutes
    python -m bench.joly2014 --page-only              no run: page and pictures of kept results

A run that was stopped goes on where it was; everything done so far is in the page it writes. ARFF
files (Mulan's, plain or .gz) need their XML, or --targets; .vw files have one label a row.
"""

from __future__ import annotations

import argparse

from bench import papers
from bench.joly2014 import page
from bench.joly2014.data import Source, find
from bench.joly2014.plan import Options, stages
from bench.joly2014.runs import Results, Timing

QUICK_MINUTES, QUICK_ROWS = 4.0, 30_000


def run(sources: list[Source], options: Options, results: Results, limits) -> bool:
    """Do what is not done yet; False when the budget ended first."""
    by_name = {source.name: source for source in sources}

    def measure(unit):
        source = by_name[unit.data]
        given = (source.problem, source) if isinstance(unit, Timing) else (source.problem,)
        return unit.measure(*given)

    return papers.work(
        stages([source.problem for source in sources], options, results),
        results,
        limits,
        problem_of=lambda unit: by_name[unit.data].problem,
        measure=measure,
        leave_out=lambda unit: too_dear(
            unit, by_name[unit.data].problem.X.shape[0], results, limits
        ),
    )


def too_dear(unit, n_rows: int, results: Results, limits) -> bool:
    """Whether a setting projects too many numbers for each tree, or has had its CPU seconds."""
    if limits.max_work is not None and n_rows * (unit.m or 0) > limits.max_work:
        return True
    if unit.repetition == 0 or limits.cell_seconds is None or unit.cell not in results:
        return False
    first = results[unit.cell]
    return (unit.repetition + 1) * (first["fit_cpu"] + first["predict_cpu"]) > limits.cell_seconds


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = papers.Arguments("joly2014", __doc__)
    papers.add_sets(parser)
    add = parser.add_argument
    add("--parts", nargs="+", default=[], choices=["tables", "figures", "times"])
    add("--quick", action="store_true", help="one split, few settings, at most 4 minutes")
    add("--splits", type=int, default=10, help="random splits of the tables")
    add("--repeats", type=int, default=10, help="repetitions in the figures")
    add("--max-m", type=int, help="largest m of the figures")
    add("--max-work", type=float, help="leave out fits with more rows × m than this")
    add("--cell-seconds", type=float, help="repeat a setting no longer than this, once at least")
    add("--budget", type=float, default=float("inf"), help="CPU minutes after which to stop")
    limits = parser.read(given, QUICK_MINUTES)
    if limits.quick:
        limits.splits = limits.repeats = 1
        limits.max_work = min(limits.max_work or 2e6, 2e6)
    return limits


def sources(limits: argparse.Namespace) -> list[Source]:
    """Data sets that are wanted, small ones first."""
    found = papers.wanted(limits, find)
    if limits.quick:
        found = papers.small(found, lambda s: s.problem.X.shape[0], QUICK_ROWS)
    return sorted(found, key=lambda s: s.problem.X.shape[0] * s.problem.Y.shape[1])


def main(given: list[str] | None = None) -> None:
    limits = arguments(given)
    results = Results(limits.results)
    options = Options(
        limits.splits, limits.repeats, limits.max_m, limits.quick, tuple(limits.parts)
    )
    papers.go(limits, results, lambda: run(sources(limits), options, results, limits), page.write)


if __name__ == "__main__":
    main()
