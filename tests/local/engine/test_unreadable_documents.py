"""A document that cannot be read is shown and blocks its own run alone, until somebody repairs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.local.driver import Driver
from tests.local.site import Site, new_site, tiny_target, wait_for

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Iterator[Site]:
    """Two targets whose measurements have ended and were not looked at yet."""
    root = tmp_path_factory.mktemp("measured")
    targets = {name: tiny_target(root / name) for name in ("bad", "good")}
    site = new_site(root / "site", targets=targets, driver=driver)
    site.cli("tick")
    wait_for(lambda: len(site.local_jobs()) == 2 and site.jobs_gone(), "all four seeds ran")
    site.save()
    yield site
    site.stop_jobs()


@pytest.fixture
def site(measured: Site) -> Site:
    """The same again for every test: no job has to run twice."""
    measured.restore()
    return measured


def folder(site: Site, target: str = "bad") -> Path:
    (found,) = (path for path in site.runs() if path.name.startswith(f"benchmark-{target}-"))
    return found


def record(site: Site) -> Path:
    return min(folder(site).glob("tries/*/e0000.record.json"))


def journal(site: Site) -> Path:
    return folder(site) / "journal" / "00000002.json"


def spec(site: Site) -> Path:
    return folder(site) / "spec.json"


def inbox(site: Site) -> Path:
    path = folder(site) / "inbox" / "20261129T120000Z-00000000.json"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


def garbage(_site: Site, data: bytes) -> bytes:
    return b"\x00\xff not JSON" + data[:10]


def nothing(_site: Site, _data: bytes) -> bytes:
    return b""


def half(_site: Site, data: bytes) -> bytes:
    return data[: len(data) // 2] or b"{"


def newer(_site: Site, data: bytes) -> bytes:
    """A later version's document; its shape is another one too, where there was none before."""
    parsed = json.loads(data or b'{"schema": "decision/1"}')
    parsed["schema"] = parsed["schema"].replace("/1", "/99")
    return json.dumps(parsed).encode()


def of_another_run(site: Site, data: bytes) -> bytes:
    return data.replace(folder(site).name.encode(), folder(site, "good").name.encode())


Spoil = Callable[[Site, bytes], bytes]
_CASES: list[tuple[Callable[[Site], Path], Spoil]] = [
    *((which, spoil) for which in (record, journal, spec) for spoil in (garbage, nothing, half, newer, of_another_run)),
    *((inbox, spoil) for spoil in (garbage, nothing, newer)),
]


@pytest.mark.parametrize(("which", "spoil"), _CASES, ids=lambda part: part.__name__)
def test_an_unreadable_document_blocks_its_own_run_alone(
    site: Site, which: Callable[[Site], Path], spoil: Spoil
) -> None:
    path = which(site)
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(spoil(site, whole))
    if which is journal:
        (folder(site) / "snapshot.json").unlink()

    ended = site.cli("tick", expect=(4,))
    assert str(path) in ended.err
    if spoil is newer:
        assert "newer than this version" in ended.err
    assert site.live() == [folder(site).name]
    (listed,) = site.rows("runs", "list")
    assert (listed["phase"], str(path) in listed["reason"]) == ("faulty", True)
    assert {row["run"] for row in site.rows("runs", "list", "-s", "faulty")} == {folder(site).name}
    advanced = site.cli("advance", folder(site).name, "--wait", "60", expect=(4,))
    assert f"fault: {folder(site).name}: {path}" in advanced.err
    shown = site.cli("explain", folder(site).name, expect=(0, 3))
    assert str(path) in shown.out + shown.err
    assert [point["median"] for point in site.rows("bench", "history", "good")], "the other run went on"
    before = sorted(folder(site).rglob("*"))
    site.cli("tick", expect=(4,))
    assert sorted(folder(site).rglob("*")) == before, "nothing is concluded from a document that cannot be read"

    if whole:
        path.write_bytes(whole)
    else:
        path.unlink()
    site.until_closed()
    (point,) = site.rows("bench", "history", "bad")
    assert point["seeds"] == 2


def test_a_run_with_an_unreadable_record_can_be_ended_by_a_person(site: Site) -> None:
    path = record(site)
    path.write_bytes(b"")
    run = folder(site).name
    site.cli("reconcile", expect=(4,))
    site.cli("runs", "end", run, "--reason", "its record is empty")
    site.until_closed()
    assert path.read_bytes() == b"", "what was found stays"
    assert "its record is empty" in (folder(site) / "report.md").read_text(encoding="utf-8")
    assert f"{path}: not a readable record" in site.cli("explain", run).out


@pytest.mark.parametrize("spoil", [garbage, nothing, half, newer])
def test_a_spoilt_snapshot_only_costs_time(site: Site, spoil: Spoil) -> None:
    path = folder(site) / "snapshot.json"
    path.write_bytes(spoil(site, path.read_bytes()))
    site.until_closed()
    assert [point["seeds"] for point in site.rows("bench", "history", "bad")] == [2]


def test_a_gap_in_a_journal_is_never_filled_with_another_history(site: Site) -> None:
    path = folder(site) / "journal" / "00000001.json"
    whole = path.read_bytes()
    path.unlink()
    (folder(site) / "snapshot.json").unlink()
    ended = site.cli("tick", expect=(4,))
    assert f"{path}: is missing, and 00000002.json is there" in ended.err
    (listed,) = site.rows("runs", "list")
    assert listed["phase"] == "faulty"
    assert not path.exists()
    path.write_bytes(whole)
    site.until_closed()
    assert [point["seeds"] for point in site.rows("bench", "history", "bad")] == [2]


def test_a_missing_specification_says_what_to_do(site: Site) -> None:
    path, run = spec(site), folder(site).name
    path.unlink()
    ended = site.cli("tick", expect=(4,))
    assert f"{path}: is missing" in ended.err
    assert f"remove {site.state / 'live' / run}" in ended.err
    assert site.live() == [run]


def test_a_stray_file_among_the_live_runs_is_named_and_harms_nobody(site: Site) -> None:
    (site.state / "live" / "notes.txt").touch()
    ended = site.cli("tick", expect=(4,))
    assert "notes.txt" in ended.err
    assert site.live() == ["notes.txt"]
    (listed,) = site.rows("runs", "list")
    assert listed["phase"] == "faulty"


def test_an_unreadable_claim_keeps_its_order_and_no_other(site: Site) -> None:
    site.until_closed()
    heads = {name: site.change("print('{\"score\": 1}')\n", name) for name in ("bad", "good")}
    site.cli("tick")
    site.until_closed()
    (path,) = (p for p in site.state.glob("claims/bad/*") if heads["bad"].encode() in p.read_bytes())
    path.write_bytes(b"{")
    ended = site.cli("tick", expect=(4,))
    assert str(path) in ended.err
    assert site.live() == []
    site.change("print('{\"score\": 2}')\n", "good")
    site.cli("tick", expect=(4,))
    site.cli("reconcile")
    assert len(site.live()) <= 1
    site.until_closed()
    assert [point["median"] for point in site.rows("bench", "history", "good")][-1] == 2


def test_an_unreadable_point_of_the_history_keeps_no_run_from_closing(site: Site) -> None:
    point = site.state / "results" / "bad" / "score" / "broken.json"
    point.parent.mkdir(parents=True)
    point.write_bytes(b"{")
    ended = site.cli("reconcile", expect=(4,))
    assert str(point) in ended.err
    assert site.live() == []
    assert not (point.parents[1] / "leader.json").exists()
    point.unlink()
    (row,) = site.rows("bench", "ledger", "bad")
    assert row["best_run"] == folder(site).name
