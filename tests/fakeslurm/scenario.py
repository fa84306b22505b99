"""Scenario files: what a cluster does to a site, step by step, and what must have come of it. Read totally.

A file holds ``[[scenario]]`` tables, see ``Scenario`` for their keys. A step is a text of ``STEPS``, a check
``{ rule = "accounting.no-end", of = 0 }`` of the last pass, or ``{ fault = … }``, ``{ fate = … }``, ``{ past = … }``,
``{ foreign = … }``, ``{ calls = "sbatch", are = 1 }``. Whatever is not known is an error that names the place.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from tests.fakeslurm import faults
from tests.fakeslurm.dialect import DIALECTS
from tests.fakeslurm.model import Fate, Fault, Settings

T = TypeVar("T")

#: Every step that is a text. ``of 1`` means the second run, ``-> 75`` the exit status (0 unless said).
STEPS = {
    "tick": r"tick",
    "reconcile": r"reconcile",
    "run": r"run( \d+)+",
    "resume": r"resume",
    "end": r"end",
    "settle": r"settle( every \d+)?",
    "advance": r"advance \d+",
    "down": r"down slurm(ctld|dbd)",
    "up": r"up slurm(ctld|dbd)",
    "scancel": r"scancel (\d+|all) as (owner|root)",
    "requeue": r"requeue (\d+|all)",
    "hold": r"hold",
    "release": r"release",
    "begin": r"begin in \d+",
    "move": r"move to \w+",
    "expire": r"expire (\d+|all)",
    "reset-ids": r"reset-ids \d+",
    "hide": r"hide \d+",
    "show": r"show \d+",
}
_PASSES = {"tick", "reconcile", "run", "settle", "resume", "end"}
_OF_A_RUN = {"scancel", "requeue", "hold", "release", "begin", "move", "expire", "resume", "end", "hide", "show"}
_TEXTS = ("words", "unsaid", "rules", "never")
_STEP = re.compile(r"(?P<text>.+?)(?: of (?P<run>\d+))?(?: -> (?P<status>\d+))?")
_BODIES = {"end", "start", "never", "killed"}
PHASES = ("running", "parked", "closed")


class Mistake(ValueError):  # noqa: N818 - what it is
    """A scenario that cannot be understood; the text says where."""


@dataclass(frozen=True)
class Act:
    """A step that does something. ``of``: which run it is about."""

    verb: str
    words: tuple[str, ...] = ()
    of: int = 0
    status: int = 0


@dataclass(frozen=True)
class Check:
    """What the last pass must have ruled about the step ``of`` (None: somewhere) of run ``run``."""

    rule: str
    of: int | None = None
    run: int = 0


@dataclass(frozen=True)
class Calls:
    """How often a program must have been called by now; ``holding`` limits it to calls with this word."""

    calls: str
    are: int
    holding: str = ""


@dataclass(frozen=True)
class Past:
    """A job of long ago, see ``FakeSlurm.past``."""

    id: int
    name: str
    user: str
    state: str
    ago_s: float


@dataclass(frozen=True)
class Foreign:
    """A job of somebody else, or (user ``me``) another one of the same user, see ``FakeSlurm.foreign``."""

    id: int
    name: str
    user: str
    state: str = "RUNNING"
    offset: int | None = None
    tasks: str = ""


Step = Act | Check | Calls | Fault | Fate | Past | Foreign


@dataclass(frozen=True)
class Ran:
    """What one run must have come to.

    Attributes:
        phase: of ``PHASES``; ending: the kind's word, empty while it has none.
        outcomes: for each step, in order, the outcomes of its tries, as in ``lost done``; ``open`` for one under way.
        values: how many numbers its verdict holds.
    """

    phase: str
    ending: str = ""
    outcomes: tuple[str, ...] = ()
    values: int = 0


@dataclass(frozen=True)
class Expect:
    """What must have come of it all.

    Attributes:
        runs: in the order in which they were made.
        sbatch: how often sbatch was called; jobs: how many jobs were enqueued; excluding: how many of
            them were told to avoid nodes.
        words: what a person was told, somewhere (passes, reports, ``explain``); unsaid: what was told nowhere.
        rules: rulings that were seen on the way; never: rulings that were not.
    """

    runs: tuple[Ran, ...]
    sbatch: int
    jobs: int
    excluding: int = 0
    words: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    Attributes:
        versions: of Slurm; both unless said.
        cluster: fields of ``model.Settings``; tool: settings of outerloop.toml, as in ``slurm.wake``.
        memory_mb: what the site's job definition asks for; 0 leaves it to the partition.
    """

    name: str
    steps: tuple[Step, ...]
    expect: Expect
    versions: tuple[str, ...] = tuple(DIALECTS)
    cluster: Mapping[str, Any] = field(default_factory=dict)
    tool: Mapping[str, Any] = field(default_factory=dict)
    memory_mb: int = 0

    def settings(self, version: str) -> Settings:
        """The cluster's settings under that version."""
        return Settings(**{**self.cluster, "version": version})


