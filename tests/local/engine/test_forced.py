"""A person closes a run about which nothing more will be known, and sees before and after what it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.driver import Driver
from tests.local.site import EVALUATE, PATIENT_CONTRACT, Site, new_site, tiny_target, wait_for

pytestmark = pytest.mark.local

#: The first seed that comes is measured, the other one waits for ever.
ONE_HANGS = """\
import os, time
try:
    os.close(os.open({mark!r}, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    while True:
        time.sleep(0.05)
"""


@pytest.fixture
def site(tmp_path: Path, driver: Driver) -> Iterator[Site]:
    evaluate = ONE_HANGS.format(mark=str(tmp_path / "mark")) + EVALUATE.replace("BONUS", "0")
    source = tiny_target(tmp_path / "tiny", evaluate, PATIENT_CONTRACT)
    site = new_site(tmp_path / "site", targets={"tiny": source}, driver=driver)
    yield site
    site.stop_jobs()


def records(site: Site) -> list[Path]:
    return sorted(site.state.glob("runs/*/*/tries/*/e*.record.json"))


def claims(site: Site) -> list[Path]:
    return sorted(site.state.glob("runs/*/*/tries/*/e*.claim.json"))


def test_a_run_with_an_unreadable_record_and_a_job_that_hangs_is_closed_by_force(site: Site) -> None:
    site.cli("tick")
    wait_for(lambda: len(records(site)) == 1 and len(claims(site)) == 2, "one seed is measured, the other one hangs")
    wait_for(lambda: [len(job.ended) for job in site.local_jobs()] == [1], "the process of the measured one has ended")
    run, folder, (record,) = site.run_folder().name, site.run_folder(), records(site)
    whole = record.read_bytes()
    record.write_bytes(b"{")

    awaited = {row["rule"]: row for row in site.rows("reconcile", "--dry-run", expect=(4,))}
    assert awaited["record.unreadable"]["evidence"]["unreadable"].startswith(str(record))
    alive = awaited["queue.alive"]["evidence"]
    assert (alive["queue"], alive["accounting"]) == ("RUNNING", "no row")
    assert alive["queue_row"]["submit"] > 0
    assert "seen_at" in alive

    assert "needs --reason" in site.cli("runs", "end", run, "--force", expect=(2,)).err
    assert "needs --reason" in site.cli("runs", "end", run, "--force", "--reason", " ", expect=(2,)).err
    before = sorted(site.state.rglob("*"))
    foretold = site.cli("runs", "end", run, "--force", "--reason", "the disk ate it", "--dry-run").err
    assert foretold.count("ended by person.forced") == 2
    assert f"unsettled: {record}" in foretold
    assert sorted(site.state.rglob("*")) == before

    site.cli("runs", "end", run, "--force", "--reason", "the disk ate it")
    site.cli("reconcile", expect=(4,))
    assert site.live() == []
    wait_for(site.jobs_gone, "the job that hung was asked to end, and ended")
    record.write_bytes(whole)
    report = (folder / "report.md").read_text(encoding="utf-8")
    before = sorted(folder.rglob("*"))
    assert site.rows("reconcile") == [], "a record that can be read again changes nothing"
    assert sorted(folder.rglob("*")) == before
    assert "by force: the disk ate it" in report
    assert "nothing was measured" in site.cli("bench", "history", "tiny", expect=(2,)).err

    (decided,) = [event for event in site.events() if event["type"] == "person.decided"]
    assert (decided["force"], decided["reason"]) == (True, "the disk ate it")
    rows = site.rows("explain", run)
    assert [row["rule"] for row in rows if row["event"] == "try.ended"] == ["person.forced"] * 2
    assert all(row["needs"] for row in rows if row["rule"])
    chain = site.cli("explain", run).out
    assert f"unreadable: {record}" in chain
    assert "queue: RUNNING" in chain
    assert "for another decision: nothing: a person decided" in chain
    assert "it is closed" in site.cli("runs", "end", run, "--force", "--reason", "again", expect=(2,)).err
    (archive,) = (folder / "accounting").glob("*.json")
    assert "by force" in json.loads(archive.read_bytes())["note"]
