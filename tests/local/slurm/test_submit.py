"""The port over stub clients on PATH: real processes, real batch scripts, no Slurm."""

from __future__ import annotations

import os
import pickle
import pickletools
import pwd
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.errors import TryLater
from outerloop_hpc.process import run_command
from outerloop_hpc.slurm.port import (
    Availability,
    Bound,
    Compute,
    JobRef,
    Resources,
    SubmissionAmbiguous,
    SubmissionRefused,
    Work,
)
from outerloop_hpc.slurm.query import SlurmQuery
from outerloop_hpc.slurm.sbatch import SiteOptions
from outerloop_hpc.slurm.submit import SlurmCompute

pytestmark = pytest.mark.local

HOSTILE = [
    "plain",
    "with space",
    "it's",
    'say "hi"',
    "$(touch pwned)",
    "a\ntouch pwned\nb",
    "50% done",
    "ünï",
    "#x",
    "-n",
]
ME = pwd.getpwuid(os.geteuid()).pw_name
REF = JobRef("run-1", ME, "7", "", datetime(2026, 11, 29, tzinfo=UTC))


class Stubs:
    """Executables on a PATH of their own; each writes its argv and environment down, then answers."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.bin.mkdir()
        self.log.mkdir()

    def put(self, name: str, body: str) -> None:
        log = self.log / name
        script = (
            f'#!/bin/bash\nprintf "%s\\0" "$@" >> {log}.argv\nprintf "\\1" >> {log}.argv\nenv -0 > {log}.env\n{body}\n'
        )
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def argvs(self, name: str) -> list[list[str]]:
        path = self.log / f"{name}.argv"
        if not path.exists():
            return []
        return [call.split("\0")[:-1] for call in path.read_text().split("\1")[:-1]]

    def environment(self, name: str) -> dict[str, str]:
        pairs = (self.log / f"{name}.env").read_text().split("\0")
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    found = Stubs(tmp_path)
    found.put("sbatch", "echo 'this site greets job 1'; echo 4711")
    found.put("scancel", "exit 0")
    found.put("scontrol", "echo 'MaxArraySize            = 4'")
    return found


def compute(stubs: Stubs, site: SiteOptions | None = None, submit_timeout_s: float = 120) -> SlurmCompute:
    site = site or SiteOptions()
    environ = {
        "PATH": f"{stubs.bin}:/usr/bin:/bin",
        "SLURM_JOB_ID": "9",
        "SBATCH_ACCOUNT": "x",
        "RANK": "3",
        "LANG": "C.UTF-8",
    }
    query = SlurmQuery(run_command, environ, cluster=site.cluster, timeout_s=120)
    return SlurmCompute(
        query,
        python=sys.executable,
        site=site,
        environ=environ,
        run=run_command,
        submit_timeout_s=submit_timeout_s,
        timeout_s=120,
    )


def work(folder: Path, *arguments: str, function: str = "os:mkdir") -> Work:
    return Work("run-1", function, arguments or (str(folder.parent / "made"),), folder, Resources(minutes=1))


def run_as_slurm_would(script: Path, chdir: Path, job: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    environ = {"PATH": "/usr/bin:/bin", "SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"} | job
    return subprocess.run(["bash", str(script)], cwd=chdir, env=environ, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_the_folder_is_called_the_job_runs_its_function(stubs: Stubs, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "submitit"
    made = tmp_path / name / "made %j"
    bound = compute(stubs).submit(work(folder, str(made)))
    assert bound == Bound("4711", "", array=False)
    ((parsable, chdir, output, script),) = stubs.argvs("sbatch")
    assert parsable == "--parsable"
    assert chdir == f"--chdir={folder}"
    assert output.startswith(f"--output={tmp_path}/")
    ended = run_as_slurm_would(Path(script), folder, {"SLURM_JOB_ID": "4711"})
    assert ended.returncode == 0, ended.stderr.decode()
    assert made.is_dir()
    assert not list(tmp_path.rglob("pwned"))


def test_an_array_has_one_pickle_for_each_element_and_three_files_in_all(stubs: Stubs, tmp_path: Path) -> None:
    folder = tmp_path / "submitit"
    made = [str(tmp_path / f"made-{number}") for number in range(3)]
    bound = compute(stubs).submit(replace(work(folder, *made), parallel=2))
    assert bound == Bound("4711", "", array=True)
    script = Path(stubs.argvs("sbatch")[0][-1])
    assert "#SBATCH --array=0-2%2\n" in script.read_text()
    ended = run_as_slurm_would(
        script, folder, {"SLURM_JOB_ID": "4712", "SLURM_ARRAY_JOB_ID": "4711", "SLURM_ARRAY_TASK_ID": "1"}
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert [Path(path).is_dir() for path in made] == [False, True, False]
    of_the_element = {path.stat().st_ino for path in folder.iterdir() if "4711_1" in path.name or "-1." in path.name}
    assert len(of_the_element) == 2  # and the log, which Slurm writes


def test_a_submitter_that_dies_after_sbatch_leaves_a_job_that_finds_its_pickle(stubs: Stubs, tmp_path: Path) -> None:
    folder = tmp_path / "submitit"
    stubs.put("sbatch", f"ls {folder} > {stubs.log}/seen; kill -9 $PPID; echo 4711")
    program = (
        "import sys; from pathlib import Path; from outerloop_hpc.process import run_command as run\n"
        "from outerloop_hpc.slurm.query import SlurmQuery; from outerloop_hpc.slurm.sbatch import SiteOptions\n"
        "from outerloop_hpc.slurm.submit import SlurmCompute; from outerloop_hpc.slurm.port import Work, Resources\n"
        "env = {'PATH': sys.argv[1]}\n"
        "slurm = SlurmCompute(SlurmQuery(run, env), python=sys.executable, site=SiteOptions(), environ=env, run=run)\n"
        "slurm.submit(Work('n', 'os:mkdir', (sys.argv[3],), Path(sys.argv[2]), Resources(1)))\n"
    )
    made = tmp_path / "made"
    argv = [sys.executable, "-c", program, f"{stubs.bin}:/usr/bin:/bin", str(folder), str(made)]
    died = subprocess.run(argv, capture_output=True, timeout=240, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert (stubs.log / "seen").read_text().split() == ["element-0.pkl", "submission.sh"]
    ended = run_as_slurm_would(folder / "submission.sh", folder, {"SLURM_JOB_ID": "4711"})
    assert ended.returncode == 0, ended.stderr.decode()
    assert made.is_dir()


def test_a_job_whose_folder_is_gone_runs_nothing_elsewhere(stubs: Stubs, tmp_path: Path) -> None:
    folder = tmp_path / "submitit"
    compute(stubs).submit(work(folder))
    script = tmp_path / "spooled"
    (folder / "submission.sh").rename(script)
    folder.rename(tmp_path / "moved")
    ended = run_as_slurm_would(script, tmp_path, {"SLURM_JOB_ID": "4711"})
    assert ended.returncode == 72
    assert not (tmp_path / "made").exists()


def test_usr2_to_the_batch_process_reaches_python_and_never_requeues(stubs: Stubs, tmp_path: Path) -> None:
    folder = tmp_path / "submitit"
    sleeper = stubs.bin / "sleeper"
    stubs.put("sleeper", f"touch {tmp_path}/begun; exec sleep 600")
    compute(stubs).submit(work(folder, str(sleeper), function="subprocess:check_output"))
    environ = {"PATH": f"{stubs.bin}:/usr/bin:/bin", "SLURM_JOB_ID": "4711"}
    argv = ["bash", str(folder / "submission.sh")]
    with subprocess.Popen(argv, cwd=folder, env=environ, stderr=subprocess.PIPE, start_new_session=True) as job:
        for _ in range(2000):
            if (tmp_path / "begun").exists():
                break
            time.sleep(0.1)
        job.send_signal(signal.SIGUSR2)  # to the batch process alone, as `B:` does
        _, said = job.communicate(timeout=240)
    assert job.returncode == 1
    assert b"Caught signal SIGUSR2" in said
    assert b"not requeued because: timed-out too many times" in said
    assert not stubs.argvs("scontrol")


def test_the_script_asks_for_what_the_design_promises(stubs: Stubs, tmp_path: Path) -> None:
    folder = tmp_path / "submitit"
    compute(stubs, SiteOptions(account="a b")).submit(work(folder))
    text = (folder / "submission.sh").read_text()
    assert "#SBATCH --signal=B:USR2@30\n" in text
    assert "#SBATCH --no-requeue\n" in text
    assert "#SBATCH --open-mode=append\n" in text
    assert "#SBATCH --account='a b'\n" in text
    assert text.rstrip().splitlines()[-1].startswith(f"exec {sys.executable} -u -m submitit.core._submit ")
    assert not [word for word in ("srun", "wckey", "--error", "--mem", "--gres", "--partition") if word in text]


def test_the_pickle_names_a_function_and_one_string_and_is_private(stubs: Stubs, tmp_path: Path) -> None:
    folder = tmp_path / "submitit"
    compute(stubs).submit(work(folder, "/some/where", function="shlex:quote"))
    data = (folder / "element-0.pkl").read_bytes()
    names = {argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str)}
    assert {"shlex", "quote", "/some/where"} <= names
    assert not any("cloudpickle" in name or "code" in name for name in names)
    loaded = pickle.loads(data)  # noqa: S301 - written by this test
    assert (loaded.function("a b"), loaded.args, loaded.kwargs) == ("'a b'", ("/some/where",), {})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "function", ["nowhere_at_all:f", "os:nothing", "os", "", ":", "os:sep", "__main__:f", "os.path:"]
)
def test_a_function_that_a_job_cannot_import_is_refused(stubs: Stubs, tmp_path: Path, function: str) -> None:
    with pytest.raises(SubmissionRefused, match="run-1"):
        compute(stubs).submit(work(tmp_path / "submitit", function=function))
    assert not stubs.argvs("sbatch")


def test_sbatch_gets_nothing_of_an_outer_job(stubs: Stubs, tmp_path: Path) -> None:
    compute(stubs).submit(work(tmp_path / "submitit"))
    environment = stubs.environment("sbatch")
    assert not [name for name in environment if name.startswith(("SLURM_", "SBATCH_"))]
    assert "RANK" not in environment
    assert environment["LANG"] == "C.UTF-8"


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (
            "echo 'sbatch: error: Batch job submission failed: Invalid partition name specified' >&2; exit 1",
            SubmissionRefused,
        ),
        ("echo 'sbatch: error: Batch job submission failed: Socket timed out' >&2; exit 1", SubmissionAmbiguous),
        ("echo 'sbatch: error: Unable to contact slurm controller (connect failure)' >&2; exit 1", SubmissionAmbiguous),
        ("exit 1", SubmissionAmbiguous),
        ("kill -9 $$", SubmissionAmbiguous),
        ("echo 'Thank you for job 12'", SubmissionAmbiguous),
        ("true", SubmissionAmbiguous),
        ("printf '\\xff\\xfe'", SubmissionAmbiguous),
    ],
)
def test_each_failure_says_whether_something_may_be_queued(
    stubs: Stubs, tmp_path: Path, body: str, failure: type[Exception]
) -> None:
    stubs.put("sbatch", body)
    with pytest.raises((SubmissionRefused, SubmissionAmbiguous)) as caught:
        compute(stubs).submit(work(tmp_path / "submitit"))
    assert type(caught.value) is failure
    assert "run-1" in str(caught.value)


def test_an_sbatch_that_hangs_is_ended_with_all_that_it_started(stubs: Stubs, tmp_path: Path) -> None:
    stubs.put("sbatch", f"sleep 1000 & echo $! > {stubs.log}/new; mv {stubs.log}/new {stubs.log}/child; wait")
    for limit_s in (1, 5, 50):  # on a busy machine it grows until the program got so far
        begun = time.monotonic()
        with pytest.raises(SubmissionAmbiguous, match="did not answer in time"):
            compute(stubs, submit_timeout_s=limit_s).submit(work(tmp_path / f"submitit-{limit_s}"))
        assert time.monotonic() - begun < limit_s + 200
        if (stubs.log / "child").exists():
            break
    child = Path("/proc") / (stubs.log / "child").read_text().strip()
    for _ in range(600):
        if not child.exists() or "Z" in (child / "stat").read_text().split()[2]:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a child of sbatch was left behind")


def test_a_missing_sbatch_may_be_tried_later(stubs: Stubs, tmp_path: Path) -> None:
    (stubs.bin / "sbatch").unlink()
    with pytest.raises(TryLater, match="could not be started"):
        compute(stubs).submit(work(tmp_path / "submitit"))


@pytest.mark.parametrize(
    ("site", "answer", "cluster"),
    [
        (SiteOptions(cluster="alpha"), "5;alpha", "alpha"),
        (SiteOptions(cluster="alpha"), "5", "alpha"),
        (SiteOptions(), "5;beta", "beta"),
        (SiteOptions(), "5", ""),
    ],
)
def test_the_cluster_that_took_it_is_kept(
    stubs: Stubs, tmp_path: Path, site: SiteOptions, answer: str, cluster: str
) -> None:
    stubs.put("sbatch", f"echo '{answer}'")
    assert compute(stubs, site).submit(work(tmp_path / "submitit")) == Bound("5", cluster, array=False)
    assert stubs.argvs("sbatch")[0][1:3] == (["-M", "alpha"] if site.cluster else stubs.argvs("sbatch")[0][1:3])


def test_an_array_over_the_clusters_limit_is_refused_before_sbatch(stubs: Stubs, tmp_path: Path) -> None:
    slurm = compute(stubs)
    slurm.submit(work(tmp_path / "four", *"abcd"))
    with pytest.raises(SubmissionRefused, match="MaxArraySize"):
        slurm.submit(work(tmp_path / "five", *"abcde"))
    assert slurm.max_array_size() == 4
    assert len(stubs.argvs("sbatch")) == 1
    assert stubs.argvs("scontrol") == [["show", "config"]]


def test_a_silent_controller_leaves_the_default_array_size_and_is_asked_again(stubs: Stubs) -> None:
    stubs.put("scontrol", "exit 1")
    slurm = compute(stubs)
    assert slurm.max_array_size() == 1001
    stubs.put("scontrol", "echo 'MaxArraySize = 100000'")
    assert slurm.max_array_size() == 100000


def test_a_cluster_without_arrays_gets_a_job_for_each_element(stubs: Stubs, tmp_path: Path) -> None:
    stubs.put("scontrol", "echo 'MaxArraySize = 0'")
    slurm = compute(stubs)
    assert slurm.max_array_size() == 1
    assert not slurm.submit(work(tmp_path / "one")).array


def test_a_second_submission_from_the_same_folder_does_not_touch_the_first(stubs: Stubs, tmp_path: Path) -> None:
    folder = tmp_path / "submitit"
    slurm = compute(stubs)
    slurm.submit(work(folder, str(tmp_path / "first")))
    script = folder / "submission.sh"
    os.link(folder / "element-0.pkl", folder / "1_submitted.pkl")
    slurm.submit(work(folder, str(tmp_path / "second")))
    for job in ("1", "2"):
        assert run_as_slurm_would(script, folder, {"SLURM_JOB_ID": job}).returncode == 0
    assert (tmp_path / "first").is_dir()
    assert (tmp_path / "second").is_dir()


def test_a_job_whose_folder_was_cleared_away_leaves_at_once(stubs: Stubs, tmp_path: Path) -> None:
    """Requeued after its run was closed; newer Slurm makes the folder again, for the log."""
    folder = tmp_path / "submitit"
    compute(stubs).submit(work(folder, str(tmp_path / "made")))
    script = folder / "submission.sh"
    for pickled in folder.glob("*.pkl"):
        pickled.unlink()
    assert run_as_slurm_would(script, folder, {"SLURM_JOB_ID": "1"}).returncode == 72
    assert not (tmp_path / "made").exists()


def test_a_full_filesystem_submits_nothing(stubs: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    folder = tmp_path / "submitit"
    folder.mkdir()
    monkeypatch.setattr("outerloop_hpc.slurm.submit._write_private", full)
    with pytest.raises(TryLater, match="nothing was submitted"):
        compute(stubs).submit(work(folder))
    assert not stubs.argvs("sbatch")


def test_cancelling_is_one_call_for_all_ids_and_by_name_for_the_rest(stubs: Stubs) -> None:
    slurm = compute(stubs)
    slurm.cancel([REF, replace(REF, job_id="9"), REF, replace(REF, job_id=None, name="run-2")])
    assert stubs.argvs("scancel") == [["7", "9"], [f"--user={ME}", "--name=run-2"]]


def test_cancelling_asks_each_cluster(stubs: Stubs) -> None:
    compute(stubs, SiteOptions(cluster="alpha")).cancel([REF, replace(REF, job_id="9", cluster="beta")])
    assert stubs.argvs("scancel") == [["-M", "alpha", "7"], ["-M", "beta", "9"]]


def test_cancelling_nothing_calls_nothing(stubs: Stubs) -> None:
    compute(stubs).cancel([])
    assert not stubs.argvs("scancel")


@pytest.mark.parametrize(
    "body",
    ["echo 'scancel: error: Kill job error on job id 7: Unable to contact slurm controller' >&2; exit 8", "exit 1"],
)
def test_a_controller_that_does_not_answer_is_told(stubs: Stubs, body: str) -> None:
    stubs.put("scancel", body)
    with pytest.raises(TryLater, match=r"run-1.*again is safe"):
        compute(stubs).cancel([REF])


def test_observing_goes_through_the_same_clients(stubs: Stubs) -> None:
    values = {"i": "7", "V": "1795956079", "T": "RUNNING", "u": ME, "P": "main", "N": "n1", "r": "None", "j": "run-1"}
    filled = "; ".join(f"format=${{format//%{letter}/{value}}}" for letter, value in values.items())
    stubs.put("squeue", f'format=${{@: -1}}; {filled}; printf "%s\\n" "$format"')
    stubs.put("sacct", 'echo "Slurm accounting storage is disabled" >&2; exit 1')
    look = compute(stubs).observe([REF])
    assert [(found.job_id, found.state, found.user) for found in look.queue.rows] == [("7", "RUNNING", ME)]
    assert look.accounting.availability is Availability.DISABLED
    assert stubs.environment("squeue")["SLURM_BITSTR_LEN"] == "0"
    assert look.calls == 2


def test_the_user_is_the_one_of_the_process(stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    slurm = compute(stubs)
    assert (slurm.name, slurm.user) == ("slurm", ME)


def test_slurm_is_one_of_the_places_where_submissions_run(stubs: Stubs) -> None:
    place: Compute = compute(stubs)
    assert place.name == "slurm"


def test_importing_the_port_over_slurm_does_not_load_submitit() -> None:
    program = "import sys, outerloop_hpc.slurm.submit; sys.exit('submitit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
