"""Follow runs: pass after pass over just them until they need no more, with progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from outerloop_hpc.cli.session import Session
from outerloop_hpc.cli.terminal import Progress, terminal
from outerloop_hpc.cli.trouble import tell_faults, tell_problems
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine import watch
from outerloop_hpc.engine.outbound import unsaid
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.engine.tick import Pass
from outerloop_hpc.errors import Exit

#: Longest pause between two passes; a scheduler that others need too is asked less often.
_POLL_S = {"local": 1.0, "slurm": 15.0}
_FIRST_POLL_S = {"local": 0.2, "slurm": 2.0}
#: Others may ask about their runs whenever we may: after so many passes without an answer we ask all the same.
_PATIENCE = 2


def follow(
    here: Session,
    run_ids: Sequence[str],
    *,
    wait_s: float,
    tell: Callable[[Sequence[RunState]], None] = lambda _states: None,
) -> Exit:
    """Make passes over these runs until they are closed or wait for a person, at most ``wait_s`` seconds.

    ``tell`` gets what is known after each pass.

    Returns the exit status: 0 closed, 3 ended without a measurement, 10 under way, 20 waits for a person, 4 a fault.
    """
    clock = SystemClock()
    until, pause, spared = clock.steady() + wait_s, _FIRST_POLL_S[here.engine.default], 0
    with Progress(sys.stderr, terminal(sys.stderr, here.environ), "passes", clock=clock) as progress:
        while True:
            result = Pass(here.engine, launch=False, only=run_ids, insists=spared >= _PATIENCE).run()
            spared = spared + 1 if result.spared_s else 0
            progress.advance()
            faulty = {run for run, _ in result.faults}
            states = [watch.load(here.layout, run).state for run in run_ids if run not in faulty]
            tell(states)
            if all(_at_rest(state) for state in states) or clock.steady() >= until:
                break
            # A scheduler that somebody has asked just before is asked when it may be, not over and over.
            clock.sleep(min(max(pause, result.spared_s), max(until - clock.steady(), 0.0)))
            pause = min(pause * 1.5, _POLL_S[here.engine.default])
    tell_faults(result)
    tell_problems(result)
    return Exit.PARTLY_FAILED if result.faults else _status(states)


def _at_rest(state: RunState) -> bool:
    return state.phase in {"closed", "parked"} or _before_people(state)


def _before_people(state: RunState) -> bool:
    """Whether all that the run waits for is what people make of its change."""
    return (
        any(change.status == "open" for change in state.changes.values())
        and not unsaid(state)
        and not any(state.open_tries())
    )


def _status(states: Sequence[RunState]) -> Exit:
    if any(state.phase == "parked" or _before_people(state) for state in states):
        return Exit.WAITS_FOR_PERSON
    if any(state.ended is None for state in states):
        return Exit.IN_PROGRESS
    measured = all(state.ended is not None and state.ended.result.get("values") for state in states)
    return Exit.DONE if measured else Exit.FINDINGS
