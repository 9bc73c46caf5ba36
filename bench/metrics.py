"""Metrics beside scikit-learn's, on one thread and on two.

    python bench/metrics.py                  label ranking average precision at 10 000 x 10 000
    python bench/metrics.py --quick          the same at 1000 x 10 000

Scores are uniform, Y is CSR with 10 labels a row, and their metric runs once on the same: it reads
a CSR Y as it is. The areas under the precision-recall curve, on a tenth of the labels, get a Y made
dense beforehand. Each row runs in a process of its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
LABELS = 10  # a row
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Row:
    """One comparison; `target` is the ratio to reach on two threads."""

    name: str
    metric: str  # ours
    peer: str  # scikit-learn's
    shape: tuple[int, int]
    target: float | None = None


ROWS = [
    Row(
        "lrap",
        "label_ranking_average_precision",
        "label_ranking_average_precision_score",
        (10_000, 10_000),
        10,
    ),
    Row("micro-auprc", "micro_auprc", "average_precision_score", (10_000, 1000)),
    Row("macro-auprc", "macro_auprc", "average_precision_score", (10_000, 1000)),
]


def problem(shape: tuple[int, int]):
    """Y and scores, those of Y's labels somewhat higher."""
    import numpy as np
    from scipy import sparse

    n, d = shape
    rng = np.random.default_rng(0)
    scores = np.empty((n, d))
    rng.random(out=scores)
    part = d // LABELS  # a label of each tenth
    columns = (np.arange(LABELS) * part + rng.integers(part, size=(n, LABELS))).ravel()
    Y = sparse.csr_array((np.ones(n * LABELS), columns, np.arange(n + 1) * LABELS), shape=shape)
    scores[np.repeat(np.arange(n), LABELS), columns] += 0.5
    return Y, scores


def seconds(call: Callable) -> tuple[float, float]:
    """Time of a call and what it returns."""
    start = perf_counter()
    value = call()
    return perf_counter() - start, value


def measure(row: Row, quick: bool) -> dict:
    import machine
    import numpy as np
    import sklearn.metrics

    import pyrpo.metrics

    Y, scores = problem((row.shape[0] // 10 if quick else row.shape[0], row.shape[1]))
    metric, peer = getattr(pyrpo.metrics, row.metric), getattr(sklearn.metrics, row.peer)
    options = {} if row.name == "lrap" else {"average": row.name.partition("-")[0]}
    cores = machine.pin(2)
    before = machine.memory()
    ours = {}
    for threads in range(1, cores + 1):
        runs = [seconds(lambda t=threads: metric(Y, scores, n_jobs=t)) for _ in range(5)]
        ours[threads], value = float(np.median([time for time, _ in runs])), runs[0][1]
    memory = machine.memory() - before, machine.peak_memory() - before
    if options:
        Y = Y.toarray()
    theirs, their_value = seconds(lambda: peer(Y, scores, **options))
    if abs(value - their_value) > 1e-9:
        raise SystemExit(f"{row.name}: ours {value!r}, theirs {their_value!r}")
    return {
        "shape": scores.shape,
        "value": value,
        "ours": ours,
        "peer": theirs,
        "ratio": {threads: theirs / time for threads, time in ours.items()},
        "peak MB above the data": max(memory),
    }


def child(argument: str, quick: bool) -> dict:
    """Run this script on one row, or on the machine's description; returns what it prints."""
    limits = dict.fromkeys(THREAD_LIMITS, "2")
    command = [sys.executable, __file__, "--child", argument, *(["--quick"] if quick else [])]
    run = subprocess.run(
        command, env=os.environ | limits, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(run.stdout.strip().rpartition("\n")[2])


def run(arguments: argparse.Namespace) -> None:
    import machine

    about = machine.describe()
    print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    rows = []
    for row in ROWS:
        outcome = child(row.name, arguments.quick)
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        rows.append(asdict(row) | {"date": date, "quick": arguments.quick} | outcome)
        print(f"{row.name}: {row.metric} against scikit-learn {row.peer}, {outcome['shape']}")
        print(f"    theirs {outcome['peer']:.2f} s, value {outcome['value']:.6f}")
        for threads, time in outcome["ours"].items():
            print(f"    ours, {threads} thread(s): {time:.3f} s, {outcome['ratio'][threads]:.0f}×")
        print(f"    peak above the data {outcome['peak MB above the data']:.1f} MB", end="")
        print(f"; target {row.target}× on two threads" if row.target else "", flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": about, "rows": rows}, indent=1, ensure_ascii=False)
    arguments.out.write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "metrics.json")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        row = next(row for row in ROWS if row.name == arguments.child)
        print(json.dumps(measure(row, arguments.quick)))
    else:
        run(arguments)


if __name__ == "__main__":
    main()
