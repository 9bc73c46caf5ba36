"""Products of sparse and dense matrices beside scipy's and the memory's speed.

    python bench/sparse.py                     writes bench/results/sparse.json
    python bench/sparse.py --quick             a tenth of the rows, no file unless --out says where
    python bench/sparse.py --busy              by CPU time, if the machine has other work

In cache, times are beside scipy's ``A @ Z`` and ``A.T @ Z`` (scipy has no fused product: both, one
after the other). Out of cache, the rate is non-zeros x width x size of a number over time, as if
every dense row came from memory anew, beside that of reading memory from end to end and that of
``numpy.take`` of rows at random into a buffer that stays in cache, measured in turns with them;
results go into arrays that are there. ``A'A Z`` counts an entry once, but touches a row of two
dense sides with it.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, process_time

import machine
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from pyrpo._native_sparse import multiply

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120
NEAR = [(20_000, 500, 40), (50_000, 1000, 19), (2000, 500, 200)]  # rows, columns, entries a row
FAR = [(100_000, 200_000, 60)]


def matrix(shape: tuple[int, int, int], dtype) -> sparse.csr_array:
    """Random entries; a column may occur twice in a row."""
    n, p, entries = shape
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(p, size=(n, entries), dtype=np.int32), axis=1)
    starts = np.arange(n + 1, dtype=np.int32) * np.int32(entries)
    values = rng.random(n * entries, dtype=dtype)
    return sparse.csr_array((values, columns.ravel(), starts), shape=(n, p))


class Clock:
    """Seconds of calls, the least of some; on a busy machine CPU seconds over their threads."""

    def __init__(self, busy: bool) -> None:
        self.busy = busy

    def in_turns(self, calls: dict[str, Callable], repeats: int, threads: int = 1) -> dict:
        """Of each of some calls in turns, again and again: a slow hour is everyone's."""
        now = process_time if self.busy else perf_counter
        least = dict.fromkeys(calls, np.inf)
        for _ in range(repeats):
            for name, call in calls.items():
                start = now()
                call()
                least[name] = min(least[name], (now() - start) / (threads if self.busy else 1))
        return least

    def __call__(self, call: Callable, repeats: int, threads: int = 1) -> float:
        return self.in_turns({"": call}, repeats, threads)[""]


def products(A, Z, U, n_jobs: int, ready: bool) -> dict[str, Callable]:
    """The library's products; results go into memory that is `ready`, or is asked for anew."""
    of_row, of_column = (np.empty_like(U), np.empty_like(Z)) if ready else (None, None)

    def into(out, kind, B):
        return lambda: multiply(kind, A, B, n_jobs=n_jobs, out=out)

    return {
        "A Z": into(of_row, "product", Z),
        "A'U": into(of_column, "t_product", U),
        "A'A Z": into(of_column, "gram_product", Z),
    }


def near(shape: tuple[int, int, int], dtype, best: Clock) -> dict:
    """Times of ours and scipy's where all fits in cache."""
    A, rng = matrix(shape, dtype), np.random.default_rng(1)
    Z, U = (rng.random((size, WIDTH), dtype=dtype) for size in (shape[1], shape[0]))
    transposed = A.T
    scipys = {"A Z": best(lambda: A @ Z, 7), "A'U": best(lambda: transposed @ U, 7)}
    scipys["A'A Z"] = scipys["A Z"] + scipys["A'U"]
    row = {"shape": shape, "width": WIDTH, "dtype": np.dtype(dtype).name, "scipy": scipys}
    for n_jobs in (1, 2):
        calls = products(A, Z, U, n_jobs, ready=False)
        times = {name: best(call, 7, n_jobs) for name, call in calls.items()}
        row[f"{n_jobs} threads"] = times
        row[f"{n_jobs} threads, ratio"] = {name: scipys[name] / times[name] for name in times}
        row[f"{n_jobs} threads, ns an entry"] = {
            name: 1e9 * time / A.nnz for name, time in times.items()
        }
    return row


