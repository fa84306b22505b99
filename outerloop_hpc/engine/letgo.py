"""Keep jobs that are not wanted any more from starting, and ask for the end of those that may live."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from outerloop_hpc import fsio
from outerloop_hpc.clock import Clock
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import records
from outerloop_hpc.engine.evidence import ref_of
from outerloop_hpc.engine.layout import RunFolder, element_file
from outerloop_hpc.engine.state import RunState, Submission
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import TryLater
from outerloop_hpc.slurm.port import Compute, JobRef

_log = logging.getLogger(__name__)


def take_claim(folder: RunFolder, submission: Submission, index: int, author: ev.Author, clock: Clock) -> bool:
    """Take one element's claim, so that a job of it that starts later leaves at once.

    Returns:
        False when somebody has it: a job that started, or a reconciler.

    Raises:
        TryLater: the state folder cannot be written.
    """
    path = folder.submission(submission.name)
    fsio.make_folder(path)
    holder = records.Holder(host=author.host, pid=author.pid)
    ours = records.Claim(nonce=fsio.nonce(), at=clock.now(), holder=holder, abandoned=True)
    return fsio.publish(path / element_file(index, records.CLAIM), ours.encoded())


def take_claims_of_forced(
    folder: RunFolder, state: RunState, names: Collection[str], author: ev.Author, clock: Clock
) -> None:
    """Take the claims of the tries that a person ended by force and that never started."""
    for step in state.steps.values():
        for one in step.tries:
            if one.rule == ev.FORCED and one.submission in names:
                take_claim(folder, state.submissions[one.submission], one.index, author, clock)


def unwanted(live: Iterable[LiveRun]) -> dict[str, dict[str, JobRef]]:
    """What the journals want ended and is still under way, by compute and name."""
    found: dict[str, dict[str, JobRef]] = {}
    for run in live:
        if not any(submission.cancel_asked for submission in run.state.submissions.values()):
            continue
        for _, _, submission in run.state.open_tries():
            if submission.cancel_asked:
                found.setdefault(submission.compute, {})[submission.name] = ref_of(submission)
    return found


def cancel(computes: Mapping[str, Compute], wanted: Mapping[str, Mapping[str, JobRef]]) -> list[str]:
    """Ask each compute once for the end of all that is named; returns what could not be asked."""
    problems = []
    for name, refs in wanted.items():
        compute = computes.get(name)
        if compute is None:
            _log.info("%s is not configured here; %d jobs are not cancelled by this pass", name, len(refs))
            continue
        try:
            compute.cancel(list(refs.values()))
        except TryLater as later:
            problems.append(f"{name}: {later}")
    return problems
