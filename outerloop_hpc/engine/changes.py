"""What became of the changes that live runs have proposed: one question for each forge and pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from outerloop_hpc.engine.layout import parse_run_id
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import OuterloopError, TryLater
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
        except OuterloopError as error:
            trouble(target, error)
            continue
        if forge is not None:
            found.update(_asked(forge, by_run, partial(trouble, target)))
    return found


def _asked(
    forge: Forge, by_run: Mapping[str, Mapping[str, str]], trouble: Callable[[OuterloopError], None]
) -> dict[str, dict[str, Change | None]]:
    """Ask about all at once; where one cannot be read, about each run alone: it is nobody else's trouble."""
    try:
        answers = forge.changes([change for asked in by_run.values() for change in asked.values()])
    except OuterloopError as error:
        if isinstance(error, TryLater) or len(by_run) == 1:
            trouble(error)
            return {}
        alone = (_asked(forge, {run: asked}, trouble) for run, asked in by_run.items())
        return {run: told for one in alone for run, told in one.items()}
    return {run: {key: answers.get(change) for key, change in asked.items()} for run, asked in by_run.items()}
