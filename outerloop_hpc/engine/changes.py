"""What became of the changes that live runs have proposed: one question for each forge and pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from outerloop_hpc.engine.layout import parse_run_id
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import Fault, OuterloopError
from outerloop_hpc.forge.port import Change, Forge

Forges = Callable[[str], Forge | None]


def waited_for(run: LiveRun) -> dict[str, str]:
    """Return the ids of the run's open changes, by their key."""
    return {key: change.change for key, change in run.state.changes.items() if change.status == "open"}


def look(
    runs: Iterable[LiveRun], forges: Forges, trouble: Callable[[str, OuterloopError], None]
) -> dict[str, dict[str, Change | None]]:
    """Return, by run id, what the forge says of each change that the run waits for.

    A forge that does not answer is told to ``trouble`` and left out: nothing is concluded from that.
    """
    wanted: dict[str, dict[str, dict[str, str]]] = {}
    for run in runs:
        if asked := waited_for(run):
            wanted.setdefault(parse_run_id(run.run_id).target, {})[run.run_id] = asked
    found: dict[str, dict[str, Change | None]] = {}
    for target, by_run in wanted.items():
        try:
            forge = forges(target)
            answers = None if forge is None else forge.changes([i for asked in by_run.values() for i in asked.values()])
        except OuterloopError as error:
            trouble(target, error)
            continue
        if answers is None:
            continue
        for change in answers.values():
            if change.fault:
                trouble(target, Fault(change.fault))
        found.update(_told(by_run, answers))
    return found


def _told(
    by_run: Mapping[str, Mapping[str, str]], answers: Mapping[str, Change]
) -> dict[str, dict[str, Change | None]]:
    """Arrange the answers by run and key; of one that cannot be read nothing is told."""
    unread = {change_id for change_id, change in answers.items() if change.fault}
    return {
        run: {key: answers.get(change_id) for key, change_id in asked.items() if change_id not in unread}
        for run, asked in by_run.items()
    }
