"""The command line on a host whose Slurm commands hang: real processes, small time limits, no Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.local.site import tiny_target

pytestmark = pytest.mark.local

SETTINGS = """\
[state]
root = "state"
min_free_gb = 0.0

[compute]
kind = "slurm"

[slurm]
submit_timeout_s = 3

[reconcile]
confirm_s = 0
submit_lag_s = 0
min_interval_s = 300
ask_again_s = 300

[container]
runtime = "none"
uncontained = true

[bench]
seeds = 1

[targets.{name}]
repository = "{repository}"
benchmarks = ["score"]
"""
#: Each writes down that it was started, and hangs while a file says so.
STUB = """\
#!/bin/bash
echo {name} "$@" >> {log}
if [ -e {hang} ]; then exec sleep 600; fi
{body}
"""
COLUMNS = "JobID JobIDRaw User Cluster State ExitCode Submit Start End NodeList JobName"
SACCT = f"""\
case "$*" in *--helpformat*) echo {COLUMNS};; *)
delimiter=$(printf '%s\\n' "$@" | sed -n 's/^--delimiter=//p')
echo {COLUMNS} | sed "s/ /$delimiter/g";; esac"""


class Host:
    """A project whose Slurm is four stubs on PATH; those named by a file in ``hang`` hang."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self.hang, self.log = folder, folder / "bin", folder / "hang", folder / "started"
        for made in (self.bin, self.hang, folder / "state"):
            made.mkdir()
        for name, body in {"squeue": "", "sacct": SACCT, "sbatch": "echo 4711", "scancel": "", "scontrol": ""}.items():
            path = self.bin / name
            path.write_text(STUB.format(name=name, log=self.log, hang=self.hang / name, body=body))
            path.chmod(0o755)
        self.configure(first=tiny_target(folder / "first"))

    def configure(self, **targets: Path) -> None:
        """Write the settings for these targets."""
        (name, repository), *more = targets.items()
        text = SETTINGS.format(name=name, repository=repository)
        text += "".join(f'\n[targets.{name}]\nrepository = "{path}"\nbenchmarks = ["score"]\n' for name, path in more)
        (self.folder / "outerloop.toml").write_text(text)

    def hangs(self, *names: str) -> None:
        """Let exactly these commands hang from now on."""
        for path in self.hang.iterdir():
            path.unlink()
        for name in names:
            (self.hang / name).touch()

    def cli(self, *arguments: str, expect: int, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one command line; the commands that it started are in ``started`` afterwards."""
        self.log.write_text("")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OUTERLOOP_", "XDG_", "SLURM_"))}
        environ = {
            **kept,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
            # Who hangs is given up soon; who answers may take long for that on a busy machine.
            "OUTERLOOP_SLURM__TIMEOUT_S": "1" if (self.hang / "sacct").exists() else "60",
            **variables,
        }
        argv = [sys.executable, "-m", "outerloop_hpc.cli.main", *arguments]
        done = subprocess.run(argv, cwd=self.folder, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def started(self) -> list[str]:
        """Names of the commands of Slurm that the last command line started, in order."""
        return [line.partition(" ")[0] for line in self.log.read_text().splitlines()]

    def document(self) -> dict[str, Any]:
        """What passes leave for each other."""
        found: dict[str, Any] = json.loads((self.folder / "state/tick/patience-slurm.json").read_text())
        return found

    def runs(self) -> int:
        """How many runs were ever made."""
        return len(list((self.folder / "state").glob("runs/*/*/spec.json")))


def test_commands_that_hang_cost_a_pass_one_time_limit_and_the_next_ones_nothing(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.hangs("sbatch")
    host.cli("tick", expect=75)
    assert (host.started(), host.runs()) == (["scontrol", "sbatch"], 1)
    host.configure(first=tmp_path / "first", second=tiny_target(tmp_path / "second"))

    host.hangs("squeue", "sacct", "sbatch", "scancel", "scontrol")
    told = host.cli("tick", expect=75).stderr
    assert (host.started(), host.runs()) == (["sacct"], 1), "the controller had just been seen not to answer"
    assert "slurmctld did not answer, 1 times in a row; it is asked again after 20" in told
    assert "no launches: slurmctld did not answer" in told

    now = {"OUTERLOOP_RECONCILE__MIN_INTERVAL_S": "0"}
    (host.folder / "state/tick/patience-slurm.json").unlink()
    told = host.cli("tick", expect=75, **now).stderr
    assert (host.started(), host.runs()) == (["squeue", "sacct"], 1)
    assert sorted(host.document()["silent"]) == ["slurmctld", "slurmdbd"]
    assert "submission.unknown" in host.cli("explain", next((tmp_path / "state/live").iterdir()).name, expect=0).stdout
    assert host.started() == ["squeue", "sacct"], "a person who asks is answered"

    host.hangs()
    (host.folder / "state/tick/patience-slurm.json").unlink()
    host.cli("tick", expect=0, **now)
    assert host.started().count("squeue") == 1
    assert host.started().count("sbatch") >= 1
    assert host.runs() == 2
    host.cli("tick", expect=0)
    told = host.cli("tick", expect=0).stderr
    assert not {"squeue", "sacct", "sbatch"} & set(host.started())
    assert "min_interval_s" in told, "just after it was asked; and all is well"
