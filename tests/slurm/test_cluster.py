"""The harness itself: both clusters come up, do work, and each fault function does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cluster import rootfs
from tests.cluster.cache import BuildFailed
from tests.cluster.cluster import SHARED, Cluster, start
from tests.cluster.configuration import Settings
from tests.cluster.machine import PATIENCE_S, Bind, Machine, Plan
from tests.cluster.venv import CHECKOUT

pytestmark = pytest.mark.slurm


def submit(cluster: Cluster, *options: str, script: str = "sleep 3000", user: str = "alice") -> str:
    argv = ["sbatch", "--parsable", f"--chdir={SHARED}", *options]
    return cluster.check(argv, user=user, stdin=f"#!/bin/bash\n{script}\n").strip()


def accounting(cluster: Cluster, job: str, columns: str = "jobid,state") -> list[list[str]]:
    text = cluster.check(["sacct", "-n", "-P", "-X", "-D", "-j", job, "-o", columns])
    return [line.split("|") for line in text.splitlines()]


def state_in_queue(cluster: Cluster, job: str) -> str:
    done = cluster.run(["squeue", "-h", "-t", "all", "-j", job, "-o", "%T"])
    return done.stdout.strip()


def wait_running(cluster: Cluster, job: str) -> None:
    cluster.machine.wait_until(lambda: state_in_queue(cluster, job) == "RUNNING", f"job {job} running")


def wait_accounted(cluster: Cluster, job: str, states: Sequence[str]) -> None:
    """Wait for sacct's states of a job (of all its elements); the failure shows what there was instead."""
    limit = time.monotonic() + PATIENCE_S
    while sorted(row[1] for row in accounting(cluster, job)) != sorted(states) and time.monotonic() < limit:
        time.sleep(0.2)
    assert sorted(row[1] for row in accounting(cluster, job)) == sorted(states)


def test_both_versions_come_up_with_their_own_python(cluster: Cluster) -> None:
    python = {(22, 5): "3.11", (26, 5): "3.14"}[cluster.version]
    assert cluster.node_states() == {"n1": "idle", "n2": "idle", "n3": "idle"}
    probe = "import outerloop_hpc, sys; print('%d.%d' % sys.version_info[:2], outerloop_hpc.__file__)"
    assert cluster.check(["python", "-c", probe], user="alice").split() == [
        python,
        "/opt/outerloop/src/outerloop_hpc/__init__.py",
    ]


def test_array_of_four_as_alice_has_a_row_for_each_element(cluster: Cluster) -> None:
    job = submit(cluster, "--array=0-3", "--output=element-%a.txt", script="echo $USER $SLURM_ARRAY_TASK_ID")
    wait_accounted(cluster, job, ["COMPLETED"] * 4)
    assert sorted(row[0] for row in accounting(cluster, job)) == [f"{job}_{element}" for element in range(4)]
    assert [cluster.read(f"{SHARED}/element-{n}.txt") for n in range(4)] == [f"alice {n}\n" for n in range(4)]


def test_array_runs_inside_apptainer_as_alice(cluster26: Cluster, apptainer_image: str) -> None:
    cluster26.write(
        f"{SHARED}/probe.py", "import os, platform; print(platform.freedesktop_os_release()['ID'], os.getuid())"
    )
    confined = "apptainer exec --containall --no-home --net --network none"
    script = f"exec {confined} --bind {SHARED}:/probe:ro {apptainer_image} python3 /probe/probe.py"
    job = submit(cluster26, "--array=0-3", "--output=inside-%a.txt", "--error=inside-%a.err", script=script)
    wait_accounted(cluster26, job, ["COMPLETED"] * 4)
    for element in range(4):
        assert cluster26.read(f"{SHARED}/inside-{element}.txt") == "debian 5001\n"


