"""Options of the six programs, in the spellings that Slurm takes."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Call:
    """One call of a program: what was given, by whom, and where."""

    words: tuple[str, ...]
    env: dict[str, str]
    cwd: str = "/"
    uid: int = 0

    @property
    def user(self) -> str:
        """The caller's name."""
        return pwd.getpwuid(self.uid).pw_name

    @classmethod
    def here(cls, words: Sequence[str]) -> Call:
        """This process's own call."""
        return cls(tuple(words), dict(os.environ), str(Path.cwd()), os.geteuid())


class Unrecognised(Exception):  # noqa: N818 - what happened
    """An option that this version of the program does not have."""


def parse(words: Sequence[str], flags: str, valued: str) -> tuple[dict[str, str], list[str]]:
    """Split words into options and the rest. Each name stands for its spellings, as in ``-o/--format``.

    Returns the options under their first spelling, a flag with the value ``yes``.
    """
    names = {spelling: group.split("/")[0] for group in flags.split() for spelling in group.split("/")}
    takes = {spelling: group.split("/")[0] for group in valued.split() for spelling in group.split("/")}
    found: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name in takes and equals and name.startswith("--"):
            found[takes[name]] = value
        elif word in takes:
            found[takes[word]] = left.pop(0)
        elif word in names:
            found[names[word]] = "yes"
        elif word[:2] in takes and len(word) > 2 and not word.startswith("--"):
            found[takes[word[:2]]] = word[2:]
        elif word.startswith("-"):
            raise Unrecognised(word)
        else:
            rest.append(word)
    return found, rest
