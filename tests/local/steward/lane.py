"""A site with a steward: a target with an evaluation that can be gamed, orders on its local forge, a scripted agent."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.markers import Marker, Standing, read, standing
from outerloop_hpc.forge.port import Change, Comment
from tests.local.driver import Driver
from tests.local.scratch import commit, git
from tests.local.site import Site, document, new_site, tiny_target, wait_for

LABEL = "outerloop:steward"
TARGET = "tiny"
BODY = "The evaluation always adds the same bonus.\n\nbenchmark: score\n"

#: A contract with a sibling, which must go on measuring.
CONTRACT = """\
benchmarks:
  - {name: score, command: python3 evaluate.py, metric: score, direction: max, seed_env: SEED, eval_minutes: 1}
  - {name: other, command: python3 other.py, metric: other, direction: max, eval_minutes: 1}
budgets: {gpu_hours_per_run: 0, runs_per_week: 100}
scope: {allowed: [solver.py]}
steward: {allowed: [evaluate.py, checks]}
"""

OTHER = "import json\nprint(json.dumps({'other': 1.0}))\n"

#: What agents share: each call is one line in a diary of the host, which is how tests count sessions that were bought.
PRELUDE = """\
import json, os, sys, time
from pathlib import Path
DIARY = Path({diary!r})
with DIARY.open("a") as file:
    file.write(json.dumps({{"cwd": os.getcwd(), "env": dict(os.environ), "brief": sys.stdin.read()}}) + "\\n")
WORK = Path.cwd()

def end(status, outcome, report="", **more):
    print(json.dumps({{"outcome": outcome, "report": report, **more}}), flush=True)
    sys.exit(status)

