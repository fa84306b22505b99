"""How often Python looks for cycles. What a command loads stays until its end: looking costs time and finds nothing."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 50_000


def seldom() -> None:
    """Look a hundred times less often in this process, and not once more at its exit."""
    gc.set_threshold(_SELDOM)
    atexit.register(gc.freeze)


@contextmanager
def off() -> Iterator[None]:
    """Do not look at all meanwhile; afterwards as before."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
