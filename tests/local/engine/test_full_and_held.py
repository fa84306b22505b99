"""Launches that are held, and a state folder that cannot be written: truth is still read, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.driver import Driver
from tests.local.site import CONTRACT, EVALUATE, Site, environment, new_site, outcome, tiny_target, wait_for

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Iterator[Site]:
    """A run whose measurements have ended and were not looked at yet."""
    root = tmp_path_factory.mktemp("full")
    site = new_site(root / "site", targets={"tiny": tiny_target(root / "tiny")}, driver=driver, submit_lag_s=0)
    site.cli("tick")
    wait_for(lambda: bool(site.local_jobs()) and site.jobs_gone(), "both seeds ran")
    site.save()
    yield site
    site.stop_jobs()


@pytest.fixture
def site(measured: Site) -> Iterator[Site]:
    measured.restore()
    measured.configure(submit_lag_s=0)
    yield measured
    measured.change(EVALUATE.replace("BONUS", "0"))


@pytest.fixture(scope="module")
def calm(measured: Site) -> dict[str, object]:
    """What the run ends with when nothing happens to it."""
    measured.restore()
    measured.until_closed()
    return outcome(measured)


@pytest.mark.parametrize("why", ["PAUSE", "HOLD", "disk"])
def test_held_launches_hold_nothing_else(site: Site, why: str) -> None:
    site.change(EVALUATE.replace("BONUS", str(len(why))))
    sentinel = site.state / "tick" / why
    if why == "disk":
        site.configure(submit_lag_s=0, min_free_gb=1e9)
    else:
        sentinel.touch()
    ended = site.cli("tick")
    assert "no launches" in ended.err
    assert ("GB free" if why == "disk" else str(sentinel)) in ended.err
    assert site.live() == [], "what had ended was settled"
    assert len(site.rows("bench", "history", "tiny")) == len(site.runs()) == 1
    sentinel.unlink(missing_ok=True)
    site.configure(submit_lag_s=0)
    site.cli("tick")
    assert len(site.runs()) == 2
    site.until_closed()
    assert len(site.rows("bench", "history", "tiny")) == 2


@pytest.mark.parametrize("kind", ["full", "read_only"])
def test_a_state_folder_that_cannot_be_written_is_a_try_later(
    site: Site, driver: Driver, calm: dict[str, object], kind: str
) -> None:
    ended = driver.order("--config", str(site.config), "tick", refuse={kind: str(site.state)})
    assert ended.status == 75, ended.err
    assert ("No space left" if kind == "full" else "Read-only file system") in ended.err
    assert "Traceback" not in ended.err
    site.until_closed()
    assert outcome(site) == calm


@pytest.mark.parametrize("kind", ["full", "read_only"])
def test_a_filesystem_that_gives_out_at_any_effect_of_an_ending_loses_nothing(
    site: Site, driver: Driver, calm: dict[str, object], kind: str
) -> None:
    effects = driver.order("--config", str(site.config), "reconcile").effects
    refuse = {kind: str(site.state)}
    for first in range(1, len(effects) + 1):
        site.restore()
        ended = driver.order("--config", str(site.config), "reconcile", refuse=refuse, refuse_at=first)
        where = f"{kind} from effect {first}, {effects[first - 1]}: {ended.status}\n{ended.err}"
        # Caches may be lost in silence, and a full filesystem still lets go of names.
        assert ended.status == 75 or (ended.status == 0 and first >= len(effects) - 4), where
        assert "Traceback" not in ended.err, where
        site.until_closed()
        assert outcome(site) == calm, where


def test_a_filesystem_that_fills_at_any_effect_of_a_launch_loses_nothing(
    site: Site, driver: Driver, calm: dict[str, object]
) -> None:
    site.empty()
    effects = driver.order("--config", str(site.config), "tick").effects
    site.until_closed()
    launch = [number for number, (what, _) in enumerate(effects, 1) if what != "command"]
    for first in launch:
        site.empty()
        refuse = {"full": str(site.state)}
        ended = driver.order("--config", str(site.config), "tick", refuse=refuse, refuse_at=first)
        where = f"full from effect {first}, {effects[first - 1]}: {ended.status}\n{ended.err}"
        assert "Traceback" not in ended.err, where
        assert ended.status in {0, 75}, where
        if ("command", "submitit.local") in ended.effects:
            wait_for(lambda: bool(site.local_jobs()), "the controller that was started shows up")
        site.cli("tick")
        site.until_closed()
        assert outcome(site) == calm, where


class Inside:
    """A driver in a mount namespace of its own, whose state folder is a small filesystem."""

    def __init__(self, root: Path, source: Path) -> None:
        self.mount = root / "mount"
        self.mount.mkdir()
        how = "-m" if os.geteuid() == 0 else "-Urm"
        script = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'
        self.driver = Driver(root, environment(), ("unshare", how, "sh", "-c", script, str(self.mount)))
        self.site = new_site(
            root / "site",
            targets={"tiny": source},
            state=self.mount / "state",
            driver=self.driver,
            submit_lag_s=0,
            scratch=str(root),
        )

    @property
    def seen(self) -> Site:
        """The same site with its state folder as it is seen from out here."""
        view = Path(f"/proc/{self.driver.process.pid}/root{self.mount}/state")
        return Site(self.site.root, view, self.site.targets, self.driver)

    def fill(self) -> None:
        with open(self.seen.state.parent / "filler", "wb", buffering=0) as file:  # noqa: PTH123 - unbuffered
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    def empty(self) -> None:
        (self.seen.state.parent / "filler").unlink()


def may_mount() -> bool:
    how = "-m" if os.geteuid() == 0 else "-Urm"
    call = ["unshare", how, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return (
        shutil.which("unshare") is not None and subprocess.run(call, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not may_mount(), reason="no mounts here; the same is tested above with refused system calls")
def test_a_really_full_filesystem_is_survived(tmp_path: Path, calm: dict[str, object]) -> None:
    inside = Inside(tmp_path, tiny_target(tmp_path / "tiny"))
    with inside.driver:
        site = inside.site
        site.cli("config", "show")
        (inside.seen.state).mkdir(exist_ok=True)
        inside.fill()
        ended = site.cli("tick", expect=(75,))
        assert "No space left on device" in ended.err
        inside.empty()
        site.cli("tick")
        wait_for(lambda: bool(inside.seen.local_jobs()), "the controller shows up")
        wait_for(inside.seen.elements_ended, "both seeds ran")
        inside.fill()
        ended = site.cli("tick", expect=(75,))
        assert "nothing was lost" in ended.err
        inside.empty()
        inside.seen.until_closed()
        assert outcome(inside.seen) == calm


def test_a_person_is_held_by_the_budget_of_the_week_too(tmp_path: Path, driver: Driver) -> None:
    contract = CONTRACT.replace("runs_per_week: 100", "runs_per_week: 1")
    target = tiny_target(tmp_path / "tiny", contract=contract)
    site = new_site(tmp_path / "site", targets={"tiny": target}, driver=driver)
    site.cli("tick")
    for dry in ((), ("--dry-run",)):
        refused = site.cli("bench", "run", "tiny", *dry, expect=(78,))
        assert "1 runs in the last 7 days, the budget is 1 a week" in refused.err
    assert len(site.runs()) == 1
    wait_for(site.jobs_gone, "the jobs of the one run to end")
