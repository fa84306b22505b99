"""Keep jobs that are not wanted any more from starting, and ask for the end of those that may live."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from outerloop_hpc import fsio
from outerloop_hpc.clock import Clock
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import records
from outerloop_hpc.engine.evidence import Index, answered, ref_of
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
            if one.rule in {ev.FORCED, ev.GAVE_UP} and one.submission in names:
                take_claim(folder, state.submissions[one.submission], one.index, author, clock)


def unwanted(live: Iterable[LiveRun], indexes: Mapping[str, Index]) -> dict[str, dict[str, JobRef]]:
    """What the journals want ended and the queue lists, or what has no id yet; by compute and name.

    What the queue does not list has ended, and its id may be another job's by now; a later pass sees what it lacks.
    """
    found: dict[str, dict[str, JobRef]] = {}
    for submission in _to_end(live):
        if _is_ours_still(submission, indexes.get(submission.compute)):
            found.setdefault(submission.compute, {})[submission.name] = ref_of(submission)
    return found


def unseen(live: Iterable[LiveRun], indexes: Mapping[str, Index]) -> list[str]:
    """Say which computes cannot be asked for an end now, because their queue does not say what is there."""
    asked = {name: index.observation for name, index in indexes.items() if not index.observation.spared_s}
    silent = {name for name, seen in asked.items() if not answered(seen.queue)}
    names = sorted({one.compute for one in _to_end(live) if one.job_id} & silent)
    why = "its queue did not say what is there, and an id may be another job's by now; a later pass asks"
    return [f"{name}: not cancelled yet: {why}" for name in names]


def _to_end(live: Iterable[LiveRun]) -> Iterator[Submission]:
    for run in live:
        if any(submission.cancel_asked for submission in run.state.submissions.values()):
            yield from (submission for _, _, submission in run.state.open_tries() if submission.cancel_asked)


def _is_ours_still(submission: Submission, index: Index | None) -> bool:
    """Whether what has this submission's job id is this submission; without an id its name says so."""
    return not submission.job_id or (index is not None and bool(index.listed(submission)))


def surely(submission: Submission, index: Index | None) -> JobRef:
    """Name a submission by what is surely its own: its id where the queue lists it under that, else its name."""
    ref = ref_of(submission)
    return ref if _is_ours_still(submission, index) else replace(ref, job_id=None)


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
