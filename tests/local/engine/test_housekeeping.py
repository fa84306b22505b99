"""Housekeeping on the state folder of a site that works: what each tick clears away of closed runs, and what stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.local.driver import Driver
from tests.local.site import EVALUATE, PATIENT_CONTRACT, Site, new_site, tiny_target, wait_for

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]

SLOW = "import time\ntime.sleep(600)\n"
AT_ONCE = "[housekeeping]\ngrace_hours = 0\n"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Iterator[Site]:
    """Three runs that a person ended while they were measuring, so that their tries left no record."""
    root = tmp_path_factory.mktemp("housekeeping")
    source = tiny_target(root / "tiny", SLOW, PATIENT_CONTRACT)
    site = new_site(root / "site", targets={"tiny": source}, driver=driver)
    for number in range(3):
        site.change(f"{SLOW}# {number}\n")
        site.cli("tick")
        wait_for(lambda: begun(site) == [2], "both seeds run")
        for run in site.live():
            site.cli("runs", "end", run, "--reason", "enough of it")
        site.until_closed()
    site.change(EVALUATE.replace("BONUS", "1"))
    site.save()
    yield site
    site.stop_jobs()


def begun(site: Site) -> list[int]:
    """How many elements have begun, of each job that has not ended."""
    return [len(job.started) for job in site.local_jobs() if len(job.ended) < job.count]


@pytest.fixture
def site(ended: Site) -> Iterator[Site]:
    """The three runs, and a fourth that is live."""
    ended.restore()
    ended.configure()
    ended.cli("tick")
    assert len(ended.live()) == 1
    yield ended
    ended.until_closed()


def files(site: Site) -> set[str]:
    return {str(path.relative_to(site.state)) for path in site.state.glob("runs/**/*") if path.is_file()}


def scraps(site: Site) -> list[Path]:
    """Folders that closed runs keep for debugging."""
    live = site.live()
    return [path for path in site.state.glob("runs/*/*/tries/*/submitit") if path.parents[2].name not in live]


def tick(site: Site, *arguments: str, command: str = "tick") -> dict[str, Any]:
    said: dict[str, Any] = json.loads(site.cli(command, *arguments, "--json").out)
    return said


def test_closed_runs_lose_their_scraps_and_nothing_else(site: Site) -> None:
    site.extend(AT_ONCE)
    own = site.live()[0]
    before, going = files(site), scraps(site)
    assert len(going) == 3
    said = tick(site)
    gone = before - files(site)
    assert gone
    assert all("/submitit/" in name and own not in name for name in gone)
    assert scraps(site) == []
    assert said["housekeeping"]["removed"] == 3
    assert said["housekeeping"]["bytes"] > 1000
    (line,) = [row for row in said["rows"] if row["rule"] == "housekeeping.removed"]
    assert f"{said['housekeeping']['bytes']} bytes" in line["reason"]
    assert tick(site)["housekeeping"] == {"removed": 0, "bytes": 0, "more": False}


def test_within_the_grace_nothing_goes(site: Site) -> None:
    assert tick(site)["housekeeping"]["removed"] == 0
    assert len(scraps(site)) == 3


@pytest.mark.parametrize("how", [("reconcile",), ("reconcile", "--dry-run"), ("tick", "--dry-run")])
def test_only_a_real_tick_clears_away(site: Site, how: tuple[str, ...]) -> None:
    site.extend(AT_ONCE)
    assert tick(site, *how[1:], command=how[0])["housekeeping"]["removed"] == 0
    assert len(scraps(site)) == 3


def test_a_tick_stops_at_its_budget_and_the_next_goes_on(site: Site) -> None:
    site.extend(AT_ONCE + "items = 1\n")
    left = []
    for _ in range(5):
        said = tick(site)
        left.append((len(scraps(site)), said["housekeeping"]["more"]))
    assert [count for count, _ in left[:1]] == [2]
    assert [more for _, more in left[:2]] == [True, True]
    assert left[-1][0] == 0
    assert (site.state / "tidy").is_dir()
    assert tick(site)["housekeeping"] == {"removed": 0, "bytes": 0, "more": False}


def test_a_short_disk_has_no_grace_and_holds_only_launches(site: Site) -> None:
    site.configure(min_free_gb=1e9)
    said = tick(site)
    assert "GB free" in said["held"]
    assert said["housekeeping"]["removed"] == 3
    assert scraps(site) == []
    site.until_closed()
    assert site.live() == []


def test_a_home_without_room_is_told_and_holds_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = {"HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    site = new_site(tmp_path / "site", targets={"tiny": tiny_target(tmp_path / "tiny")}, env=env)
    ended = site.cli("tick")
    assert f"problem: home folder {home}: cannot be written: No such file or directory" in ended.err
    assert len(site.runs()) == 1
    home.mkdir()
    site.until_closed()
    assert "home folder" not in site.cli("tick").err
