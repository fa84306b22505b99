"""How many scheduler commands a pass starts: counted where every command goes through, not timed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from outerloop_hpc.engine import watch
from outerloop_hpc.engine.events import Element
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import ResourceAsk
from outerloop_hpc.engine.state import RunState, Submission
from outerloop_hpc.errors import TryLater
from outerloop_hpc.process import Finished
from outerloop_hpc.slurm.port import Bound, JobRef, Observation, SubmissionRefused, Work
from outerloop_hpc.slurm.query import IDS_PER_CALL, WANTED_COLUMNS, SlurmQuery
from tests.bench.figure import Figure, Peer

_COUNTS = (0, 1, 500, 501, 2500, 10_000)
_AT = datetime(2026, 1, 1, tzinfo=UTC)


class CountingRunner:
    """Answers like a scheduler that knows none of the jobs, and counts."""

    def __init__(self) -> None:
        self.programs: list[str] = []

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        self.programs.append(argv[0])
        stdout = ""
        if argv[0] == "sacct":
            separator = next((word.partition("=")[2] for word in argv if word.startswith("--delimiter=")), " ")
            stdout = separator.join(WANTED_COLUMNS.split()) + "\n"
        return Finished(tuple(argv), 0, stdout, "", timed_out=False, seconds=0.0)


def measure() -> list[Figure]:
    """Count for each number of live job ids; the columns of sacct are asked for once a day and counted apart."""
    with tempfile.TemporaryDirectory() as folder:
        columns = Path(folder) / "columns"
        once = calls(1, columns) - calls(1, columns)
        figures = [_figure(count, calls(count, columns)) for count in _COUNTS]
    return [*figures, Figure("scheduler_calls_per_pass.once_a_day", once, "calls")]


def calls(count: int, columns: Path) -> int:
    """Return how many commands one look at ``count`` live jobs starts."""
    runner = CountingRunner()
    query = SlurmQuery(runner, {}, column_cache=columns)
    watch.look([live_run(count)] if count else [], {"slurm": LookOnly(query)})
    return len(runner.programs)


def live_run(count: int) -> watch.LiveRun:
    """One run with ``count`` submissions under way; what counts for the calls is job ids, not runs."""
    submissions = {
        f"ol.bench.{number}": Submission(
            name=f"ol.bench.{number}",
            compute="slurm",
            user=LookOnly.user,
            host="login1",
            elements=(Element(step="measure-1", try_number=1),),
            resources=ResourceAsk(minutes=1),
            intended_at=_AT,
            status="bound",
            job_id=str(1000 + number),
        )
        for number in range(count)
    }
    folder = Layout(Path("/nowhere")).run("benchmark-bench-20260101T000000Z-00000000")
    return watch.LiveRun(Journal(folder), RunState(run=folder.run_id, submissions=submissions))


class LookOnly:
    """The compute port as far as a look goes; nothing is submitted or cancelled here."""

    name = "slurm"
    user = "alice"

    def __init__(self, query: SlurmQuery) -> None:
        self.query = query

    def observe(self, jobs: Sequence[JobRef]) -> Observation:
        """Ask the counted scheduler."""
        return self.query.observe(jobs)

    def submit(self, work: Work) -> Bound:
        """Refuse."""
        raise SubmissionRefused(f"{work.name}: a look submits nothing")

    def cancel(self, jobs: Sequence[JobRef]) -> None:
        """Refuse."""
        raise TryLater(f"{len(jobs)} jobs: a look cancels nothing")


def _figure(count: int, counted: int) -> Figure:
    aim = 0 if count == 0 else 2 + (count - 1) // IDS_PER_CALL
    peer = Peer("2 + one per further 500 ids", aim, counted / aim) if aim else None
    return Figure(f"scheduler_calls_per_pass.ids_{count}", counted, "calls", peer, f"{aim}")
