"""numpy and scipy: only who has a gate decide needs them, so they are the ``stats`` extra. Pure."""

from __future__ import annotations

from typing import Any

from outerloop_hpc.errors import ConfigError

_ADVICE = (
    "a gate needs numpy and scipy, and {what} cannot be imported here: install the extra that brings them, "
    "for instance pip install 'outerloop-hpc[stats]'"
)


def require() -> None:
    """Raise ConfigError, naming the extra, where numpy or scipy is lacking; for who submits what a gate will decide."""
    numpy()
    special()


def numpy() -> Any:
    """Return the module; raises ConfigError."""
    try:
        import numpy as module  # noqa: PLC0415, ICN001 - an extra
    except ImportError as error:
        raise ConfigError(_ADVICE.format(what="numpy")) from error
    return module


def special() -> Any:
    """Return ``scipy.special``, which has the distribution functions and takes a tenth of ``scipy.stats``' time."""
    try:
        from scipy import special as module  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(_ADVICE.format(what="scipy")) from error
    return module
