"""Which tries go into which submission, under which name. Pure.

An array holds steps of one kind with the same resources. Its name follows from its content, so that a submission whose
answer was lost is found again by name, in squeue and in sacct.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import ceil

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.spec import ResourceAsk, digest_of
from outerloop_hpc.engine.state import REPEATED, WITHHELD, RunState, Step

_NAME_LIMIT = 64
_LONGEST_BACKOFF_S = 3600.0
#: The longest pause, and as much again for clocks that differ.
_FARTHEST = timedelta(seconds=2 * _LONGEST_BACKOFF_S)
_BAD_NODE_WORDS = frozenset({"NODE_FAIL", "BOOT_FAIL"})
_MOST_EXCLUDED = 3
#: Refusals in a row after which a larger ask is taken for what is refused.
_TOO_MUCH = 3


def job_name(run: str, target: str, job: str, elements: Sequence[ev.Element]) -> str:
    """Return the deterministic job name: at most 64 characters of ``[A-Za-z0-9_.-]``, the digest never cut."""
    digest = digest_of(run, [(e.step, e.try_number) for e in elements])[:16]
    readable = re.sub(r"[^A-Za-z0-9_.-]", "_", f"ol.{target}.{job}")[: _NAME_LIMIT - len(digest) - 1]
    return f"{readable}.{digest}"


def due_at(step: Step, policy: Policy) -> datetime | None:
    """When the step's next try may start: after a pause that doubles with each loss or refusal in a row."""
    last = step.last
    if last is None or last.ended_at is None or last.outcome not in REPEATED or last.forgiven:
        return None
    if last.rule == WITHHELD:
        return None  # its pause was over when it was to be submitted
    failures = max(step.refusals(), step.counted(), 1)
    pause = min(policy.backoff_s * 2 ** (failures - 1), _LONGEST_BACKOFF_S)
    return last.ended_at + timedelta(seconds=pause)


def waiting(state: RunState, now: datetime, policy: Policy) -> list[Step]:
    """Steps that want a try now: not settled, none open, past their pause."""
    found = []
    for step in state.steps.values():
        if step.waits:
            due = due_at(step, policy)
            # Farther off than any pause: a host whose clock was ahead saw the last end, and nobody waits for that day.
            if due is None or now >= due or due - now > _FARTHEST:
                found.append(step)
    return found


def resources_of(step: Step) -> ResourceAsk:
    """The step's ask; doubled memory for the one try after it ran out of it, more time after it ran out of that.

    As it was asked for at first where sbatch keeps refusing: no node may have as much, or no partition give as long,
    and a step that can never be submitted would stop its run for good. Should that fail likewise, the step is settled.
    """
    ask = step.spec.resources
    if step.turned_down() >= _TOO_MUCH:
        return ask
    if step.timed_out() and step.spec.longer > 1:
        ask = ask.model_copy(update={"minutes": ceil(ask.minutes * step.spec.longer)})
    if step.out_of_memory() and ask.memory_mb is not None:
        return ask.model_copy(update={"memory_mb": 2 * ask.memory_mb})
    return ask


def excluded_nodes(step: Step) -> tuple[str, ...]:
    """Nodes that failed under earlier tries of this step, or that its jobs found unfit, newest first.

    None after a refusal: without those nodes there may be none left, and a partition of one node would never be asked
    for again. None of what a person's resume forgave.
    """
    if step.refusals():
        return ()
    bad = (t for t in reversed(step.tries) if (t.node_unfit or t.word in _BAD_NODE_WORDS) and not t.forgiven)
    failed = [t.node for t in bad if t.node]
    return tuple(dict.fromkeys(failed))[:_MOST_EXCLUDED]


def group(steps: Sequence[Step], largest: int) -> list[tuple[ResourceAsk, tuple[str, ...], list[Step]]]:
    """Put steps into arrays: same kind of step, same resources, same nodes to avoid, at most ``largest`` each."""
    groups: dict[str, tuple[ResourceAsk, tuple[str, ...], list[Step]]] = {}
    keys: dict[str, list[str]] = defaultdict(list)
    for step in steps:
        ask, avoid = resources_of(step), excluded_nodes(step)
        kind = digest_of(step.spec.job, ask.model_dump(), avoid)
        chunk = f"{kind}.{len(keys[kind]) // largest}"
        keys[kind].append(step.spec.key)
        groups.setdefault(chunk, (ask, avoid, []))[2].append(step)
    return list(groups.values())


def gpu_hours(ask: ResourceAsk, elements: int) -> float:
    """GPU hours that so many elements may use."""
    return ask.gpus * ask.minutes * elements / 60


def over_budget(state: RunState, intents: Sequence[ev.SubmissionIntended], budget: Callable[[], float | None]) -> str:
    """Say what a person has to grant before these are submitted; empty when the budget covers them.

    Counted is what submissions asked for, by their walltimes; those that never became a job cost nothing. Each resume
    grants the budget once more, unless it only undoes a stop. ``budget`` gives GPU hours, and is asked only when GPUs
    are wanted.
    """
    more = sum(gpu_hours(intent.resources, len(intent.elements)) for intent in intents)
    most = budget() if more else None
    if most is None:
        return ""
    started = (s for s in state.submissions.values() if s.status not in {"refused", "abandoned"})
    asked = sum(gpu_hours(s.resources, len(s.elements)) for s in started)
    if asked + more <= most * (1 + state.granted):
        return ""
    return (
        f"it asked for {asked:.1f} GPU hours and needs {more:.1f} more, the budget is {most:g}; "
        "resume to grant as much again, or end the run"
    )


def intend(  # noqa: PLR0913 - all of it is fixed by who plans, see reconcile.Here
    state: RunState,
    steps: Sequence[Step],
    *,
    target: str,
    compute: str,
    user: str,
    cluster: str,
    host: str,
    largest: int,
    most: int,
) -> list[ev.SubmissionIntended]:
    """Make the intents for these steps, at most ``most`` submissions."""
    intents = []
    for ask, avoid, members in group(steps, largest)[: max(most, 0)]:
        elements = tuple(ev.Element(step=s.spec.key, try_number=len(s.tries) + 1) for s in members)
        job = members[0].spec.job
        repeats = sum(1 for s in members if s.tries)
        again = f", {repeats} of them again" if repeats else ""
        intents.append(
            ev.SubmissionIntended(
                name=job_name(state.run, target, job, elements),
                compute=compute,
                user=user,
                cluster=cluster,
                elements=elements,
                resources=ask,
                exclude_nodes=avoid,
                host=host,
                reason=f"{len(members)} {job} step{'s' if len(members) > 1 else ''} to carry out{again}",
            )
        )
    return intents
