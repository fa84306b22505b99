"""``gate-decision/1``: what a gate decided, with every pair and number that it rests on. Pure."""

from __future__ import annotations

from typing import Literal

from outerloop_hpc.documents import Document, Value
from outerloop_hpc.evolve.gate.evidence import Row
from outerloop_hpc.evolve.gate.policy import GatePolicy
from outerloop_hpc.evolve.gate.power import Power

#: ``extend``: measure up to ``repeats.most`` pairs a task, then ask for the second look.
Word = Literal["promote", "keep_incumbent", "insufficient_evidence", "harness_broken", "extend"]


class TaskFound(Value):
    """One task. Differences are above zero where the candidate is better; gains as in ``GateDecision``.

    Attributes:
        gated: whether it takes part; a task that neither arm ever solved does not.
        pairs: whole ones. compared: those that both arms solved.
        mean, sd: of the differences; sd needs two. low, high: 95 % t interval (at the policy's level).
        p_harm: that the candidate is worse, adjusted over tasks. harm: ``suspected`` is beyond the cap without that.
        p_fails: that the candidate succeeds less often, adjusted over tasks; only where success is tested.
    """

    task: str
    gated: bool
    pairs: int
    compared: int
    incumbent_solved: int
    candidate_solved: int
    mean: float | None = None
    sd: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    p_harm: float | None = None
    harm: Literal["none", "suspected", "shown"] = "none"
    p_fails: float | None = None


class GuardrailFound(Value):
    """A guardrail: it ``holds`` where ``bound`` is above ``limit``, and is ``broken`` where harm beyond it is sure."""

    name: str
    mean: float
    bound: float
    limit: float
    word: Literal["holds", "not-shown", "broken"]


class SuccessFound(Value):
    """Success over all gated tasks. ``won``, ``lost``: pairs that only one arm solved. ``p``: that it wins by chance.

    ``bound``: Newcombe's lower bound of the difference of the rates; only where success is tested.
    """

    pairs: int
    incumbent_solved: int
    candidate_solved: int
    won: int
    lost: int
    p: float
    level: float
    bound: float | None = None


class GateDecision(Document):
    """A decision. Numbers have twelve digits for people; what was compared was not rounded.

    Attributes:
        tasks: all that the sweep has.
        generation: from 0. look: from 1, of ``looks``.
        level: of this look. metric_level: the part of it that the metric had.
        mean, error, freedom: the estimate over tasks of the difference. bound: one-sided, at ``level``.
        gain, gain_low, gain_high: the estimate and its two-sided interval at the policy's level; of a ratio the share
            of the incumbent's cost that is saved, else in the metric's unit.
        p: sign-flip test.
    """

    name = "gate-decision"

    policy: GatePolicy
    tasks: tuple[str, ...]
    generation: int
    look: int
    looks: int
    salt: str
    decision: Word
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    level: float | None = None
    metric_level: float | None = None
    p: float | None = None
    mean: float | None = None
    error: float | None = None
    freedom: float | None = None
    bound: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    found: tuple[TaskFound, ...] = ()
    success: SuccessFound | None = None
    guardrails: tuple[GuardrailFound, ...] = ()
    power: Power | None = None
    rows: tuple[Row, ...] = ()
