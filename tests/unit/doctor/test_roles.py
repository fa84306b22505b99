"""What the doctor says about a role, its job definitions, and room on disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc.config.settings import Container, Settings, State, Steward, Target
from outerloop_hpc.doctor.checks import Doctor
from outerloop_hpc.doctor.finding import Finding, Level
from outerloop_hpc.doctor.roles import RoleChecks
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.process import run_command

pytestmark = pytest.mark.unit

KEY = "s3cret"


def site(root: Path, *, runtime: str = "none", **steward: object) -> Settings:
    given = {"command": ("sh",), **steward}
    return Settings(
        state=State(root=root),
        container=Container.model_validate({"runtime": runtime, "uncontained": True}),
        steward=Steward.model_validate(given),
        targets={"iris": Target(repository=str(root))},
    )


def checks(settings: Settings) -> RoleChecks:
    return RoleChecks(settings, Layout(settings.state.root), os.environ, run_command)


def found(settings: Settings) -> dict[str, Finding]:
    return {one.check: one for one in checks(settings).roles()}


def _no_file(key: Path) -> None:
    key.unlink()


def _open_to_all(key: Path) -> None:
    key.chmod(0o644)


def _empty(key: Path) -> None:
    key.write_text("\n", encoding="utf-8")


def _folder(key: Path) -> None:
    key.unlink()
    key.mkdir()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY, encoding="utf-8")
    path.chmod(0o600)
    return path


def test_a_key_that_is_as_it_must_be_is_named_and_never_shown(tmp_path: Path, key: Path) -> None:
    one = found(site(tmp_path, key_file=str(key), key_env="MODEL_KEY"))["steward key"]
    assert (one.level, one.saw) == (Level.OK, f"{key}, in MODEL_KEY")
    assert KEY not in repr(one)


@pytest.mark.parametrize("harm", [_no_file, _open_to_all, _empty, _folder])
def test_a_key_that_no_session_could_use_is_a_finding(tmp_path: Path, key: Path, harm: Callable[[Path], None]) -> None:
    harm(key)
    one = found(site(tmp_path, key_file=str(key), key_env="MODEL_KEY"))["steward key"]
    assert one.level is Level.FAIL
    assert str(key) in one.saw
    assert KEY not in repr(one)


@pytest.mark.parametrize(("there", "level"), [(True, Level.OK), (False, Level.FAIL)])
def test_files_that_are_not_there_are_a_finding(tmp_path: Path, there: bool, level: Level) -> None:
    if there:
        (tmp_path / "files").mkdir()
    assert found(site(tmp_path, files=str(tmp_path / "files")))["steward files"].level is level


RUNTIMES = ["none", *(["bubblewrap"] if shutil.which("bwrap") else [])]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("program", "level"),
    [
        ("sh", Level.OK),
        ("/bin/sh", Level.OK),
        ("{files}/agent", Level.OK),
        ("no-such-program", Level.FAIL),
        ("{files}/other", Level.FAIL),
        ("{files}/text", Level.FAIL),
        ("x; touch /work/made", Level.FAIL),
    ],
)
def test_a_program_that_is_not_where_the_session_runs_is_a_finding(
    tmp_path: Path, runtime: str, program: str, level: Level
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "agent").write_text("#!/bin/sh\n", encoding="utf-8")
    (files / "agent").chmod(0o755)
    (files / "text").write_text("no program\n", encoding="utf-8")
    one = found(site(tmp_path, runtime=runtime, command=(program,), files=str(files)))["steward program"]
    assert (one.level, program in one.saw) == (level, True), one


def test_a_container_that_cannot_be_asked_is_a_warning_and_not_a_missing_program(tmp_path: Path) -> None:
    one = found(site(tmp_path, runtime="apptainer"))["steward program"]
    assert one.level is Level.WARN
    assert "cannot be told" in one.saw


def test_without_a_command_there_is_no_role_to_look_at(tmp_path: Path) -> None:
    settings = site(tmp_path, command=(), files=str(tmp_path / "nowhere"))
    assert found(settings) == {}
    assert [one.saw for one in checks(settings).definitions()] == ["measure"]


def test_a_job_definition_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "validate.toml").write_text("cpus = 0\n", encoding="utf-8")
    levels = {one.saw.partition(":")[0]: one.level for one in checks(site(tmp_path)).definitions()}
    assert levels == {
        "measure": Level.OK,
        "session": Level.OK,
        str(tmp_path / "jobs" / "validate.toml"): Level.FAIL,
    }


def test_the_name_on_the_forge_is_said(tmp_path: Path) -> None:
    (one,) = checks(site(tmp_path)).forge()
    assert "outerloop" in one.saw


def test_a_disk_that_takes_no_file_is_a_warning_whatever_it_says_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = site(tmp_path)
    doctor = Doctor(settings, Layout(tmp_path), {"HOME": str(tmp_path)}, run_command, "local")
    assert [one.level for one in doctor._space()] == [Level.OK, Level.OK]

    def exceeded(_: int) -> None:
        raise OSError(122, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", exceeded)
    assert [(one.check, one.level) for one in doctor._space()] == [("room", Level.WARN), ("home", Level.WARN)]
    assert all("Disk quota exceeded" in one.saw for one in doctor._space())