"""

#: Mends the evaluation as the order asks.
MEND = """\
text = (WORK / "evaluate.py").read_text()
(WORK / "evaluate.py").write_text(text.replace("BONUS", "1000").replace("+ 0", "+ 1000"))
end(0, "done", "The bonus is gone.", turns=3, cost_usd=0.25)
"""
NO_CHANGE = 'end(10, "no-change", "It measures what it should.")\n'
FAIL = 'sys.stderr.write("it broke\\n")\nsys.exit(3)\n'
OUTAGE = 'end(75, "outage", "")\n'
BUDGET = 'end(20, "budget", "half done")\n'
#: Reads what it was told beside stdin.
BRIEF = 'BRIEF = Path(os.environ["OUTERLOOP_BRIEF"]).read_text()\n'
#: Edits the judged side too.
CHEAT = """\
(WORK / "evaluate.py").write_text((WORK / "evaluate.py").read_text() + "# mended\\n")
(WORK / "solver.py").write_text("ANSWER = 43\\n")
end(0, "done", "Both sides are better now.")
"""


@dataclass(frozen=True)
class Lane:
    """A site, its forge, and what its agent was started with."""

    site: Site
    diary: Path
    agent: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    steward: Mapping[str, object] = field(default_factory=dict)
    validation: str = ""

    @property
    def forge(self) -> LocalForge:
        return LocalForge(self.site.state / "forge" / TARGET, identity="outerloop", clock=SystemClock())

    def configure(self, steward: Mapping[str, object] | None = None, **settings: object) -> None:
        """Write the site's settings with the steward's; what is given here holds until the next call."""
        self.site.configure(**{**self.settings, **settings})
        keys = {**self.steward, **(steward or {})}
        lines = [f"validation = {json.dumps(self.validation)}", 'benchmarks = ["other"]', "", "[steward]"]
        self.site.extend("\n".join([*lines, *(f"{key} = {_toml(value)}" for key, value in keys.items())]) + "\n")

    def script(self, text: str) -> None:
        """Give the agent another program."""
        self.agent.write_text(PRELUDE.format(diary=str(self.diary)) + text, encoding="utf-8")

    def order(
        self, title: str = "The score can be gamed", body: str = BODY, *, author: str = "ada", label: str = LABEL
    ) -> str:
        """Open an order."""
        return self.forge.open_order(author=author, title=title, body=body, labels=(label,))

    def sessions(self) -> list[dict[str, Any]]:
        """Return what each session that was bought saw."""
        if not self.diary.exists():
            return []
        return [json.loads(line) for line in self.diary.read_text(encoding="utf-8").splitlines()]

    def tick(self, *, expect: Sequence[int] = (0, 75)) -> list[dict[str, Any]]:
        """Make one tick and return what it decided."""
        return self.site.rows("tick", expect=expect)

    def gate(self, name: str = "gate") -> Path:
        """Return the file that a script from ``gated`` waits for."""
        return self.agent.with_name(name)

    def gated(self, text: str, name: str = "gate") -> str:
        """Return a script that waits for a gate before it goes on."""
        return f"while not Path({str(self.gate(name))!r}).exists():\n    time.sleep(0.02)\n{text}"

    def until_bought(self, count: int = 1) -> None:
        """Wait until so many sessions have begun."""
        wait_for(lambda: len(self.sessions()) >= count, f"{count} sessions have begun")

    def until_told(self, order: str, *markers: str) -> None:
        """Tick until the order tells these events of claims, and perhaps more."""

        def told() -> bool:
            self.tick(expect=(0, 4, 75))
            return self.markers(order)[: len(markers)] == [*markers]

        wait_for(told, f"{markers}")

    def measured(self) -> None:
        """Have the sibling measured first, so that the next submission is a steward's."""
        self.tick()
        self.settle()

    def until_over(self, count: int = 1) -> None:
        """Wait until so many sessions have begun, and no job is there any more."""
        self.until_bought(count)
        wait_for(self.site.jobs_gone, "every job has ended")

    def later(self, seconds: float) -> None:
        """From here on commands believe that it is so much later; needs a driver."""
        self.site.how["later"] = seconds

    def folder(self, order: str) -> Path:
        """Return where the forge keeps an order."""
        return self.site.state / "forge" / TARGET / "orders" / order

    def submission(self, run: Path) -> Path:
        """Return the folder of a run's newest submission."""
        return max((run / "tries").iterdir(), key=lambda folder: folder.stat().st_mtime)

    def standing(self, order: str) -> Standing:
        """Return what the order's thread says."""
        return standing(self.comments(order), "outerloop")

    def comments(self, order: str) -> list[Comment]:
        return list(self.forge.comments(order))

    def markers(self, order: str) -> list[str]:
        """Return the events of claims that the tool has told on an order."""
        found = [read(one.body) for one in self.comments(order) if one.author == "outerloop"]
        return [_event(marker) for marker in found if marker is not None]

    def stewards(self) -> list[Path]:
        """Folders of steward runs, oldest first."""
        return [folder for folder in self.site.runs() if folder.name.startswith("steward-")]

    def endings(self) -> list[str]:
        """Return the endings of the steward runs, oldest first; empty for one that has none."""
        return [
            next((e["ending"] for e in self.site.events(f) if e["type"] == "run.ended"), "") for f in self.stewards()
        ]

    def changes(self) -> list[Change]:
        return list(self.forge.every_change())

    def until_open(self) -> Change:
        """Tick until a change is open, and told on the order; returns it."""

        def there() -> bool:
            self.tick()
            return bool(self.changes())

        wait_for(there, "a change is open")
        self.tick()
        (change,) = self.changes()
        return change

    def until_ended(self, count: int = 1) -> None:
        """Reconcile until so many steward runs are there and none of them is live."""

        def over() -> bool:
            self.tick()
            live = [name for name in self.site.live() if name.startswith("steward-")]
            return len(self.stewards()) >= count and not live

        wait_for(over, f"{count} steward runs have ended")

    def settle(self) -> None:
        """Reconcile, without taking anything up, until nothing is live."""
        self.site.until_closed()

    def claim_ends(self) -> list[dict[str, Any]]:
        """Return the documents of ended claims of steward orders."""
        found = [json.loads(document(path)) for path in self.site.state.glob("claims/*/*.ended.json")]
        return sorted(found, key=lambda one: one["at"])


def _event(marker: Marker) -> str:
    return "claimed" if marker.reason is None else f"ended:{marker.reason}"


def new_lane(
    root: Path,
    *,
    script: str = MEND,
    driver: Driver | None = None,
    steward: Mapping[str, object] | None = None,
    validation: str = "",
    contract: str = CONTRACT,
    runtime: str = "none",
    settings: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
) -> Lane:
    """Make a site whose benchmarks are measured by nobody but the steward's runs.

    Args:
        steward: keys of ``[steward]`` beside its command.
        settings: of the site, see there.
    """
    source = tiny_target(root / "source", contract=contract)
    (source / "other.py").write_text(OTHER, encoding="utf-8")
    commit(source)
    git(source, "config", "receive.denyCurrentBranch", "updateInstead")
    site = new_site(root / "site", targets={TARGET: source}, driver=driver, env=env)
    keys = {"command": [sys.executable, "-B", str(root / "agent.py")], "seeds": 2, "minutes": 10, **(steward or {})}
    given = {"runtime": runtime, "uncontained": json.dumps(runtime == "none"), **(settings or {})}
    lane = Lane(site, root / "diary", root / "agent.py", given, keys, validation)
    lane.script(script)
    lane.configure()
    return lane


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
