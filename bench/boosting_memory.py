"""Memory of boosting 30 000 sparse outputs on 200 000 rows, beside that of X and Y.

    python bench/boosting_memory.py
    python bench/boosting_memory.py --rows 20000 --outputs 3000 --rounds 50

Algorithm 3 with the squared loss: one n x d array would be 24 GB. Prints the largest resident size
during the fit above what the process held before it, X and Y included, and the times.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter, process_time

import machine
import numpy as np
from scipy import sparse

from pyrpo import GradientBoostingRegressor


def make_problem(rows: int, inputs: int, outputs: int, seed: int):
    """Words and labels of topics: a row has one topic, 5 to 20 labels and about 30 words."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(200, size=rows)

    def indicator(low: int, high: int, columns: int) -> sparse.csr_array:
        counts = rng.integers(low, high + 1, size=rows)
        start = np.concatenate([[0], np.cumsum(counts)])
        home = np.repeat(topic * (columns // 200), counts)
        near = home + rng.geometric(20.0 / columns, size=len(home))
        far = rng.integers(columns, size=len(home))
        column = np.where(rng.random(len(home)) < 0.6, near, far) % columns
        ones = np.ones(len(column), dtype=np.float32)
        found = sparse.csr_array((ones, column.astype(np.int32), start), shape=(rows, columns))
        found.sum_duplicates()
        found.data[:] = 1.0
        return found

    return indicator(20, 40, inputs), indicator(5, 20, outputs)


def forget_peak() -> None:
    """Make the system measure the peak from here on (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    """Fit, predict some rows, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--inputs", type=int, default=5_000)
    parser.add_argument("--outputs", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=600.0, help="MB above X and Y")
    args = parser.parse_args()
    X, Y = make_problem(args.rows, args.inputs, args.outputs, 0)
    size = sum(a.data.nbytes + a.indices.nbytes + a.indptr.nbytes for a in (X, Y)) / 1e6
    print(f"X {X.shape}, {X.nnz} entries; Y {Y.shape}, {Y.nnz} entries; together {size:.0f} MB")
    forget_peak()
    before, wall, cpu = machine.memory(), perf_counter(), process_time()
    model = GradientBoostingRegressor(
        args.rounds, relabel=False, early_stopping=False, random_state=0, n_jobs=args.n_jobs
    ).fit(X, Y)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    above = machine.peak_memory() - before
    print(f"{args.rounds} rounds: {wall:.1f} s, {cpu:.1f} s of CPU time, {args.n_jobs} thread(s)")
    verdict = "within" if above < args.budget else "over"
    print(f"peak above X and Y: {above:.0f} MB ({verdict} {args.budget:.0f})")
    train = model.train_score_
    print(f"loss before the first round {train[0]:.6g}, before the last {train[-1]:.6g}")
    wall = perf_counter()
    model.predict(X[:1000])
    print(f"1 000 rows predicted in {perf_counter() - wall:.2f} s")


if __name__ == "__main__":
    main()
