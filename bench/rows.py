"""Benchmarks of rows: each measured by a process of its own, on few cores; results in JSON."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def parser(doc: str, name: str) -> argparse.ArgumentParser:
    """The arguments all have; results are kept in the folder `results`."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = os.environ.get("PYRPO_DATA", ROOT.parent / "shared" / "data")
    add = made.add_argument
    add("--data", type=Path, default=Path(folder), help="folder of the data files")
    add("--only", nargs="+", metavar="NAME", help="rows whose name contains NAME")
    add("--list", action="store_true", help="print the rows' names")
    add("--out", type=Path, default=ROOT / "bench" / "results" / f"{name}.json")
    add("--child", help=argparse.SUPPRESS)
    return made


def is_wanted(name: str, only: list[str] | None) -> bool:
    return not only or any(part in name for part in only)


def run_child(script: str, arguments: list[str], threads: int = 1) -> Any:
    """What a script prints, as JSON in its last line, with other arguments and few threads."""
    limits = dict.fromkeys(THREAD_LIMITS, str(threads))
    command = [sys.executable, script, *arguments]
    run = subprocess.run(command, env=os.environ | limits, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: exit code {run.returncode}")
    return json.loads(run.stdout.strip().rpartition("\n")[2] or "null")


def pin(name: str, threads: int) -> None:
    """In the child: keep to as many cores."""
    import machine

    if machine.pin(threads) < threads:
        raise SystemExit(f"{name} needs {threads} cores")


def today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def keep(path: Path, results: dict[str, Any]) -> None:
    """Write the results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
