"""The ``agent`` proposer: a program of the agent backends, with a brief on stdin."""

from __future__ import annotations

from outerloop_hpc import fsio
from outerloop_hpc.agents.command import Assignment, Bounds, run
from outerloop_hpc.agents.outcome import Session
from outerloop_hpc.agents.redact import redacted
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine.body import Result
from outerloop_hpc.evolve.proposers.brief import brief
from outerloop_hpc.evolve.proposers.desk import BRIEF_FILE, Desk, lay_out
from outerloop_hpc.evolve.proposers.proposed import Occasion, Proposed, failed
from outerloop_hpc.evolve.work import Agent

ROLE = "proposer"


def propose(occasion: Occasion, proposer: Agent) -> Proposed | Result:
    """Hold one session.

    Raises:
        NodeUnfit: this node lacks what is needed; no session was bought.
        ConfigError, TryLater: as for every job.
    """
    context = occasion.context
    desk = lay_out(occasion, proposer.command, proposer.environment, network=proposer.network)
    path = desk.brief_folder / BRIEF_FILE
    with fsio.writing(path):
        path.write_text(brief(occasion.work, occasion.given, desk.places(), dict(desk.evidence)), encoding="utf-8")
    assignment = Assignment(
        command=proposer.command,
        workspace=desk.workspace,
        brief=path,
        bounds=Bounds(turns=0, minutes=proposer.timeout_s / 60),
        transcript=context.log,
        env={**desk.told(), "OUTERLOOP_ROLE": ROLE, "OUTERLOOP_BRIEF": desk.brief_path()},
        secrets=desk.secrets,
    )
    session = run(assignment, desk.where, SystemClock(), context.stop)
    if session is None:
        return Result("infrastructure", f"the session was stopped: {context.stop.reason}")
    return _judged(desk, session)


def _judged(desk: Desk, session: Session) -> Proposed | Result:
    money = session.cost_usd or 0.0
    reason = redacted(session.reason, desk.secrets.values())
    match session.word:
        case "done":
            return desk.proposed(money=money, otherwise=redacted(session.report, desk.secrets.values()))
        case "no-change":
            return Proposed(exhausted=True, money=money)
        case "outage":
            return Result("infrastructure", f"what the agent needs was refused: {reason}")
        case _:
            return failed(f"the session came to nothing ({session.word}): {reason}", money=money)
