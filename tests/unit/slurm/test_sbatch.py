from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from outerloop_hpc.config.ownership import OWNED_OPTIONS
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.slurm.port import Resources, SubmissionRefused, Work
from outerloop_hpc.slurm.sbatch import Option, SiteOptions, parameters, placement, signal_lead_s

pytestmark = pytest.mark.unit

SITE = SiteOptions()
WORK = Work("run-1", "os:mkdir", ("/a",), Path("/state/x"), Resources(minutes=10))


def extra(work: Work = WORK, site: SiteOptions = SITE) -> dict[str, Option]:
    found: dict[str, Option] = parameters(work, site)["additional_parameters"]
    return found


def with_resources(**changes: object) -> Work:
    return replace(WORK, resources=replace(WORK.resources, **changes))  # type: ignore[arg-type] # the fields of each case


def test_what_is_not_set_is_left_out_and_the_promises_are_always_there() -> None:
    assert extra() == {"output": "%j_0_log.out", "signal": "B:USR2@120", "no_requeue": True}
    asked = parameters(WORK, SITE)
    assert asked["wckey"] is None
    assert asked["use_srun"] is False
    assert asked["stderr_to_stdout"] is True
    assert (asked["job_name"], asked["time"], asked["cpus_per_task"]) == ("run-1", 10, 1)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (with_resources(memory_mb=2000), {"mem": "2000M"}),
        (with_resources(gpus=2), {"gres": "gpu:2"}),
        (with_resources(gpus=2, options={"gres": "gpu:a100:2"}), {"gres": "gpu:a100:2"}),
        (with_resources(memory_mb=2000, options={"mem-per-cpu": "1G"}), {"mem_per_cpu": "1G"}),
        (with_resources(options={"--exclusive": True, "nice": 10}), {"exclusive": True, "nice": 10}),
        (with_resources(options={"exclusive": False}), {}),
        (replace(WORK, after="77"), {"dependency": "afterany:77"}),
        (replace(WORK, begin_in_s=90), {"begin": "now+90"}),
        (replace(WORK, exclude_nodes=("n1", "n[2-3]")), {"exclude": "n1,n[2-3]"}),
        (replace(WORK, arguments=("/a", "/b")), {"output": "%A_%a_0_log.out"}),
    ],
)
def test_each_wish_is_one_option(work: Work, expected: dict[str, Option]) -> None:
    assert extra(work) == extra() | expected


def test_the_site_is_the_base_and_the_step_may_differ() -> None:
    site = SiteOptions("acct", "main", "normal", "avx2", {"comment": "c", "nice": 5, "export": "ALL"})
    asked = extra(with_resources(options={"partition": "gpu", "nice": False}), site)
    assert asked == extra() | {
        "account": "acct",
        "partition": "gpu",
        "qos": "normal",
        "constraint": "avx2",
        "comment": "c",
        "export": "ALL",
    }


@pytest.mark.parametrize("said", ["mem", "mem-per-cpu", "mem_per_gpu"])
def test_a_sites_memory_for_all_does_not_replace_what_a_step_needs(said: str) -> None:
    site = SiteOptions(extra={said: "4G"})
    assert extra(with_resources(memory_mb=16000), site) == extra() | {"mem": "16000M"}
    assert extra(with_resources(), site) == extra() | {said.replace("-", "_"): "4G"}


@pytest.mark.parametrize(
    ("gres", "expected"),
    [("lscratch:50", "lscratch:50,gpu:2"), ("gpu:a100:2", "gpu:a100:2"), ("lscratch:5,gres/gpu:2", None)],
)
def test_a_gres_that_is_no_gpu_does_not_replace_the_gpus_of_a_step(gres: str, expected: str | None) -> None:
    assert extra(with_resources(gpus=2), SiteOptions(extra={"gres": gres}))["gres"] == (expected or gres)


@pytest.mark.parametrize(
    ("minutes", "lead", "expected"), [(60, 120, 120), (1, 120, 30), (3, 120, 90), (10, 0, 1), (0, 120, 1)]
)
def test_the_signal_never_comes_before_the_middle_of_the_walltime(minutes: int, lead: int, expected: int) -> None:
    assert signal_lead_s(Resources(minutes, signal_lead_s=lead)) == expected


def test_walltime_is_never_zero_since_zero_means_no_limit() -> None:
    assert parameters(with_resources(minutes=0), SITE)["time"] == 1


@pytest.mark.parametrize(("parallel", "expected"), [(0, 3), (2, 2), (-1, 3)])
def test_the_throttle_of_an_array(parallel: int, expected: int) -> None:
    work = replace(WORK, arguments=("/a", "/b", "/c"), parallel=parallel)
    assert parameters(work, SITE)["array_parallelism"] == expected


@pytest.mark.parametrize("spelled", sorted({*OWNED_OPTIONS, "job-n"}))
def test_an_option_that_carries_a_promise_cannot_be_overridden(spelled: str) -> None:
    with pytest.raises(ConfigError, match=spelled):
        SiteOptions(extra={spelled: "x"})
    with pytest.raises(SubmissionRefused, match=spelled):
        parameters(with_resources(options={f"--{spelled}": "x"}), SITE)


@pytest.mark.parametrize("value", ["a\nrm -rf /", "a\rb", "\x00", "a\x1bb"])
def test_a_line_break_in_a_value_cannot_end_the_directive(value: str) -> None:
    with pytest.raises(ConfigError, match="--comment"):
        SiteOptions(extra={"comment": value})
    with pytest.raises(ConfigError, match="--account"):
        SiteOptions(account=value)
    with pytest.raises(SubmissionRefused, match="--comment"):
        parameters(with_resources(options={"comment": value}), SITE)


@pytest.mark.parametrize("name", ["", "a b", "x=y", "nice\n", "-", "Ünï"])
def test_what_is_no_option_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not a long sbatch option"):
        SiteOptions(extra={name: "1"})


@pytest.mark.parametrize(
    ("work", "match"),
    [
        (replace(WORK, name="a b"), "job name"),
        (replace(WORK, name="x" * 65), "job name"),
        (replace(WORK, name=""), "job name"),
        (replace(WORK, arguments=()), "no element"),
        (replace(WORK, after="1:2"), "waits for"),
        (replace(WORK, exclude_nodes=("n1 --x",)), "excludes"),
        (replace(WORK, folder=Path("/state/100%job")), "%j"),
        (replace(WORK, folder=Path("/state/a\\b")), "backslash"),
        (replace(WORK, folder=Path("state")), "not absolute"),
    ],
)
def test_work_that_cannot_be_expressed_is_refused_with_its_reason(work: Work, match: str) -> None:
    with pytest.raises(SubmissionRefused, match=match):
        parameters(work, SITE)


@pytest.mark.parametrize(
    ("folder", "log"),
    [
        ("/s/a b", "/s/a b/%j_0_log.out"),
        ("/s/50% %%x %u", "/s/50%% %%%%x %%u/%j_0_log.out"),
        ("/s/a\nb'\"$", "/s/a\nb'\"$/%j_0_log.out"),
    ],
)
def test_the_log_is_in_the_folder_whatever_the_folder_is_called(folder: str, log: str) -> None:
    assert placement(replace(WORK, folder=Path(folder))) == [f"--chdir={folder}", f"--output={log}"]
