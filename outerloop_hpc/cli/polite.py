"""The polite lock: two passes at once are safe, just wasteful. It is never needed for correctness."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from outerloop_hpc import fsio
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import TryLater

_log = logging.getLogger(__name__)


@contextmanager
def polite_lock(layout: Layout, *, wanted: bool = True) -> Iterator[None]:
    """Hold ``tick/lock`` during a pass.

    ``flock`` is node-local on many mounts and refused on some: then the pass goes on without it.

    Raises:
        TryLater: another pass on this host holds it.
    """
    if not wanted:
        yield
        return
    from filelock import FileLock, Timeout  # noqa: PLC0415 - only passes need it

    fsio.make_folder(layout.tick)
    path = layout.tick / "lock"
    with ExitStack() as held:
        try:
            held.enter_context(FileLock(path, timeout=0))
        except Timeout:
            raise TryLater(f"{path}: another pass is under way; nothing to do here") from None
        except (OSError, NotImplementedError) as error:
            _log.info("no lock on this filesystem (%s); going on without", error)
        yield
