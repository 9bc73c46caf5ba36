"""Results of long runs: one JSON object a line, added to as work is done; and how far a run is."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import pyrpo
from bench.machine import describe


class Records:
    """A file of outcomes by the keys of units of work, so that a run can be resumed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, dict[str, Any]] = {}
        self._whole = True
        if path.exists():
            text = path.read_text(encoding="utf-8")
            self._whole = text == "" or text.endswith("\n")
            for record in _records(text):
                self.records[record["key"]] = record

    def __contains__(self, unit: Any) -> bool:
        return unit is not None and unit.key in self.records

    def __getitem__(self, unit: Any) -> dict[str, Any]:
        return self.records[unit.key]

    def add(self, unit: Any, problem: Any, outcome: dict[str, Any]) -> None:
        """Keep an outcome, in the file too."""
        about = {"metric": problem.metric, "date": date.today().isoformat()}
        versions = {"pyrpo": pyrpo.__version__, "processor": describe()["cpu"]}
        self._append({"key": unit.key} | asdict(unit) | outcome | problem.shape | about | versions)

    def note(self, command: str) -> None:
        """Remember by which commands the results were made."""
        key = f"command: {command}"
        if key not in self.records:
            self._append({"key": key, "command": command})

    def _append(self, record: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            # A run that was stopped in the middle of a line must not spoil the next one.
            file.write(("" if self._whole else "\n") + json.dumps(record) + "\n")
        self._whole = True
        self.records[record["key"]] = record

    def check(self, unit: Any, problem: Any) -> None:
        """Refuse to mix results of two data sets of one name."""
        found = {name: self[unit][name] for name in problem.shape}
        if found != problem.shape:
            raise SystemExit(
                f"{self.path} has results of a data set {problem.name} of shape {found}, not of "
                f"{problem.shape}: give another --results"
            )


def _records(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue  # the rest of a line that was being written when a run was stopped


class Progress:
    """One line that is written over on a terminal, a line every 30 s elsewhere."""

    def __init__(self) -> None:
        self.shown, self.live = 0.0, sys.stderr.isatty()

    def show(self, stage: str, done: int, total: int, key: str) -> None:
        now = time.monotonic()
        if now - self.shown < (0.1 if self.live else 30):
            return
        self.shown = now
        text = f"{stage}: {done}/{total}, {time.process_time() / 60:.1f} CPU minutes; {key}"
        print(f"\r{text:.110}\033[K" if self.live else text, end="" if self.live else "\n",
              file=sys.stderr, flush=True)  # fmt: skip

    def close(self) -> None:
        if self.live:
            print(file=sys.stderr)
