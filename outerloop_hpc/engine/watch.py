"""Gather what a pass rests on: live runs, one look at each compute, and the evidence of every open try."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from outerloop_hpc.engine import archive, inbox
from outerloop_hpc.engine.closing import archive_note
from outerloop_hpc.engine.events import PersonDecided
from outerloop_hpc.engine.evidence import Evidence, Files, Index, Look, answered, ref_of
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout, RunFolder, element_file
from outerloop_hpc.engine.plan import Unbound
from outerloop_hpc.engine.records import RECORD
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.engine.state import RunState, Submission
from outerloop_hpc.engine.tryfiles import files_of, listing
from outerloop_hpc.slurm.port import Answer, Availability, Compute, JobRef, Observation

_NO_FILES = Files()
_LONGEST_SILENCE = timedelta(days=1)
_SILENT: Observation = Observation(Answer(Availability.UNAVAILABLE), Answer(Availability.UNAVAILABLE))


@dataclass
class LiveRun:
    """One live run during a pass. ``asked`` names the submissions that the pass's look was about."""

    journal: Journal
    state: RunState
    asked: frozenset[str] = frozenset()
    loaded_seq: int = 0

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.journal.folder.run_id

    @cached_property
    def spec(self) -> RunSpec:
        """The specification, read when first needed: a quiet run costs nothing for it."""
        return self.journal.spec()

    def pending(self) -> list[Submission]:
        """Submissions that the scheduler has to be asked about: open tries, or accounting still to archive."""
        return [s for s in self.state.submissions.values() if not s.archived]


def load(layout: Layout, run_id: str) -> LiveRun:
    """Load one run.

    Raises:
        Fault: its documents cannot be read.
    """
    journal = Journal(layout.run(run_id))
    state = journal.state()
    return LiveRun(journal, state, loaded_seq=state.seq)


def look(runs: Iterable[LiveRun], computes: Mapping[str, Compute]) -> dict[str, Index]:
    """Ask each compute once about everything; what is not configured here is unavailable."""
    wanted: dict[str, list[JobRef]] = {}
    for run in runs:
        pending = run.pending()
        run.asked = frozenset(s.name for s in pending)
        for submission in pending:
            wanted.setdefault(submission.compute, []).append(ref_of(submission))
    return {name: Index.of(_observe(computes.get(name), refs)) for name, refs in wanted.items()}


def _observe(compute: Compute | None, refs: Sequence[JobRef]) -> Observation:
    return _SILENT if compute is None else compute.observe(refs)


def unreadable(run: LiveRun) -> str:
    """Say which record keeps passes from settling this run, because it cannot be read; empty when none does.

    Raises:
        Fault: an inbox file cannot be read.
    """
    folder = run.journal.folder
    inbox.waiting(folder)
    listings: dict[Path, frozenset[str]] = {}
    for _, current, submission in run.state.open_tries():
        where = folder.submission(submission.name)
        if where not in listings:
            listings[where] = listing(where)
        if fault := files_of(where, listings[where], current, run=run.run_id).fault:
            return fault
    return ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The changing part of a plan's input."""

    evidence: Mapping[tuple[str, int], Evidence]
    unbound: Mapping[str, Unbound]
    inbox: Sequence[PersonDecided]
    archivable: Mapping[str, str]


def gather(
    run: LiveRun,
    indexes: Mapping[str, Index],
    now: datetime,
    policies: Mapping[str, Policy],
    silent: Mapping[str, datetime] = MappingProxyType({}),
) -> Gathered:
    """Collect a run's evidence: one folder listing per submission, and only files that can matter are read.

    ``silent`` says when a compute's accounting was last seen silent.

    Raises:
        Fault: an inbox file cannot be read.
    """
    folder = run.journal.folder
    evidence: dict[tuple[str, int], Evidence] = {}
    unbound: dict[str, Unbound] = {}
    looks: dict[str, _Submitted] = {}
    for _, current, submission in run.state.open_tries():
        name = submission.name
        if name not in run.asked:
            continue
        index = indexes[submission.compute]
        if name not in looks:
            looks[name] = _Submitted.of(submission, index, folder)
        known = looks[name]
        if known.settled(current.index):
            evidence[name, current.index] = Evidence(_NO_FILES, known.running[current.index])
            continue
        files = files_of(known.folder, known.listing, current, run=run.run_id)
        evidence[name, current.index] = Evidence(files, index.look(submission, current.index))
        if submission.status == "intended" and (name not in unbound or unbound[name].found is None):
            unbound[name] = _unbound(index, submission, _started_as(files))
    # Accounting is archived when no try is open; one that runs is.
    busy = {name for name, known in looks.items() if known.running}
    ages = _ended_for(run, now, silent)
    return Gathered(evidence, unbound, _heard(folder, indexes), _archivable(run, indexes, policies, ages, busy))


