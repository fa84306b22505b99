"""Which keys exist, what their values look like as text, and which one was probably meant (pure)."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_origin

from pydantic.fields import FieldInfo

from outerloop_hpc.config.settings import Section, Settings, Target

_SECRET: Final = re.compile(r"token|password|passwd|secret|api_?key|credential", re.IGNORECASE)
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[A-Za-z0-9_.-]+@?[A-Za-z0-9_.-]*:(?!\\)")
_VARIABLE: Final = re.compile(r"\$(?:\$|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\})")
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


def _sections() -> dict[str, type[Section]]:
    found: dict[str, type[Section]] = {}
    for name, info in Settings.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            found[name] = info.annotation
    return found


SECTIONS: Final[Mapping[str, type[Section]]] = _sections()


def field_of(key: Sequence[str]) -> FieldInfo | None:
    """Find the field that a key names; a key below a table (``slurm.options.comment``) finds the table."""
    if key[0] == "targets":
        return Target.model_fields.get(key[2]) if len(key) == len(("targets", "name", "key")) else None
    section = SECTIONS.get(key[0])
    if section is None or len(key) == 1:
        return None
    info = section.model_fields.get(key[1])
    return info if info is not None and (len(key) == len(("section", "key")) or _is_table(info)) else None


def unknown(key: Sequence[str]) -> str | None:
    """Say what is wrong with a key that does not exist; ``None`` when it does."""
    if field_of(key) is not None:
        return None
    dotted = ".".join(key)
    if key[0] == "targets":
        return _unknown_in_target(key)
    if key[0] not in SECTIONS:
        return f"{dotted}: there is no section [{key[0]}]{_meant(key[0], [*SECTIONS, 'targets'])}"
    if len(key) == 1:
        return f"{dotted}: [{key[0]}] is a section and cannot be a value"
    if len(key) > len(("section", "key")) and key[1] in SECTIONS[key[0]].model_fields:
        return f"{dotted}: {key[0]}.{key[1]} is a value and has no keys"
    return f"{dotted}: no such key in [{key[0]}]{_secret(key[1]) or _other(key[0], key[1])}"


def _unknown_in_target(key: Sequence[str]) -> str:
    if len(key) < len(("targets", "name", "key")):
        return f"{'.'.join(key)}: targets are tables, such as [targets.demo] with repository = …"
    return f"{'.'.join(key)}: no such key in [targets.{key[1]}]{_secret(key[2]) or _meant(key[2], Target.model_fields)}"


def _secret(name: str) -> str:
    return "; secrets are paths to files of mode 0600, never values" if _SECRET.search(name) else ""


def _close(name: str, names: Iterable[str]) -> str | None:
    word, known = name.lower().replace("-", "_"), sorted(names)
    begun = [other for other in known if len(word) > 1 and other.startswith(word)]
    close = begun or difflib.get_close_matches(word, known, n=1)
    return close[0] if close else None


def _meant(name: str, names: Iterable[str]) -> str:
    close = _close(name, names)
    return f"; did you mean {close}?" if close else f"; known: {', '.join(sorted(names))}"


def _other(section: str, name: str) -> str:
    here = _close(name, SECTIONS[section].model_fields)
    elsewhere = [f"{other}.{name}" for other, model in SECTIONS.items() if name in model.model_fields]
    if here or elsewhere:
        return f"; did you mean {f'{section}.{here}' if here else elsewhere[0]}?"
    return _meant(name, SECTIONS[section].model_fields)


def misspelt(rest: str) -> str | None:
    """Find the setting that ``OUTERLOOP_SLURM_ACCOUNT`` (one underscore) was meant to be, as ``SLURM__ACCOUNT``."""
    for section, model in SECTIONS.items():
        for name in model.model_fields:
            if rest == f"{section}_{name}":
                return f"{section}__{name}".upper()
    return None


def resolved(key: Sequence[str], value: object, base: Path, environ: Mapping[str, str]) -> object:
    """Make a path value absolute: variables and ``~`` are read here, the rest is relative to the folder of its file.

    URLs, bare program names, and every value that is not a path stay as they are.

    Raises:
        ValueError: a variable or a user is not known here; the text is for people.
    """
    info = field_of(key)
    if info is None or "path" not in info.metadata or not isinstance(value, str) or not value:
        return value
    if "program" in info.metadata and "/" not in value:
        return value
    if "node" in info.metadata and value.startswith("$"):
        return value
    return absolute(value if "node" in info.metadata else expanded(value, environ), base, environ)


def expanded(value: str, environ: Mapping[str, str]) -> str:
    """Read ``$NAME`` and ``${NAME}``, so that one site file can say ``/scratch/$USER``; ``$$`` is a dollar sign."""

    def read(match: re.Match[str]) -> str:
        name = match["name"] or match["braced"]
        if name is None:
            return "$"
        if not environ.get(name):
            raise ValueError(f"${name} is not set here")
        return environ[name]

    return _VARIABLE.sub(read, value)


def absolute(value: str, base: Path, environ: Mapping[str, str]) -> str:
    """Resolve ``~`` and a relative path; URLs stay.

    Raises:
        ValueError: ``~name`` of an unknown user.
    """
    if _URL.match(value):
        return value
    if value.startswith("~"):
        home = environ.get("HOME")
        if home and (value == "~" or value.startswith("~/")):
            return _without_steps_up(f"{home}{value[1:]}")
        try:
            return _without_steps_up(str(Path(value).expanduser()))
        except RuntimeError:
            raise ValueError(f"there is no home folder for {value.partition('/')[0]!r}") from None
    return _without_steps_up(str(base / value))


def _without_steps_up(path: str) -> str:
    """Take ``..`` out of a path, which no sandbox accepts; behind a link it is what the link leads to that counts."""
    if ".." not in path.split("/"):
        return path
    plain = os.path.normpath(path)
    return plain if os.path.realpath(plain) == os.path.realpath(path) else os.path.realpath(path)


def parsed(key: Sequence[str], text: str) -> object:
    """Read a variable's or flag's text as its field's type; what cannot be read stays text, for validation to name."""
    info = field_of(key)
    kind = None if info is None else info.annotation
    if info is not None and _is_table(info):
        return _scalar(text) if len(key) > len(("section", "key")) else _json(text)
    if get_origin(kind) is tuple:
        found = _json(text)
        return found if isinstance(found, list) else [part.strip() for part in text.split(",") if part.strip()]
    if kind is bool:
        return _boolean(text)
    if kind in {int, float}:
        return _number(text)
    return text


def _is_table(info: FieldInfo) -> bool:
    return get_origin(info.annotation) is Mapping


def _boolean(text: str) -> bool | str:
    word = text.strip().lower()
    return word in _TRUE if word in _TRUE | _FALSE else text


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _scalar(text: str) -> object:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    number = _number(text)
    return number if isinstance(number, int) else text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
