"""One arm of a cell: a fresh checkout, setup on the base files, perhaps the overlay, the command, the hidden oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from outerloop_hpc import fsio
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.runtime import Bind
from outerloop_hpc.engine.body import Context, Result
from outerloop_hpc.engine.clearing import remove
from outerloop_hpc.engine.enclose import afresh, inside
from outerloop_hpc.evolve.bodies.celllog import PER_COMMAND, CellLog
from outerloop_hpc.evolve.bodies.fingerprint import changed, fingerprint
from outerloop_hpc.evolve.bodies.reading import MAX_RESULT, Numbers, Wanted, read_numbers
from outerloop_hpc.evolve.findings import ArmFound, ArmWord
from outerloop_hpc.evolve.gate.pairs import Arm
from outerloop_hpc.evolve.given import CellGiven
from outerloop_hpc.evolve.hidden import check_out, hand_out
from outerloop_hpc.evolve.leavings import content_of
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault, InvalidOverlay, Overlay
from outerloop_hpc.evolve.overlays.transfer import lay
from outerloop_hpc.evolve.sweepfile.closed import program_places
from outerloop_hpc.evolve.work import EvolveWork, Oracle, Task
from outerloop_hpc.measure.judge import Read
from outerloop_hpc.measure.measurement import Measurement, Outcome
from outerloop_hpc.measure.output import Reading, Unusable
from outerloop_hpc.measure.run import Request, measure
from outerloop_hpc.supervision.child import Limits

_RESULT_INSIDE = PurePosixPath("/outerloop/result")
_RESULT = "result.json"


@dataclass(frozen=True, slots=True)
class Station:
    """What both arms of a cell have in common. ``where`` is an enclosure of this try, used for no command."""

    context: Context
    work: EvolveWork
    task: Task
    given: CellGiven
    where: Enclosure
    log: CellLog

    @property
    def most_memory(self) -> bool:
        """Whether a try with more memory would not come: this one had it, or nobody said how much it was."""
        asked, first = self.context.element.step.resources.memory_mb, self.task.resources.memory_mb
        return asked is None or (first is not None and asked > first)


def run_arm(station: Station, arm: Arm, overlay: Overlay, position: int) -> ArmFound | Result:
    """Carry out one arm.

    Args:
        station: the cell.
        arm: which one; nothing that its command can see tells.
        overlay: the files that are laid over the base; none for the incumbent.
        position: 0 for the first arm of the cell, 1 for the second.

    Returns:
        What it came to; or a result that ends the try, since it says nothing about the arm.

    Raises:
        IntegrityFault: the task's setup changed what candidates are to replace.
        OtherTree: the task's commit holds another tree.
        NodeUnfit, ConfigError, TryLater: as for every measurement.
    """
    return _Trial(station, arm, overlay, station.context.scratch / f"part-{position}").carry_out()


def _ended_well(_stdout: bytes, _cut: bool) -> Reading:  # noqa: FBT001 - the form of a Read
    """Read nothing: of setup and oracles only the exit status says anything."""
    return Reading(0.0)


class _Reader:
    """Reads a command's numbers once it has ended, and keeps them."""

    def __init__(self, wanted: Wanted, file: Path) -> None:
        self._wanted, self._file = wanted, file
        self.numbers: Numbers | None = None

    def __call__(self, stdout: bytes, cut: bool) -> Reading | Unusable:  # noqa: FBT001 - the form of a Read
        found = read_numbers(self._wanted, stdout, cut=cut, result=content_of(self._file, MAX_RESULT + 1))
        self.numbers = found if isinstance(found, Numbers) else None
        return found


