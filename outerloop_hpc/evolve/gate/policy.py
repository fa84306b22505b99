"""What a gate goes by: metrics, levels, looks and bounds, as the sweep file gives them. Pure."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from outerloop_hpc.documents import Value

Direction = Literal["min", "max"]
#: ``ratio``: differences of logarithms, gains are fractions. ``linear``: plain differences, in the metric's own unit.
Scale = Literal["ratio", "linear"]


class Metric(Value):
    """The metric that a promotion rests on. ``min_effect``: a fraction for ``ratio`` (0.05), else the metric's unit."""

    name: str
    direction: Direction
    scale: Scale = "ratio"
    min_effect: float = Field(default=0.05, ge=0)


class Guardrail(Value):
    """A metric that must not get worse by more than ``max_regression`` (a fraction for ``ratio``, else its unit)."""

    name: str
    direction: Direction
    scale: Scale = "ratio"
    max_regression: float = Field(ge=0)


class Success(Value):
    """How a success flag counts. ``deterministic``: every pair of the candidate must succeed where the incumbent does.

    Otherwise it is tested: harm by exact tests per task, the pooled difference by Newcombe's lower bound.
    """

    deterministic: bool = True
    margin: float = Field(default=0.10, gt=0, lt=1)
    harm_level: float = Field(default=0.10, gt=0, lt=1)


class Repeats(Value):
    """Pairs for each task: ``screen`` for each candidate, then ``confirm`` fresh ones, at most ``most`` in the end."""

    screen: int = Field(default=3, ge=2)
    confirm: int = Field(default=10, ge=2)
    most: int = Field(default=20, ge=2)

    @model_validator(mode="after")
    def _most_is_most(self) -> Self:
        if self.most < self.confirm:
            raise ValueError(
                f"most is {self.most}, less than the {self.confirm} pairs of confirm: raise it to {self.confirm}"
            )
        return self


class GatePolicy(Value):
    """All that a decision depends on besides the pairs.

    Attributes:
        kind: ``paired-v1``, or ``medians-v5`` for comparison with the rule of the reference implementation.
        level: chance of promoting an equal candidate, over all generations together.
        generations: how many there may be; the level is divided by it.
        screen_level: p up to which a screened candidate may be confirmed.
        max_task_regression: per task, a fraction (ratio) or the metric's unit; a significant harm beyond is a veto.
        harm_level: level of that test, over all tasks by Holm.
    """

    kind: Literal["paired-v1", "medians-v5"] = "paired-v1"
    primary: Metric
    guardrails: tuple[Guardrail, ...] = ()
    success: Success | None = None
    repeats: Repeats = Field(default_factory=Repeats)
    level: float = Field(default=0.05, gt=0, lt=0.5)
    generations: int = Field(default=1, ge=1)
    screen_level: float = Field(default=0.2, gt=0, le=1)
    max_task_regression: float = Field(default=0.20, gt=0)
    harm_level: float = Field(default=0.10, gt=0, lt=1)

    @model_validator(mode="after")
    def _each_metric_once(self) -> Self:
        names = [self.primary.name, *(one.name for one in self.guardrails)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{', '.join(twice)} is named twice: a metric is the primary one or one guardrail, not both"
            )
        return self