def test_commands_keep_argv_environment_and_names_whole(cluster: Cluster) -> None:
    hostile = "a b'\"$(id)\n;ünïcode"
    show = "import os, sys; print(repr((sys.argv[1], os.environ['ODD'], os.getcwd(), os.environ.get('HOME'))))"
    cluster.check(["mkdir", "-p", f"{SHARED}/{hostile}"], user="bob")
    done = cluster.run(["python", "-c", show, hostile], user="bob", env={"ODD": hostile}, cwd=f"{SHARED}/{hostile}")
    assert done.ok, done.complaint()
    assert done.stdout.strip() == repr((hostile, hostile, f"{SHARED}/{hostile}", "/home/bob"))
    cluster.write(f"{SHARED}/{hostile}/deep/file", hostile, user="bob")
    assert cluster.read(f"{SHARED}/{hostile}/deep/file") == hostile
    assert cluster.run(["stat", "-c", "%U", f"{SHARED}/{hostile}/deep/file"]).stdout == "bob\n"
    with pytest.raises(FileNotFoundError):
        cluster.read(f"{SHARED}/not there")


def test_commands_cost_little_and_end_at_their_limit(cluster: Cluster) -> None:
    before = os.times()
    for _ in range(20):
        assert cluster.run(["true"], user="alice").ok
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent / 20 < 0.05, "seconds of processor, whatever else the machine does"
    late = cluster.run(["sleep", "6001.5"], timeout=0.3)
    assert late.timed_out
    cluster.machine.wait_until(lambda: "6001.5" not in _sleeps(cluster), "its end, long before it is over by itself")


def test_spawned_commands_run_on_and_can_be_killed(cluster: Cluster) -> None:
    spawned = cluster.spawn(["bash", "-c", "echo begun; sleep 62.5 & sleep 62.5"], user="alice")
    cluster.machine.wait_until(
        lambda: len([p for p in cluster.machine.processes() if p.argv == ("sleep", "62.5")]) == 2, "two sleeps"
    )
    assert spawned.running
    spawned.kill()
    done = spawned.wait()
    assert (done.status, done.stdout) == (-9, "begun\n")
    cluster.machine.wait_until(
        lambda: not [p for p in cluster.machine.processes() if p.argv == ("sleep", "62.5")], "the end of both sleeps"
    )


def _sleeps(cluster: Cluster) -> list[str]:
    return [process.argv[1] for process in cluster.machine.processes() if process.argv[0] == "sleep"]


def test_node_down_leaves_jobs_and_is_noticed_by_the_controller(cluster: Cluster) -> None:
    job = submit(cluster, "--nodelist=n3", "--no-requeue", script="sleep 3000.25")
    wait_running(cluster, job)
    cluster.machine.wait_until(lambda: "3000.25" in _sleeps(cluster), "the job's own process")
    cluster.node_down("n3")
    assert "3000.25" in _sleeps(cluster)
    cluster.machine.wait_until(lambda: cluster.node_states()["n3"].endswith("*"), "n3 not responding")
    cluster.node_up("n3")
    assert not cluster.node_states()["n3"].endswith("*")


def test_node_crash_kills_its_jobs_and_no_others(cluster: Cluster) -> None:
    doomed = submit(cluster, "--nodelist=n3", "--no-requeue", script="sleep 3001.5")
    spared = submit(cluster, "--nodelist=n1", script="sleep 3002.5")
    wait_running(cluster, doomed)
    wait_running(cluster, spared)
    cluster.node_crash("n3")
    running = [p.argv for p in cluster.machine.processes()]
    assert ("sleep", "3001.5") not in running
    assert ("sleep", "3002.5") in running
    cluster.node_up("n3")
    wait_accounted(cluster, doomed, ["NODE_FAIL"])
    assert state_in_queue(cluster, spared) == "RUNNING"


def test_node_set_down_ends_its_jobs_at_once(cluster: Cluster) -> None:
    job = submit(cluster, "--nodelist=n2", "--no-requeue")
    wait_running(cluster, job)
    cluster.node_set_down("n2")
    wait_accounted(cluster, job, ["NODE_FAIL"])
    assert cluster.node_states()["n2"].startswith("down")
    cluster.node_up("n2")
    cluster.wait_idle()


@pytest.mark.parametrize("crash", [False, True])
def test_controller_down_silences_squeue_and_its_jobs_are_back_afterwards(cluster: Cluster, crash: bool) -> None:
    job = submit(cluster)
    wait_running(cluster, job)
    wait_accounted(cluster, job, ["RUNNING"])
    if crash:  # what the controller has not saved by then is forgotten
        cluster.save_jobs(job)
    cluster.controller_down(crash=crash)
    silent = cluster.run(["squeue", "-h"])
    assert silent.status == 1
    assert "Unable to contact slurm controller" in silent.stderr
    assert accounting(cluster, job) == [[job, "RUNNING"]]
    cluster.controller_up()
    assert state_in_queue(cluster, job) == "RUNNING"


