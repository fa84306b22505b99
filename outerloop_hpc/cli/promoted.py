"""A sweep's promotion at the command line: may it be used now, and put it into a working tree or onto the forge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from outerloop_hpc import fsio
from outerloop_hpc.cli.checkout import checkout_of
from outerloop_hpc.cli.forges import forge_of
from outerloop_hpc.cli.session import Session
from outerloop_hpc.documents import load as load_document
from outerloop_hpc.engine.layout import RunFolder
from outerloop_hpc.engine.records import Manifest
from outerloop_hpc.engine.spec import RunSpec, file_digest
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.engine.watch import LiveRun
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve.applying import apply as applying
from outerloop_hpc.evolve.applying import change as changes
from outerloop_hpc.evolve.applying.apply import Applied
from outerloop_hpc.evolve.overlays.candidates import folder_of
from outerloop_hpc.evolve.overlays.frozen import load
from outerloop_hpc.evolve.overlays.overlay import IntegrityFault, InvalidOverlay, Overlay
from outerloop_hpc.evolve.promotion import NotApplicable, Promotion, applicable
from outerloop_hpc.evolve.work import work_of
from outerloop_hpc.forge.port import Change
from outerloop_hpc.target.repository import Repository


@dataclass(frozen=True)
class Promoted:
    """A promotion that may be used now, with its candidate as it was frozen."""

    spec: RunSpec
    state: RunState
    promotion: Promotion
    overlay: Overlay


def promoted(run: LiveRun, now: datetime) -> Promoted:
    """Make sure that a sweep's promotion may be used now.

    Raises:
        NotApplicable: nothing was promoted, or its evidence has expired.
        Unfounded: the decision does not follow from its pairs.
        IntegrityFault: the candidate or the specification is not what it was.
        TryLater: the candidate cannot be read here now.
    """
    folder = run.journal.folder
    found = applicable(run.spec, run.state, now)
    _check_spec(folder, run.state)
    digest = found.binding.overlay
    return Promoted(run.spec, run.state, found, load(folder_of(folder) / digest, digest))


def _check_spec(folder: RunFolder, state: RunState) -> None:
    """Compare the specification with what jobs were given: all that a decision is bound to is read from it."""
    for name in state.submissions:
        try:
            manifest: Manifest = load_document(Manifest, folder.submission(name) / "manifest.json")
        except FileNotFoundError:
            continue  # it was never submitted, or is archived
        if manifest.spec_digest != file_digest(fsio.read(folder.spec)):
            raise IntegrityFault(
                f"{folder.spec}: is not the specification that was measured ({name} had another); nothing is applied, "
                "find out who changed it"
            )
        return


def recovery_of(folder: RunFolder) -> Path:
    """Return the file that is there while a sweep's candidate is being applied."""
    return folder.path / "apply-recovery.json"


def put(here: Session, found: Promoted, into: Path | None, *, dry_run: bool) -> tuple[Path, Applied]:
    """Put the candidate into a working tree; return its root and what was written, or would be.

    Raises:
        UsageError: there is no working tree to put it into.
        ApplyRefused, NotApplicable: it was not applied; the text says which path differs.
        Unfinished: not everything could be put back.
        TryLater: the disk is full or does not answer; the tree is as it was found.
    """
    checkout = checkout_of(here.settings, found.spec, into, Path.cwd())
    work = work_of(found.spec)
    with _refusing(found.spec.run):
        if dry_run:
            return checkout, applying.foreseen(found.overlay, work, checkout)
        recovery = recovery_of(here.layout.run(found.spec.run))
        return checkout, applying.apply(found.overlay, work, checkout, recovery)


def mended(here: Session, run: str) -> tuple[str, ...]:
    """Put back what an apply of this sweep that was cut off had changed; return the paths that it was about.

    Raises:
        UsageError: none was cut off.
        Unfinished: not everything can be put back.
    """
    recovery = recovery_of(here.layout.run(run))
    try:
        return applying.mend(recovery)
    except FileNotFoundError as error:
        raise UsageError(f"{recovery}: is not there, so no apply of {run} was cut off; nothing is to mend") from error


@dataclass(frozen=True, slots=True)
class Offered:
    """What was proposed, or would be. ``paths``: empty when the branch ``onto`` holds all of the candidate already."""

    branch: str
    onto: str
    paths: tuple[str, ...]
    change: Change | None = None


def offer(here: Session, found: Promoted, *, dry_run: bool) -> Offered:
    """Open a change on the target's forge, or find the one that is there.

    Raises:
        UsageError: the target is not configured, or has no such branch.
        ApplyRefused, NotApplicable: its branch has other files by now, or lacks the sweep's commit.
        TryLater: repository, mirror or forge do not answer.
    """
    spec = found.spec
    with here.targets(dry_run=dry_run) as targets, _refusing(spec.run):
        settings, mirror = targets.settings_of(spec.target), targets.mirror(spec.target)
        fsio.make_folder(targets.mirrors)
        head = mirror.sync(settings.repository, settings.branch)
        if not mirror.has(spec.commit):
            raise NotApplicable(
                f"{mirror.path}: commit {spec.commit[:12]}, which {spec.run} measured, is not there any more; "
                "submit a sweep on what is there now"
            )
        wanted = changes.Offer(spec, found.state, found.promotion, found.overlay, settings.branch, head)
        repository = Repository(mirror.path)
        paths = changes.compared(wanted, repository)
        change = None
        if paths and not dry_run:
            change = changes.propose(wanted, repository, forge_of(here, spec.target))
        return Offered(changes.branch_of(spec.run), settings.branch, paths, change)


@contextmanager
def _refusing(run: str) -> Iterator[None]:
    """Nobody asks for an overlay here: one that breaks its rules is a reason not to apply it."""
    try:
        yield
    except InvalidOverlay as error:
        raise NotApplicable(f"{run}: {error}; nothing was changed") from error
