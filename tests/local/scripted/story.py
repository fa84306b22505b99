"""What a run came to, read from its files, and what must hold of every run whatever happened."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakeslurm.model import Cluster, Element, Job
from tests.fakeslurm.scenario import Ran
from tests.local.site import Site, document

#: Rulings after which a job may surface or live on all the same: its claims are taken, or a person has decided.
_DECIDED = {"submit.abandoned", "claim.abandoned", "person.gave-up"}


@dataclass(frozen=True)
class Tried:
    """One try: in which submission, as which element, and how it ended (empty: it has not)."""

    submission: str
    index: int
    outcome: str
    rule: str

    def on(self, jobs: list[Job]) -> tuple[Job, Element]:
        """The job and element on the cluster."""
        job = next(job for job in reversed(jobs) if job.name == self.submission and not job.past)
        return job, job.elements[self.index]


@dataclass(frozen=True)
class Told:
    """A run as its journal tells it; ``keys`` are its steps."""

    folder: Path
    phase: str
    ending: str
    result: dict[str, Any]
    keys: list[str]
    tries: list[list[Tried]]
    samples: list[dict[str, Any]] = field(default_factory=list)

    def ran(self) -> Ran:
        """In the words of a scenario."""
        outcomes = tuple(" ".join(one.outcome or "open" for one in tries) for tries in self.tries)
        return Ran(self.phase, self.ending, outcomes, len(self.result.get("values", {})))

    @staticmethod
    def ours(cluster: Cluster) -> list[str]:
        """Names of the jobs that were enqueued for measurements, wake jobs left out."""
        return [job.name for job in cluster.jobs if job.name.startswith("ol.") and not job.name.endswith(".w")]

    def nothing_doubled(self, cluster: Cluster) -> None:
        """Each measurement counts once, with its own number; nothing was bought twice, and the dead hold nothing."""
        values = self.result.get("values", {})
        assert values == {seed: float(int(seed) % 1000) for seed in values}
        assert {str(s["seed"]): s["value"] for s in self.samples} == values
        assert len(self.samples) == len(values)
        for tries in self.tries:
            assert [one.outcome for one in tries].count("done") <= 1, tries
            assert all(one.outcome for one in tries[:-1]), f"a try was begun beside one that was open: {tries}"
            assert self.phase != "closed" or all(one.outcome for one in tries), f"the dead hold a claim: {tries}"
            self._one_at_a_time(tries, cluster.jobs)
            for one in tries:
                assert one.outcome != "abandoned" or not self._ran_all_the_same(one), f"given up, and yet it ran: {one}"
        names = self.ours(cluster)
        assert len(names) == len(set(names)), f"submitted twice: {names}"

    def _ran_all_the_same(self, one: Tried) -> bool:
        """Whether a job took a try that was given up: it must find it taken, and leave."""
        files = self.folder / "tries" / one.submission / f"e{one.index:04d}"
        claim = files.with_suffix(".claim.json")
        taken = claim.exists() and not json.loads(document(claim)).get("abandoned")
        return taken or files.with_suffix(".record.json").exists()

    @staticmethod
    def _one_at_a_time(tries: list[Tried], jobs: list[Job]) -> None:
        for before, after in itertools.pairwise(tries):
            if before.rule in _DECIDED or not {before.submission, after.submission} <= {job.name for job in jobs}:
                continue
            _, first = before.on(jobs)
            at = after.on(jobs)[1].attempts[0].submit
            alive = [one for one in first.attempts if one.submit <= at and (one.end is None or one.end > at)]
            assert not alive, f"{after} was bought while {before} lived"


def story(site: Site, folder: Path) -> Told:
    """Read a run."""
    events = site.events(folder)
    of_type = {kind: [e for e in events if e["type"] == kind] for kind in {e["type"] for e in events}}
    keys = [step["key"] for event in of_type.get("steps.wanted", []) for step in event["steps"]]
    ended = {(e["step"], e["try_number"]): (e["outcome"], e["rule"]) for e in of_type.get("try.ended", [])}
    came_to_nothing = {"submission.refused": "refused", "submission.abandoned": "abandoned"}
    nothing = {e["name"]: word for kind, word in came_to_nothing.items() for e in of_type.get(kind, [])}
    tries: dict[str, list[Tried]] = {key: [] for key in keys}
    for event in of_type.get("submission.intended", []):
        for index, one in enumerate(event["elements"]):
            never = nothing.get(event["name"], "")
            outcome = ended.get((one["step"], one["try_number"]), (never, f"submit.{never}" if never else ""))
            tries[one["step"]].append(Tried(event["name"], index, *outcome))
    over = of_type.get("run.ended", [{"ending": "", "result": {}}])[-1]
    points = list(site.state.glob(f"results/*/*/{folder.name}.json"))
    samples = [sample for point in points for sample in json.loads(document(point))["samples"]]
    return Told(folder, _phase(events), over["ending"], over["result"], keys, [tries[key] for key in keys], samples)


def _phase(events: list[dict[str, Any]]) -> str:
    """As the last event about it says."""
    words = {"run.parked": "parked", "person.decided": "running", "run.ended": "ended", "run.closed": "closed"}
    return next((words[e["type"]] for e in reversed(events) if e["type"] in words), "running")
