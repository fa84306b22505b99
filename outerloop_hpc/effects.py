"""The one seam through which every durable write and every external command passes.

A supervisor can wrap it (``install``) to log, count, delay or refuse effects; by default it adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

Around = Callable[[str, str, Callable[[], Any]], Any]


def _plain(_what: str, _subject: str, action: Callable[[], Any]) -> Any:
    return action()


_around: Around = _plain


def install(around: Around | None) -> None:
    """Wrap every later effect in ``around(what, subject, action)``; ``None`` restores the plain form."""
    global _around  # noqa: PLW0603 - one seam for the process is the point
    _around = around or _plain


def perform(what: str, subject: str, action: Callable[[], T]) -> T:
    """Do one effect. ``what`` names its kind (publish, replace, command, …), ``subject`` its path or program."""
    result: T = _around(what, subject, action)
    return result
