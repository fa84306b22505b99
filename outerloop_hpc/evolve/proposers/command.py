"""The ``command`` proposer: any program, contained, that reads evidence and writes an overlay and a proposal."""

from __future__ import annotations

from outerloop_hpc.agents.redact import redacted, spellings
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.container.runtime import NotWorkingHere
from outerloop_hpc.engine.body import Result
from outerloop_hpc.errors import Exit
from outerloop_hpc.evolve.proposers.desk import Desk, lay_out
from outerloop_hpc.evolve.proposers.proposed import Occasion, Proposed, failed
from outerloop_hpc.evolve.work import Command
from outerloop_hpc.supervision.child import Ended, Feed, Limits, run_child, signal_name

NO_MORE_IDEAS = 10
_LAST = 300


def propose(occasion: Occasion, proposer: Command) -> Proposed | Result:
    """Run the program once.

    Raises:
        NodeUnfit: this node lacks what is needed; the program did not run.
        ConfigError, TryLater: as for every job.
    """
    context = occasion.context
    desk = lay_out(occasion, proposer.command, proposer.environment, network=proposer.network)
    launch = desk.where.command(proposer.command, {**desk.told(), **desk.secrets}, desk.workspace)
    ended = run_child(
        launch.argv,
        env=launch.env,
        cwd=launch.cwd,
        limits=Limits(wall_s=proposer.timeout_s),
        log=context.log,
        clock=SystemClock(),
        stop=context.stop,
        feed=Feed(secrets=spellings(desk.secrets.values())),
    )
    if ended.ended_by == "stop":
        return Result("infrastructure", f"the proposal was stopped: {context.stop.reason}")
    if ended.ended_by == "itself" and (failure := desk.where.start_failure(ended.status, ended.stderr)):
        return _not_started(desk, proposer, failure, ended)
    return _judged(desk, proposer, ended)


def _judged(desk: Desk, proposer: Command, ended: Ended) -> Proposed | Result:
    if ended.ended_by == "limit":
        return failed(f"it did not end within {proposer.timeout_s:g} s")
    if ended.status == 0:
        return desk.proposed()
    if ended.status == NO_MORE_IDEAS:
        return Proposed(exhausted=True)
    last = redacted(" ".join(ended.stderr.split())[-_LAST:], desk.secrets.values())
    said = f": {last}" if last else ""
    if ended.status == Exit.TRY_LATER:
        return Result("infrastructure", f"the proposer asked to be tried later (exit status 75){said}")
    if ended.status is not None and ended.status < 0:
        return failed(f"it was ended by {signal_name(ended.status)}{said}")
    return failed(f"it ended with exit status {ended.status}{said}")


def _not_started(desk: Desk, proposer: Command, failure: str, ended: Ended) -> Proposed:
    # Without a container the program that does not exist is the proposer's own; else this node is to blame.
    if desk.where.name == "none" and ended.errno is not None:
        return failed(f"{proposer.command[0]!a} could not be started: {ended.problem}")
    raise NotWorkingHere(failure)
