"""What is on disk, in a form in which two runs of the same story are equal: ids by what they name, not as they are.

Two states that are equal here have the same future: a pass knows nothing but what is on disk and what Slurm says. So a
story that was disturbed may end where it has come back to the undisturbed one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.local.scratch import git

#: Ids, nonces, digests, commits; numbered names of documents begin with zeros.
_ID = re.compile(r"(?<![0-9a-f])(?!0000)[0-9a-f]{8,64}(?![0-9a-f])")
_PROCESS = re.compile(r'"pid": ?\d+')
#: Rounds in which ids are told apart by the places where they stand, and those by the ids beside them.
_ROUNDS = 3
#: Caches, which anybody may delete at any time, and bytes that differ between equal pickles.
_CACHES = ("tick", "snapshot.json", "submitit", "wake")


def canonical(texts: Mapping[str, str]) -> Counter[str]:
    """Return the texts with their names, each id replaced by what it is: a digest of the places where it stands."""
    parts = [_ID.split(whole) for whole in _wholes(texts)]
    ids = [_ID.findall(whole) for whole in _wholes(texts)]
    seen: dict[str, str] = dict.fromkeys((one for found in ids for one in found), "")
    shown = _shown(parts, ids, seen)
    for _ in range(_ROUNDS):
        places: dict[str, list[str]] = {one: [] for one in seen}
        for text, found in zip(shown, ids, strict=True):
            for number, one in enumerate(found):
                places[one].append(f"{number} {text}")
        seen = {one: _digest("\n".join(sorted(where))) for one, where in places.items()}
        shown = _shown(parts, ids, seen)
    return Counter(shown)


def _wholes(texts: Mapping[str, str]) -> Iterator[str]:
    for name, text in texts.items():
        yield _PROCESS.sub('"pid": 0', f"{name}\n{text}")


def _shown(parts: list[list[str]], ids: list[list[str]], seen: Mapping[str, str]) -> list[str]:
    return ["".join(_woven(part, [f"<{seen[one]}>" for one in found])) for part, found in zip(parts, ids, strict=True)]


def _woven(parts: list[str], ids: list[str]) -> Iterator[str]:
    for part, one in zip(parts, [*ids, ""], strict=True):
        yield part
        yield one


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def documents(state: Path) -> dict[str, str]:
    """Return every document below the state folder that is no cache and no repository; of scraps only their names."""
    found: dict[str, str] = {}
    for path in sorted(state.rglob("*")):
        name = path.relative_to(state)
        if temporary(name) or any(part.endswith(".git") for part in name.parts) or path.is_dir():
            continue
        if not any(part in _CACHES for part in name.parts):
            found[str(name)] = path.read_text(encoding="utf-8", errors="replace")
        elif "tries" in name.parts and path.suffix != ".out":
            found[str(name)] = ""
    return found


def temporary(name: Path) -> bool:
    """Whether it is a temporary name, or below one."""
    return any(part.startswith(".tmp-") for part in name.parts)


def leftovers(state: Path) -> list[str]:
    """Return temporary names, without what is below them, by their kind, and locks of repositories."""
    found = (path.relative_to(state) for path in state.rglob("*"))
    own = [name for name in found if temporary(name) and not temporary(name.parent)]
    locks = [path.relative_to(state) for path in state.rglob("*.git/**/*.lock")]
    return sorted(_ID.sub("#", str(name)) for name in [*own, *locks])


def commits(*repositories: Path) -> list[str]:
    """Return what each repository's references name: reference, commit, tree and subject.

    Of what a branch was merged onto only the name: merging again finds the merged one there.
    """
    form = "%(refname) %(objectname) %(tree) %(subject)"
    there = [folder for folder in repositories if folder.exists()]
    lines = [(folder.name, line) for folder in there for line in _references(folder, form)]
    return [f"{name} {line.partition(' ')[0] if '/base/' in line.partition(' ')[0] else line}" for name, line in lines]


def _references(folder: Path, form: str) -> list[str]:
    return git(folder, "for-each-ref", f"--format={form}").splitlines()


def nameless(line: str) -> str:
    """Return a line without ids, seeds and times of runs, for what is compared at different times."""
    return _ID.sub("#", re.sub(r"\d{8}T\d{6}Z", "T", re.sub(r"'\d+'", "'#'", line)))
