"""Values put into a template: the files of one point of a grid or a search. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from outerloop_hpc.evolve.overlays.overlay import Overlay

Choice = str | int | float | bool

_PLACE = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")


def filled(template: Mapping[str, str], values: Mapping[str, Choice]) -> Overlay:
    """Return the files of a template with ``{{name}}`` replaced by each value that is there.

    A text stands as it is, numbers as JSON writes them, and so do ``true`` and ``false``. Other names in braces stay as
    they are, and so does what looks like a place in a value.
    """

    def put(match: re.Match[str]) -> str:
        name = match[1]
        return spelled(values[name]) if name in values else match[0]

    return Overlay({path: _PLACE.sub(put, text).encode() for path, text in template.items()})


def spelled(value: Choice) -> str:
    """Return a value as it stands in a file."""
    return value if isinstance(value, str) else json.dumps(value)
