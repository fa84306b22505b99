"""What a program that proposes works at: a throw-away repository, evidence to read, and a place for its proposal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from outerloop_hpc import fsio
from outerloop_hpc.agents.redact import redacted
from outerloop_hpc.container.bubblewrap import SYSTEM
from outerloop_hpc.container.enclosure import WORK_INSIDE, Enclosure
from outerloop_hpc.container.runtime import Bind
from outerloop_hpc.engine.enclose import afresh, inside
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.enclosed import enclosed
from outerloop_hpc.evolve.hidden import check_out
from outerloop_hpc.evolve.leavings import content_of
from outerloop_hpc.evolve.overlays.candidates import candidates
from outerloop_hpc.evolve.overlays.overlay import InvalidOverlay, Overlay
from outerloop_hpc.evolve.overlays.transfer import collect
from outerloop_hpc.evolve.proposers import bundle
from outerloop_hpc.evolve.proposers.brief import Places
from outerloop_hpc.evolve.proposers.outputs import outputs_of
from outerloop_hpc.evolve.proposers.proposed import Draft, Occasion, Proposed, failed
from outerloop_hpc.target.compose import Signature
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.single import single_commit

_TABLE = PurePosixPath("/outerloop")
_EVIDENCE, _OUT, _BRIEF = _TABLE / "evidence", _TABLE / "out", _TABLE / "brief"
_OVERLAY, _PROPOSAL = "overlay", "proposal.md"
BRIEF_FILE = "brief.md"


@dataclass(frozen=True, slots=True)
class Desk:
    """One occasion's folders. ``secrets``: values of the variables that it is given, by name."""

    occasion: Occasion
    folder: Path
    where: Enclosure
    evidence: Mapping[str, int]
    secrets: Mapping[str, str]

    @property
    def workspace(self) -> Path:
        """The repository, on this host."""
        return self.folder / "workspace"

    @property
    def brief_folder(self) -> Path:
        """What it may read beside the evidence, on this host."""
        return self.folder / "brief"

    def places(self) -> Places:
        """Return how the program names its folders."""
        out = inside(self.where, _OUT)
        return Places(
            workspace=str(self.workspace) if self.where.name == "none" else str(WORK_INSIDE),
            evidence=inside(self.where, _EVIDENCE),
            overlay=f"{out}/{_OVERLAY}",
            proposal=f"{out}/{_PROPOSAL}",
        )

    def brief_path(self) -> str:
        """Return how the program names its brief."""
        return inside(self.where, _BRIEF / BRIEF_FILE)

    def told(self) -> dict[str, str]:
        """Return the variables of the contract."""
        places, given = self.places(), self.occasion.given
        return {
            "OL_EVIDENCE": places.evidence,
            "OL_WORKSPACE": places.workspace,
            "OL_OVERLAY": places.overlay,
            "OL_PROPOSAL": places.proposal,
            "OL_GENERATION": str(given.generation),
            "OL_COUNT": str(given.count),
        }

    def proposed(self, *, money: float = 0.0, otherwise: str = "") -> Proposed:
        """Return what was left here by a program that ended well.

        Args:
            money: what it cost.
            otherwise: its words where it left no proposal.
        """
        drafts = self._drafts()
        if not drafts:
            wanted = "files" if self.occasion.given.count == 1 else "one of the folders 0, 1, …"
            return failed(f"it ended well and left nothing in OL_OVERLAY; {wanted} should be there", money=money)
        return Proposed(drafts, money=money, text=self._text() or otherwise)

    def _drafts(self) -> tuple[Draft, ...]:
        overlay, work = self.folder / "out" / _OVERLAY, self.occasion.work
        # Nobody writes here any more; through a link in its place, anything of this host could be taken for a proposal.
        if overlay.is_symlink() or not overlay.is_dir():
            return (Draft("OL_OVERLAY", _strange),)
        names = {child.name for child in overlay.iterdir()}
        kind, count = work.proposer.kind, self.occasion.given.count
        if count == 1:
            return (Draft(kind, partial(collect, overlay, work.overlay, work.base)),) if names else ()
        return tuple(
            Draft(f"{kind}[{number}]", partial(collect, overlay / str(number), work.overlay, work.base))
            for number in range(count)
            if str(number) in names
        )

    def _text(self) -> str:
        data = content_of(self.folder / "out" / _PROPOSAL, bundle.MOST_TEXT) or b""
        return redacted(data.decode("utf-8", errors="replace"), self.secrets.values())


def lay_out(occasion: Occasion, command: tuple[str, ...], environment: tuple[str, ...], *, network: bool) -> Desk:
    """Lay out a desk.

    Args:
        occasion: what for.
        command: of the program; what it names on this host by an absolute path is shown to it, read-only.
        environment: names of variables of this job that it is given, where they are set.
        network: whether it may use the network.

    Raises:
        NodeUnfit: this node lacks what is needed.
        ConfigError: what was asked for cannot be.
        TryLater: disk or mirror do not answer.
    """
    context, work = occasion.context, occasion.work
    folder = context.scratch / "desk"
    with fsio.writing(folder):
        for part in ("out/overlay", "brief"):
            (folder / part).mkdir(parents=True)
    _workspace(occasion, folder / "workspace")
    prior = bundle.prior_of(occasion.given.prior, candidates(context))
    logs = outputs_of(occasion.given.rows, context.layout.run(context.spec.run))
    files = bundle.bundle(occasion.given, prior, logs)
    bundle.write(files, folder / "evidence")
    plain = enclosed(context, work.proposing_containment)
    binds = (
        Bind(folder / "evidence", _EVIDENCE),
        Bind(folder / "out", _OUT, writable=True),
        Bind(folder / "brief", _BRIEF),
        *(() if plain.name == "none" else _programs(occasion, command)),
    )
    where = afresh(plain, folder / "room", network=network, binds=binds)
    secrets = {name: context.environ[name] for name in environment if name in context.environ}
    return Desk(occasion, folder, where, {name: len(data) for name, data in files.items()}, secrets)


def _workspace(occasion: Occasion, folder: Path) -> None:
    """Make the repository: the files as they are, without the hidden ones, in one commit without a history."""
    spec = occasion.context.spec
    mirror = Mirror(occasion.context.layout.mirrors / f"{spec.target}.git")
    tree = mirror.tree(spec.commit) if mirror.has(spec.commit) else ""
    check_out(occasion.context, spec.commit, tree, occasion.work.hidden(), folder)
    signature = Signature("outerloop-hpc", "noreply@localhost", spec.made_at)
    single_commit(folder, message=f"The base of the sweep {occasion.work.name}\n", signature=signature)


def _programs(occasion: Occasion, command: tuple[str, ...]) -> tuple[Bind, ...]:
    """Return read-only binds for what the command names on this host; what the system has is there anyway."""
    found = {}
    for word in command:
        path = Path(word)
        if path.is_absolute() and path.exists() and not any(path.is_relative_to(root) for root in SYSTEM):
            if any(one.is_relative_to(path) for one in (occasion.context.layout.root, Path.home())):
                raise ConfigError(
                    f"the proposer's command names {word!r}, which holds the state folder or your home; name a smaller "
                    "folder or a file"
                )
            found[word] = Bind(path, PurePosixPath(path))
    return tuple(found.values())


def _strange() -> Overlay:
    raise InvalidOverlay(["OL_OVERLAY is no folder any more"])
