"""One short story, told to a scripted Slurm and to a real one: what was asked, and what was answered, normalised.

``tell`` does the same with both; ``Place`` is what it needs of either.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from outerloop_hpc.slurm.environment import query_environment
from outerloop_hpc.slurm.parse import QUEUE_LETTERS, queue_format
from outerloop_hpc.slurm.query import WANTED_COLUMNS
from tests.fakeslurm.dialect import NAMELESS

#: Measured or chosen by the machine. Ids of elements: a real controller hands them out when an element starts. Reason:
#: accounting keeps the one that was there when it happened to hear of the job; squeue's is compared.
_DIFFERS = (
    "JobIDRaw SLUID ElapsedRaw Suspended Planned Reserved PlannedCPURAW ResvCPURAW TotalCPU UserCPU SystemCPU "
    "CPUTimeRAW MaxRSS MaxRSSNode AveRSS MaxVMSize TRESUsageInTot TRESUsageInMax TRESUsageInAve TRESUsageOutTot "
    "ConsumedEnergyRaw Reason"
)
DIFFERS = frozenset(_DIFFERS.split())
_TIMES = frozenset({"Submit", "Eligible", "Start", "End"})
_BETWEEN = "\x1f~"
_LIMIT_S = 300.0
_UNKNOWN = "999999"

Row = dict[str, str]


@dataclass(frozen=True)
class Said:
    """How one program answered."""

    status: int | None
    out: str
    err: str


class Place(Protocol):
    """A cluster to which the story can be told."""

    user: str
    uid: int

    def call(self, argv: Sequence[str], env: dict[str, str]) -> Said:
        """Run one of the six programs as that user."""
        ...

    def wait(self) -> None:
        """Let a little time pass."""
        ...

    def stop(self, daemon: str) -> None:
        """Take ``slurmctld`` or ``slurmdbd`` away."""
        ...

    def start(self, daemon: str) -> None:
        """Bring it back."""
        ...


@dataclass
class Told:
    """What was answered, under the names of the questions; ``jobs`` are the ids by the names of the jobs."""

    place: Place
    columns: list[str] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)
    texts: dict[str, tuple[int | None, str, str]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def ask(self, *argv: str) -> Said:
        """Ask as the tool does: in its environment."""
        return self.place.call(argv, query_environment({}))

    def note(self, question: str, *argv: str) -> None:
        """Keep status and texts."""
        said = self.ask(*argv)
        self.texts[question] = (said.status, self._normal(said.out), self._normal(said.err))

    def _normal(self, text: str) -> str:
        """Leave out what is each cluster's own: ids where they stand for a job, nodes, the user."""
        for name, number in self.jobs.items():
            text = re.sub(rf"(job id |job |^){number}(?![0-9])(?!(?<!id {number}):)", rf"\g<1><{name}>", text)
        return re.sub(r"\bn[123]\b", "<node>", text.replace(self.place.user, "<user>"))

    # --- jobs

    def submit(self, name: str, script: str, *options: str) -> None:
        """Submit a job that must be taken."""
        fixed = ("--parsable", "--chdir=/tmp", "--output=/dev/null", "--time=60", f"--job-name={name}")
        said = self.place.call(("sbatch", *fixed, *options, f"--wrap={script}"), {})
        assert said.status == 0, said
        self.jobs[name] = said.out.strip()

    def until(self, what: str, seen: Callable[[], bool]) -> None:
        """Wait for a condition."""
        limit = time.monotonic() + _LIMIT_S
        while not seen():
            assert time.monotonic() < limit, f"not seen in {_LIMIT_S:g} s: {what}: {self.queue()} {self.accounting()}"
            self.place.wait()

    # --- looks

    def queue(self) -> list[Row]:
        """What the tool's own squeue says of our jobs."""
        form = queue_format(_BETWEEN)
        said = self.ask("squeue", "-h", "-a", "-t", "all", "-u", self.place.user, "-o", form)
        assert said.status == 0, said
        lines = [line.split(_BETWEEN) for line in said.out.splitlines()]
        rows = [dict(zip(QUEUE_LETTERS, line, strict=True)) for line in lines]
        ours = [row for row in rows if row["j"].strip() in self.jobs]
        return sorted((self._queued(row) for row in ours), key=lambda row: row["i"])

    def _queued(self, row: Row) -> Row:
        texts = {key: value.strip() for key, value in row.items()}
        shown = {
            "i": self._normal(texts["i"]),
            "V": "known",
            "u": self._normal(texts["u"]),
            "N": self._normal(texts["N"]),
        }
        return {**texts, **shown}

    def accounting(self, *options: str) -> list[Row]:
        """What the tool's own sacct says of our jobs; without options by id and with duplicates."""
        if not self.columns:
            exist = set(self.ask("sacct", "--helpformat").out.split())
            self.columns = [column for column in WANTED_COLUMNS.split() if column in exist]
        chosen = options or ("-D", "-j", ",".join(self.jobs.values()))
        fixed = ("-a", "-P", "--noconvert", f"--delimiter={_BETWEEN}", "-o", ",".join(self.columns))
        said = self.ask("sacct", *fixed, *chosen)
        assert said.status == 0, said
        head, *lines = said.out.splitlines()
        names = head.split(_BETWEEN)
        assert names == self.columns
        rows = self._ours(dict(zip(names, line.split(_BETWEEN), strict=True)) for line in lines)
        return sorted((self._row(row) for row in rows), key=lambda row: row["JobID"])

    def _ours(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Leave out what had these ids before; steps follow their job and have no name of their own."""
        ours = False
        for row in rows:
            if "." not in row["JobID"]:
                ours = row["JobName"] in {*self.jobs, NAMELESS}
            if ours:
                yield row

    def _row(self, row: Row) -> Row:
        kept = {name: value for name, value in row.items() if name not in DIFFERS}
        times = {name: "known" for name in _TIMES if kept[name].isdigit()}
        shown = {name: self._normal(kept[name]) for name in ("JobID", "User", "NodeList")}
        # Which of Slurm's schedulers started a job is chance, and so is the number of a user.
        shown["Flags"] = re.sub(r"Sched\w+,", "", kept["Flags"])
        shown["State"] = re.sub(rf" by {self.place.uid}$", " by <uid>", kept["State"])
        return {**kept, **times, **shown}

    def states(self, name: str) -> list[str]:
        """States of a job's allocations in accounting, in order."""
        rows = self.accounting("-D", "-j", self.jobs[name])
        return [row["State"].split()[0] for row in rows if "." not in row["JobID"]]

    def names(self, name: str) -> set[str]:
        """Names that accounting gives a job's allocations."""
        rows = self.accounting("-D", "-j", self.jobs[name])
        return {row["JobName"] for row in rows if "." not in row["JobID"]}

    def reasons(self, name: str) -> set[str]:
        """State and reason of each of a job's lines in the queue."""
        return {f"{row['T']} {row['r']}" for row in self.queue() if row["j"] == name}


def tell(place: Place) -> Told:
    """Tell the story."""
    told = Told(place)
    _refused(told)
    _queued_and_running(told)
    _requeued(told)
    _ended(told)
    _unknown(told)
    _without_daemons(told)
    return told


def _refused(told: Told) -> None:
    told.note("the length of arrays", "scontrol", "show", "config")
    status, config, err = told.texts["the length of arrays"]
    line = next(line for line in config.splitlines() if line.startswith("MaxArraySize"))
    told.texts["the length of arrays"] = (status, line, err)
    told.note("no such partition", "sbatch", "-p", "nopart", "--wrap=true")
    told.note("no such time", "sbatch", "--time=foo", "--wrap=true")
    told.note("too long an array", "sbatch", "--array=0-1001", "--wrap=true")
    told.note("no such script", "sbatch", "/nonexistent.sh")


def _queued_and_running(told: Told) -> None:
    told.submit("short", "true")
    told.submit("fails", "exit 3")
    told.submit("high", "exit 200")
    told.submit("long", "sleep 3000")
    told.submit("long-array", "sleep 3000", "--array=0-4%2")
    told.submit("long-again", "sleep 3000")
    told.submit("long-never", "sleep 3000", "--no-requeue")
    told.submit("held", "true", "--hold")
    told.submit("later", "true", "--begin=now+1800")
    told.submit("after", "true", f"--dependency=afterany:{told.jobs['long']}")
    told.until("short jobs over", lambda: told.states("short") == ["COMPLETED"] and told.states("fails") == ["FAILED"])
    told.until("exit status 200", lambda: told.states("high") == ["FAILED"])
    for name in ("long", "long-again", "long-never"):
        told.until(f"{name} running", lambda name=name: told.states(name) == ["RUNNING"])  # type: ignore[misc]
    told.until("half an array", lambda: told.states("long-array").count("RUNNING") == 2)
    told.until("held", lambda: told.states("held") == ["PENDING"] and told.states("later") == ["PENDING"])
    told.until("waiting", lambda: told.states("after") == ["PENDING"])
    for name, reason in (("held", "JobHeldUser"), ("later", "BeginTime"), ("after", "Dependency")):
        told.until(reason, lambda name=name, reason=reason: told.reasons(name) == {f"PENDING {reason}"})  # type: ignore[misc]
    told.until("a limit", lambda: "PENDING JobArrayTaskLimit" in told.reasons("long-array"))
    # Accounting hears of an end before the controller has heard of all that follows it.
    told.until("nothing in between", lambda: not [row for row in told.queue() if row["T"] == "COMPLETING"])
    told.rows["queue, all kinds"] = told.queue()
    told.rows["accounting, all kinds"] = told.accounting()
    told.rows["accounting, without -D"] = told.accounting("-j", ",".join(told.jobs.values()))
    names = ",".join(name for name in told.jobs if name != "held")
    told.rows["accounting, by name"] = told.accounting(
        "-D", "--name", names, "-u", told.place.user, "-S", "now-600seconds", "-E", "now+1hour"
    )
    told.rows["a held job, by name"] = told.accounting("--name", "held", "-S", "now-600seconds", "-E", "now+1hour")


def _requeued(told: Told) -> None:
    told.note("requeue where that is off", "scontrol", "requeue", told.jobs["long-never"])
    told.note("requeue", "scontrol", "requeue", told.jobs["long-again"])
    told.until("requeued", lambda: told.states("long-again")[0] == "REQUEUED")
    told.until("queued again", lambda: {r.split()[0] for r in told.reasons("long-again")} == {"PENDING"})
    told.rows["accounting, requeued"] = told.accounting("-D", "-j", told.jobs["long-again"])
    told.note("cancel what was requeued", "scancel", told.jobs["long-again"])
    told.until("cancelled after all", lambda: "CANCELLED" in told.states("long-again"))
    # The new attempt's first row, in the older version's first seconds, is half of one.
    told.until("named", lambda: told.names("long-again") == {"long-again"})
    told.rows["accounting, requeued and cancelled"] = told.accounting("-D", "-j", told.jobs["long-again"])


def _ended(told: Told) -> None:
    told.note("cancel what waits", "scancel", told.jobs["after"])
    told.note("cancel one element", "scancel", f"{told.jobs['long-array']}_1")
    told.until("an element gone", lambda: told.states("long-array").count("CANCELLED") == 1)
    told.until("the next one", lambda: told.states("long-array").count("RUNNING") == 2)
    told.note("cancel what runs", "scancel", told.jobs["long"], told.jobs["long-array"], told.jobs["long-never"])
    told.note("cancel what is held", "scancel", told.jobs["held"], told.jobs["later"])
    for name in ("long", "long-never", "after", "held", "later"):
        told.until(f"{name} cancelled", lambda name=name: told.states(name) == ["CANCELLED"])  # type: ignore[misc]
    told.until("array cancelled", lambda: set(told.states("long-array")) == {"CANCELLED"})
    told.until("all ended", lambda: not [row for row in told.queue() if row["T"] in {"RUNNING", "COMPLETING"}])
    told.rows["accounting, all ended"] = told.accounting()
    told.note("cancel what is over", "scancel", told.jobs["long"])


def _unknown(told: Told) -> None:
    told.note("an unknown id, sacct", "sacct", "-P", "-o", "JobID,State", "-j", _UNKNOWN)
    told.note("an unknown cluster, sacct", "sacct", "-P", "-o", "JobID,State", "-M", "nope")
    told.note("an unknown column, sacct", "sacct", "-P", "-o", "JobID,NoSuchField")
    told.note("an unknown id, squeue", "squeue", "-h", "-j", _UNKNOWN)
    told.note("an unknown cluster, squeue", "squeue", "-h", "-M", "nope")
    told.note("an unknown id, scancel", "scancel", _UNKNOWN)
    told.note("an unknown id, scontrol", "scontrol", "show", "job", _UNKNOWN)
    told.note("an unknown id, requeue", "scontrol", "requeue", _UNKNOWN)


def _without_daemons(told: Told) -> None:
    told.place.stop("slurmctld")
    told.note("without slurmctld, squeue", "squeue", "-h")
    told.note("without slurmctld, sbatch", "sbatch", "--wrap=true")
    told.note("without slurmctld, scancel", "scancel", told.jobs["long"])
    told.note("without slurmctld, scontrol", "scontrol", "show", "job", told.jobs["long"])
    told.note("without slurmctld, requeue", "scontrol", "requeue", told.jobs["long"])
    told.note("without slurmctld, sacct", "sacct", "-X", "-n", "-P", "-o", "State", "-j", told.jobs["fails"])
    told.place.start("slurmctld")
    told.place.stop("slurmdbd")
    told.note("without slurmdbd, sacct", "sacct", "-n", "-P", "-j", told.jobs["long"])
    told.note("without slurmdbd, squeue", "squeue", "-h", "-t", "PENDING", "-o", "%i")
    told.place.start("slurmdbd")
