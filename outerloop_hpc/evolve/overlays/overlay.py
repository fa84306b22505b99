"""An overlay: the full replacement files that a candidate is. Its rules and its digest. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from outerloop_hpc.errors import Exit, OuterloopError
from outerloop_hpc.evolve.overlays.globs import allows, denying
from outerloop_hpc.evolve.work import Copy, OverlayRules, copies_of
from outerloop_hpc.target.scope import folded, path_problem

#: Of any overlay, whatever its rules say: what ``OverlayRules`` may ask for at most.
MOST_FILES = 1024
MOST_BYTES = 64 * 1024 * 1024
_MOST_PATH_BYTES = 512
_SHOWN = 10


class InvalidOverlay(OuterloopError):  # noqa: N818 - the word of the record
    """A proposal breaks the rules of the sweep; ``reasons`` has a line for each file that does."""

    exit_status = Exit.USAGE

    def __init__(self, reasons: Sequence[str]) -> None:
        more = [f"and {len(reasons) - _SHOWN} more"] if len(reasons) > _SHOWN else []
        super().__init__("the overlay is refused: " + "; ".join([*reasons[:_SHOWN], *more]))
        self.reasons = tuple(reasons)


class IntegrityFault(OuterloopError):  # noqa: N818 - the design's word
    """What was frozen is not what it was. Nothing may be concluded from it, and a person has to look."""

    exit_status = Exit.HALTED


@dataclass(frozen=True)
class Overlay:
    """Repository paths and the bytes that stand there; sorted, and never changed."""

    files: Mapping[str, bytes]

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", MappingProxyType(dict(sorted(self.files.items()))))

    @property
    def digest(self) -> str:
        """Its name: 64 hex digits."""
        return digest(self)

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(map(len, self.files.values()))


def digest(overlay: Overlay) -> str:
    """Return the sha256 over every path and content in order, each after its length (8 bytes, big endian).

    With the lengths, no two overlays have the same bytes in a row.
    """
    running = hashlib.sha256()
    for path, content in sorted(
        (path.encode("utf-8", "surrogateescape"), data) for path, data in overlay.files.items()
    ):
        for piece in (path, content):
            running.update(len(piece).to_bytes(8, "big"))
            running.update(piece)
    return running.hexdigest()


def content_digest(content: bytes) -> str:
    """Return the sha256 of one file, as the base of a sweep holds it."""
    return hashlib.sha256(content).hexdigest()


def place_problem(path: str, rules: OverlayRules) -> str | None:
    """Say why a candidate may not bring a path; ``None`` when it may."""
    reason = path_problem(path)
    if reason is not None:
        return reason
    if len(path.encode()) > _MOST_PATH_BYTES:
        return f"is longer than {_MOST_PATH_BYTES} bytes"
    if (denied := denying(rules.deny, path)) is not None:
        return f"is closed to candidates ({denied!r})"
    if not any(allows(pattern, path) for pattern in rules.allow):
        return f"lies outside of what candidates may change ({', '.join(rules.allow)})"
    return None


def check(overlay: Overlay, rules: OverlayRules, base: Mapping[str, str], copies: Sequence[Copy] = ()) -> None:
    """Make sure that an overlay is a candidate.

    Args:
        overlay: what was proposed.
        rules: of the sweep.
        base: sha256 of each incumbent file that the rules allow, by path.
        copies: of the sweep; what could not be applied with them is not worth measuring.

    Raises:
        InvalidOverlay: with every reason.
    """
    reasons = [*_bounds(overlay, rules), *_places(overlay, rules, base), *_copied(overlay, rules, copies)]
    if not reasons and all(base.get(path) == content_digest(data) for path, data in overlay.files.items()):
        reasons = ["every file is the same as the incumbent's, so there is nothing to measure"]
    if reasons:
        raise InvalidOverlay(reasons)


def _bounds(overlay: Overlay, rules: OverlayRules) -> Iterator[str]:
    if not overlay.files:
        yield "it holds no file"
    if len(overlay.files) > rules.max_files:
        yield f"it holds {len(overlay.files)} files, at most {rules.max_files} are allowed (overlay.max_files)"
    if overlay.size > rules.max_bytes:
        yield f"it holds {overlay.size} bytes, at most {rules.max_bytes} are allowed (overlay.max_bytes)"


def _places(overlay: Overlay, rules: OverlayRules, base: Mapping[str, str]) -> Iterator[str]:
    spelled = {folded(place): place for path in base for place in _heads(path)}
    files = {folded(path) for path in base}
    for path in overlay.files:
        reason = place_problem(path, rules)
        if reason is None and path not in base:
            reason = None if rules.may_add else "is no file of the incumbent, and overlay.may_add is false"
        reason = reason or _collision(path, spelled, files)
        if reason is not None:
            yield f"{path!a} {reason}"
        files.add(folded(path))


def _copied(overlay: Overlay, rules: OverlayRules, copies: Sequence[Copy]) -> Iterator[str]:
    """Yield what is wrong with the further places of files, which no rule names."""
    standing = dict(overlay.files)
    for path, data in overlay.files.items():
        for place in copies_of(path, copies):
            if (denied := denying(rules.deny, place)) is not None:
                yield f"{path!a} would be copied to {place!a}, which is closed to candidates ({denied!r})"
            if standing.setdefault(place, data) != data:
                yield f"{place!a} is to be a copy of two files that differ"


def _collision(path: str, spelled: dict[tuple[str, ...], str], files: set[tuple[str, ...]]) -> str | None:
    """Say with what a path cannot stand side by side: another spelling of it, or a file where it needs a folder."""
    for place in _heads(path):
        other = spelled.setdefault(folded(place), place)
        if other != place:
            return f"differs from {other!r} only in letter case or Unicode form"
        if place != path and folded(place) in files:
            return f"would lie in {place!r}, which is a file"
    inner = folded(path)
    if any(len(file) > len(inner) and file[: len(inner)] == inner for file in files):
        return "is a folder of other files"
    return None


def _heads(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, and the path."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
