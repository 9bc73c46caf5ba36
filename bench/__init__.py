"""Benchmarks: scripts, and packages that are run by ``python -m bench.name``."""

import sys
from pathlib import Path

# `-m` puts the repository first on the path, where pyrpo's sources would hide what is installed.
_ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != _ROOT]
