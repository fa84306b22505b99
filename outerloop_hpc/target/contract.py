"""A target's contract file, ``.outerloop.yaml``: read, checked, and explained when it is wrong.

A contract is text of strangers. Unknown keys are errors, parts that this tool does not act on are accepted and named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from outerloop_hpc.errors import ConfigError
from outerloop_hpc.target import strictyaml
from outerloop_hpc.target.scope import CONTRACT_NAMES
from outerloop_hpc.target.terms import Benchmark, Contract

#: Repositories that can never be targets: a tool that edits its own judge proves nothing.
_OWN = frozenset({"outerloop-hpc", "outerloop-science/outerloop"})
_MAX_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class Loaded:
    """A contract as read.

    Attributes:
        contract: the values.
        notices: one line for each part that is accepted without being acted on.
        digest: ``sha256:…`` of the file's bytes.
        text: the file itself.
    """

    contract: Contract
    notices: tuple[str, ...]
    digest: str
    text: str = ""


def load(data: bytes, *, name: str = CONTRACT_NAMES[0], target: str = "") -> Loaded:
    """Read a contract.

    Args:
        data: the file's bytes.
        name: the file's name, for messages.
        target: name or address of the repository it came from, when known.

    Raises:
        ConfigError: with the path of each key that is wrong, such as ``benchmarks[1].seed_env``.
    """
    if _identity(target) & _OWN:
        raise ConfigError(f"{strictyaml.shown(target)}: a repository of the tool itself cannot be a target")
    document = strictyaml.load(data, name)
    try:
        contract = Contract.model_validate(document)
    except ValidationError as error:
        raise _refused(name, (_problem(item) for item in error.errors(include_url=False))) from error
    problems = [*_repeated(contract), *(f"{key}: {text}" for key, text in contract.territories().problems())]
    if problems:
        raise _refused(name, problems)
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return Loaded(contract, tuple(_notices(contract)), digest, data.decode("utf-8"))


def find(read: Callable[[str], bytes | None]) -> tuple[str, bytes]:
    """Return name and bytes of the contract that ``read`` (a path to bytes or ``None``) has; the new name first.

    Raises:
        ConfigError: there is none.
    """
    for name in CONTRACT_NAMES:
        data = read(name)
        if data is not None:
            return name, data
    raise ConfigError(f"the target has no contract: put {CONTRACT_NAMES[0]} into the root of the repository")


def _identity(target: str) -> frozenset[str]:
    parts = [part for part in re.split(r"[/:]+", target.casefold().strip()) if part]
    if not parts:
        return frozenset()
    last = parts[-1].removesuffix(".git")
    return frozenset({last, "/".join([*parts[-2:-1], last])})


def _refused(name: str, problems: Iterable[str]) -> ConfigError:
    lines = list(problems)
    more = [f"and {len(lines) - _MAX_PROBLEMS} more"] if len(lines) > _MAX_PROBLEMS else []
    shown = [*lines[:_MAX_PROBLEMS], *more]
    return ConfigError(f"{name}: " + (shown[0] if len(shown) == 1 else "\n  ".join(["the contract is wrong:", *shown])))


def _problem(item: Any) -> str:
    location = tuple(item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{_path(location)}: unknown key{_hint(str(location[-1]), _keys(location[:-1]))}"
    text = str(item["msg"]).removeprefix("Value error, ")
    hint = strictyaml.number_hint(str(item["input"])) if item["type"] == "float_type" else ""
    return f"{_path(location)}: {text[:1].lower()}{text[1:]}{hint}"


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the part at ``location`` knows."""
    model: Any = Contract
    for step in location:
        if isinstance(step, str):
            model = _model(model.model_fields[step].annotation)
    return list(model.model_fields)


def _model(annotation: Any) -> Any:
    """Find the one part's class inside ``Part | None`` or ``tuple[Part, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model(argument) for argument in getattr(annotation, "__args__", ()))
    return next((found for found in inner if found is not None), None)


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if step.isidentifier() and step.isascii() else strictyaml.shown(step)
            text += f".{shown}" if text else shown
    return text or "top level"


def _hint(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known here: {', '.join(known)}"


def _repeated(contract: Contract) -> Iterator[str]:
    seen: dict[str, int] = {}
    for index, benchmark in enumerate(contract.benchmarks):
        first = seen.setdefault(benchmark.name.casefold(), index)
        if first != index:
            yield f"benchmarks[{index}].name: {benchmark.name!r} is already the name of benchmarks[{first}]"


def _notices(contract: Contract) -> Iterator[str]:
    for index, benchmark in enumerate(contract.benchmarks):
        yield from _benchmark_notices(f"benchmarks[{index}]", benchmark)
    for key in ("channels", "guidance", "max_concurrent_gpus", "suite", "workspace"):
        if getattr(contract, key) is not None:
            yield f"{key}: accepted, not used here"
    for key in ("review_topup", "max_concurrent_gpus"):
        if getattr(contract.budgets, key) is not None:
            yield f"budgets.{key}: accepted, not used here"
    if contract.merge == "auto":
        yield "merge: changes are proposed here, a person merges them"


def _benchmark_notices(where: str, benchmark: Benchmark) -> Iterator[str]:
    for key in ("depth_k", "sleep_k", "lines", "regression", "guidance"):
        if key in benchmark.model_fields_set:
            yield f"{where}.{key}: accepted, not used here"
    if benchmark.verification == "self_report":
        yield f"{where}.verification: every number is measured here, claims are not taken"
    if benchmark.nodes > 1:
        yield f"{where}.nodes: measurements run on one node here"
