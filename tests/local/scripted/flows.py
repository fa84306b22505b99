"""The flows that are disturbed: how each begins, which commands follow in which order, and what comes out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakeslurm.model import Settings
from tests.fakeslurm.site import FakeSlurm, Warm
from tests.local.driver import Driver, Ended
from tests.local.scripted import durable
from tests.local.site import EVALUATE, Site, archived, document, new_site, tiny_target
from tests.local.steward.lane import TARGET, Lane, new_lane

#: Longer than any job of these flows, and than a submission that nobody answered for is waited for.
STEP_S = 330.0
_WINDOWS: dict[str, object] = {"confirm_s": 60, "soft_window_s": 150, "submit_lag_s": 300, "backoff_s": 0}
#: Beside the state folder: a user's own caches, which a command may fill.
_CACHE = "cache"


@dataclass(frozen=True)
class Stage:
    """What a person does first, if anything, and the passes that follow until something is so.

    Attributes:
        acts: gives the command lines of the person, as things are then.
    """

    command: str
    until: Callable[[], bool]
    acts: Callable[[], Sequence[tuple[str, ...]]] = tuple


@dataclass(frozen=True)
class Flow:
    """One site on one scripted cluster, and what happens there. ``diary`` has one line for each body that ran."""

    site: Site
    slurm: FakeSlurm
    driver: Driver
    stages: Sequence[Stage]
    diary: Path

    def order(self, *words: str, **how: object) -> Ended:
        """Carry out one command line, see ``tests.local.driver``; nobody needs a lock here."""
        ended = self.driver.order("--config", str(self.site.config), *words, **{**self.site.how, **how})
        assert "Traceback" not in ended.err, ended.err
        return ended

    @property
    def places(self) -> tuple[Path, ...]:
        """Every folder and file that a command or a job writes."""
        return self.site.state, self.site.source(), self.diary, self.site.root / _CACHE

    def outcome(self) -> dict[str, Any]:
        """Return what must be the same whatever happened on the way, at whatever time."""
        state = self.site.state
        claims = {str(path): json.loads(document(path)) for path in state.glob("claims/*/*.json")}
        return {
            "runs": sorted((_ended_run(self.site, folder) for folder in self.site.runs()), key=str),
            "live": [name.partition("-")[0] for name in self.site.live()],
            "making": [path.name.partition("-")[0] for path in state.glob("making/*")],
            "points": sorted(path.parent.name for path in state.glob("results/*/*/*.json")),
            "ledger": _rows(state / "results" / TARGET / "leader.json"),
            "merged": _rows(self.site.source() / "results/leader.json"),
            "claims": sorted((claim.get("reason", "held"), claim.get("ending", "")) for claim in claims.values()),
            "orders": self._threads("orders"),
            "changes": self._threads("changes"),
            "said": sorted(_said(path) for path in state.glob("forge/*/*/*/*.json")),
            "commits": sorted(_unnamed(line) for line in self.commits()),
            "jobs": self.jobs(),
            "bodies": self.bodies(),
        }

    def _threads(self, kind: str) -> list[int]:
        """Return how long each thread is."""
        return sorted(len(list(path.iterdir())) for path in self.site.state.glob(f"forge/*/{kind}/*"))

    def jobs(self) -> dict[str, int]:
        """Count the elements of jobs that Slurm took, by the step that they were for."""
        found = self.slurm.cluster().jobs
        return dict(Counter(job.name.split(".")[2] for job in found for _ in job.elements))

    def bodies(self) -> int:
        """Count the sessions and evaluations that ran."""
        return len(self.diary.read_text(encoding="utf-8").splitlines()) if self.diary.exists() else 0

    def commits(self) -> list[str]:
        """Return what every repository has."""
        state = self.site.state
        mirror, forge = state / f"mirrors/{TARGET}.git", state / f"forge/{TARGET}/repository.git"
        return durable.commits(mirror, forge, self.site.source())

    def durable(self) -> Counter[str]:
        """Return all that any later pass can know, see there."""
        found = durable.documents(self.site.state)
        cluster = self.slurm.cluster()
        jobs = [(job.id, job.name, [(one.state, len(one.attempts)) for one in job.elements]) for job in cluster.jobs]
        return durable.canonical({**found, "commits": "\n".join(self.commits()), "jobs": f"{cluster.now} {jobs}"})


def _ended_run(site: Site, folder: Path) -> dict[str, Any]:
    events = site.events(folder)
    return {
        "kind": folder.name.partition("-")[0],
        "ended": [(event["ending"], durable.nameless(str(event["result"]))) for event in events if _is(event, "run")],
        "done": dict(Counter(event["step"].partition("-")[0] for event in events if _is(event, "try"))),
        "started": sum(row["Start"].isdigit() for row in archived(folder)),
        "closed": sum(event["type"] == "run.closed" for event in events),
        "report": (folder / "report.md").exists(),
    }


def _is(event: dict[str, Any], what: str) -> bool:
    return bool(event["type"] == f"{what}.ended" and (what == "run" or event["outcome"] == "done"))


def _rows(path: Path) -> list[tuple[Any, ...]]:
    if not path.exists():
        return []
    return [(row["benchmark"], row["best"], row["baseline"]) for row in json.loads(path.read_bytes())["rows"]]


def _said(path: Path) -> str:
    event = json.loads(path.read_bytes())
    return f"{path.parent.parent.name} {event['author']} {event['kind']}"


def _unnamed(line: str) -> str:
    """Leave out the commit, which has times in it, ids and tries; the tree stays, unless a ledger row is in it."""
    folder, ref, _, tree, subject = [*line.split(" ", 4), "", "", ""][:5]
    ref = re.sub(r"/\d+$", "/try", ref)
    shown = "" if subject.startswith("Re-base") else tree
    return f"{folder} {durable.nameless(ref)} {shown} {durable.nameless(subject)}"


# --- the three flows -------------------------------------------------------------------------------------------------


def benchmark(root: Path, driver: Driver, warm: Warm, *, wake: bool = False) -> Flow:
    """A head is measured with three seeds by one array, the run is closed, and what it left is cleared away."""
    diary = root / "diary"
    source = tiny_target(root / "source", evaluate=_noted(diary) + EVALUATE.replace("BONUS", "0"))
    site = new_site(root / "site", targets={TARGET: source}, driver=driver)
    slurm = FakeSlurm(root / "slurm", warm, Settings())
    site.configure(compute="slurm", seeds=3, **_WINDOWS)
    _on(site, slurm, wake=wake)
    site.extend("[housekeeping]\ngrace_hours = 0\n")
    tidy = site.state / "tidy"
    closed = Stage("tick", lambda: bool(site.runs()) and not site.live())
    return Flow(site, slurm, driver, (closed, Stage("tick", lambda: not any(tidy.iterdir()))), diary)


def steward(root: Path, driver: Driver, warm: Warm) -> Flow:
    """An order becomes a session, a validation and a measurement, then a change, which a person merges."""
    lane, slurm = _lane(root, driver, warm)
    order = lane.order()
    return Flow(lane.site, slurm, driver, (_opened(lane, order), _merged(lane)), lane.diary)


def two_orders(root: Path, driver: Driver, warm: Warm) -> Flow:
    """Two orders at once become two changes; one is merged, the other is closed."""
    lane, slurm = _lane(root, driver, warm, steward={"live": 2, "seeds": 1})
    orders = [lane.order(f"Order {number}") for number in range(2)]
    return Flow(lane.site, slurm, driver, (_opened(lane, *orders), _merged(lane)), lane.diary)


def _lane(root: Path, driver: Driver, warm: Warm, **keys: Any) -> tuple[Lane, FakeSlurm]:
    """Make a lane whose sibling benchmark has been measured, so that the next submission is a steward's."""
    slurm = FakeSlurm(root / "slurm", warm, Settings())
    lane = new_lane(root, driver=driver, settings={"compute": "slurm", **_WINDOWS}, **keys)
    # The same value for every seed: seeds follow from the run's id, which no two runs share.
    lane.site.change(_noted(lane.diary) + 'print("{\\"score\\":", 7 + 0, "}")\n', TARGET)
    _on(lane.site, slurm)
    lane.site.cli("tick")
    slurm.advance(STEP_S)
    lane.site.cli("reconcile")
    assert not lane.site.live()
    return lane, slurm


