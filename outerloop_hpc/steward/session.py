"""The body of a session, inside the allocation: preflight, workspace, agent, and what it left as a commit."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from outerloop_hpc.agents.command import Assignment, Bounds, NotStarted, run
from outerloop_hpc.agents.outcome import Session
from outerloop_hpc.agents.redact import redacted, spellings
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.config.secret import read_secret
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.runtime import Bind
from outerloop_hpc.engine import measuring
from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.engine.enclose import enclosure, inside
from outerloop_hpc.engine.room import require_room
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import ConfigError, Fault, TryLater
from outerloop_hpc.steward import held
from outerloop_hpc.steward.brief import brief
from outerloop_hpc.steward.findings import SessionFound, SessionWord, Stray
from outerloop_hpc.steward.work import ROLE, AgentWork, StewardWork, work_of
from outerloop_hpc.target.compose import Signature
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.scope import Role, Territory
from outerloop_hpc.target.workspace import Captured, Workspace

_log = logging.getLogger(__name__)

#: Where the session finds what is not its workspace.
_TABLE = PurePosixPath("/outerloop")
_FILES = _TABLE / "files"
_BRIEF = "brief.md"
_SHOWN = 200
#: How long is waited for a disk or a mirror before what a session left is looked at once more; seconds.
_PAUSES_S = (2.0, 10.0, 30.0)


def session(context: Context) -> Result:
    """Hold the run's session, unless an earlier try has held it.

    Raises:
        NodeUnfit: this node lacks what is needed; no session was bought.
        ConfigError: key, files or image are not what they must be; no session was bought.
    """
    work, host = work_of(context.spec), socket.gethostname()
    earlier = _earlier(context, work, host)
    if isinstance(earlier, SessionFound):
        return _result(earlier)
    secrets = _secrets(work.agent)
    mirror = Mirror(context.layout.mirrors / f"{context.spec.target}.git")
    if earlier is None:
        workspace = Workspace(context.scratch / "session")
        ended = _hold(context, work, workspace, mirror, secrets)
        if ended is None:
            return Result("infrastructure", f"the session was stopped: {context.stop.reason}")
        if isinstance(ended, SessionFound):
            return _result(ended)
    else:
        workspace, ended = Workspace(Path(earlier.place)), earlier
    found = _insisted(lambda: _found(context, work, ended, (workspace, mirror), spellings(secrets.values())))
    found = SessionFound.model_validate(_without(secrets, found.model_dump(mode="json")))
    held.keep(context, found)
    return _result(found)


def _insisted(find: Callable[[], SessionFound]) -> SessionFound:
    """Look at what a session left in spite of a disk that is full for a moment, or a mirror away: it was paid."""
    for pause in _PAUSES_S:
        try:
            return find()
        except TryLater:
            _log.exception("trying again in %g s", pause)
            SystemClock().sleep(pause)
    return find()


def _hold(
    context: Context, work: StewardWork, workspace: Workspace, mirror: Mirror, secrets: Mapping[str, str]
) -> held.Said | SessionFound | None:
    """Hold the session to its end; None when the job was told to stop; what another execution came to, if one began.

    Raises:
        NotStarted: the container did not start.
    """
    require_room(context.scratch, int(work.session.min_free_gb * 10**9))
    table, where = _prepare(context, work)
    measuring.check_out(context, context.spec.commit, work.tree, workspace.path)
    workspace.make(mirror, context.spec.commit)
    assignment = Assignment(
        command=tuple(word.replace("{files}", inside(where, _FILES)) for word in work.agent.command),
        workspace=workspace.path,
        brief=table / _BRIEF,
        bounds=Bounds(work.agent.turns, work.agent.minutes, work.agent.output_bytes),
        transcript=context.log,
        env=_told(work.agent, inside(where, _TABLE / _BRIEF)),
        secrets=secrets,
    )
    clock, ended = SystemClock(), []
    if (faster := held.begin(context, socket.gethostname(), clock.now(), workspace.folder)) is not None:
        return faster

    def told(session: Session) -> None:
        harmless = Session.model_validate(_without(secrets, session.model_dump(mode="json")))
        ended.append(held.end(context, clock.now(), workspace.folder, harmless))

    try:
        run(assignment, where, clock, context.stop, told)
    except (NotStarted, ConfigError):
        held.never_began(context)
        raise
    return next(iter(ended), None)


def _earlier(context: Context, work: StewardWork, host: str) -> SessionFound | held.Said | None:
    """Return what an earlier execution came to.

    What cannot be read may be of a session that was paid for. Another node may be able to; where none is, the session
    has failed: as a refusal it would cost nothing, and be bought again without end.
    """
    try:
        return held.before(context, host)
    except Fault as fault:
        if context.element.try_number < work.session.max_tries:
            raise
        return SessionFound(word="failed", reason=f"what an earlier execution left cannot be read: {fault}")


def _result(found: SessionFound) -> Result:
    return Result("completed", found.reason, found.model_dump(mode="json", exclude_none=True))


def _secrets(agent: AgentWork) -> dict[str, str]:
    """Read the role's own key; raises ConfigError when it is not there or others can read it."""
    if not agent.key_file:
        return {}
    return {agent.key_env: read_secret(Path(agent.key_file))}


