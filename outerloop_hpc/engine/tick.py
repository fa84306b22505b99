"""One bounded, overlap-safe pass: observe, plan, commit, act. ``tick`` launches new work too, ``reconcile`` does not.

Reconciling is always possible: PAUSE, HOLD, a full disk or a broken contract stop launches, never the reading of truth.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from outerloop_hpc import collector, fsio
from outerloop_hpc.engine import changes, fit, letgo, reconcile, room, runs, silence, watch
from outerloop_hpc.engine.carry import Carrier, Hands, leave_live_index
from outerloop_hpc.engine.events import PersonDecided
from outerloop_hpc.engine.evidence import Index
from outerloop_hpc.engine.housekeeping import Housekeeping, Share
from outerloop_hpc.engine.journal import Overtaken
from outerloop_hpc.engine.kind import Kind
from outerloop_hpc.engine.lane import Lane, Order, Remark
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.passresult import PassResult
from outerloop_hpc.engine.patience import Patients, spared
from outerloop_hpc.engine.plan import Here, Input, Line, Plan
from outerloop_hpc.engine.rules import Policy
from outerloop_hpc.engine.serve import Counter, Service
from outerloop_hpc.engine.spec import RunSpec, stamp
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.errors import Fault, OuterloopError, TryLater
from outerloop_hpc.forge.port import Change
from outerloop_hpc.slurm.port import Availability, Compute

_log = logging.getLogger(__name__)

_ROUNDS = 4
_LARGEST = 1000
_QUIET = frozenset({"wait", "alive"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What one pass may do. 0 live runs means no limit."""

    submissions: int = 20
    live_runs: int = 50
    min_free_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Engine:
    """Everything that a pass needs, wired once.

    Attributes:
        default: the compute that new submissions go to.
        largest: says how many elements an array may have there; asked only when something is to be submitted.
        share: how much each tick clears away.
        home: this user's home folder; a tick says when it has no room.
    """

    hands: Hands
    kinds: Mapping[str, Kind]
    default: str
    policy: Policy
    limits: Limits
    largest: Callable[[], int] = lambda: _LARGEST
    cluster: str = ""
    share: Share = field(default_factory=Share)
    home: Path | None = None

    @property
    def layout(self) -> Layout:
        """The state folder."""
        return self.hands.layout

    @property
    def compute(self) -> Compute:
        """Where new submissions go."""
        return self.hands.computes[self.default]


