"""What a sweep file only names: overlays and templates in folders beside it, read and checked before submission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outerloop_hpc.evolve import work as works
from outerloop_hpc.evolve.overlays.overlay import InvalidOverlay, Overlay, place_problem
from outerloop_hpc.evolve.overlays.transfer import collect, read
from outerloop_hpc.evolve.sweepfile.document import Sweep
from outerloop_hpc.evolve.sweepfile.ideas import Agent, AskTell, Command, Dirs, Grid, template_problems


@dataclass(frozen=True)
class Prepared:
    """A proposer whose files were read.

    Attributes:
        proposer: as it goes into the specification; None when there are problems.
        overlays: prepared ones, in the order of the file.
        problems: one line each.
    """

    proposer: works.Proposer | None
    overlays: tuple[Overlay, ...] = ()
    problems: tuple[str, ...] = ()


def prepare(
    sweep: Sweep, folder: Path, rules: works.OverlayRules, base: Mapping[str, str], copies: Sequence[works.Copy]
) -> Prepared:
    """Read what the proposer needs.

    Args:
        sweep: the file.
        folder: the one that it lies in.
        rules: of the sweep, with all that is closed.
        base: sha256 of each incumbent file that they allow, by path.
        copies: of the sweep.

    Raises:
        TryLater: the disk does not answer.
    """
    match sweep.proposer:
        case Dirs() as dirs:
            return _dirs(dirs, folder, rules, base, copies)
        case Grid() | AskTell() as filled:
            return _filled(filled, folder, rules, base)
        case Command() as command:
            return Prepared(works.Command(**command.model_dump(exclude={"kind", "candidates"})))
        case Agent() as agent:
            return Prepared(works.Agent(**agent.model_dump(exclude={"kind", "candidates"})))


def _dirs(
    given: Dirs, folder: Path, rules: works.OverlayRules, base: Mapping[str, str], copies: Sequence[works.Copy]
) -> Prepared:
    overlays: list[Overlay] = []
    problems: list[str] = []
    named: dict[str, str] = {}
    for index, name in enumerate(given.folders):
        where = f"proposer.folders[{index}]: {name!a}"
        try:
            overlay = collect(folder / name, rules, base, copies)
        except InvalidOverlay as refused:
            problems += (f"{where}: {reason}" for reason in refused.reasons)
            continue
        first = named.setdefault(overlay.digest, name)
        if first != name:
            problems.append(f"{where}: holds the same as {first!a}")
        overlays.append(overlay)
    if problems:
        return Prepared(None, problems=tuple(problems))
    return Prepared(works.Dirs(digests=tuple(one.digest for one in overlays)), tuple(overlays))


def _filled(given: Grid | AskTell, folder: Path, rules: works.OverlayRules, base: Mapping[str, str]) -> Prepared:
    names = list(given.values) if isinstance(given, Grid) else [one.name for one in given.parameters]
    template, problems = _template(given.template, names, folder, rules, base)
    if problems:
        return Prepared(None, problems=tuple(problems))
    if isinstance(given, Grid):
        return Prepared(works.Grid(template=template, values=given.values))
    parameters = tuple(works.Parameter(**one.model_dump()) for one in given.parameters)
    return Prepared(works.AskTell(template=template, parameters=parameters, sampler=given.sampler))


def _template(
    given: dict[str, str] | str, names: Sequence[str], folder: Path, rules: works.OverlayRules, base: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the texts of a template by path, and what is wrong with it."""
    if isinstance(given, dict):
        return given, [f"proposer.template: {problem}" for problem in _places(given, rules, base)]
    where = f"proposer.template: {given!a}"
    try:
        found = read(folder / given, rules)
        texts = {path: data.decode() for path, data in found.files.items()}
    except InvalidOverlay as refused:
        return {}, [f"{where}: {reason}" for reason in refused.reasons]
    except UnicodeDecodeError:
        return {}, [f"{where}: holds a file that is not UTF-8 text"]
    problems = [*_places(texts, rules, base), *template_problems(texts, names)]
    return texts, [f"{where}: {problem}" for problem in ([] if texts else ["holds no file"]) + problems]


def _places(texts: Mapping[str, str], rules: works.OverlayRules, base: Mapping[str, str]) -> Iterator[str]:
    for path in texts:
        reason = place_problem(path, rules)
        if reason is None and path not in base and not rules.may_add:
            reason = "is no file of the incumbent, and overlay.may_add is false"
        if reason is not None:
            yield f"{path!a} {reason}"
    total = sum(len(text.encode()) for text in texts.values())
    if total > rules.max_bytes or len(texts) > rules.max_files:
        yield f"it holds {len(texts)} files and {total} bytes, more than overlay.max_files or overlay.max_bytes allow"