def _prepare(context: Context, work: StewardWork) -> tuple[Path, Enclosure]:
    """Lay out what the session may see beside its workspace; raises ConfigError for what is not there."""
    table = context.scratch / "table"
    table.mkdir()
    (table / _BRIEF).write_text(brief(context.spec, work), encoding="utf-8")
    binds = [Bind(table, _TABLE)]
    if work.agent.files:
        files = Path(work.agent.files)
        if not files.is_dir():
            raise ConfigError(f"{files}: the folder of the steward's files is not there; see [steward] files")
        # A bind below a read-only one needs its place there.
        (table / _FILES.name).mkdir()
        binds.append(Bind(files, _FILES))
    return table, enclosure(context, work.session.containment, gpus=work.session.resources.gpus, binds=tuple(binds))


def _told(agent: AgentWork, brief_path: str) -> dict[str, str]:
    return {
        "OUTERLOOP_ROLE": ROLE,
        "OUTERLOOP_BRIEF": brief_path,
        "OUTERLOOP_TURNS": str(agent.turns),
        "OUTERLOOP_MINUTES": str(agent.minutes),
    }


def _found(
    context: Context, work: StewardWork, said: held.Said, places: tuple[Workspace, Mirror], secrets: Sequence[bytes]
) -> SessionFound:
    """Say what came of a session; only one that ended well is looked at for changes."""
    (workspace, mirror), done = places, said.session
    common: dict[str, Any] = {
        "report": done.report,
        "turns": done.turns,
        "cost_usd": done.cost_usd,
        "seconds": done.seconds,
        "transcript": said.transcript,
    }
    if done.word != "done":
        refused_at = said.at if done.word == "outage" else None
        word: SessionWord = done.word
        return SessionFound(word=word, reason=done.reason, outage=done.outage, refused_at=refused_at, **common)
    territory = Territory(Role.STEWARD, work.territories.allowed, work.territories.forbidden)
    message = f"{work.ruler.benchmark}: a new ruler\n\nBy a session of {context.spec.run}.\n"
    captured = workspace.capture(
        context.spec.commit,
        territory,
        message=message,
        signature=signature(context.spec, work),
        secrets=secrets,
    )
    if not captured.changes:
        return SessionFound(word="no-change", reason="it ended well and changed nothing", **common)
    if captured.strays:
        strays = tuple(Stray(path=_shown(v.path), reason=v.reason) for v in captured.strays[:_SHOWN])
        count = len(captured.strays)
        return SessionFound(word="out-of-scope", reason=f"{count} changed paths must not be", strays=strays, **common)
    ref = f"refs/outerloop/cand/{context.spec.run}/{context.element.step.key}/{context.element.try_number}"
    workspace.hand_over(captured.commit, mirror, ref)
    return _changed(captured, common)


def _changed(captured: Captured, common: Mapping[str, Any]) -> SessionFound:
    changed = tuple(_shown(change.path) for change in captured.changes[:_SHOWN])
    reason = f"{len(captured.changes)} paths changed"
    return SessionFound(
        word="changed", reason=reason, candidate=captured.commit, tree=captured.tree, changed=changed, **common
    )


def signature(spec: RunSpec, work: StewardWork) -> Signature:
    """Return who the run's commits name: the tool, at the time that the run was made."""
    return Signature(work.identity, "noreply@localhost", spec.made_at)


def _shown(path: str) -> str:
    """Return a path as text that any document can hold."""
    return path.encode("utf-8", errors="backslashreplace").decode()[:1000]


def _without(secrets: Mapping[str, str], value: Any) -> Any:
    """Return a payload without the role's key, wherever it may have got to."""
    if isinstance(value, str):
        return redacted(value, secrets.values())
    if isinstance(value, list):
        return [_without(secrets, one) for one in value]
    if isinstance(value, dict):
        return {key: _without(secrets, one) for key, one in value.items()}
    return value
