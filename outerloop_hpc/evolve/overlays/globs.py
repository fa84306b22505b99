"""Globs on repository paths: ``*`` and ``?`` stay within one part, ``**`` is any number of parts. Pure.

What is allowed matches exactly, what is denied however it is spelled (letter case, Unicode form): as in
``target.scope``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import or_

from outerloop_hpc.target.scope import fold, path_problem

_ANY = "**"


def glob_problem(pattern: str) -> str | None:
    """Say what is wrong with a glob; ``None`` when nothing is."""
    if any(character in pattern for character in "[]{}!"):
        return "only *, ? and ** are understood"
    if any(_ANY in part and part != _ANY for part in pattern.split("/")):
        return "** stands for whole folders: write it between slashes"
    # The wildcards stand for letters here, so that the rest is checked as the path that it will match.
    reason = path_problem(pattern.removesuffix("/").replace("*", "x").replace("?", "x"))
    return None if reason is None else f"names no path inside the repository: it {reason}"


def allows(pattern: str, path: str) -> bool:
    """Whether a path is allowed by a glob; one without wildcards also names all that lies in a folder."""
    glob, parts = _split(pattern), tuple(path.split("/"))
    if _plain(pattern):
        return parts[: len(glob)] == glob
    return _matches(glob, parts)


def denies(pattern: str, path: str) -> bool:
    """Whether a path, or a folder that it lies in, matches a glob in any spelling."""
    glob, parts = _split(pattern), tuple(path.split("/"))
    loose, loosened = tuple(map(fold, glob)), tuple(map(fold, parts))
    heads = range(1, len(parts) + 1)
    return any(_matches(glob, parts[:depth]) or _matches(loose, loosened[:depth]) for depth in heads)


def denying(patterns: Iterable[str], path: str) -> str | None:
    """Return the first of some globs that denies a path; None when none does."""
    return next((pattern for pattern in patterns if denies(pattern, path)), None)


def _plain(pattern: str) -> bool:
    return "*" not in pattern and "?" not in pattern


@lru_cache(maxsize=1024)
def _split(pattern: str) -> tuple[str, ...]:
    parts = pattern.removesuffix("/").split("/")
    return tuple(part for part, before in zip(parts, ["", *parts], strict=False) if part != _ANY or before != _ANY)


def _matches(glob: Sequence[str], parts: Sequence[str]) -> bool:
    """Match part by part; ``reached[i]`` says whether the first ``i`` parts are matched. No input makes it slow."""
    reached = [True, *[False] * len(parts)]
    for piece in glob:
        if piece == _ANY:
            reached = list(accumulate(reached, or_))
        else:
            reached = [False, *(reached[i] and _part(piece, part) for i, part in enumerate(parts))]
    return reached[-1]


def _part(piece: str, part: str) -> bool:
    """Match one part of a path, in the same way, letter by letter."""
    reached = [True, *[False] * len(part)]
    for sign in piece:
        if sign == "*":
            reached = list(accumulate(reached, or_))
        else:
            reached = [False, *(reached[i] and sign in {"?", letter} for i, letter in enumerate(part))]
    return reached[-1]
