"""What the slurm tier's builds are made from: mirrors, pip settings, cache entries, plans."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster import cache, rootfs, venv
from tests.cluster.cache import BuildFailed
from tests.cluster.machine import Bind, Plan, environment

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("deb http://mirror.example/debian bookworm main", "http://mirror.example/debian"),
        ("deb [arch=amd64 signed-by=/k.gpg] https://m.example/mirrors/debian/ sid main", "https://m.example/mirrors/debian"),
        ("Types: deb\n# http://old.example/debian\nURIs: http://new.example/debian\nSuites: bookworm", "http://new.example/debian"),
        ("URIs: http://mirror.example/debian-security\nSuites: bookworm-security", None),
        ("deb http://other.example/ubuntu noble main", None),
        ("# deb http://mirror.example/debian bookworm main", None),
        ("", None),
    ],
)  # fmt: skip
def test_first_mirror_reads_both_formats(source: str, expected: str | None) -> None:
    assert rootfs.first_mirror([source]) == expected


@given(st.text())
def test_first_mirror_is_total(text: str) -> None:
    found = rootfs.first_mirror([text])
    assert found is None or found.startswith(("http://", "https://"))


def test_mirror_prefers_the_variable_and_ignores_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources.disabled").write_text("URIs: http://no.example/debian\n")
    with pytest.raises(BuildFailed, match="OUTERLOOP_TEST_MIRROR"):
        rootfs.mirror({}, tmp_path)
    (tmp_path / "sources.list.d" / "debian.sources").write_text("URIs: http://yes.example/debian\n")
    assert rootfs.mirror({}, tmp_path) == "http://yes.example/debian"
    assert rootfs.mirror({rootfs.MIRROR_VARIABLE: "http://mine.example/d"}, tmp_path) == "http://mine.example/d"


def test_recipe_key_changes_with_suite_and_packages() -> None:
    keys = {
        rootfs.Recipe("x", "sid", ("a", "b")).key,
        rootfs.Recipe("x", "sid", ("a",)).key,
        rootfs.Recipe("x", "sid", ("ab",)).key,
        rootfs.Recipe("x", "bookworm", ("a", "b")).key,
    }
    assert len(keys) == 4
    assert rootfs.Recipe("x", "sid", ("a", "b")).key in keys


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"OUTERLOOP_TEST_CACHE": "/big/cache", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/big/cache"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/outerloop-hpc-tests"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/outerloop-hpc-tests"),
    ],
)
def test_cache_folder(environ: dict[str, str], expected: str) -> None:
    assert cache.folder(environ) == Path(expected)


def test_pip_settings_carry_the_hosts_configuration_and_environment_wins() -> None:
    configuration = (
        ":env:.cert='/env.pem'\nglobal.index-url='https://a.example/simple'\n"
        "global.extra-index-url='file:///one file:///two'\nglobal.find-links='\\n/wheels\\n/more'\nuser.x='y'\nrubbish\n"
    )
    environ = {"PIP_INDEX_URL": "https://b.example/simple", "https_proxy": "http://p:1", "SECRET": "s"}
    settings = venv.pip_settings(environ, configuration)
    assert settings == {
        "PIP_INDEX_URL": "https://b.example/simple",
        "PIP_EXTRA_INDEX_URL": "file:///one file:///two",
        "PIP_FIND_LINKS": " /wheels /more",
        "https_proxy": "http://p:1",
    }


def test_local_paths_are_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / "index" / "simple").mkdir(parents=True)
    values = [f"file://{tmp_path}/index/simple https://c.example/simple", f"{tmp_path}", "/not/there", "180", ""]
    assert venv.local_paths(values) == [str(tmp_path / "index"), str(tmp_path)]


def test_entry_is_built_once_by_many_threads(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(aside: Path, _log: Path) -> None:
        built.append(aside)
        (aside / "content").write_text("whole")

    threads = [threading.Thread(target=cache.entry, args=(tmp_path, "thing", build)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert (tmp_path / "thing" / "content").read_text() == "whole"


def test_a_failed_build_leaves_no_entry_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    def fail(aside: Path, log: Path) -> None:
        (aside / "half").write_text("")
        rootfs.logged(["sh", "-c", "echo no space left; exit 3"], log, "the thing")

    with pytest.raises(BuildFailed, match=r"the thing could not be built: exit status 3; log: .*thing\.log") as failure:
        cache.entry(tmp_path, "thing", fail)
    assert "no space left" in str(failure.value)
    assert not (tmp_path / "thing").exists()
    (tmp_path / "thing.building").mkdir()
    (tmp_path / "thing.building" / "left by a killed builder").write_text("")
    made = cache.entry(tmp_path, "thing", lambda aside, _log: (aside / "new").touch())
    assert [path.name for path in made.iterdir()] == ["new"]


def test_a_missing_program_is_a_failed_build(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="No such file"):
        rootfs.logged(["/no/such/program"], tmp_path / "log", "the thing")


def test_plan_keeps_hostile_paths_whole() -> None:
    odd = Path("/a b,c:d'\"\n/ünï")
    decoded = json.loads(Plan(odd, (Bind(odd, "/x"),), ((odd, "/y"),)).encoded(odd))
    assert decoded["lower"] == decoded["mountpoint"] == str(odd)
    assert decoded["binds"] == [[str(odd), "/x", True]]
    assert decoded["copies"] == [[str(odd), "/y"]]


def test_environment_inside_has_nothing_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PYTHONPATH", "/host")
    inside = environment("alice")
    assert {"SLURM_JOB_ID", "PYTHONPATH"}.isdisjoint(inside)
    assert (inside["HOME"], inside["USER"]) == ("/home/alice", "alice")
