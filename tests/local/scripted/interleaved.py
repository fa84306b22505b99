"""Two passes at the same moment without any lock, and one that slept: what is common to the tests of each flow.

The polite lock is taken away (``polite: false``). What is left is relied on: a link that is taken or not, a folder that
is renamed or not, and git's own ``.lock`` files, which are made by O_EXCL; those exclude each other between hosts, too.
"""

from __future__ import annotations

from tests.fakeslurm.model import Job
from tests.local.driver import Ended
from tests.local.scripted.flows import STEP_S
from tests.local.scripted.rehearsal import STOPPED, Moment, Rehearsal, place

#: A pass that others overtook ends well, or says that it could not do all: then the next one does.
_FINE = {0, 4, 75}
_HOUR_S = 3600.0


def stopped(rehearsal: Rehearsal, moment: Moment, kill: int, name: str) -> Ended:
    """Begin a moment's command and let it stop before its k-th effect; it may have ended before that."""
    ended = rehearsal.flow.order(*moment.words, kill=kill, signal="SIGSTOP", name=name)
    assert ended.status in {STOPPED, *_FINE}, f"{place(moment, kill, ended)}\n{ended.err}"
    return ended


def goes_on(rehearsal: Rehearsal, begun: Ended, name: str, where: str) -> None:
    """Let it go on to its end, if it stands still."""
    ended = rehearsal.flow.driver.go_on(name) if begun.status == STOPPED else begun
    assert ended.status in _FINE, f"{where}: {ended.status}\n{ended.out}\n{ended.err}"
    assert "Traceback" not in ended.err, f"{where}\n{ended.err}"


def interleaved_everywhere(rehearsal: Rehearsal, number: int) -> int:
    """Stop one command before each of its effects, let another run to its end, then go on."""
    moment, flow, count = rehearsal.moments[number], rehearsal.flow, 0
    for kill in range(1, len(moment.effects) + 1):
        moment.before.restore(flow)
        first = stopped(rehearsal, moment, kill, "first")
        count += first.status == STOPPED
        where = f"another one ran while this stood still: {place(moment, kill, first)}"
        flow.order(*moment.words)
        goes_on(rehearsal, first, "first", where)
        rehearsal.ends_well(moment, where)
    return nearly_all(count, len(moment.effects))


def nearly_all(count: int, places: int) -> int:
    """Return how often it really happened; a command may have an effect less than in the rehearsal, no more."""
    assert count >= places - 1, f"only {count} of {places} places were reached"
    return count


def pairs(moments: list[Moment], most: int) -> list[tuple[Moment, int, int]]:
    """Return where two commands stop, in turn: spread evenly over all pairs of all moments."""
    every = [
        (moment, first, second)
        for moment in moments
        for first in range(1, len(moment.effects) + 1)
        for second in range(1, len(moment.effects) + 1)
    ]
    return [every[(2 * number + 1) * len(every) // (2 * most)] for number in range(most)]


def interleaved_twice(rehearsal: Rehearsal, most: int) -> int:
    """One command stops, then another; the first goes on to its end, then the second.

    Returns how often both stood still: the second one has fewer effects where the first is ahead of it.
    """
    flow, chosen, count = rehearsal.flow, pairs(rehearsal.moments, most), 0
    for moment, one, two in chosen:
        moment.before.restore(flow)
        first = stopped(rehearsal, moment, one, "first")
        second = stopped(rehearsal, moment, two, "second")
        count += first.status == second.status == STOPPED
        where = f"two at once: {place(moment, one, first)}, and at effect {two}: {second.effects[-1]}"
        goes_on(rehearsal, first, "first", where)
        goes_on(rehearsal, second, "second", where)
        rehearsal.ends_well(moment, where)
    assert 2 * count >= len(chosen), f"only {count} of {len(chosen)} pairs were pairs"
    return count


def suspended_everywhere(rehearsal: Rehearsal, number: int) -> int:
    """Stop a command before each of its effects, let others go on for over an hour until all is quiet, and wake it.

    A pass looks whether others went on right before it submits. One that falls asleep after that look submits in the
    end: no program can prevent it. Its job finds its tries taken, and leaves; all else must be as if it had not been.
    """
    moment, flow = rehearsal.moments[number], rehearsal.flow
    stage = flow.stages[moment.stage]
    expected = [one for one in rehearsal.moments if one.stage == moment.stage][-1].outcome
    count = 0
    for kill in range(1, len(moment.effects) + 1):
        moment.before.restore(flow)
        first = stopped(rehearsal, moment, kill, "first")
        count += first.status == STOPPED
        where = f"asleep for an hour: {place(moment, kill, first)}"
        flow.order(*moment.words)
        rehearsal.through(moment, where)
        flow.slurm.advance(_HOUR_S)
        taken = len(flow.slurm.taken())
        goes_on(rehearsal, first, "first", where)
        late = flow.slurm.taken()[taken:]
        assert not late or _submitting(moment, kill), f"{where}: {late}"
        flow.slurm.advance(STEP_S)
        assert flow.order(stage.command).status == 0, where
        found = flow.outcome()
        for name in late:
            found["jobs"][name.split(".")[2]] -= sum(len(job.elements) for job in _jobs(rehearsal, name))
        rehearsal.demand(found, expected, where)
    return nearly_all(count, len(moment.effects))


def _submitting(moment: Moment, kill: int) -> bool:
    """Whether this effect lies between the last look and sbatch; array sizes are sometimes asked about only there."""
    before, this = moment.effects[kill - 2][1], moment.effects[kill - 1][1]
    return this.endswith(("submitit", "submission.sh", "sbatch")) or (
        this.endswith("scontrol") and before.endswith("manifest.json")
    )


def _jobs(rehearsal: Rehearsal, name: str) -> list[Job]:
    return [job for job in rehearsal.flow.slurm.cluster().jobs if job.name == name]
