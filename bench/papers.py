"""The command lines that make a paper's tables again: arguments, limits, what is resumed."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from bench.records import Progress, Records

ROOT = Path(__file__).resolve().parents[1]
NO_NOTE = ("data", "results", "out", "minutes")  # where and how long, not what


class Arguments(argparse.ArgumentParser):
    """A parser of ``python -m bench.NAME``, with the arguments that all have."""

    def __init__(self, name: str, doc: str, data: str = "folder of the data files") -> None:
        super().__init__(
            prog=f"python -m bench.{name}",
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.name = name
        folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
        self.add_argument("--data", type=Path, default=Path(folder), help=data)

    def read(
        self, given: list[str] | None, quick_minutes: float = float("inf")
    ) -> argparse.Namespace:
        """Parse; where results and page go, what was asked for, when to stop."""
        add = self.add_argument
        add("--results", type=Path, help="file of the results, resumed (one JSON object a line)")
        add("--out", type=Path, help="folder of the page, its pictures, CSV and JSON")
        add("--page-only", action="store_true", help="no run")
        limits = self.parse_args(given)
        limits.command = self._command(limits)
        name = f"{self.name}-quick" if limits.quick else self.name
        limits.results = limits.results or ROOT / "build" / name / "results.jsonl"
        limits.out = limits.out or (ROOT / "build" / name if limits.quick else ROOT / "docs" / name)
        minutes = getattr(limits, "minutes", float("inf"))
        minutes = min(minutes, quick_minutes) if limits.quick else minutes
        limits.deadline = time.monotonic() + 60 * minutes
        return limits

    def _command(self, limits: argparse.Namespace) -> str:
        """What was asked for, without the places of files."""
        words = [self.prog]
        for name, value in vars(limits).items():
            if value != self.get_default(name) and name not in NO_NOTE:
                values = value if isinstance(value, list) else [] if value is True else [value]
                words.append(f"--{name.replace('_', '-')}")
                words += [f"{v:g}" if isinstance(v, float) else str(v) for v in values]
        return " ".join(words)


def add_sets(parser: Arguments) -> None:
    """Arguments that pick data sets of the folder."""
    add = parser.add_argument
    add("--only", nargs="+", metavar="NAME", help="these data sets")
    add("--skip", nargs="+", default=[], metavar="NAME", help="not these data sets")
    add("--targets", nargs="+", default=[], metavar="NAME=NUMBER",
        help="of an ARFF file without XML: its last NUMBER attributes are targets")  # fmt: skip


def check_folder(limits: argparse.Namespace) -> None:
    if not limits.data.is_dir():
        raise SystemExit(f"--data {limits.data} is no folder")


def wanted(limits: argparse.Namespace, find: Callable[..., Iterable[Any]]) -> list[Any]:
    """What ``find(folder, targets)`` finds, as far as `add_sets` lets it."""
    check_folder(limits)
    targets = {name: int(n) for name, _, n in (text.partition("=") for text in limits.targets)}
    found = [source for source in find(limits.data, targets) if source.name not in limits.skip]
    if not limits.only:
        return found
    missing = set(limits.only) - {source.name for source in found}
    if missing:
        raise SystemExit(f"--only: no {', '.join(sorted(missing))} in {limits.data}")
    return [source for source in found if source.name in limits.only]


def small(sets: list[Any], size: Callable[[Any], int], most: int) -> list[Any]:
    """Those that a quick run takes."""
    for one in sets:
        if size(one) > most:
            print(f"{one.name}: left out of a quick run, too large")
    return [one for one in sets if size(one) <= most]


def work(
    stages: Iterable[tuple[str, list[Any]]],
    results: Records,
    limits: argparse.Namespace,
    problem_of: Callable[[Any], Any],
    measure: Callable[[Any], dict[str, Any]],
    leave_out: Callable[[Any], bool] = lambda unit: False,
) -> bool:
    """Do what is not done yet; False when the budget ended first."""
    progress = Progress()
    for stage, units in stages:
        for done, unit in enumerate(units):
            if unit in results:
                results.check(unit, problem_of(unit))
                continue
            if time.process_time() > 60 * limits.budget or time.monotonic() > limits.deadline:
                progress.close()
                return False
            if leave_out(unit):
                continue
            progress.show(stage, done, len(units), unit.key)
            results.add(unit, problem_of(unit), measure(unit))
    progress.close()
    return True


def go(
    limits: argparse.Namespace,
    results: Records,
    run: Callable[[], bool],
    write: Callable[[Records, Path], Any],
) -> None:
    """Run, unless the page alone is wanted, as far as time allows; then write the page.

    Times are those of one thread, BLAS included.
    """
    before = len(results.records)
    if not limits.page_only:
        try:
            results.note(limits.command)
            with threadpool_limits(1):
                done = run()
            if not done:
                print("stopped, out of time: run again to go on")
        except KeyboardInterrupt:
            print("\nstopped: run again to go on")
    write(results, limits.out)
    print(f"{len(results.records) - before} new results, {len(results.records)} in all; "
          f"page in {limits.out}")  # fmt: skip