def memory(dtype, pool: ThreadPoolExecutor, threads: int) -> dict[str, tuple[int, Callable]]:
    """Bytes and calls: reading from end to end, and rows of WIDTH numbers at random."""
    rng = np.random.default_rng(2)
    Z = rng.random((FAR[0][1], WIDTH), dtype=dtype)
    rows = rng.integers(len(Z), size=(threads, 2000, 64))
    buffers = np.empty((threads, 64, WIDTH), dtype=dtype)
    flat = [np.ones(1 << 25) for _ in range(threads)]  # 256 MB: not to fit any cache

    def read(i):
        np.dot(flat[i], flat[i])

    def take(i):
        for some in rows[i]:
            np.take(Z, some, axis=0, out=buffers[i], mode="clip")

    def by_all(call):
        return lambda: list(pool.map(call, range(threads)))

    return {
        "end to end": (threads * flat[0].nbytes, by_all(read)),
        "numpy.take": (rows.size * Z[0].nbytes, by_all(take)),
    }


def far(shape: tuple[int, int, int], dtype, best: Clock) -> dict:
    """Rates where the dense side is far larger than the cache, memory's in turns with them."""
    A, rng = matrix(shape, dtype), np.random.default_rng(1)
    Z, U = (rng.random((size, WIDTH), dtype=dtype) for size in (shape[1], shape[0]))
    n_bytes = A.nnz * WIDTH * Z.itemsize
    row = {"shape": shape, "width": WIDTH, "dtype": np.dtype(dtype).name}
    row["scipy"] = {"A Z": n_bytes / best(lambda: A @ Z, 1)}
    for n_jobs in (1, 2):
        calls = products(A, Z, U, n_jobs, ready=True)
        with ThreadPoolExecutor(n_jobs) as pool:
            streams = memory(dtype, pool, n_jobs)
            all_calls = calls | {name: call for name, (_, call) in streams.items()}
            times = best.in_turns(all_calls, 9, n_jobs)
        rates = {name: n_bytes / times[name] for name in calls}
        seen = {name: size / times[name] for name, (size, _) in streams.items()}
        row[f"{n_jobs} threads"] = rates
        row[f"{n_jobs} threads, memory"] = seen
        row[f"{n_jobs} threads, share of memory"] = {
            name: value / seen["end to end"] for name, value in rates.items()
        }
    return row


def print_near(row: dict) -> None:
    print(f"in cache, {row['shape']}, {row['dtype']}, width {row['width']}: scipy's time over ours")
    for n_jobs in (1, 2):
        ratios, each = row[f"{n_jobs} threads, ratio"], row[f"{n_jobs} threads, ns an entry"]
        text = ", ".join(f"{name} {ratios[name]:.1f}× ({each[name]:.1f} ns)" for name in ratios)
        print(f"    {n_jobs} thread(s): {text} an entry", flush=True)


def print_far(row: dict) -> None:
    print(f"out of cache, {row['shape']}, {row['dtype']}, width {row['width']}, GB/s")
    print(f"    scipy: A Z {row['scipy']['A Z'] / 1e9:.1f}")
    for n_jobs in (1, 2):
        rates = row[f"{n_jobs} threads"] | row[f"{n_jobs} threads, memory"]
        text = ", ".join(f"{name} {value / 1e9:.1f}" for name, value in rates.items())
        print(f"    {n_jobs} thread(s): {text}", flush=True)
        shares = row[f"{n_jobs} threads, share of memory"]
        text = ", ".join(f"{name} {value:.0%}" for name, value in shares.items())
        print(f"        of the memory's rate: {text}", flush=True)


def run(arguments: argparse.Namespace) -> None:
    machine.pin(2)
    about = machine.describe()
    print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    scale = 10 if arguments.quick else 1
    results = {"machine": about, "date": datetime.date.today().isoformat()}
    best = Clock(arguments.busy)
    results |= {"quick": arguments.quick, "busy": arguments.busy, "near": [], "far": []}
    for dtype in (np.float64, np.float32):
        for n, *rest in NEAR:
            results["near"].append(near((n // scale, *rest), dtype, best))
            print_near(results["near"][-1])
    for dtype in (np.float64, np.float32):
        for n, *rest in FAR:
            results["far"].append(far((n // scale, *rest), dtype, best))
            print_far(results["far"][-1])
    out = arguments.out or (None if arguments.quick else ROOT / "bench/results/sparse.json")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument(
        "--busy", action="store_true", help="CPU time over threads: the machine has other work"
    )
    parser.add_argument("--out", type=Path)
    with threadpool_limits(1, user_api="blas"):
        run(parser.parse_args())


if __name__ == "__main__":
    main()