def load(path: Path) -> tuple[Scenario, ...]:
    """Read one file.

    Raises:
        Mistake: something in it is not known or not right.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Mistake(f"{path.name}: {error}") from error
    return read(table, path.name)


def read(table: Mapping[str, Any], where: str) -> tuple[Scenario, ...]:
    """Read what a file holds; see ``load``."""
    if set(table) != {"scenario"} or not isinstance(table["scenario"], list):
        raise Mistake(f"{where}: needs [[scenario]] tables and nothing else, has {sorted(table)}")
    found = tuple(_scenario(one, f"{where}: scenario {number}") for number, one in enumerate(table["scenario"], 1))
    names = [one.name for one in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise Mistake(f"{where}: more than one scenario is called {min(twice)!r}")
    return found


def _scenario(value: Any, where: str) -> Scenario:
    given = _table(value, where)
    where = f"{where} ({given.get('name', 'without a name')})"
    faults_, fates = given.pop("faults", []), given.pop("fates", [])
    first = [{"fault": one} for one in _list(faults_, f"{where} faults")]
    first += [{"fate": one} for one in _list(fates, f"{where} fates")]
    steps = _list(given.get("steps", []), f"{where} steps")
    given["steps"] = tuple(_step(one, f"{where} step {one!r}") for one in [*first, *steps])
    given["expect"] = _expect(given.get("expect", {}), f"{where} expect")
    given["tool"] = _flat(given.get("tool", {}), f"{where} tool")
    given["versions"] = tuple(_list(given.get("versions", list(DIALECTS)), f"{where} versions"))
    if odd := [version for version in given["versions"] if version not in list(DIALECTS)]:
        raise Mistake(f"{where}: version {odd[0]!r} is not one of {sorted(DIALECTS)}")
    _made(Settings, _table(given.get("cluster", {}), f"{where} cluster"), f"{where} cluster")
    return _made(Scenario, given, where)


def _step(value: Any, where: str) -> Step:
    if isinstance(value, str):
        return _act(value, where)
    given = _table(value, where)
    kinds: dict[str, type[Any]] = {"fault": Fault, "fate": Fate, "past": Past, "foreign": Foreign}
    for key, kind in kinds.items():
        if set(given) == {key}:
            made: Any = _made(kind, _table(given[key], where), where)
            return _sound(made, where)
    return _made(Calls, given, where) if "calls" in given else _made(Check, given, where)


def _act(text: str, where: str) -> Act:
    found = _STEP.fullmatch(text)
    verb = text.split(" ", maxsplit=1)[0]
    if found is None or verb not in STEPS or not re.fullmatch(STEPS[verb], found["text"]):
        raise Mistake(f"{where}: not a step; there are {', '.join(STEPS)}")
    if found["status"] is not None and verb not in _PASSES:
        raise Mistake(f"{where}: only {', '.join(sorted(_PASSES))} have an exit status")
    if found["run"] is not None and verb not in _OF_A_RUN:
        raise Mistake(f"{where}: {verb} is not about one run")
    return Act(verb, tuple(found["text"].split(" ")[1:]), int(found["run"] or 0), int(found["status"] or 0))


def _sound(made: Step, where: str) -> Step:
    if isinstance(made, Fault) and made.kind not in faults.KINDS:
        raise Mistake(f"{where}: a fault is one of {sorted(faults.KINDS)}")
    if isinstance(made, Fate):
        two = [one for one in _list([*made.exit], where) if isinstance(one, int)]
        if made.body not in _BODIES or len(two) != 2:
            raise Mistake(f"{where}: a body is one of {sorted(_BODIES)}, an exit two numbers")
        made.exit = (two[0], two[1])
    return made


def _expect(value: Any, where: str) -> Expect:
    given = _table(value, where)
    runs = tuple(_ran(one, f"{where} runs") for one in _list(given.get("runs", []), f"{where} runs"))
    texts: dict[str, Any] = {key: _texts(given[key], f"{where} {key}") for key in _TEXTS if key in given}
    return _made(Expect, {**given, **texts, "runs": runs}, where)


def _ran(value: Any, where: str) -> Ran:
    given = _table(value, where)
    made = _made(Ran, {**given, "outcomes": _texts(given.get("outcomes", []), f"{where} outcomes")}, where)
    if made.phase not in PHASES:
        raise Mistake(f"{where}: phase {made.phase!r} is not one of {', '.join(PHASES)}")
    return made


def _made(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    if unknown := set(given) - set(known):
        raise Mistake(f"{where}: {min(unknown)!r} is not known; there are {', '.join(known)}")
    needed = {name for name, one in known.items() if one.default is MISSING and one.default_factory is MISSING}
    if lacking := needed - set(given):
        raise Mistake(f"{where}: {min(lacking)!r} is needed")
    for name, value in given.items():
        _right_type(known[name].type, value, f"{where} {name}")
    return kind(**given)


def _right_type(wanted: Any, value: Any, where: str) -> None:
    plain: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}
    kinds = tuple(kind for one in str(wanted).split(" | ") for kind in plain.get(one, ()))
    if kinds and not (isinstance(value, kinds) and isinstance(value, bool) == (kinds == (bool,))):
        raise Mistake(f"{where}: {value!r} is not {wanted}")


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mistake(f"{where}: {value!r} is no table")
    return dict(value)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise Mistake(f"{where}: {value!r} is no list")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in _list(value, where)):
        raise Mistake(f"{where}: {value!r} are not texts")
    return tuple(value)


def _flat(value: Any, where: str) -> dict[str, Any]:
    """``{slurm = {wake = true}}`` as ``slurm.wake``."""
    sections = {section: _table(keys, f"{where} {section}") for section, keys in _table(value, where).items()}
    return {f"{section}.{key}": one for section, keys in sections.items() for key, one in keys.items()}
