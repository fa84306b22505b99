"""What a run has to say at its forge, and what it hears from there. Pure; ``publish`` says it, ``changes`` listens."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.kind import Post, Propose
from outerloop_hpc.engine.planner import Planner
from outerloop_hpc.engine.state import RunState


def news(planner: Planner) -> None:
    """Take in what became of proposed changes; a forge that did not answer says nothing."""
    for key, found in planner.given.changes.items():
        known = planner.state.changes[key]
        status, commit = ("gone", "") if found is None else (found.status, found.merged_as)
        if (status, commit) != (known.status, known.merged_as):
            planner.add(ev.ChangeSeen(key=key, status=status, commit=commit))
            planner.say(key, "change.seen", status, f"{known.branch}: {status} at {known.where}")


def post(planner: Planner, wanted: Post) -> None:
    """Want something said, unless it was wanted before."""
    if wanted.key not in planner.state.posts:
        planner.add(ev.PostWanted(key=wanted.key, order=wanted.order, text=wanted.text, reason=wanted.reason))
        planner.say("run", "kind.post", "post", wanted.reason)


def propose(planner: Planner, change: Propose) -> None:
    """Want a change proposed, unless it was wanted before."""
    if change.key in planner.state.changes:
        return
    planner.add(
        ev.ChangeWanted(
            key=change.key,
            order=change.order,
            branch=change.branch,
            onto=change.onto,
            candidate=change.candidate,
            tree=change.tree,
            files=dict(change.files),
            message=change.message,
            title=change.title,
            body=change.body,
            reason=change.reason,
        )
    )
    planner.say("run", "kind.propose", "propose", change.reason)


def unsaid(state: RunState) -> tuple[str, ...]:
    """Keys of posts that are still to be made."""
    return tuple(key for key, one in state.posts.items() if one.wanted is not None)


def posts(planner: Planner) -> tuple[str, ...]:
    """Keys of posts to make in this pass."""
    return () if planner.given.speechless else unsaid(planner.state)


def proposals(planner: Planner) -> tuple[str, ...]:
    """Keys of changes to open in this pass; those of a run that somebody ended are never opened."""
    if planner.given.speechless or planner.state.ended is not None:
        return ()
    return tuple(key for key, change in planner.state.changes.items() if change.wanted is not None)
