"""Which runtime is taken, and that it is believed only after it was seen to contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from outerloop_hpc.container.apptainer import Apptainer
from outerloop_hpc.container.bubblewrap import Bubblewrap
from outerloop_hpc.container.choose import choose
from outerloop_hpc.container.probe import LEAK
from outerloop_hpc.container.runtime import Network, Runtime, Sandbox
from outerloop_hpc.errors import ConfigError, NodeUnfit, TryLater
from outerloop_hpc.process import Finished

pytestmark = pytest.mark.unit

GOOD = {"started": "yes", "file": "hidden", "env": "clean", "given": "intact", "network": "off"}
IMAGE = Path("/images/a.sif")


class Node:
    """A node on which runtimes answer as told; ``refuses`` names options with which nothing starts."""

    def __init__(self, *programs: str, refuses: Sequence[str] = (), stderr: str = "", **answers: str) -> None:
        self.programs = programs
        self.refuses = refuses
        self.stderr = stderr
        self.answers = {**GOOD, **answers}
        self.argvs: list[tuple[str, ...]] = []
        self.envs: list[dict[str, str]] = []

    def which(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name in self.programs else None

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        self.argvs.append(tuple(argv))
        self.envs.append(dict(env or {}))
        if any(option in argv for option in self.refuses):
            return Finished(tuple(argv), 255, "", self.stderr, timed_out=False, seconds=0.1)
        assert cwd is not None
        for folder in ("tmp", "home"):
            if self.answers.get(folder, "writable") == "writable":
                (cwd / folder / "written").touch()
        if "--net" not in argv and "--unshare-all" not in argv:
            self.answers["network"] = "on"
        said = "".join(f"{name}={value}\n" for name, value in self.answers.items())
        return Finished(tuple(argv), 0, said, "", timed_out=False, seconds=0.2)

    def choose(self, name: str = "auto", *, image: Path | None = IMAGE, **more: Any) -> Runtime:
        options: dict[str, Any] = {"uncontained": False, "environ": {"PATH": "/usr/bin"}, "seen": {}} | more
        return choose(name, image=image, which=self.which, run=self.run, **options)


@pytest.mark.parametrize(
    ("programs", "name", "image", "taken"),
    [
        (("apptainer", "singularity", "bwrap"), "auto", IMAGE, "apptainer"),
        (("singularity", "bwrap"), "auto", IMAGE, "singularity"),
        (("apptainer", "singularity"), "singularity", IMAGE, "singularity"),
        (("apptainer", "bwrap"), "auto", None, "bubblewrap"),
        (("apptainer", "bwrap"), "bubblewrap", IMAGE, "bubblewrap"),
    ],
)
def test_what_is_taken(programs: tuple[str, ...], name: str, image: Path | None, taken: str) -> None:
    assert Node(*programs).choose(name, image=image).name == taken


def test_a_missing_apptainer_is_not_papered_over_when_there_is_an_image() -> None:
    with pytest.raises(ConfigError, match="apptainer is not on PATH"):
        Node("bwrap").choose(uncontained=True)


def test_none_needs_consent_and_only_then_replaces_a_missing_bubblewrap() -> None:
    with pytest.raises(ConfigError, match="bwrap is not on PATH"):
        Node().choose(image=None)
    with pytest.raises(ConfigError, match="not allowed"):
        Node().choose("none", image=None)
    assert Node().choose(image=None, uncontained=True).name == "none"
    assert Node("bwrap").choose(image=None, uncontained=True).name == "bubblewrap"


@pytest.mark.parametrize(
    ("name", "image", "message"), [("docker", IMAGE, "unknown"), ("apptainer", None, "needs an image")]
)
def test_what_cannot_be_meant(name: str, image: Path | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Node("apptainer").choose(name, image=image)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"file": "seen"}, "files of the host"),
        ({"env": "leaks"}, "variables of the caller"),
        ({"given": "changed"}, "arrives changed"),
        ({"tmp": "readonly"}, "scratch"),
    ],
)
def test_a_runtime_that_does_not_contain_is_refused(answers: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Node("apptainer", **answers).choose()


def test_the_probe_plants_a_variable_that_must_not_arrive() -> None:
    node = Node("apptainer")
    runtime = node.choose()
    assert isinstance(runtime, Apptainer)
    assert LEAK not in node.envs[0]  # scrubbed already on the way to the runtime
    assert LEAK not in runtime.environ


def test_where_the_network_cannot_be_cut_the_host_s_is_recorded() -> None:
    node = Node("apptainer", refuses=["--net"], stderr="FATAL:   network requires root")
    runtime = node.choose()
    assert isinstance(runtime, Apptainer)
    assert not runtime.cuts_network
    assert runtime.no_eval
    sandbox = Sandbox((), PurePosixPath("/"), Path("/s"))
    assert runtime.command(["true"], sandbox).network is Network.HOST


def test_a_network_that_is_still_there_is_not_called_off() -> None:
    runtime = Node("bwrap", network="on").choose(image=None)
    assert isinstance(runtime, Bubblewrap)
    assert not runtime.cuts_network


def test_an_old_singularity_without_no_eval_is_used_with_plain_values() -> None:
    node = Node("singularity", refuses=["--no-eval"], stderr="Error: unknown flag: --no-eval")
    runtime = node.choose()
    assert isinstance(runtime, Apptainer)
    assert runtime.cuts_network
    assert not runtime.no_eval


def test_a_runtime_that_does_not_start_is_try_later_with_the_reason_and_asked_again() -> None:
    node = Node("apptainer", refuses=["exec"], stderr="ERROR  : Failed to create user namespace: disabled")
    seen: dict[Any, Any] = {}
    with pytest.raises(TryLater, match="user namespaces are switched off") as raised:
        node.choose(seen=seen)
    assert seen == {}
    assert isinstance(raised.value, NodeUnfit)


def test_a_good_probe_is_made_once() -> None:
    node = Node("apptainer")
    seen: dict[Any, Any] = {}
    for _ in range(3):
        node.choose(seen=seen)
    assert len(node.argvs) == 1


def test_no_scratch_is_try_later() -> None:
    with pytest.raises(TryLater, match="no scratch folder"):
        Node("apptainer").choose(scratch=Path("/no/such/folder"))


def test_nothing_of_a_probe_is_left(tmp_path: Path) -> None:
    Node("apptainer").choose(scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []
