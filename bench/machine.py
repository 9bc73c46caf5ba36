"""The machine: what it is, what it can do at most, and how a process is kept to its cores."""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np


def pin(n_cores: int) -> int:
    """Keep this process to the first cores it may use; returns how many it got."""
    if not hasattr(os, "sched_setaffinity"):
        return min(n_cores, os.cpu_count() or 1)
    cores = sorted(os.sched_getaffinity(0))[:n_cores]
    os.sched_setaffinity(0, cores)
    return len(cores)


@cache
def describe() -> dict[str, str]:
    """Machine and versions, as they are printed and kept with the results."""
    return {
        "cpu": _cpu_name(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("pyrpo", "numpy", "scipy", "scikit-learn")},
    }


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1) if found else platform.machine()


def _status(field: str) -> float | None:
    """Megabytes of a field of Linux's process status."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) * 1024 / 1e6 if found else None


def peak_memory() -> float:
    """Largest resident size of this process so far, MB.

    Linux's VmHWM where there is one: ru_maxrss also counts what the parent held when it forked.
    """
    peak = _status("VmHWM")
    if peak is None:
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return peak


def memory() -> float:
    """Resident size now, MB; the peak where the system does not tell."""
    now = _status("VmRSS")
    return peak_memory() if now is None else now


def _best(call, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def _read_rate(n_bytes: int, passes: int) -> float:
    """Bytes a second of a dot product of an array with itself: one stream of loads."""
    a = np.ones(n_bytes // 8)

    def call():
        for _ in range(passes):
            np.dot(a, a)

    return passes * a.nbytes / _best(call, 7)


def _add_rate() -> float:
    """Return additions a second of one array to another, at the best of several sizes."""
    rates = []
    for size in (2048, 8192, 32768):
        a, total = np.ones(size), np.zeros(size)

        def add(a=a, total=total):
            for _ in range(200):
                np.add(total, a, out=total)

        rates.append(200 * size / _best(add, 7))
    return max(rates)


def _gather_rate() -> float:
    """Return elements a second gathered by a random index from an array that fits L2."""
    a = np.ones(16384)
    index = np.random.RandomState(0).randint(a.size, size=a.size)
    out = np.empty(index.size)

    def gather():
        for _ in range(200):
            np.take(a, index, out=out, mode="clip")

    return 200 * index.size / _best(gather, 7)


def limits() -> dict[str, float]:
    """Return measured peaks of one core, each in 10⁹ bytes or elements a second."""
    return {
        "memory GB/s": _read_rate(256 << 20, 1) / 1e9,
        "L2 GB/s": _read_rate(384 << 10, 300) / 1e9,
        "additions 1e9/s": _add_rate() / 1e9,
        "gathers 1e9/s": _gather_rate() / 1e9,
    }
