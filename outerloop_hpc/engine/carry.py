"""Carry out one run's plan: commit, do, commit what came of it. Every part can be done again after a crash."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from outerloop_hpc import effects, fsio
from outerloop_hpc.clock import Clock
from outerloop_hpc.documents import load
from outerloop_hpc.engine import archive, ending, inbox, letgo, publish, records, waking
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.changes import Forges
from outerloop_hpc.engine.evidence import Index
from outerloop_hpc.engine.housekeeping import marker_of
from outerloop_hpc.engine.kind import Kind
from outerloop_hpc.engine.layout import Layout, element_file
from outerloop_hpc.engine.plan import Plan
from outerloop_hpc.engine.spec import file_digest
from outerloop_hpc.engine.state import Submission
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import Fault, TryLater
from outerloop_hpc.slurm.port import (
    Bound,
    Compute,
    JobRef,
    Resources,
    SubmissionAmbiguous,
    SubmissionRefused,
    SubmissionWithheld,
    Work,
)

_log = logging.getLogger(__name__)

BODY = "outerloop_hpc.engine.job:run_element"


@dataclass(frozen=True, slots=True)
class Hands:
    """What carrying out needs.

    Attributes:
        wake: function that a tiny job after a submission calls with its ``wake.json``; empty for none.
        wakes: whether every submission gets one, or only those of runs that ask for it.
        config: project file of this pass's settings, for that job; empty for none.
        forges: gives a target's forge; ``None`` where this pass cannot reach it, and what is to be said there waits.
        render: renders anew what follows from a target's published documents (its ledger); done before a run is
            closed, so that a crash cannot lose it, and again without harm.
    """

    layout: Layout
    computes: Mapping[str, Compute]
    author: ev.Author
    clock: Clock
    wake: str = ""
    wakes: bool = True
    config: str = ""
    forges: Forges = lambda _target: None
    render: Callable[[str], None] = lambda _target: None


class Carrier:
    """Carries out plans for one pass; counts what it submitted and remembers what went wrong.

    ``speechless`` are runs that could not say at their forge what they have to: the next pass tries again.
    """

    def __init__(self, hands: Hands, indexes: Mapping[str, Index]) -> None:
        self.hands, self.indexes = hands, indexes
        self.submitted = 0
        self.refused = 0
        self.problems: list[str] = []
        self.faults: list[tuple[str, str]] = []
        self.speechless: set[str] = set()
        self.unavailable = False

    def out(self, run: LiveRun, plan: Plan, kind: Kind) -> None:
        """Do what the plan says.

        Raises:
            Overtaken: another reconciler went on with this run; nothing more is done here.
            TryLater: the state folder cannot be written.
        """
        self._commit(run, *plan.events)
        for file in plan.taken:
            inbox.done(run.journal.folder, file)
        for name in plan.abandon:
            self._abandon(run, run.state.submissions[name])
        for event in plan.events:
            if isinstance(event, ev.SubmissionIntended):
                self._submit(run, event)
        self._let_go(run, plan.let_go)
        for name, note in plan.archive:
            self._archive(run, run.state.submissions[name], note)
        self._publish(run, plan)
        if plan.close or any(isinstance(event, ev.RunEnded) for event in plan.events):
            ending.publish(self.hands.layout, run.journal.folder, run.spec, run.state, kind)
            self._render(run)
        if plan.close:
            self._close(run)

    def _commit(self, run: LiveRun, *events: ev.Event) -> None:
        if events:
            run.state = run.journal.commit(
                run.state, events, by=self.hands.author, at=self.hands.clock.now(), nonce=fsio.nonce()
            )

    def _submit(self, run: LiveRun, intent: ev.SubmissionIntended) -> None:
        compute = self.hands.computes[intent.compute]
        work = self._work(run, intent)
        # This process may have been asleep since its commit; whoever went on meanwhile has decided otherwise.
        run.journal.still_at(run.state)
        try:
            bound = compute.submit(work)
        except OSError:
            # They may also have closed the run since that look, and removed the folder under our hands.
            run.journal.still_at(run.state)
            raise
        except SubmissionRefused as refusal:
            self.refused += 1
            self.problems.append(f"{intent.name}: refused: {refusal}")
            self._commit(run, ev.SubmissionRefused(name=intent.name, complaint=str(refusal)))
            return
        except SubmissionWithheld as withheld:
            # Nothing is to be looked up: only this process could have started it, and has not.
            self.problems.append(f"{intent.name}: not submitted yet: {withheld}")
            self._commit(run, ev.SubmissionAbandoned(name=intent.name, reason=str(withheld), withheld=True))
            return
        except SubmissionAmbiguous as doubt:
            # Not an answer: the next pass looks the name up in squeue and sacct.
            self.unavailable = True
            self.problems.append(f"{intent.name}: unclear: {doubt}")
            return
        self.submitted += 1
        self._commit(run, ev.SubmissionBound(name=intent.name, job_id=bound.job_id, cluster=bound.cluster))
        self._wake(run, intent, bound, compute)

    def _work(self, run: LiveRun, intent: ev.SubmissionIntended) -> Work:
        folder = run.journal.folder.submission(intent.name)
        fsio.make_folder(folder)
        elements = tuple(
            records.ManifestElement(
                step=run.state.steps[e.step].spec.model_copy(update={"resources": intent.resources}),
                try_number=e.try_number,
            )
            for e in intent.elements
        )
        manifest = records.Manifest(
            run=run.run_id,
            kind=run.spec.kind,
            target=run.spec.target,
            submission=intent.name,
            spec_digest=file_digest(fsio.read(run.journal.folder.spec)),
            image=run.spec.image,
            state_root=str(self.hands.layout.root),
            elements=elements,
        )
        fsio.publish(folder / "manifest.json", manifest.encoded())
        ask = intent.resources
        return Work(
            name=intent.name,
            function=BODY,
            arguments=tuple(str(folder / f"e{index:04d}") for index in range(len(elements))),
            folder=folder / "submitit",
            resources=Resources(ask.minutes, ask.cpus, ask.memory_mb, ask.gpus, ask.signal_lead_s, ask.options),
            parallel=ask.parallel,
            exclude_nodes=intent.exclude_nodes,
        )

    def _wake(self, run: LiveRun, intent: ev.SubmissionIntended, bound: Bound, compute: Compute) -> None:
        """A tiny job after this one moves the run on without any cron; the tick is its backup, so failure is a note."""
        wanted = self.hands.wake and (self.hands.wakes or run.spec.wake)
        if not wanted or compute.name != "slurm":
            return
        folder = run.journal.folder.submission(intent.name)
        told = records.Wake(run=run.run_id, state_root=str(self.hands.layout.root), config=self.hands.config)
        work = waking.first(told, self.hands.wake, folder, intent.name, bound.job_id)
        try:
            compute.submit(work)
        except (SubmissionRefused, SubmissionWithheld, SubmissionAmbiguous) as error:
            # Whoever wakes this run now sees that perhaps nobody else will.
            fsio.publish(folder / "wake" / waking.DOUBTFUL, b"")
            self.problems.append(f"{work.name}: no wake job: {error}; the next tick moves the run on")

    def _abandon(self, run: LiveRun, submission: Submission) -> None:
        """Take the claim of every element, so that a job that surfaces after all leaves at once; then say so."""
        folder, hands = run.journal.folder, self.hands
        for index in range(len(submission.elements)):
            path = folder.submission(submission.name) / element_file(index, records.CLAIM)
            taken = letgo.take_claim(folder, submission, index, hands.author, hands.clock)
            if not taken and not load(records.Claim, path).abandoned:
                _log.warning("%s: a job has claimed it after all; it will be adopted", path)
                return
        reason = "no job of this name surfaced; its claims are taken, so a late one would leave"
        self._commit(run, ev.SubmissionAbandoned(name=submission.name, reason=reason))

    def _let_go(self, run: LiveRun, names: Sequence[str]) -> None:
        """What a person ended by force may still come or live: keep it from starting, and ask once for its end."""
        letgo.take_claims_of_forced(run.journal.folder, run.state, names, self.hands.author, self.hands.clock)
        wanted: dict[str, dict[str, JobRef]] = {}
        for name in names:
            submission = run.state.submissions[name]
            index = self.indexes.get(submission.compute)
            wanted.setdefault(submission.compute, {})[name] = letgo.surely(submission, index)
        failed = letgo.cancel(self.hands.computes, wanted)
        failed += [f"{name} is not at hand on {self.hands.author.host}" for name in wanted.keys() - self.hands.computes]
        by_hand = "the run was ended by force and does not ask again: cancel its jobs by hand"
        # A fault, since it is told to people also where a quiet pass tells no problems; nobody else will see to it.
        self.faults += [(run.run_id, f"{problem}; {by_hand}: {', '.join(names)}") for problem in failed]

    def _archive(self, run: LiveRun, submission: Submission, note: str) -> None:
        index = self.indexes.get(submission.compute)
        rows = [] if index is None else index.rows_of(submission)
        count = archive.write(run.journal.folder, submission, rows, note)
        held = archive.held(submission, rows)
        self._commit(
            run,
            ev.AccountingArchived(
                submission=submission.name, rows=count, note=note, cpu_s=held.cpu_s, gpu_s=held.gpu_s
            ),
        )

    def _publish(self, run: LiveRun, plan: Plan) -> None:
        """Say and propose what is wanted; what fails is noted, waits for the next pass and holds up nothing else."""
        if not (plan.post or plan.propose):
            return
        run.journal.still_at(run.state)
        try:
            forge = self.hands.forges(run.spec.target)
            if forge is None:
                self.speechless.add(run.run_id)
                return
            for key in plan.post:
                if wanted := run.state.posts[key].wanted:
                    self._commit(run, publish.post(forge, wanted, run.run_id))
            for key in plan.propose:
                if change := run.state.changes[key].wanted:
                    self._commit(run, publish.propose(forge, self.hands.layout, run.spec, change))
        except TryLater as later:
            self.speechless.add(run.run_id)
            self.unavailable = True
            self.problems.append(f"{run.run_id}: {later}")
        except Fault as fault:
            self.speechless.add(run.run_id)
            self.faults.append((run.run_id, str(fault)))

    def _render(self, run: LiveRun) -> None:
        try:
            self.hands.render(run.spec.target)
        except Fault as fault:
            # Another run's document, and all is rendered anew from the documents once it is mended: this run goes on.
            self.faults.append((run.run_id, f"what follows from {run.spec.target}'s results stays as it was: {fault}"))

    def _close(self, run: LiveRun) -> None:
        self._commit(run, ev.RunClosed())
        leave_live_index(self.hands.layout, run)


def leave_live_index(layout: Layout, run: LiveRun) -> None:
    """Remove what a closed run no longer needs; done again by the next pass when a crash came between."""
    for name, submission in run.state.submissions.items():
        clean = all(t.outcome == "done" for s in run.state.steps.values() for t in s.tries if t.submission == name)
        for scrap in ("submitit", "wake") if submission.status != "bound" or clean else ("wake",):
            path = run.journal.folder.submission(name) / scrap
            effects.perform("remove", str(path), partial(shutil.rmtree, path, ignore_errors=True))
        # A job of a run that was ended by force may live, and its controller writes on.
        if submission.compute == "local" and run.state.forced is None:
            fsio.remove(layout.local / f"{name}.jsonl")
    run.journal.save_snapshot(run.state)
    if run.state.changed_at is not None:
        fsio.make_folder(layout.tidy)
        fsio.publish(layout.tidy / marker_of(run.run_id, run.state.changed_at), b"")
    fsio.remove(layout.live / run.run_id)