class Pass:
    """One pass over all live runs, or over the named ones.

    One that insists asks whoever was asked just before, too; a dry run may be told what a person ``imagined`` to say.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        launch: bool,
        dry_run: bool = False,
        only: Sequence[str] = (),
        lanes: Sequence[Lane] = (),
        insists: bool = False,
        imagined: Sequence[PersonDecided] = (),
    ) -> None:
        self.imagined = imagined if dry_run else ()
        self.engine, self.launch, self.dry_run, self.only, self.lanes = engine, launch, dry_run, only, lanes
        self.insists = insists
        self.patients = Patients.among(engine.hands.computes)
        self.result = PassResult()
        self.now = engine.hands.clock.now()
        self.policies = watch.policies_for(engine.policy, engine.hands.computes)
        self.silent: Mapping[str, datetime] = {}
        self.changes: Mapping[str, Mapping[str, Change | None]] = {}

    def run(self) -> PassResult:
        """Make the pass.

        Raises:
            TryLater: the state folder cannot be written at all.
            FilesystemUnfit: nothing is exclusive there.
        """
        if not self.dry_run:
            fit.require_exclusive(self.engine.layout, self.now)
        framed = self.patients.during(
            self._told_away, asks_anyway=self.dry_run, insists=self.insists, whole=not self.only
        )
        with collector.off(), framed:
            return self._run()

    def _told_away(self, away: Sequence[str]) -> None:
        self.result.problems += away
        self.result.unavailable |= bool(away)

    def _held(self) -> str:
        """Say why nothing is launched now: it was held from the beginning, or the scheduler stopped answering."""
        return self.result.held or self.patients.held(self.engine.default)

    def _run(self) -> PassResult:
        lack = self._lack()
        if short := bool(lack) and self._keeps_house:
            # Before anything is written: what this frees may be what the pass needs.
            self._tidy(self.engine.share.on_short_disk())
            lack = self._lack()
        self._beat("started")
        self.result.held = self._why_held(lack)
        if not self.dry_run and not self.only:
            for run_id in runs.unmade(self.engine.layout):
                self._isolated(run_id, partial(runs.make_up, self.engine.layout, run_id, self.now))
        live = list(self._load(self.only or runs.live(self.engine.layout)))
        self.result.live = len(live)
        indexes = watch.look(live, self.engine.hands.computes)
        self._note_sources(indexes)
        self.silent = silence.noted(self.engine.layout, indexes, self.now, write=not self.dry_run)
        self.changes = changes.look(live, self.engine.hands.forges, self._note_forge)
        carrier = Carrier(self.engine.hands, indexes)
        for run in live:
            self._advance(run, indexes, carrier)
        if self.launch and not self.only:
            self._serve_lanes(carrier)
        self._cancel(live, indexes)
        self.result.submitted, self.result.refused = carrier.submitted, carrier.refused
        self.result.problems += carrier.problems
        self.result.faults += carrier.faults
        self.result.unavailable |= carrier.unavailable
        self.result.held = self._held()
        if self._keeps_house and not short:
            self._tidy(self.engine.share)
        self._beat("completed")
        return self.result

    def _beat(self, phase: str) -> None:
        if self.dry_run:
            return
        folder = self.engine.layout.tick
        fsio.make_folder(folder)
        author = self.engine.hands.author
        said = {"schema": f"{phase}/1", "at": stamp(self.now), "host": author.host, "pid": author.pid}
        fsio.replace(folder / f"{phase}.json", json.dumps(said).encode() + b"\n")

    @property
    def _keeps_house(self) -> bool:
        return self.launch and not self.only and not self.dry_run

    def _lack(self) -> str:
        """Say what the state folder's disk lacks; a home without room is told and holds nothing."""
        home, root = self.engine.home, self.engine.layout.root
        if self._keeps_house and home is not None and (lack := room.lacking(home, room.HOME_BYTES)):
            said = f"home folder {lack}; what writes there may fail, sessions too: free space"
            self.result.problems += [] if said in self.result.problems else [said]
        there = next(folder for folder in (root, *root.parents) if folder.is_dir())
        return room.lacking(there, self.engine.limits.min_free_bytes, write=not self.dry_run)

    def _why_held(self, lack: str) -> str:
        layout = self.engine.layout
        for sentinel in ("PAUSE", "HOLD"):
            if (layout.tick / sentinel).exists():
                return f"{layout.tick / sentinel} is there; remove it to launch again"
        return lack

    def _tidy(self, share: Share) -> None:
        """Clear away this pass's share; whatever goes wrong there stops nothing."""
        hands = self.engine.hands
        done = self.result.tidied
        try:
            done = self.result.tidied = Housekeeping(hands.layout, hands.clock, hands.author.host, share).run()
        except Exception as error:  # noqa: BLE001 - what is to be thrown away must not stop what is to be kept
            _log.exception("housekeeping failed")
            self.result.problems.append(f"housekeeping: {type(error).__name__}: {error}; the next tick tries again")
        self.result.problems += done.problems
        if done.removed:
            reason = f"{done.removed} leftovers, {done.bytes} bytes{'; the next tick goes on' if done.more else ''}"
            self.result.lines.append(("housekeeping", Line("leftovers", "housekeeping.removed", "remove", reason)))

    def _load(self, wanted: Iterable[str]) -> Iterator[watch.LiveRun]:
        for run_id in wanted:
            try:
                run = watch.load(self.engine.layout, run_id)
            except OuterloopError as fault:
                self.result.faults.append((run_id, str(fault)))
                continue
            if run.state.closed:
                if not self.dry_run:
                    self._isolated(run_id, partial(leave_live_index, self.engine.layout, run))
                continue
            yield run

    def _note_sources(self, indexes: Mapping[str, Index]) -> None:
        for name, index in indexes.items():
            seen = index.observation
            self.result.calls += seen.calls
            if seen.spared_s:
                self.result.spared_s = max(self.result.spared_s, seen.spared_s)
                self.result.notes.append(spared(name, seen.spared_s))
                continue
            for source, answer in (("queue", seen.queue), ("accounting", seen.accounting)):
                self.result.problems += [f"{name} {source}: {problem}" for problem in answer.problems]
                if answer.availability is Availability.UNAVAILABLE:
                    self.result.unavailable = True
                    self.result.problems.append(f"{name} {source}: no answer; nothing is concluded from that")

    def _note_forge(self, target: str, error: OuterloopError) -> None:
        self.result.problems.append(f"forge of {target}: {error}; nothing is concluded from that")
        self.result.unavailable |= isinstance(error, TryLater)

    def _advance(self, run: watch.LiveRun, indexes: Mapping[str, Index], carrier: Carrier) -> None:
        """Plan and carry out until nothing is left to do; whatever happens stays with this run."""
        self._isolated(run.run_id, partial(self._rounds, run, indexes, carrier))
        self.result.parked += run.state.phase == "parked"
        if run.state.seq != run.loaded_seq and not self.dry_run and not run.state.closed:
            run.journal.save_snapshot(run.state)

    def _isolated(self, run_id: str, act: Callable[[], None]) -> None:
        """Do something about one run or order; whatever goes wrong is noted and stops no other."""
        try:
            act()
        except Overtaken as overtaken:
            _log.info("%s", overtaken)
        except TryLater as later:
            self.result.problems.append(f"{run_id}: {later}")
            self.result.unavailable = True
        except OuterloopError as fault:
            self.result.faults.append((run_id, str(fault)))
        except Exception as error:  # noqa: BLE001 - one run or order that breaks must not stop the others
            _log.exception("%s could not be handled", run_id)
            self.result.faults.append((run_id, f"{type(error).__name__}: {error}"))

    def _rounds(self, run: watch.LiveRun, indexes: Mapping[str, Index], carrier: Carrier) -> None:
        kind: Kind | None = None
        for number in range(_ROUNDS):
            gathered = watch.gather(run, indexes, self.now, self.policies, self.silent)
            kind = kind or self._kind(run)
            plan = reconcile.plan(self._input(run, kind, gathered, carrier))
            self._note(run.run_id, plan, first=number == 0)
            if plan.idle or self.dry_run:
                return
            carrier.out(run, plan, kind)
            if run.state.closed:
                self.result.closed += 1
                return

    def _note(self, run_id: str, plan: Plan, *, first: bool) -> None:
        for line in plan.lines:
            if first or line.verdict not in _QUIET:
                self.result.lines.append((run_id, line))
            if line.rule == "record.unreadable" and first:
                self.result.faults.append((run_id, line.reason))

    def _kind(self, run: watch.LiveRun) -> Kind:
        word = run.run_id.partition("-")[0]
        kind = self.engine.kinds.get(word)
        if kind is None:
            raise Fault(f"{run.run_id}: this version does not know runs of kind {word!r}")
        return kind

    def _input(self, run: watch.LiveRun, kind: Kind, gathered: watch.Gathered, carrier: Carrier) -> Input:
        engine = self.engine
        left = max(engine.limits.submissions - carrier.submitted, 0)
        largest = engine.largest() if left and not self._held() and _may_submit(run.state) else _LARGEST
        # Only now: the question above may be the one that was not answered, and then no intent is to be written.
        allowed = 0 if self._held() else left
        here = Here(
            host=engine.hands.author.host,
            user=engine.compute.user,
            compute=engine.default,
            cluster=engine.cluster,
            launches=allowed,
            largest=largest,
        )
        return Input(
            read_spec=lambda: run.spec,
            state=run.state,
            kind=kind,
            policies=self.policies,
            here=here,
            now=self.now,
            evidence=gathered.evidence,
            unbound=gathered.unbound,
            inbox=(*gathered.inbox, *self.imagined),
            archivable=gathered.archivable,
            silent=self.silent,
            changes=self._news(run),
            speechless=run.run_id in carrier.speechless,
        )

    def _news(self, run: watch.LiveRun) -> dict[str, Change | None]:
        """What the forge said of changes that this run waits for; one that was opened since is the next pass's."""
        told = self.changes.get(run.run_id, {})
        return {key: told[key] for key in changes.waited_for(run) if key in told}

    def _serve_lanes(self, carrier: Carrier) -> None:
        counter = Counter(
            layout=self.engine.layout,
            forges=self.engine.hands.forges,
            now=self.now,
            dry_run=self.dry_run,
            held=self._why_no_run,
            begin=partial(self._begin, carrier),
            isolate=self._isolated,
            say=self._say,
        )
        Service(counter, self.lanes).run()

    def _why_no_run(self) -> str:
        limit = self.engine.limits.live_runs
        full = limit and self.result.live >= limit
        return self._held() or (f"{self.result.live} runs are live, the limit is {limit}" if full else "")

    def _say(self, lane: str, wish: Order | Remark, rule: str, verdict: str, reason: str) -> None:
        subject = wish.key if isinstance(wish, Order) else f"order {wish.order}"
        self.result.lines.append((f"{lane} {wish.target}", Line(subject, rule, verdict, reason)))

    def _begin(self, carrier: Carrier, spec: RunSpec) -> None:
        runs.ensure(self.engine.layout, spec)
        runs.made(self.engine.layout, spec.run)
        self.result.live += 1
        self._advance(watch.load(self.engine.layout, spec.run), {}, carrier)

    def _cancel(self, live: Sequence[watch.LiveRun], indexes: Mapping[str, Index]) -> None:
        """One scancel for everything that the journal wants ended and that is still under way."""
        if not self.dry_run:
            problems = letgo.unseen(live, indexes)
            problems += letgo.cancel(self.engine.hands.computes, letgo.unwanted(live, indexes))
            self.result.unavailable |= bool(problems)
            self.result.problems += problems


def _may_submit(state: RunState) -> bool:
    """Whether a plan may want to submit something: a new run, or a step that has no open try and no last word."""
    return not state.steps or any(s.open_try is None and s.settled() is None for s in state.steps.values())