def test_accounting_down_silences_sacct_but_not_squeue(cluster: Cluster) -> None:
    job = submit(cluster)
    wait_running(cluster, job)
    cluster.accounting_down()
    silent = cluster.run(["sacct", "-j", job])
    assert silent.status == 1
    assert job not in silent.stdout
    assert state_in_queue(cluster, job) == "RUNNING"
    cluster.accounting_up()
    wait_accounted(cluster, job, ["RUNNING"])


def test_database_down_silences_sacct_under_a_running_slurmdbd(cluster: Cluster) -> None:
    job = submit(cluster)
    wait_accounted(cluster, job, ["RUNNING"])
    cluster.database_down()
    names = {process.name for process in cluster.machine.processes()}
    assert "mariadbd" not in names
    assert "slurmdbd" in names
    silent = cluster.run(["sacct", "-n", "-X", "-j", job], timeout=20)
    assert job not in silent.stdout
    assert state_in_queue(cluster, job) == "RUNNING"
    cluster.database_up()
    wait_accounted(cluster, job, ["RUNNING"])


def test_reset_job_ids_hands_out_an_id_again(cluster: Cluster) -> None:
    old = submit(cluster, script="exit 3")
    wait_accounted(cluster, old, ["FAILED"])
    cluster.wait_idle()
    cluster.reset_job_ids(int(old), int(old) + 1000)
    again = submit(cluster, script="true")
    assert again == old
    wait_accounted(cluster, old, ["COMPLETED", "FAILED"])


def test_accounting_off_still_runs_jobs_on_a_shared_folder_of_the_host(tmp_path: Path) -> None:
    with start(rootfs.SLURM26, settings=Settings(accounting=False), shared=tmp_path) as cluster:
        refused = cluster.run(["sacct"])
        assert "Slurm accounting storage is disabled" in refused.stdout + refused.stderr
        submit(cluster, "--output=said.txt", "--wait", script="echo done; id -un")
        assert not {"mariadbd", "slurmdbd"} & {process.name for process in cluster.machine.processes()}
    assert (tmp_path / "said.txt").read_text() == "done\nalice\n"


def test_a_closed_cluster_leaves_no_process_and_no_mount_on_the_host() -> None:
    before = Path("/proc/self/mountinfo").read_text()
    cluster = start(rootfs.SLURM22, settings=Settings(accounting=False))
    inner = [process.host_pid for process in cluster.machine.processes()]
    spawned = cluster.spawn(["sleep", "1000"])
    cluster.close()
    assert len(inner) > 5
    assert [pid for pid in (*inner, spawned.process.pid) if Path(f"/proc/{pid}").exists()] == []
    assert Path("/proc/self/mountinfo").read_text() == before


def test_a_cache_with_a_hostile_name_serves_a_machine(tmp_path: Path) -> None:
    odd = tmp_path / "a b,c:d'\"é"
    odd.mkdir()
    (odd / "given").write_text("seen")
    base = rootfs.root(rootfs.SLURM22)
    with Machine(Plan(base, (Bind(odd, "/given here"),)), odd / "cache") as machine:
        assert machine.read("/given here/given") == "seen"
        assert not machine.run(["touch", "/given here/no"]).ok
        machine.check(["touch", "/etc/thrown-away"])
    assert not (base / "etc" / "thrown-away").exists()


def test_a_machine_that_cannot_come_up_says_why(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="did not come up"):
        Machine(Plan(tmp_path / "no such root"), tmp_path)


def test_a_killed_test_process_takes_its_cluster_with_it() -> None:
    program = (
        "import sys\n"
        "from tests.cluster import cluster, rootfs\n"
        "running = cluster.start(rootfs.SLURM22, settings=cluster.Settings(accounting=False))\n"
        "print(*(process.host_pid for process in running.machine.processes()), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT
    ) as process:
        assert process.stdout is not None
        inner = process.stdout.readline().split()
        process.kill()
    limit = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() for pid in inner) and time.monotonic() < limit:
        time.sleep(0.1)
    assert len(inner) > 5
    assert [pid for pid in inner if Path(f"/proc/{pid}").exists()] == []