def _heard(folder: RunFolder, indexes: Mapping[str, Index]) -> list[PersonDecided]:
    """What people said. Force waits for a pass that looks: closing for good must not rest on not having asked."""
    spared = any(index.observation.spared_s for index in indexes.values())
    return [decided for decided in inbox.waiting(folder) if not (decided.force and spared)]


@dataclass(frozen=True, slots=True)
class _Submitted:
    """What one look at a submission says of all its elements: one folder listing, one walk over the queue's rows."""

    folder: Path
    listing: frozenset[str]
    running: Mapping[int, Look]

    @classmethod
    def of(cls, submission: Submission, index: Index, folder: RunFolder) -> _Submitted:
        path = folder.submission(submission.name)
        return cls(path, listing(path), index.running(submission) if submission.status == "bound" else {})

    def settled(self, number: int) -> bool:
        """Whether an element runs and has no record: its claim says nothing that matters, so it is not read."""
        return number in self.running and element_file(number, RECORD) not in self.listing


def _started_as(files: Files) -> str | None:
    """Return the job id that an element left in its claim or record, if it ever started."""
    left = files.record or (files.claim if files.claim and not files.claim.abandoned else None)
    return left.holder.job_id if left is not None else None


def _unbound(index: Index, submission: Submission, claimed: str | None) -> Unbound:
    found = claimed.partition("_")[0] if claimed else index.job_named(submission)
    both = index.observation.queue.availability is Availability.ANSWERED and answered(index.observation.accounting)
    return Unbound(found, both)


def _ended_for(run: LiveRun, now: datetime, silent: Mapping[str, datetime]) -> dict[str, float]:
    """Seconds since a submission's last try ended while accounting could have been told of it; not of one that runs.

    A cluster that is gone for good, or that nobody knows, answers never; after a day its silence counts no longer.
    """
    since: dict[str, datetime] = {}
    for step in run.state.steps.values():
        for one in step.tries:
            if one.ended_at is not None:
                since[one.submission] = max(one.ended_at, since.get(one.submission, one.ended_at))
    for _, current, _ in run.state.open_tries():
        since.pop(current.submission, None)
    computes = {name: run.state.submissions[name].compute for name in since}
    told = {name: max(at, min(silent.get(computes[name], at), at + _LONGEST_SILENCE)) for name, at in since.items()}
    return {name: (now - at).total_seconds() for name, at in told.items()}


def _archivable(
    run: LiveRun,
    indexes: Mapping[str, Index],
    policies: Mapping[str, Policy],
    ended_for: Mapping[str, float],
    busy: Collection[str],
) -> dict[str, str]:
    found: dict[str, str] = {}
    for submission in run.pending():
        if submission.name not in run.asked or submission.name in busy:
            continue
        index = indexes[submission.compute]
        rows = index.rows_of(submission)
        availability = index.observation.accounting.availability
        policy = policies[submission.compute]
        if index.lives(submission):
            continue  # it was requeued after its end, and its last execution counts, too
        note = archive_note(
            submission,
            complete=archive.complete(submission, rows),
            availability=availability,
            ended_for_s=ended_for.get(submission.name, 0.0),
            policy=policy,
        )
        if note is not None:
            found[submission.name] = note
    return found


def policies_for(policy: Policy, computes: Iterable[str]) -> dict[str, Policy]:
    """The windows for each compute. This machine's own processes leave nothing to wait for."""
    here = replace(policy, confirm_s=0.0, soft_window_s=0.0, submit_lag_s=min(policy.submit_lag_s, 15.0))
    # A run may rest on a compute that is not configured on this host: it is unavailable here, and no error.
    return defaultdict(lambda: policy, {name: here if name == "local" else policy for name in computes})
