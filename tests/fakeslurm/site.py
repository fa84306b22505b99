"""The test's side of a scripted cluster: it makes the programs, moves the clock and carries out what jobs do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.fakeslurm import life, model
from tests.fakeslurm.client import PROGRAMS
from tests.fakeslurm.life import Body
from tests.fakeslurm.model import Cluster, Element, Fate, Fault, Job, Settings
from tests.fakeslurm.numbers import expand
from tests.fakeslurm.warm import STUB

_CHECKOUT = Path(__file__).parents[2]
#: The signal of ``0:53``, which is what a job ends with whose output file cannot be opened.
_NO_OUTPUT = 53
_PROGRAM = """#!{python} -IS
import sys
sys.path.insert(0, {checkout!r})
from tests.fakeslurm.client import main
main({program!r}, {state!r}, sys.argv[1:])
"""


class Warm:
    """The process that jobs' Pythons are forks of; one serves many clusters."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "warm"
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OUTERLOOP_", "SLURM_", "COV_"))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakeslurm.warm", str(self.path)],
            cwd=_CHECKOUT,
            env={**env, "PYTHONPATH": str(_CHECKOUT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


class FakeSlurm:
    """One scripted cluster in a folder."""

    def __init__(self, folder: Path, warm: Warm, settings: Settings | None = None) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.state = folder / "slurm.json"
        self.python = folder / "python"
        self.where = ""
        self.bin.mkdir(parents=True)
        for program in PROGRAMS:
            text = _PROGRAM.format(
                python=sys.executable, checkout=str(_CHECKOUT), program=program, state=str(self.state)
            )
            _executable(self.bin / program, text)
        _executable(self.python, STUB.format(python=sys.executable, path=str(warm.path)))
        model.written(self.state, Cluster(now=float(int(time.time())), settings=settings or Settings()))

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to see this cluster and no other."""
        return {"PATH": f"{self.bin}:{os.environ['PATH']}", "FAKESLURM_CLOCK": str(self.clock)}

    @property
    def clock(self) -> Path:
        """The file with the time."""
        return self.state.with_suffix(".clock")

    @contextmanager
    def changed(self) -> Iterator[Cluster]:
        """Change anything."""
        with model.opened(self.state) as cluster:
            yield cluster

    def cluster(self) -> Cluster:
        """What is known now."""
        return model.decode(self.state.read_text(encoding="utf-8"))

    def calls(self, program: str) -> list[list[str]]:
        """The words of every call of a program so far."""
        return [call[1:] for call in self.cluster().calls if call[0] == program]

    def taken(self) -> list[str]:
        """Names of all jobs that were taken, in order."""
        return [job.name for job in self.cluster().jobs if not job.past]

    # --- scripting

    def fate(self, *fates: Fate) -> None:
        """Say how it goes for later attempts."""
        with self.changed() as cluster:
            cluster.fates.extend(fates)

    def fault(self, *faults: Fault) -> None:
        """Let programs fail."""
        with self.changed() as cluster:
            cluster.faults.extend(faults)

    def down(self, daemon: str) -> None:
        """Take ``slurmctld`` or ``slurmdbd`` away."""
        with self.changed() as cluster:
            cluster.down.setdefault(daemon, cluster.now)

    def up(self, daemon: str) -> None:
        """Bring it back."""
        with self.changed() as cluster:
            cluster.outages.append((daemon, cluster.down.pop(daemon), cluster.now))

    def past(self, job_id: int, name: str, user: str, state: str, *, ago_s: float, lasted_s: float = 60.0) -> None:
        """Let accounting know a job of long ago, of which the controller knows nothing."""
        with self.changed() as cluster:
            began = cluster.now - ago_s
            attempt = model.Attempt(began, began, began, began + lasted_s, state, node="n1")
            told = {"name": name, "state": state, "submit": began, "eligible": began, "start": began, "node": "n1"}
            attempt.note(began, **told, end=began + lasted_s)
            element = Element(job_id, None, state, ended=began + lasted_s, attempts=[attempt])
            cluster.jobs.append(Job(job_id, name, user, 4711, past=True, elements=[element]))

    def foreign(
        self, job_id: int, name: str, user: str, state: str = "RUNNING", offset: int | None = None, tasks: str = ""
    ) -> None:
        """Let the queue hold a job of somebody else, or another part of a heterogeneous one, or an array that waits."""
        waits = state == "PENDING"
        with self.changed() as cluster:
            began = None if waits else cluster.now
            told = {"name": name, "state": state, "submit": cluster.now, "start": began, "node": "" if waits else "n2"}
            indices, parallel = expand(tasks) if tasks else ([None], 0)
            elements = []
            for place, task in enumerate(indices):
                attempt = model.Attempt(cluster.now, began, began, node=str(told["node"]), state=state)
                attempt.note(cluster.now, eligible=began, **told)
                elements.append(Element(job_id + (offset or 0) + place, task, state, attempts=[attempt]))
            job = Job(job_id, name, user, 4711, offset=offset, held=waits, parallel=parallel, elements=elements)
            cluster.jobs.append(job)

    # --- time

    def advance(self, seconds: float) -> None:
        """Let time pass; jobs start, do what they do, and end."""
        until = self.cluster().now + seconds
        while True:
            with self.changed() as cluster:
                at = life.next_event(cluster)
                cluster.now = max(cluster.now, until if at is None else min(at, until))
                bodies = life.step(cluster) if at is not None and at <= until else []
                if not bodies and (at is None or at > until):
                    return
            for body in bodies:
                status = self._carry_out(body)
                with self.changed() as cluster:
                    life.finished(cluster, body, status)

    def _carry_out(self, body: Body) -> int:
        """Run what the job runs, as slurmd would: the script with bash, in its folder, its output in its log."""
        job, element = body.job, body.element
        script = self.folder / f"script-{body.place}-{body.raw}-{body.attempt}"
        script.write_text(job.script, encoding="utf-8")
        array = job.id if element.task is None else f"{job.id}"
        names = {"%A": str(array), "%a": str(element.task), "%j": str(element.raw)}
        output = job.output.replace("%%", "\0")
        for tag, value in names.items():
            output = output.replace(tag, value)
        log = Path(job.workdir, output.replace("\0", "%"))
        env = {**job.env, **self._of_job(job, element), **({"FAKESLURM_KILL": body.at} if body.at else {})}
        if not log.parent.is_dir():
            return -_NO_OUTPUT
        with log.open("ab") as out:
            done = subprocess.run(
                ["bash", str(script)],
                cwd=job.workdir,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return done.returncode

    def _of_job(self, job: Job, element: Element) -> Mapping[str, str]:
        attempt = element.last
        ends = (attempt.start or 0.0) + 60 * job.minutes
        told = {
            "SLURM_JOB_ID": element.raw,
            "SLURM_JOB_NAME": job.name,
            "SLURM_JOB_NODELIST": attempt.node,
            "SLURMD_NODENAME": attempt.node,
            "SLURM_JOB_PARTITION": job.partition,
            "SLURM_CLUSTER_NAME": self.cluster().settings.cluster,
            "SLURM_RESTART_COUNT": len(element.attempts) - 1,
            "SLURM_JOB_END_TIME": int(ends),
            "SLURM_NTASKS": 1,
            "SLURM_NODEID": 0,
            "SLURM_PROCID": 0,
            "SLURM_LOCALID": 0,
            "SLURM_JOB_NUM_NODES": 1,
            "FAKESLURM_CLOCK": self.clock,
        }
        if element.task is not None:
            told |= {"SLURM_ARRAY_JOB_ID": job.id, "SLURM_ARRAY_TASK_ID": element.task}
        return {name: str(value) for name, value in told.items()}

    # --- as a person

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Call one of the programs; ``env``: further variables."""
        env = {**os.environ, **self.env, **(env or {})}
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]], env=env, capture_output=True, text=True, check=False
        )

    def order(self, clock: bool = True) -> dict[str, object]:
        """What a driver needs to carry out a command line on this cluster, see ``tests.local.driver``."""
        return {"env": self.env, "clock": str(self.clock)} if clock else {"env": self.env}

    def snapshot(self) -> str:
        """The whole state, to be put back later."""
        return self.state.read_text(encoding="utf-8")

    def restore(self, snapshot: str) -> None:
        """Put it back."""
        model.written(self.state, model.decode(snapshot))


def _executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
