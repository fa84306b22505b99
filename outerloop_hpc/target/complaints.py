"""What is wrong with a file that a person wrote, key by key, as pydantic found it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from outerloop_hpc.errors import ConfigError
from outerloop_hpc.target import strictyaml

_MOST = 10
#: Kinds of problems whose text already quotes the value, or to which the value says nothing.
_SPEAKS = {"missing", "extra_forbidden", "value_error"}


def refused(name: str, what: str, problems: Iterable[str]) -> ConfigError:
    """Return the error that names every problem of a file, up to ten.

    Args:
        name: of the file.
        what: it is, as in "the contract".
        problems: one line each.
    """
    lines = list(problems)
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    shown = [*lines[:_MOST], *more]
    return ConfigError(f"{name}: " + (shown[0] if len(shown) == 1 else "\n  ".join([f"{what} is wrong:", *shown])))


def complaints(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """Yield a line for each problem: the key, what is allowed, and what was found.

    Args:
        error: of validating the file as ``model``.
        model: the whole file; keys that it knows are suggested.
    """
    for item in error.errors(include_url=False):
        location, known = _walk(tuple(item["loc"]), model)
        where = key_path(location)
        if item["type"] == "extra_forbidden":
            yield f"{where}: unknown key{_hint(str(location[-1]), known)}"
            continue
        if item["type"] == "union_tag_invalid":
            # Pydantic's own text quotes the value as it is, of any length.
            said = item["ctx"]
            key, found = said["discriminator"].strip("'"), strictyaml.shown(said["tag"])
            yield f"{where}.{key}: must be one of {said['expected_tags']}, found {found}"
            continue
        text = str(item["msg"]).removeprefix("Value error, ")
        hint = strictyaml.number_hint(str(item["input"])) if item["type"] == "float_type" else ""
        yield f"{where}: {text[:1].lower()}{text[1:]}{_found(item)}{hint}"


def _found(item: Any) -> str:
    value = item["input"]
    if item["type"] in _SPEAKS or isinstance(value, BaseModel):
        return ""
    if isinstance(value, dict | list | tuple):
        return f", found {'a mapping' if isinstance(value, dict) else 'a list'}"
    return f", found {value if isinstance(value, bool | int | float | NoneType) else strictyaml.shown(value)}"


def key_path(location: Iterable[int | str]) -> str:
    """Write a place as people do: ``benchmarks[1].seed_env``."""
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if step.isidentifier() and step.isascii() else strictyaml.shown(step)
            text += f".{shown}" if text else shown
    return text or "top level"


def _walk(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[tuple[int | str, ...], list[str]]:
    """Return the place as it is in the file, and the keys that the part around it knows.

    In a place pydantic also names which of several kinds of part it took; that is no key of the file.
    """
    parts, place, known = [model], list[int | str](), list[str]()
    for step in location:
        if isinstance(step, int):
            place.append(step)
            continue
        known = [_key(name, info) for part in parts for name, info in part.model_fields.items()]
        if len(parts) > 1:
            chosen = [part for part in parts if step in get_args(part.model_fields["kind"].annotation)]
            if chosen:
                parts = chosen
                continue
        place.append(step)
        named = [info for part in parts for name, info in part.model_fields.items() if step in {name, info.alias}]
        parts = [inner for info in named for inner in _models(info.annotation)]
    return tuple(place), known


def _key(name: str, info: Any) -> str:
    return str(info.alias or name)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Find the classes of the parts inside ``Part | None``, ``tuple[Part, ...]`` or a choice of parts."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _models(argument)]


def _hint(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known here: {', '.join(known)}"
