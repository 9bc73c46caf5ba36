"""Joly, Wehenkel and Geurts (2017), its tables and figures on every data set of a folder.

    python -m bench.joly2017 --data FOLDER            the paper's whole protocol: days
    python -m bench.joly2017 --data FOLDER --quick    a glance, within 10 minutes
    python -m bench.joly2017 --page-only              no run: page and pictures of kept results

A run that was stopped goes on where it was; everything done so far is in the page it writes.
Records of long runs are kept with their pages, packed: docs/joly2017/*/records.jsonl.xz, unpacked
and given as --results, go on. ARFF files (Mulan's, plain or .gz) need their XML, or --targets.
"""

from __future__ import annotations

import argparse

from bench import papers
from bench.joly2014.data import find
from bench.joly2017 import page
from bench.joly2017.data import Artificial, Problem, Real
from bench.joly2017.methods import METHODS
from bench.joly2017.plan import Options, stages
from bench.records import Records

QUICK_MINUTES, QUICK_SIZE = 8.0, 5_000_000


def run(problems: list[Problem], options: Options, results: Records, limits) -> bool:
    """Do what is not done yet; False when the budget ended first."""
    made = [Artificial(kind, noisy) for kind in ("chain", "group", "ind") for noisy in (0, 1)]
    by_name = {problem.name: problem for problem in [*made, *problems]}
    return papers.work(
        stages(problems, options),
        results,
        limits,
        problem_of=lambda unit: by_name[unit.data],
        measure=lambda unit: unit.measure(by_name[unit.data], results),
    )


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser, whole = papers.Arguments("joly2017", __doc__), Options()
    papers.add_sets(parser)
    add = parser.add_argument
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
    limits = parser.read(given, QUICK_MINUTES)
    if limits.quick:
        limits.splits, limits.settings = min(limits.splits, 2), min(limits.settings, 3)
        limits.multiple = min(limits.multiple, 0.2)
        limits.models, limits.rounds = min(limits.models, 500), min(limits.rounds, 500)
        limits.many_rounds = min(limits.many_rounds, 50)
    return limits


def labelled(folder, targets):
    """Data sets but those of one label a row: these are another problem."""
    return [source for source in find(folder, targets) if source.kind != "vw"]


def problems(limits: argparse.Namespace) -> list[Problem]:
    """Data sets that are wanted, small ones first."""
    sets = [Real(source) for source in papers.wanted(limits, labelled)]
    size = {one.name: one.shape["n"] * one.shape["d"] for one in sets}
    if limits.quick:
        sets = papers.small(sets, lambda one: size[one.name], QUICK_SIZE)
    return sorted(sets, key=lambda one: size[one.name])


def main(given: list[str] | None = None) -> None:
    limits = arguments(given)
    results = Records(limits.results)
    names = ("splits", "settings", "models", "multiple", "rounds", "many_rounds")
    parts, methods = tuple(limits.parts), tuple(limits.methods)
    options = Options(*(getattr(limits, name) for name in names), parts, methods)
    papers.go(limits, results, lambda: run(problems(limits), options, results, limits), page.write)


if __name__ == "__main__":
    main()
