"""The templates' scripts, run by real shells against programs that only say what they were asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.local

FOLDER = Path(__file__).parents[2] / "slurm-templates"
OUTER_JOB = {
    "SLURM_JOB_ID": "7",
    "SBATCH_ACCOUNT": "x",
    "SQUEUE_FORMAT": "%j",
    "SLURM_WEIRD": "a\nSLURM_B=c d",
    "SLURM_CONF": "/c",
}


class Site:
    """A folder with outerloop-hpc, sbatch and squeue that write down how they were called."""

    def __init__(self, root: Path) -> None:
        self.prefix, self.state, self.log = root / "prefix", root / "state", root / "log"
        for folder in (self.prefix / "bin", self.state / "tick"):
            folder.mkdir(parents=True)
        self.program("outerloop-hpc", 'exit "${TICK_STATUS:-0}"')
        self.program("sbatch", 'exit "${REFUSED:-0}"')
        self.program("squeue", 'printf "%s" "${WAITING:-}"')
        self.program("sleep", "true", noted=False)

    def program(self, name: str, body: str, *, noted: bool = True) -> None:
        path = self.prefix / "bin" / name
        leaked = "${SLURM_JOB_ID:-}${SBATCH_ACCOUNT:-}${SQUEUE_FORMAT:-}"
        seen = f"root=${{OUTERLOOP_STATE__ROOT:-}}|leaked={leaked}|conf=${{SLURM_CONF:-}}|$(umask)"
        note = f'echo "{name} $*|{seen}" >> "{self.log}"' if noted else "true"
        path.write_text(f"#!/bin/sh\n{note}\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def filled(self, name: str) -> Path:
        text = (FOLDER / name).read_text(encoding="utf-8")
        path = self.state / name
        path.write_text(
            text.replace("@PREFIX@", str(self.prefix)).replace("@STATE@", str(self.state)), encoding="utf-8"
        )
        return path

    def run(self, argv: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": f"{self.prefix}/bin:/usr/bin:/bin", **env}
        return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=240)

    def calls(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_self_resubmitting_job_submits_its_successor_first_and_clean(site: Site) -> None:
    script = site.filled("self-resubmitting.sbatch")
    done = site.run(["bash", str(script)], **OUTER_JOB)
    assert (done.returncode, done.stderr) == (0, "")
    queue, submission, tick = site.calls()
    assert queue.startswith("squeue --noheader --me --name=outerloop-tick --states=PENDING")
    assert submission == f"sbatch --begin=now+5minutes {script}|root=|leaked=|conf=/c|0007"
    assert tick == f"outerloop-hpc tick --quiet|root={site.state}|leaked=|conf=/c|0007"


def test_a_chain_that_was_started_twice_stays_one(site: Site) -> None:
    site.run(["bash", str(site.filled("self-resubmitting.sbatch"))], WAITING="8")
    assert [call.split()[0] for call in site.calls()] == ["squeue", "outerloop-hpc"]


def test_a_submission_that_fails_is_tried_again_and_the_tick_runs_anyway(site: Site) -> None:
    done = site.run(["bash", str(site.filled("self-resubmitting.sbatch"))], REFUSED="1")
    names = [call.split()[0] for call in site.calls()]
    assert names.count("sbatch") == 3
    assert names[-1] == "outerloop-hpc"
    assert done.returncode == 0


@pytest.mark.parametrize(("status", "expected"), [("0", 0), ("75", 0), ("10", 0), ("1", 1), ("78", 78)])
def test_only_problems_fail_the_tick_job(site: Site, status: str, expected: int) -> None:
    done = site.run(["bash", str(site.filled("self-resubmitting.sbatch"))], TICK_STATUS=status)
    assert done.returncode == expected


@pytest.mark.parametrize(("status", "mail"), [("0", False), ("75", False), ("20", False), ("1", True), ("78", True)])
def test_cron_mails_problems_only(site: Site, status: str, mail: bool) -> None:
    lines = site.filled("cron").read_text(encoding="utf-8").splitlines()
    (entry,) = (line.removeprefix("*/5 * * * * ") for line in lines if line.startswith("*/5 "))
    done = site.run(["sh", "-c", entry.replace("/tmp/outerloop-tick", f"{site.state}/lock")], TICK_STATUS=status)
    assert done.stderr == ""
    assert ("doctor" in done.stdout) == mail
    assert site.calls() == [f"outerloop-hpc tick --quiet|root={site.state}|leaked=|conf=|0007"]


def test_scrontabs_entry_runs(site: Site) -> None:
    lines = site.filled("scrontab").read_text(encoding="utf-8").splitlines()
    (entry,) = (line.removeprefix("*/5 * * * * ") for line in lines if line.startswith("*/5 "))
    assert site.run(["sh", "-c", entry]).returncode == 0
    assert site.calls() == [f"outerloop-hpc tick --quiet|root={site.state}|leaked=|conf=|0007"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("path", ["", "/opt/x", "/usr/bin", "/usr/bin:/opt/x"])
def test_the_preamble_is_silent_and_may_be_sourced_twice(site: Site, shell: str, path: str) -> None:
    preamble = site.filled("site-preamble.sh")
    source = f'. "{preamble}"; echo "$PATH|$OUTERLOOP_STATE__ROOT|$(umask)"; '
    done = subprocess.run(
        [f"/bin/{shell}", "-c", "set -eu; " + source + source],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    first, second = done.stdout.splitlines()
    assert (done.stderr, first) == ("", second)
    path_after, _, rest = first.partition("|")
    assert rest == f"{site.state}|0007"
    assert "/usr/bin" in path_after.split(os.pathsep)
    assert "" not in path_after.split(os.pathsep)