class _Trial:
    def __init__(self, station: Station, arm: Arm, overlay: Overlay, folder: Path) -> None:
        self._at, self._arm, self._overlay = station, arm, overlay
        self._folder, self._checkout = folder, folder / "checkout"
        self._title = f"{arm}, task {station.task.id}, seed {station.given.seed}"

    def carry_out(self) -> ArmFound | Result:
        self._folder.mkdir(mode=0o700)
        try:
            return self._carry_out()
        finally:
            # The other arm must neither find this one's files nor want their room.
            remove(self._folder, lambda: False)

    def _carry_out(self) -> ArmFound | Result:
        at = self._at
        check_out(at.context, at.task.commit, at.task.tree, at.work.hidden(), self._checkout)
        evolved = sorted({*at.work.base, *self._overlay.files})
        base = fingerprint(self._checkout, evolved)
        where = self._enclosure("room", network=at.work.containment.network)
        if (stopped := self._set_up(where)) is not None:
            return stopped
        if different := changed(base, fingerprint(self._checkout, evolved)):
            raise IntegrityFault(
                f"task {at.task.id}: its setup changed {different}, which candidates replace, so the arms would not be "
                "set up alike; let setup leave those files alone, or take them out of overlay.allow"
            )
        try:
            lay(self._overlay, self._checkout)
        except InvalidOverlay as error:
            return self._found("failed", f"its overlay does not fit the task's files: {error}")
        return self._measured(self._enclosure("room"), fingerprint(self._checkout, evolved))

    def _set_up(self, where: Enclosure) -> Result | None:
        """Run the setup commands on the base files; what goes wrong there says nothing about an arm."""
        at, left = self._at, self._at.task.setup_timeout_s
        for number, command in enumerate(at.task.setup, 1):
            done = self._run(command, where, {"OL_TASK": at.task.id}, max(left, 0.1))
            at.log.keep(f"setup {number}: {self._title}")
            left -= done.seconds
            if done.outcome is not Outcome.MEASURED:
                return self._ended(done) or Result("infrastructure", f"setup {number}: {done.reason}")
        return None

    def _measured(self, where: Enclosure, laid: Mapping[str, str]) -> ArmFound | Result:
        at, task = self._at, self._at.task
        reader = _Reader(_wanted(at.work, task), self._folder / "result" / _RESULT)
        env = {
            "OL_SEED": str(at.given.seed),
            "OL_REPEAT": str(at.given.repeat),
            "OL_TASK": task.id,
            "OL_RESULT": inside(where, _RESULT_INSIDE / _RESULT),
        }
        judging = fingerprint(self._checkout, program_places(task.oracle.command) if task.oracle else ())
        done = self._run(task.command, where, env, task.timeout_s, reader)
        at.log.keep(self._title)
        if done.outcome is Outcome.FAILED:
            return self._found("failed", done.reason, done)
        if done.outcome is Outcome.OUT_OF_MEMORY and at.most_memory:
            return self._found("out-of-memory", done.reason, done)
        if done.outcome is not Outcome.MEASURED or reader.numbers is None:
            return self._ended(done) or Result("infrastructure", done.reason, part=self._arm)
        if altered := self._altered(laid, judging):
            return self._found("failed", f"while it ran it changed {altered}", done)
        success = self._asked(reader.numbers.success)
        if isinstance(success, Result):
            return success
        return self._found("measured", "", done, reader.numbers, success)

    def _altered(self, laid: Mapping[str, str], judging: Mapping[str, str]) -> str:
        """Say what the command changed that it must not; empty when it is all as it was."""
        if different := changed(laid, fingerprint(self._checkout, laid)):
            return f"{different}, so that it is not what was proposed"
        if different := changed(judging, fingerprint(self._checkout, judging)):
            return f"{different}, which is to judge it"
        return ""

    def _asked(self, success: bool | None) -> bool | Result | None:  # noqa: FBT001 - the flag's own value
        """Ask the hidden oracle, unless the task's own flag has said no already."""
        oracle = self._at.task.oracle
        if oracle is None or success is False:
            return success
        done = self._oracle(oracle)
        match done.outcome:
            case Outcome.MEASURED:
                return True
            case Outcome.FAILED:
                return False
            case Outcome.INTERRUPTED:
                return self._stopped()
            case Outcome.OUT_OF_MEMORY if not self._at.most_memory:
                return Result("out_of_memory", "the node killed the hidden oracle for want of memory")
            case _:
                # Not its own words: what an oracle says is never stored.
                said = "the hidden oracle could not be asked, or asked to be tried later"
                return Result("infrastructure", said, part=self._arm)

    def _oracle(self, oracle: Oracle) -> Measurement:
        files = hand_out(self._at.context, self._at.task, oracle)
        place = PurePosixPath("/outerloop") / fsio.nonce()
        try:
            where = afresh(self._at.where, self._folder / "oracle", network=False, binds=(Bind(files, place),))
            named = inside(where, place)
            command = tuple(word.replace("{oracle}", named) for word in oracle.command)
            env = {"OL_ORACLE": named, "OL_TASK": self._at.task.id, "OL_SEED": str(self._at.given.seed)}
            return self._run(command, where, env, oracle.timeout_s, log=False)
        finally:
            remove(files, lambda: False)

    def _run(
        self,
        command: tuple[str, ...],
        where: Enclosure,
        env: Mapping[str, str],
        wall_s: float,
        read: Read = _ended_well,
        *,
        log: bool = True,
    ) -> Measurement:
        at = self._at
        request = Request(
            command=command,
            metric=at.work.gate.primary.name,
            checkout=self._checkout,
            limits=Limits(wall_s, output_bytes=PER_COMMAND),
            seed=at.given.seed,
            seed_env=at.task.seed_env or None,
            cpus=at.context.element.step.resources.cpus,
            env=env,
            log=at.log.path if log else None,
            read=read,
        )
        return measure(request, enclosure=where, clock=SystemClock(), stop=at.context.stop)

    def _enclosure(self, room: str, *, network: bool = False) -> Enclosure:
        result = self._folder / "result"
        result.mkdir(exist_ok=True)
        binds = (Bind(result, _RESULT_INSIDE, writable=True),)
        return afresh(self._at.where, self._folder / room, network=network, binds=binds)

    def _ended(self, done: Measurement) -> Result | None:
        """Return the result that ends the try, where the way a command ended has one of its own."""
        if done.outcome is Outcome.INTERRUPTED:
            return self._stopped()
        if done.outcome is Outcome.OUT_OF_MEMORY and not self._at.most_memory:
            return Result("out_of_memory", done.reason)
        return None

    def _stopped(self) -> Result:
        return Result("infrastructure", f"the cell was stopped: {self._at.context.stop.reason}")

    def _found(
        self,
        word: ArmWord,
        reason: str,
        done: Measurement | None = None,
        numbers: Numbers | None = None,
        success: bool | None = None,  # noqa: FBT001 - the flag's own value
    ) -> ArmFound:
        return ArmFound(
            arm=self._arm,
            overlay=self._at.given.overlay if self._arm == "candidate" else "",
            word=word,
            metrics=dict(numbers.metrics) if numbers else {},
            success=success,
            reason=reason,
            seconds=done.seconds if done else 0.0,
            cpu_s=done.cpu_user_s + done.cpu_system_s if done else 0.0,
            max_rss_kib=(done.max_rss_kib or None) if done else None,
        )


def _wanted(work: EvolveWork, task: Task) -> Wanted:
    gate = work.gate
    return Wanted((gate.primary.name, *(guardrail.name for guardrail in gate.guardrails)), task.success_key)