def _noted(diary: Path) -> str:
    """Return a line that notes in the diary that it ran."""
    return f"with open({str(diary)!r}, 'a') as diary:\n    diary.write('measured\\n')\n"


def _on(site: Site, slurm: FakeSlurm, *, wake: bool = False) -> None:
    site.extend(f'[slurm]\npython = "{slurm.python}"\ntimeout_s = 120\nwake = {json.dumps(wake)}\n')
    env = {**slurm.env, "XDG_CACHE_HOME": str(site.root / _CACHE)}
    site.how.update({**slurm.order(), "env": env, "polite": False})


def _opened(lane: Lane, *orders: str) -> Stage:
    def told() -> bool:
        return all(len(lane.comments(order)) >= 2 for order in orders)

    return Stage("tick", told)


def _merged(lane: Lane) -> Stage:
    """The first change is merged, others are closed. The head has moved then: a tick would measure it, too."""

    def acts() -> list[tuple[str, ...]]:
        first, *others = sorted(change.change_id for change in lane.changes())
        merge = ("changes", "merge", TARGET, first, "--author", "ada")
        return [merge, *(("changes", "close", TARGET, one, "--author", "ada", "--reason", "no") for one in others)]

    def over() -> bool:
        return not lane.site.live() and all(change.status != "open" for change in lane.changes())

    return Stage("reconcile", over, acts)
