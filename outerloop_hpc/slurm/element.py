"""``python -m outerloop_hpc.slurm.element module:function argument``: one element of a local array."""

from __future__ import annotations

import importlib
import logging
import sys


def main(argv: list[str]) -> int:
    """Import the function and call it with its one argument."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    reference, argument = argv
    module, _, name = reference.partition(":")
    getattr(importlib.import_module(module), name)(argument)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
