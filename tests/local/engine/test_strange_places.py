"""State folders with hostile names, filesystems without hard links, and measurements inside bubblewrap."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.local.driver import Driver, Ended
from tests.local.site import CHECKOUT, Site, archived, document, environment, new_site, outcome, tiny_target

pytestmark = pytest.mark.local

#: Read by every Python that is started, the jobs' own included.
_NO_LINKS = """\
import errno, os
def link(*_, **__):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
os.link = link
"""


def measured(site: Site) -> dict[str, object]:
    site.cli("tick")
    site.until_closed()
    (point,) = site.rows("bench", "history", "tiny")
    assert point["seeds"] == 2
    found = outcome(site)
    site.stop_jobs()
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> dict[str, object]:
    """What an ordinary folder ends with."""
    root = tmp_path_factory.mktemp("plain")
    return measured(new_site(root / "site", targets={"tiny": tiny_target(root / "tiny")}, driver=driver))


@pytest.mark.parametrize(
    "name",
    [
        "two words",
        'it\'s "quoted"',
        "$(touch pwned) `x` ; & | > *",
        "-rf",
        "Grüße 測試 🧪",
        "100%",
        "%s %n {} {0}",
        "a:b,c=d",
    ],
)
def test_a_state_folder_may_have_any_printable_name(
    tmp_path: Path, driver: Driver, plain: dict[str, object], name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    target = tiny_target(folder / "target")
    site = new_site(folder / "site", targets={"tiny": target}, state=folder / "state" / name, driver=driver)
    assert measured(site) == plain
    site.cli("explain", site.run_folder().name)
    assert not list(tmp_path.rglob("pwned"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


@pytest.mark.parametrize("name", ["two\nlines", "bell\a", "%j", "%A_%a", "back\\slash"])
def test_a_state_folder_that_no_log_name_can_hold_is_refused_with_a_reason(
    tmp_path: Path, driver: Driver, name: str
) -> None:
    site = new_site(
        tmp_path / "site", targets={"tiny": tiny_target(tmp_path / "tiny")}, state=tmp_path / name, driver=driver
    )
    refused = site.cli("tick", expect=(78,))
    assert "state.root" in refused.err
    assert not list(site.state.iterdir())


def init(driver: Driver, root: Path, target: str) -> tuple[Ended, Path]:
    arguments = ("--state", str(root / "state folder"), "init", str(root / "new"), "--target", target)
    return driver.order(*arguments), root / "new" / "outerloop.toml"


@pytest.mark.parametrize("name", ["tiny", "tiny.v2", "-tiny_"])
def test_init_writes_settings_that_can_be_read_whatever_things_are_called(
    tmp_path: Path, driver: Driver, name: str
) -> None:
    source = tiny_target(tmp_path / 'it\'s "quoted" \\ ü')
    done, project = init(driver, tmp_path, f"{name}={source}")
    assert done.status == 0, done.err
    written = tomllib.loads(project.read_text(encoding="utf-8"))
    assert written["targets"][name]["repository"] == str(source)
    assert written["state"]["root"] == str(tmp_path / "state folder")


@pytest.mark.parametrize("target", ["two words=/x", "tiny=/two\nlines", "tiny=/bell\a", "=/x", "tiny="])
def test_init_leaves_no_settings_behind_that_it_cannot_read_itself(tmp_path: Path, driver: Driver, target: str) -> None:
    done, project = init(driver, tmp_path, target)
    assert done.status in {2, 78}, done.err
    assert "Traceback" not in done.err
    assert not project.exists()


def test_a_filesystem_without_hard_links_measures_the_same(tmp_path: Path, plain: dict[str, object]) -> None:
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "sitecustomize.py").write_text(_NO_LINKS, encoding="utf-8")
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(patches), str(CHECKOUT)])}
    site = new_site(tmp_path / "site", targets={"tiny": tiny_target(tmp_path / "tiny")}, env=env)
    assert measured(site) == plain
    run = site.run_folder()
    assert (run / "spec.json").is_dir(), "it was published as a folder"
    assert all(path.is_dir() for path in run.glob("tries/*/*.record.json"))
    assert b'"run-spec/1"' in document(run / "spec.json")
    (listed,) = site.rows("runs", "list", "--all")
    assert listed["phase"] == "closed"
    assert len(site.rows("report", "jobs")) == 2
    site.cli("bench", "run", "tiny", "--seeds", "5", "--wait", "500")
    assert len(site.rows("bench", "history", "tiny")) == 2


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed here")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no python3 in /usr/bin to run inside")
def test_measurements_in_bubblewrap_give_the_same_numbers(
    tmp_path: Path, driver: Driver, plain: dict[str, object]
) -> None:
    site = new_site(
        tmp_path / "site",
        targets={"tiny": tiny_target(tmp_path / "tiny")},
        driver=driver,
        runtime="bubblewrap",
        uncontained="false",
    )
    assert measured(site) == plain
    (point,) = site.rows("bench", "history", "tiny")
    assert point["runtime"] == "bubblewrap"
    assert [row["State"] for row in archived(site.run_folder())] == ["COMPLETED"] * 2


def test_without_containment_nothing_is_measured_unless_somebody_allowed_it(tmp_path: Path, driver: Driver) -> None:
    site = new_site(
        tmp_path / "site", targets={"tiny": tiny_target(tmp_path / "tiny")}, driver=driver, uncontained="false"
    )
    site.cli("tick")
    site.until_closed()
    (listed,) = site.rows("runs", "list", "--all")
    assert listed["ending"] == "refused"
    assert "uncontained" in listed["reason"]
    assert list(site.state.glob("results/tiny/*/*.json")) == []
