"""Who may change which paths of a target: territories, and what in a change leaves them. Pure.

Forbidden paths match however they are spelled (letter case, Unicode form); allowed paths match exactly. So a trick
with spelling can only lose a permission, never win one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from outerloop_hpc.target.tree import GITLINK, SYMLINK, Change

CONTRACT_NAMES = (".outerloop.yaml", ".autoresearch.yaml")
LEDGER = ("results/leader.json", "BENCHMARKS.md")
#: Nobody but a person changes these, whatever a contract says.
ALWAYS_FORBIDDEN = (".github", ".git", *CONTRACT_NAMES)
#: Names that change what git does with every other file, at any depth.
_GIT_STEERING = frozenset(
    {".gitattributes", ".gitmodules", ".gitconfig", ".githooks", ".husky", ".lfsconfig", ".pre-commit-config.yaml"}
)
_GIT_FOLDERS = frozenset({".git", "git~1"})
_MODES = {0o100644, 0o100755}
_MAX_PATH_BYTES = 4_096
_MAX_NAME_BYTES = 255


class Role(StrEnum):
    """Who makes a change."""

    SOLVER = "solver"
    STEWARD = "steward"


@dataclass(frozen=True, slots=True)
class Violation:
    """One changed path that must not be, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Territory:
    """Where one role may write: inside ``allowed`` and outside ``forbidden``; both are normalised paths."""

    role: Role
    allowed: tuple[str, ...]
    forbidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The paths that a contract declares, normalised (no trailing slash).

    Attributes:
        allowed: the solver's files and folders.
        forbidden: parts of ``allowed`` that stay closed to the solver.
        shared: parts of ``allowed`` that every benchmark exercises.
        steward_allowed: the steward's files and folders; empty when the contract has no steward.
        roadmap: the target's roadmap file, closed to everybody.
    """

    allowed: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    steward_allowed: tuple[str, ...] = ()
    roadmap: str | None = None

    @property
    def closed(self) -> tuple[str, ...]:
        """What no role may change."""
        return (*ALWAYS_FORBIDDEN, *LEDGER, *((self.roadmap,) if self.roadmap else ()))

    def solver(self) -> Territory:
        """Return where a solver may write."""
        return Territory(Role.SOLVER, self.allowed, (*self.closed, *self.forbidden, *self.steward_allowed))

    def steward(self) -> Territory:
        """Return where a steward may write; the solver's side is closed to it."""
        return Territory(Role.STEWARD, self.steward_allowed, (*self.closed, *self.allowed))

    def problems(self) -> tuple[tuple[str, str], ...]:
        """Check the rules between the lists.

        Returns:
            (key, what is wrong) for each entry that breaks one; keys as in a contract, ``scope.allowed[0]``.
        """
        return (
            *_closed_problems("scope.allowed", self.allowed, self._hard()),
            *_closed_problems("scope.shared", self.shared, self._hard()),
            *_closed_problems("steward.allowed", self.steward_allowed, (*self._hard(), *LEDGER)),
            *self._dead_entries(),
            *self._collusion(),
        )

    def _hard(self) -> tuple[str, ...]:
        return (*ALWAYS_FORBIDDEN, *((self.roadmap,) if self.roadmap else ()))

    def _dead_entries(self) -> Iterable[tuple[str, str]]:
        for index, entry in enumerate(self.allowed):
            for closed in (*self.forbidden, *LEDGER):
                if inside(entry, closed):
                    yield f"scope.allowed[{index}]", f"{entry!r} lies inside {closed!r}, which is forbidden"
        for index, entry in enumerate(self.shared):
            if not any(overlap(entry, allowed) for allowed in self.allowed):
                yield f"scope.shared[{index}]", f"{entry!r} overlaps nothing in scope.allowed, so it can never apply"

    def _collusion(self) -> Iterable[tuple[str, str]]:
        for index, entry in enumerate(self.steward_allowed):
            for mine in self.allowed:
                if overlap(entry, mine):
                    yield (
                        f"steward.allowed[{index}]",
                        f"{entry!r} overlaps the solver's {mine!r}; judge and judged must not share files",
                    )


