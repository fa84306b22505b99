"""Where candidates come from, as a sweep file says it: the five kinds of proposers. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, StringConstraints, model_validator

from outerloop_hpc.config.ownership import refused_variable
from outerloop_hpc.evolve.sweepfile.terms import Argv, Line, Part, Seconds, as_tuple
from outerloop_hpc.target.scope import declared

Scalar = str | int | float | bool
PLACEHOLDER = re.compile(r"\{\{([^{}\n]{0,200})\}\}")


def _variable(value: str) -> str:
    if problem := refused_variable(value):
        raise ValueError(problem)
    return value


class _Proposer(Part):
    candidates: int = Field(default=1, ge=1, le=64)


class Dirs(_Proposer):
    """Prepared overlays; folders beside the sweep file."""

    kind: Literal["dirs"]
    folders: Annotated[tuple[Line, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=1000)]


def _template(value: object) -> object:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value
    texts = value if isinstance(value, dict) else {}
    if not texts or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("must be texts by the path of their file, or the name of a folder beside the sweep file")
    return {declared(path): text for path, text in texts.items()}


#: Text by repository path, or a folder beside the sweep file that holds these files.
Template = Annotated[dict[str, str] | str, PlainValidator(_template)]


def _choices(value: object) -> object:
    if not isinstance(value, list):
        raise ValueError("must be a list of values")  # noqa: TRY004 - pydantic explains ValueError only
    if strange := next((one for one in value if not isinstance(one, Scalar)), None):
        raise ValueError(f"holds {type(strange).__name__}; texts, numbers, true and false are values")
    return tuple(value)


Choices = Annotated[tuple[Scalar, ...], BeforeValidator(_choices), Field(min_length=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class Grid(_Proposer):
    """Values put into a template: every combination."""

    kind: Literal["grid"]
    template: Template
    values: dict[Name, Choices] = Field(min_length=1)


class Parameter(Part):
    """One parameter of a search: numbers between ``low`` and ``high``, or ``choices``."""

    name: Name
    kind: Literal["int", "float", "choice"]
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: Annotated[tuple[Scalar, ...], BeforeValidator(_choices)] = ()

    @model_validator(mode="after")
    def _one_kind_of_range(self) -> Self:
        bounds = (self.low, self.high)
        if self.kind == "choice":
            if bounds != (None, None) or self.log or not self.choices:
                raise ValueError(f"{self.name}: a choice has choices, and neither low, high nor log")
            # For the search, values that Python takes for equal are one, and what one gained would go to another.
            if len(set(self.choices)) < len(self.choices):
                raise ValueError(f"{self.name}: two choices are equal (also 1 beside true or 1.0); leave one out")
            return self
        if self.low is None or self.high is None or self.choices:
            raise ValueError(f"{self.name}: a number has low and high, and no choices")
        if self.low >= self.high:
            raise ValueError(f"{self.name}: low must be below high, found {self.low:g} and {self.high:g}")
        if not math.isfinite(self.high - self.low):
            raise ValueError(f"{self.name}: low and high are further apart than a double can say")
        if self.log and self.low <= 0:
            raise ValueError(f"{self.name}: with log, low must be above 0, found {self.low:g}")
        if self.kind == "int" and any(float(bound) != int(bound) for bound in (self.low, self.high)):
            raise ValueError(f"{self.name}: low and high of an int are whole numbers")
        return self


class AskTell(_Proposer):
    """Optuna over declared parameters, put into a template."""

    kind: Literal["ask-tell"]
    template: Template
    parameters: Annotated[tuple[Parameter, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=256)]
    sampler: Literal["tpe", "random"] = "tpe"


Variables = Annotated[
    tuple[Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$"), AfterValidator(_variable)], ...],
    BeforeValidator(as_tuple),
]


class Command(_Proposer):
    """Any program; ``environment`` names the variables that it gets from whoever submits."""

    kind: Literal["command"]
    command: Argv
    environment: Variables = ()
    timeout_s: Seconds = 3600
    network: bool = False


class Agent(_Proposer):
    """A program of the agent backends, which gets a brief."""

    kind: Literal["agent"]
    command: Argv
    environment: Variables = ()
    timeout_s: Seconds = 5400
    network: bool = True


Proposer = Annotated[Dirs | Grid | AskTell | Command | Agent, Field(discriminator="kind")]


def template_problems(template: Mapping[str, str], names: Iterable[str]) -> Iterator[str]:
    """Say which places of a template have no value, and which values have no place."""
    known, used = list(names), set[str]()
    for path, text in template.items():
        for found in dict.fromkeys(PLACEHOLDER.findall(text)):
            used.add(found)
            if found not in known:
                close = get_close_matches(found, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
                yield f"{path!a} has a place {found[:80]!a} that no value is declared for; {hint}"
    yield from (f"the value {name!r} has no place {{{{{name}}}}} in the template" for name in known if name not in used)
