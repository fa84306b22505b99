"""Bring to the forge what a run has to say there: posts and proposed changes. Doing it again finds what is there."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import Fault, UsageError
from outerloop_hpc.forge.port import Forge, NotThere, Proposal
from outerloop_hpc.target.compose import Signature, commit_on
from outerloop_hpc.target.repository import Repository

_EMAIL = "noreply@localhost"


def post(forge: Forge, wanted: ev.PostWanted, run: str) -> ev.PostDone:
    """Say it on its order; an order that is gone has nobody to tell.

    Raises:
        TryLater: the forge does not answer; the next pass tries again.
    """
    try:
        comment = forge.comment(wanted.order, f"{run}/{wanted.key}", wanted.text)
    except NotThere as gone:
        return ev.PostDone(key=wanted.key, note=str(gone))
    return ev.PostDone(key=wanted.key, comment=comment)


def propose(forge: Forge, layout: Layout, spec: RunSpec, wanted: ev.ChangeWanted) -> ev.ChangeBound:
    """Make the branch and open its change. The commits follow from the run alone, so a repetition makes the same.

    Raises:
        Fault: the candidate is not what was measured, or somebody else moved the branch.
        TryLater: forge, mirror or filesystem do not answer; the next pass tries again.
    """
    mirror = Repository(layout.mirrors / f"{spec.target}.git")
    if (tree := mirror.tree(wanted.candidate)) != wanted.tree:
        raise Fault(
            f"{spec.run}: candidate {wanted.candidate[:12]} has tree {tree[:12]}, measured was {wanted.tree[:12]}; "
            "it is not proposed"
        )
    signature = Signature(forge.identity, _EMAIL, spec.made_at)
    files = {path: text.encode() for path, text in wanted.files.items()}
    try:
        commit = commit_on(mirror, wanted.candidate, files, message=wanted.message, signature=signature)
    except UsageError as refused:
        raise Fault(f"{spec.run}: its files cannot be put on {wanted.candidate[:12]}: {refused}") from refused
    forge.push(mirror.folder, commit, wanted.branch)
    change = forge.propose(
        Proposal(wanted.branch, wanted.onto, commit, wanted.order, title=wanted.title, body=wanted.body)
    )
    return ev.ChangeBound(key=wanted.key, change=change.change_id, commit=change.commit, where=change.where)