def _closed_problems(key: str, entries: tuple[str, ...], closed: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    for index, entry in enumerate(entries):
        for path in closed:
            if overlap(entry, path):
                yield f"{key}[{index}]", f"{entry!r} overlaps {path!r}, which nobody may be given"


def violations(changes: Iterable[Change], territory: Territory) -> tuple[Violation, ...]:
    """Return what in ``changes`` leaves ``territory`` or could trick a checkout; empty means acceptable.

    Every changed entry is judged, deletions too (a rename is a deletion and an addition). One violation per path.
    """
    found: list[Violation] = []
    spelled: dict[tuple[str, ...], str] = {}
    for change in changes:
        reason = _wrong(change, territory)
        if reason is None and not change.deleted:
            other = spelled.setdefault(folded(change.path), change.path)
            if other != change.path:
                reason = f"differs from {other!r} only in letter case or Unicode form"
        if reason is not None:
            found.append(Violation(change.path, reason))
    return tuple(found)


def _wrong(change: Change, territory: Territory) -> str | None:
    return path_problem(change.path) or _mode_problem(change) or _place_problem(change.path, territory)


def path_problem(path: str) -> str | None:
    """Say what is wrong with the name of a changed path, wherever it lies; ``None`` when nothing is."""
    if not path or path.startswith("/"):
        return "is absolute" if path else "is empty"
    if not path.isprintable():
        return "holds control, invisible or undecodable characters"
    for character, name in (("\\", "a backslash"), (":", "a colon")):
        if character in path:
            return f"holds {name}"
    if len(path.encode()) > _MAX_PATH_BYTES:
        return f"is longer than {_MAX_PATH_BYTES} bytes"
    for part in path.split("/"):
        reason = _part_problem(part)
        if reason is not None:
            return reason
    return None


def _part_problem(part: str) -> str | None:
    if part in {"", ".", ".."}:
        return f"has the part {part!r}"
    if part.endswith((".", " ")):
        return f"has the part {part!r}, which ends with a dot or a space"
    if len(part.encode()) > _MAX_NAME_BYTES:
        return f"has a part longer than {_MAX_NAME_BYTES} bytes"
    name = fold(part)
    if name in _GIT_FOLDERS:
        return "reaches into the git folder"
    if name in _GIT_STEERING:
        return f"changes how git treats other files ({part!r})"
    return None


def _mode_problem(change: Change) -> str | None:
    if GITLINK in {change.old_mode, change.new_mode}:
        return "is a submodule"
    if change.deleted or change.new_mode in _MODES:
        return None
    return "is a symbolic link" if change.new_mode == SYMLINK else f"has the mode {change.new_mode:06o}"


def _place_problem(path: str, territory: Territory) -> str | None:
    for closed in territory.forbidden:
        if inside(path, closed):
            return f"lies in {closed!r}, which is closed to the {territory.role}"
    if any(_exactly_inside(path, allowed) for allowed in territory.allowed):
        return None
    for allowed in territory.allowed:
        if inside(path, allowed):
            return f"differs from the allowed {allowed!r} in letter case or Unicode form"
    return f"lies outside of what the {territory.role} may change ({', '.join(territory.allowed) or 'nothing'})"


def declared(entry: str) -> str:
    """Normalise one path of a contract: repository-relative POSIX, no glob, no trailing slash.

    Raises:
        ValueError: it is not such a path; the text says why, without the path.
    """
    path = entry.removesuffix("/").removeprefix("./")
    if path in {"", "."}:
        raise ValueError("the root of the repository cannot be named; name files and folders")
    if any(character in path for character in "*?[]!"):
        raise ValueError("glob patterns are not understood; name files and folders")
    reason = path_problem(path)
    if reason is not None:
        raise ValueError(f"not a plain path inside the repository: it {reason}")
    return path


def fold(part: str) -> str:
    """Return the form of one path component under which spellings that a filesystem may confuse are equal."""
    folded_part = unicodedata.normalize("NFD", unicodedata.normalize("NFD", part).casefold())
    return unicodedata.normalize("NFC", folded_part)


def folded(path: str) -> tuple[str, ...]:
    """Return a path's folded components."""
    return tuple(fold(part) for part in path.split("/"))


def inside(path: str, place: str) -> bool:
    """Whether ``path`` is ``place`` or lies under it, however spelled; component-wise."""
    inner, outer = folded(path), folded(place)
    return inner[: len(outer)] == outer


def overlap(one: str, other: str) -> bool:
    """Whether one of two paths contains the other, however spelled."""
    return inside(one, other) or inside(other, one)


def _exactly_inside(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")
