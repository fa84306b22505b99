"""``python -m outerloop_hpc.slurm.element module:function argument``: one element of a local array.

Much of a short job's time is Python's own: a collector that goes through modules as they are loaded, and their taking
apart at the end. Both are left out here.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys


def main(argv: list[str]) -> int:
    """Import the function and call it with its one argument."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    reference, argument = argv
    module, _, name = reference.partition(":")
    function = getattr(importlib.import_module(module), name)
    gc.freeze()
    gc.enable()
    function(argument)
    return 0


def _leave(status: int) -> None:
    """End this process at once; what it said is written out before."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    gc.disable()
    _leave(main(sys.argv[1:]))
