"""Command lines of the runtimes: what must be there, and what must never be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from outerloop_hpc.container.apptainer import Apptainer
from outerloop_hpc.container.bubblewrap import Bubblewrap
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.image import ImageRef
from outerloop_hpc.container.runtime import Bind, Network, Runtime, Sandbox, on_host
from outerloop_hpc.container.uncontained import Uncontained
from outerloop_hpc.errors import ConfigError

pytestmark = pytest.mark.unit

CALLER = {
    "PATH": "/opt/site/bin:/usr/bin",
    "LANG": "C.UTF-8",
    "HOME": "/home/alice",
    "AWS_SECRET_ACCESS_KEY": "hush",
    "SLURM_JOB_ID": "7",
    "LD_LIBRARY_PATH": "/opt/site/lib",
    "APPTAINERENV_LEAK": "hush",
    "APPTAINER_BIND": "/home",
    "SINGULARITY_BINDPATH": "/home",
}
SANDBOX = Sandbox(
    binds=(
        Bind(Path("/scratch/7/check out"), PurePosixPath("/work"), writable=True),
        Bind(Path("/data"), PurePosixPath("/data")),
    ),
    workdir=PurePosixPath("/work"),
    scratch=Path("/scratch/7/box"),
    env={"SEED": "7", "TOKEN": "not for ps"},
)
APPTAINER = Apptainer("/usr/bin/apptainer", Path("/images/a.sif"), environ=CALLER)
BUBBLEWRAP = Bubblewrap("/usr/bin/bwrap", environ=CALLER)
NONE = Uncontained(consent=True, environ=CALLER)
ALL = [APPTAINER, replace(APPTAINER, name="singularity"), BUBBLEWRAP, NONE]


def test_apptainer_whole() -> None:
    prepared = APPTAINER.command(["python3", "bench.py", "a b"], SANDBOX)
    assert prepared.argv == (
        "/usr/bin/apptainer", "--quiet", "exec", "--containall", "--cleanenv", "--no-eval",
        "--home", "/scratch/7/box/home:/home/outerloop", "--workdir", "/scratch/7/box",
        "--bind", "/scratch/7/check out:/work:rw", "--bind", "/data:/data:ro",
        "--net", "--network", "none", "--pwd", "/work",
        "/images/a.sif", "python3", "bench.py", "a b",
    )  # fmt: skip
    assert prepared.env == {
        "PATH": "/opt/site/bin:/usr/bin",
        "LANG": "C.UTF-8",
        "HOME": "/scratch/7/box/home",
        "TMPDIR": "/scratch/7/box/tmp",
        "APPTAINERENV_SEED": "7",
        "APPTAINERENV_TOKEN": "not for ps",
    }
    assert (prepared.network, prepared.notes) == (Network.OFF, ())


def test_singularity_has_its_own_prefix() -> None:
    env = replace(APPTAINER, name="singularity").command(["true"], SANDBOX).env
    assert env["SINGULARITYENV_SEED"] == "7"
    assert not any(name.startswith("APPTAINERENV_") for name in env)


@pytest.mark.parametrize("runtime", ALL, ids=lambda one: one.name)
def test_no_value_is_on_the_command_line_and_no_secret_of_the_caller_anywhere(runtime: Runtime) -> None:
    prepared = runtime.command(["true"], SANDBOX)
    assert not any("not for ps" in part for part in prepared.argv)
    assert any(value == "not for ps" for value in prepared.env.values())
    assert "hush" not in prepared.env.values()
    assert not {"SLURM_JOB_ID", "LD_LIBRARY_PATH", "APPTAINER_BIND", "SINGULARITY_BINDPATH"} & set(prepared.env)
    assert prepared.env["HOME"] != "/home/alice"


@pytest.mark.parametrize("runtime", [APPTAINER, BUBBLEWRAP], ids=lambda one: one.name)
def test_gpus_only_when_asked_for(runtime: Runtime) -> None:
    def shown(sandbox: Sandbox) -> bool:
        argv = runtime.command(["true"], sandbox).argv
        return "--nv" in argv or "/dev/nvidiactl" in argv

    assert not shown(SANDBOX)
    assert shown(replace(SANDBOX, gpus=True))


def test_network_of_apptainer() -> None:
    asked = APPTAINER.command(["true"], replace(SANDBOX, network=True))
    unable = replace(APPTAINER, cuts_network=False).command(["true"], SANDBOX)
    assert (asked.network, asked.notes) == (Network.ON, ())
    assert unable.network is Network.HOST
    assert "cannot switch the network off" in unable.notes[0]
    assert "--net" not in (*asked.argv, *unable.argv)


def test_network_of_bubblewrap() -> None:
    off = BUBBLEWRAP.command(["true"], SANDBOX)
    asked = BUBBLEWRAP.command(["true"], replace(SANDBOX, network=True))
    unable = replace(BUBBLEWRAP, cuts_network=False).command(["true"], SANDBOX)
    assert [one.network for one in (off, asked, unable)] == [Network.OFF, Network.ON, Network.HOST]
    assert ["--share-net" in one.argv for one in (off, asked, unable)] == [False, True, True]
    assert ["/etc/resolv.conf" in one.argv for one in (off, asked, unable)] == [False, True, False]


def test_bubblewrap_binds() -> None:
    argv = replace(BUBBLEWRAP, tools=(Path("/opt/py"),)).command(["python3", "--", "x"], SANDBOX).argv
    text = " ".join(argv)
    for part in (
        "--unshare-all --die-with-parent --new-session",
        "--cap-drop ALL",
        "--bind /scratch/7/box/tmp /tmp",
        "--bind /scratch/7/box/home /home/outerloop",
        "--bind /scratch/7/check out /work",
        "--ro-bind /data /data",
        "--ro-bind-try /opt/py /opt/py",
        "--chdir /work -- python3 -- x",
    ):
        assert part in text
    assert "--setenv" not in argv


def test_deeper_binds_of_bubblewrap_come_later() -> None:
    binds = (Bind(Path("/b"), PurePosixPath("/a/b")), Bind(Path("/a"), PurePosixPath("/a")))
    argv = BUBBLEWRAP.command(["true"], replace(SANDBOX, binds=binds)).argv
    assert argv.index("/a/b") > argv.index("/a")


def test_uncontained_starts_in_the_folder_behind_the_workdir() -> None:
    prepared = NONE.command(["python3", "b.py"], SANDBOX)
    assert prepared.argv == ("python3", "b.py")
    assert prepared.cwd == Path("/scratch/7/check out")
    assert prepared.env["TMPDIR"] == "/scratch/7/box/tmp"
    assert prepared.network is Network.HOST
    assert "not contained" in prepared.notes[0]


def test_uncontained_needs_consent() -> None:
    with pytest.raises(ConfigError, match="uncontained = true"):
        Uncontained(consent=False)


@pytest.mark.parametrize("bad", ["/a:b", "/a,b"])
@pytest.mark.parametrize("where", ["source", "target", "scratch"])
def test_apptainer_refuses_paths_that_bind_would_misread(bad: str, where: str) -> None:
    bind = Bind(Path(bad if where == "source" else "/a"), PurePosixPath(bad if where == "target" else "/b"))
    sandbox = replace(SANDBOX, binds=(bind,), scratch=Path(bad) if where == "scratch" else SANDBOX.scratch)
    with pytest.raises(ConfigError, match="rename it"):
        APPTAINER.command(["true"], sandbox)


@pytest.mark.parametrize("value", ["$(id)", "`id`", 'a"b', "a\\b"])
def test_values_that_a_shell_would_evaluate_need_no_eval(value: str) -> None:
    sandbox = replace(SANDBOX, env={"SEED": value})
    assert APPTAINER.command(["true"], sandbox).env["APPTAINERENV_SEED"] == value
    with pytest.raises(ConfigError, match="SEED"):
        replace(APPTAINER, no_eval=False).command(["true"], sandbox)
    assert "--no-eval" not in replace(APPTAINER, no_eval=False).command(["true"], SANDBOX).argv


@pytest.mark.parametrize("runtime", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("argv", "changes", "message"),
    [
        ([], {}, "empty"),
        ([""], {}, "empty"),
        (["a\0b"], {}, "NUL"),
        (["true"], {"env": {"A B": "1"}}, "valid name"),
        (["true"], {"env": {"1A": "1"}}, "valid name"),
        (["true"], {"env": {"A\n": "1"}}, "valid name"),
        (["true"], {"env": {"A": "\0"}}, "NUL"),
        (["true"], {"workdir": PurePosixPath("work")}, "absolute"),
        (["true"], {"workdir": PurePosixPath("/work/../etc")}, "absolute"),
        (["true"], {"binds": (Bind(Path("data"), PurePosixPath("/data")),)}, "absolute"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    runtime: Runtime, argv: list[str], changes: dict[str, object], message: str
) -> None:
    fields = {name: getattr(SANDBOX, name) for name in ("binds", "workdir", "scratch", "env")} | changes
    with pytest.raises(ConfigError, match=message):
        runtime.command(argv, Sandbox(**fields))


def test_paths_inside_are_found_on_the_host() -> None:
    sandbox = replace(SANDBOX, binds=(*SANDBOX.binds, Bind(Path("/deep"), PurePosixPath("/work/x"))))
    assert on_host(sandbox, PurePosixPath("/work/x/y")) == Path("/deep/y")
    assert on_host(sandbox, PurePosixPath("/work/z")) == Path("/scratch/7/check out/z")
    assert on_host(sandbox, PurePosixPath("/else")) == Path("/else")


def test_an_enclosure_adds_the_folder_and_the_variables() -> None:
    enclosure = Enclosure(APPTAINER, replace(SANDBOX, binds=()), ImageRef(Path("/images/a.sif"), "ab" * 32))
    prepared = enclosure.command(["true"], {"SEED": "8"}, Path("/scratch/7/co"))
    assert "/scratch/7/co:/work:rw" in prepared.argv
    assert (prepared.env["APPTAINERENV_SEED"], prepared.env["APPTAINERENV_TOKEN"]) == ("8", "not for ps")
    assert (enclosure.name, enclosure.image_sha256) == ("apptainer", "ab" * 32)
    failure = enclosure.start_failure(255, "FATAL:   could not open image /x: image format not recognized")
    assert failure is not None
    assert "image file cannot be opened" in failure
    assert enclosure.start_failure(1, "the command's own words") is None
