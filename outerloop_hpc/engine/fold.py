"""The fold of a journal: ``apply(state, transaction) -> state``. Pure."""

from __future__ import annotations

from typing import Any

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.state import Change, Ended, Parked, Post, RunState, Step, Submission, Try

#: Counts up whenever an event comes to mean something else: states that were folded otherwise are folded again.
FOLD = 4


class _Fold:
    """Applies one transaction to copies of the containers; the old state stays as it was."""

    def __init__(self, state: RunState, transaction: ev.Transaction) -> None:
        self.at = transaction.at
        self.steps = dict(state.steps)
        self.submissions = dict(state.submissions)
        self.posts = dict(state.posts)
        self.changes = dict(state.changes)
        self.conclusions = dict(state.conclusions)
        self.rest: dict[str, Any] = {
            "started_at": state.started_at,
            "parked": state.parked,
            "ended": state.ended,
            "closed": state.closed,
            "person": state.person,
        }

    def take(self, event: ev.Event) -> None:
        getattr(self, "_" + event.type.replace(".", "_"))(event)

    def _run_started(self, _: ev.RunStarted) -> None:
        self.rest["started_at"] = self.at

    def _steps_wanted(self, event: ev.StepsWanted) -> None:
        for spec in event.steps:
            self.steps.setdefault(spec.key, Step(spec=spec))

    def _submission_intended(self, event: ev.SubmissionIntended) -> None:
        self.submissions[event.name] = Submission(
            name=event.name,
            compute=event.compute,
            user=event.user,
            host=event.host,
            cluster=event.cluster,
            elements=event.elements,
            resources=event.resources,
            intended_at=self.at,
        )
        for index, element in enumerate(event.elements):
            step = self.steps[element.step]
            new = Try(number=element.try_number, submission=event.name, index=index)
            self.steps[element.step] = step.model_copy(update={"tries": (*step.tries, new)})

    def _submission_bound(self, event: ev.SubmissionBound) -> None:
        # An answer without a cluster (a job found by its name) keeps the one that it was sent to.
        cluster = event.cluster or self.submissions[event.name].cluster
        self._submission(event.name, status="bound", job_id=event.job_id, cluster=cluster)

    def _submission_refused(self, event: ev.SubmissionRefused) -> None:
        self._submission(event.name, status="refused", archived=True)
        self._end_all(event.name, "refused", "submit.refused", event.complaint)

    def _submission_abandoned(self, event: ev.SubmissionAbandoned) -> None:
        self._submission(event.name, status="abandoned", archived=True)
        if event.withheld:
            self._end_all(event.name, "abandoned", "submit.withheld", event.reason)
        else:
            self._end_all(event.name, "abandoned", "submit.abandoned", event.reason)

    def _sighted(self, event: ev.Sighted) -> None:
        for seen in event.sightings:
            element = self.submissions[seen.submission].elements[seen.index]
            update: dict[str, Any] = {"absent_since": None, "absent_host": "", "absent_word": ""}
            if seen.absent:
                # A word that is learnt later starts no window anew.
                known = next(t for t in self.steps[element.step].tries if t.number == element.try_number)
                since = {"absent_since": self.at, "absent_host": event.host} if known.absent_since is None else {}
                update = {**since, "absent_word": seen.word}
            self._try(element.step, element.try_number, update)

    def _try_ended(self, event: ev.TryEnded) -> None:
        self._try(
            event.step,
            event.try_number,
            {
                "outcome": event.outcome,
                "rule": event.rule,
                "reason": event.reason,
                "word": event.word,
                "node": event.node,
                "node_unfit": event.node_unfit,
                "begun": event.begun,
                "part": event.part,
                "record_outcome": event.record_outcome,
                "ended_at": self.at,
                "forgiven": event.rule == ev.GAVE_UP or (event.outcome != "done" and self._excused(event)),
            },
        )
        if event.outcome == "done":
            self.steps[event.step] = self.steps[event.step].model_copy(update={"payload": event.payload})
        parked = self.rest["parked"]
        if parked is not None and parked.tries and all(map(self._has_ended, parked.tries)):
            # What a person was asked about these tries has been answered by what was seen since.
            self.rest["parked"] = None

    def _run_parked(self, event: ev.RunParked) -> None:
        self.rest["parked"] = Parked(question=event.question, reason=event.reason, since=self.at, tries=event.tries)

    def _person_decided(self, event: ev.PersonDecided) -> None:
        self.rest["person"] = (*self.rest["person"], event)
        if event.action == "resume":
            self.rest["parked"] = None
            for key, step in self.steps.items():
                if step.final:
                    continue
                if step.settled() is not None or step.refusals() or self._unwanted(step):
                    forgiven = tuple(
                        t.model_copy(update={"forgiven": t.outcome is not None or self._unwanted(step)})
                        for t in step.tries
                    )
                    self.steps[key] = step.model_copy(update={"tries": forgiven, "withdrawn": ""})

    def _unwanted(self, step: Step) -> bool:
        """Whether its open try was asked to end and has not yet: it is not the step's last word after a resume."""
        current = step.open_try
        return current is not None and self.submissions[current.submission].cancel_asked

    def _cancel_asked(self, event: ev.CancelAsked) -> None:
        for name in event.submissions:
            self._submission(name, cancel_asked=True)
        for key in event.steps:
            self.steps[key] = self.steps[key].model_copy(update={"withdrawn": event.reason})

    def _accounting_archived(self, event: ev.AccountingArchived) -> None:
        self._submission(event.submission, archived=True, cpu_s=event.cpu_s, gpu_s=event.gpu_s)

    def _conclusion_reached(self, event: ev.ConclusionReached) -> None:
        self.conclusions.setdefault(event.key, event.document)

    def _post_wanted(self, event: ev.PostWanted) -> None:
        self.posts.setdefault(event.key, Post(order=event.order, wanted=event))

    def _post_done(self, event: ev.PostDone) -> None:
        update = {"wanted": None, "comment": event.comment, "note": event.note}
        self.posts[event.key] = self.posts[event.key].model_copy(update=update)

    def _change_wanted(self, event: ev.ChangeWanted) -> None:
        self.changes.setdefault(event.key, Change(branch=event.branch, wanted=event))

    def _change_bound(self, event: ev.ChangeBound) -> None:
        self._change(event.key, wanted=None, change=event.change, commit=event.commit, where=event.where, status="open")

    def _change_seen(self, event: ev.ChangeSeen) -> None:
        self._change(event.key, status=event.status, merged_as=event.commit)

    def _run_ended(self, event: ev.RunEnded) -> None:
        self.rest["ended"] = Ended(ending=event.ending, reason=event.reason, result=event.result, at=self.at)
        self.rest["parked"] = None

    def _run_closed(self, _: ev.RunClosed) -> None:
        self.rest["closed"] = True

    def _submission(self, name: str, **update: Any) -> None:
        self.submissions[name] = self.submissions[name].model_copy(update=update)

    def _change(self, key: str, **update: Any) -> None:
        self.changes[key] = self.changes[key].model_copy(update=update)

    def _excused(self, event: ev.TryEnded) -> bool:
        """Whether a person resumed the run while this try, which was to be cancelled, was still open."""
        return any(one.number == event.try_number and one.forgiven for one in self.steps[event.step].tries)

    def _has_ended(self, element: ev.Element) -> bool:
        tries = self.steps[element.step].tries
        return any(one.number == element.try_number and one.outcome is not None for one in tries)

    def _try(self, key: str, number: int, update: dict[str, Any]) -> None:
        step = self.steps[key]
        tries = tuple(t.model_copy(update=update) if t.number == number else t for t in step.tries)
        self.steps[key] = step.model_copy(update={"tries": tries})

    def _end_all(self, name: str, outcome: ev.TryOutcome, rule: str, reason: str) -> None:
        update = {"outcome": outcome, "rule": rule, "reason": reason, "ended_at": self.at}
        for element in self.submissions[name].elements:
            self._try(element.step, element.try_number, update)


def apply(state: RunState, transaction: ev.Transaction) -> RunState:
    """Fold one transaction into the state; the transaction must be the next one."""
    fold = _Fold(state, transaction)
    for event in transaction.events:
        fold.take(event)
    return state.model_copy(
        update={
            **fold.rest,
            "seq": transaction.seq,
            "changed_at": transaction.at,
            "steps": fold.steps,
            "submissions": fold.submissions,
            "posts": fold.posts,
            "changes": fold.changes,
            "conclusions": fold.conclusions,
        }
    )
