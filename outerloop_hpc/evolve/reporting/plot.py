"""A plot of paired differences: each pair, the mean and interval of each task, and of all. SVG, made by hand. Pure.

It is read without colour: pairs are rings, means diamonds, intervals bars, and every line has its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.differences import asked, gain, shown
from outerloop_hpc.evolve.gate.policy import Scale
from outerloop_hpc.forge.text import visible

_LEFT, _WIDTH, _RIGHT = 170, 520, 24
_ROW, _TOP, _BOTTOM = 44, 40, 44
#: Tasks that are drawn, and pairs of one.
_TASKS, _PAIRS = 40, 300
_NAME = 22
_NOTE = 18
_TICKS = 5


@dataclass(frozen=True, slots=True)
class _Line:
    """One row: its differences, their mean, and the ends of the interval."""

    name: str
    differences: tuple[float, ...]
    mean: float | None
    low: float | None
    high: float | None

    def values(self) -> tuple[float, ...]:
        return (*self.differences, *(one for one in (self.mean, self.low, self.high) if one is not None))


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[float]) -> _Axis:
        """Span all values with a little room on both sides."""
        found = list(values)
        low, high = min(found), max(found)
        room = 0.06 * (high - low) or abs(high) * 0.1 or 0.1
        return cls(low - room, high + room)

    def at(self, value: float) -> float:
        """Return the place of a value, in the unit of the drawing."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_LEFT + _WIDTH * share, 2)

    def ticks(self) -> list[float]:
        step = (self.high - self.low) / _TICKS
        return [self.low + step * (number + 0.5) for number in range(_TICKS)]


def plot(found: GateDecision, name: str) -> str:
    """Return the drawing of one look, empty where no pair was compared.

    Args:
        found: the decision.
        name: of the drawing within its page; a plain word.
    """
    lines = list(_lines(found))
    if not any(line.differences for line in lines):
        return ""
    scale, effect = found.policy.primary.scale, asked(found.policy.primary.scale, found.policy.primary.min_effect)
    marks = [0.0] if effect is None else [0.0, effect]
    axis = _Axis.over([*marks, *(value for line in lines for value in line.values())])
    height = _TOP + _ROW * len(lines) + _BOTTOM
    width, left = _LEFT + _WIDTH + _RIGHT, list(_left_out(found))
    whole = height + _NOTE * len(left)
    about = f'role="img" aria-labelledby="{name}-title {name}-desc" viewBox="0 0 {width} {whole}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {about} font-family="sans-serif" font-size="12" fill="currentColor">',
        f'<title id="{name}-title">{_text(f"Paired differences of {found.policy.primary.name}")}</title>',
        f'<desc id="{name}-desc">{_text(" ".join([*_described(scale, lines), *left]))}</desc>',
        *(f'<text x="{_LEFT}" y="{height + _NOTE * number}">{_text(one)}</text>' for number, one in enumerate(left)),
        *_marks(scale, axis, effect, height),
        *(part for place, line in enumerate(lines) for part in _drawn(axis, line, _TOP + _ROW * (place + 0.5))),
        "</svg>",
    ]
    return "\n".join(parts)


def _lines(found: GateDecision) -> Iterator[_Line]:
    scale = found.policy.primary.scale
    for task in found.found[:_TASKS]:
        rows = [row.d for row in found.rows if row.pair.task == task.task and row.d is not None]
        mean = task.mean if rows else None
        yield _Line(task.task, tuple(rows[:_PAIRS]), mean, _end(scale, task.gain_low), _end(scale, task.gain_high))
    if found.mean is not None:
        yield _Line("all tasks", (), found.mean, _end(scale, found.gain_low), _end(scale, found.gain_high))


def _left_out(found: GateDecision) -> Iterator[str]:
    """Say what is not drawn; the means, intervals and decisions rest on all."""
    if (more := len(found.found) - _TASKS) > 0:
        yield f"{more} more tasks are not drawn."
    if any(task.compared > _PAIRS for task in found.found[:_TASKS]):
        yield f"Of a task with more than {_PAIRS} pairs the first {_PAIRS} are drawn."


def _end(scale: Scale, value: float | None) -> float | None:
    return None if value is None else asked(scale, value)


def _described(scale: Scale, lines: Sequence[_Line]) -> list[str]:
    """Say in words what is drawn."""
    said = ["Each ring is one pair; right of the line at zero the candidate is better."]
    for line in lines:
        if line.mean is None:
            said.append(f"{line.name}: no pair was compared.")
            continue
        ends = ""
        if line.low is not None and line.high is not None:
            ends = f", interval {shown(scale, gain(scale, line.low))} to {shown(scale, gain(scale, line.high))}"
        said.append(f"{line.name}: mean gain {shown(scale, gain(scale, line.mean))}{ends}.")
    return said


def _marks(scale: Scale, axis: _Axis, effect: float | None, height: int) -> Iterator[str]:
    """Yield axis, the line at zero and that of the gain that is asked for."""
    bottom = height - _BOTTOM
    yield f'<line x1="{_LEFT}" y1="{bottom}" x2="{_LEFT + _WIDTH}" y2="{bottom}" stroke="currentColor"/>'
    for tick in axis.ticks():
        at = axis.at(tick)
        yield f'<line x1="{at}" y1="{bottom}" x2="{at}" y2="{bottom + 5}" stroke="currentColor"/>'
        label = _text(shown(scale, float(f"{gain(scale, tick):.3g}")))
        yield f'<text x="{at}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
    yield f'<text x="{_LEFT + _WIDTH / 2}" y="{bottom + 36}" text-anchor="middle">gain of the candidate</text>'
    zero = axis.at(0.0)
    yield f'<line x1="{zero}" y1="{_TOP - 8}" x2="{zero}" y2="{bottom}" stroke="currentColor" stroke-width="1.5"/>'
    yield f'<text x="{zero}" y="{_TOP - 12}" text-anchor="middle">no difference</text>'
    if effect:
        at = axis.at(effect)
        line = f'x1="{at}" y1="{_TOP - 22}" x2="{at}" y2="{bottom}"'
        yield f'<line {line} stroke="currentColor" stroke-dasharray="5 4"/>'
        yield f'<text x="{at}" y="{_TOP - 26}" text-anchor="middle">asked for</text>'


def _drawn(axis: _Axis, line: _Line, middle: float) -> Iterator[str]:
    name = line.name if len(line.name) <= _NAME else f"{line.name[: _NAME - 1]}…"
    yield f'<text x="{_LEFT - 12}" y="{middle + 4}" text-anchor="end">{_text(name)}</text>'
    for number, value in enumerate(line.differences):
        # Rings beside each other, so that equal ones are told apart.
        y = middle + 4 * (number % 5 - 2)
        yield f'<circle cx="{axis.at(value)}" cy="{y}" r="3" fill="none" stroke="currentColor" opacity="0.6"/>'
    if line.low is not None and line.high is not None:
        low, high = axis.at(line.low), axis.at(line.high)
        path = f"M{low} {middle - 6}v12M{low} {middle}H{high}M{high} {middle - 6}v12"
        yield f'<path d="{path}" stroke="currentColor" stroke-width="2" fill="none"/>'
    if line.mean is not None:
        yield f'<path d="M{axis.at(line.mean)} {middle - 7}l6 7l-6 7l-6 -7z"/>'


def _text(text: str) -> str:
    return escape(" ".join(visible(text).split()))
