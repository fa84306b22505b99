"""Where everything is below the state folder; the on-disk contract is docs/on-disk.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from outerloop_hpc.errors import UsageError

_RUN_ID = re.compile(r"(?P<kind>[a-z]+)-(?P<target>[A-Za-z0-9_.-]+)-(?P<stamp>\d{8}T\d{6}Z)-(?P<random>[0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class RunName:
    """The parts of a run id: ``<kind>-<target>-<UTC stamp>-<8 hex>``."""

    kind: str
    target: str
    stamp: str
    random: str

    @property
    def month(self) -> str:
        """The folder that holds it: thousands of runs in one folder hurt on parallel filesystems."""
        return f"{self.stamp[:4]}-{self.stamp[4:6]}"

    @property
    def at(self) -> datetime:
        """When the run was made, aware UTC."""
        return datetime.strptime(self.stamp + "+0000", "%Y%m%dT%H%M%SZ%z")


def parse_run_id(run_id: str) -> RunName:
    """Split a run id.

    Raises:
        UsageError: it is not one.
    """
    match = _RUN_ID.fullmatch(run_id)
    if match is None:
        raise UsageError(f"{run_id!r} is not a run id; `outerloop-hpc runs list` shows them")
    return RunName(match["kind"], match["target"], match["stamp"], match["random"])


def new_run_id(kind: str, target: str, at: datetime, random: str) -> str:
    """Make a run id; ``random`` is 8 hex digits, since two runs may start in one second."""
    return f"{kind}-{target}-{at:%Y%m%dT%H%M%SZ}-{random}"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder: ``runs/<month>/<run id>``."""

    path: Path

    @property
    def run_id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.path.name

    @property
    def spec(self) -> Path:
        """The immutable specification."""
        return self.path / "spec.json"

    @property
    def journal(self) -> Path:
        """The transactions, ``00000001.json`` onwards."""
        return self.path / "journal"

    @property
    def snapshot(self) -> Path:
        """A cache of the fold; may be deleted at any time."""
        return self.path / "snapshot.json"

    @property
    def inbox(self) -> Path:
        """Decisions by people, one file each."""
        return self.path / "inbox"

    @property
    def inbox_done(self) -> Path:
        """Decisions that the journal has taken in."""
        return self.path / "inbox.done"

    @property
    def report(self) -> Path:
        """What a person reads at the end."""
        return self.path / "report.md"

    def submission(self, name: str) -> Path:
        """One submission's folder, shared by its elements so that their evidence is one folder listing."""
        return self.path.joinpath("tries", name)

    def accounting(self, submission: str) -> Path:
        """The archived accounting rows of one submission."""
        return self.path / "accounting" / f"{submission}.json"


@dataclass(frozen=True, slots=True)
class Layout:
    """The state folder."""

    root: Path

    @property
    def live(self) -> Path:
        """One empty file per run that has not been closed: a pass costs O(live), not O(history)."""
        return self.root / "live"

    @property
    def tidy(self) -> Path:
        """One empty file per closed run that housekeeping has not gone over yet."""
        return self.root / "tidy"

    @property
    def runs(self) -> Path:
        """Month folders of runs."""
        return self.root / "runs"

    @property
    def claims(self) -> Path:
        """One file per order that a run holds; the first to publish it has the order."""
        return self.root / "claims"

    @property
    def making(self) -> Path:
        """One file per run between the claim of its order and its folder: whose maker died is made from these."""
        return self.root / "making"

    @property
    def mirrors(self) -> Path:
        """Bare mirrors of the targets."""
        return self.root / "mirrors"

    @property
    def results(self) -> Path:
        """Per target and benchmark: history documents and the ledger rendered from them."""
        return self.root / "results"

    @property
    def forge(self) -> Path:
        """The local forge: per target its orders, changes and proposed branches."""
        return self.root / "forge"

    @property
    def outages(self) -> Path:
        """Per role: when the service behind it refused a session."""
        return self.root / "outages"

    @property
    def tick(self) -> Path:
        """Heartbeat, last completed pass, polite lock, PAUSE and HOLD."""
        return self.root / "tick"

    def patience(self, compute: str) -> Path:
        """When a scheduler was asked last, and how long it has not answered."""
        return self.tick / f"patience-{compute}.json"

    @property
    def local(self) -> Path:
        """Event files of jobs on this machine, the accounting of the embedded default."""
        return self.root / "local"

    def run(self, run_id: str) -> RunFolder:
        """The folder of a run, by its id alone."""
        return RunFolder(self.root.joinpath("runs", parse_run_id(run_id).month, run_id))


def element_file(index: int, what: str) -> str:
    """Name of one element's file in its submission's folder: ``e0003.record.json`` and the like."""
    return f"e{index:04d}.{what}"
