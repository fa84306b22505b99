"""A target's contract file, ``.outerloop.yaml``: read, checked, and explained when it is wrong.

A contract is text of strangers. Unknown keys are errors, parts that this tool does not act on are accepted and named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from outerloop_hpc.errors import ConfigError
from outerloop_hpc.target import strictyaml
from outerloop_hpc.target.complaints import complaints, refused
from outerloop_hpc.target.scope import CONTRACT_NAMES
from outerloop_hpc.target.terms import Benchmark, Contract

#: Repositories that can never be targets: a tool that edits its own judge proves nothing.
_OWN = frozenset({"outerloop-hpc", "outerloop-science/outerloop"})
_WHAT = "the contract"


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
        raise refused(name, _WHAT, complaints(error, Contract)) from error
    problems = [*_repeated(contract), *(f"{key}: {text}" for key, text in contract.territories().problems())]
    if problems:
        raise refused(name, _WHAT, problems)
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
