"""How long OpenMP's threads keep a core busy while they wait for work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_WORDS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # either says that somebody has chosen
_TURNS = "5000"  # a tenth of a millisecond or two, of 300 000


@contextmanager
def waiting_briefly() -> Iterator[None]:
    """GNU OpenMP, if it is loaded within and was not before: its threads go to sleep soon.

    By default they turn for milliseconds at every end of a pass. Where cores have other work, too,
    that time is missed by the thread that is waited for, and short passes take many times as long
    as on one thread. Whoever shares that library waits as long. What the environment says of it
    comes first; it is left as it was.
    """
    mine = not any(word in os.environ for word in _WORDS)
    if mine:
        os.environ["GOMP_SPINCOUNT"] = _TURNS
    try:
        yield
    finally:
        if mine:
            os.environ.pop("GOMP_SPINCOUNT", None)
