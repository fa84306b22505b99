"""What a pass left out or read too much of elsewhere: reconciling that launches switch off, history, logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.scratch import commit
from tests.local.steward.lane import CONTRACT, NO_CHANGE, Lane

pytestmark = [pytest.mark.local, pytest.mark.timeout(600)]

_TROUBLES = ["PAUSE", "HOLD", "disk", "contract", "key", "no command", "no label", "no steward", "other orders"]


def trouble(lane: Lane, what: str, tmp_path: Path) -> None:
    """Bring about what keeps new orders from being taken."""
    source = lane.site.source()
    match what:
        case "PAUSE" | "HOLD":
            (lane.site.state / "tick" / what).touch()
        case "disk":
            lane.configure(min_free_gb=1e9)
        case "contract":
            (source / ".outerloop.yaml").write_text("benchmarks: {\n")
            commit(source)
        case "no steward":
            (source / ".outerloop.yaml").write_text(CONTRACT.partition("steward:")[0])
            commit(source)
        case "key":
            lane.configure({"key_file": str(tmp_path / "missing"), "key_env": "API_KEY"})
        case "no command":
            lane.configure({"command": []})
        case "no label":
            lane.forge.relabel("1", author="ada", added=(), removed=("outerloop:steward",))
        case _:
            for number in range(6):
                lane.order(f"Other {number}")


@pytest.mark.parametrize("what", _TROUBLES)
def test_a_claim_is_released_whatever_keeps_new_orders_from_being_taken(swift: Lane, tmp_path: Path, what: str) -> None:
    """Row 13: reconciling ran inside the launch lane only, and a full disk, HOLD or a busy lane switched it off."""
    swift.script(NO_CHANGE)
    order = swift.order()
    swift.tick()
    swift.until_over()
    trouble(swift, what, tmp_path)
    for _ in range(2):
        swift.tick(expect=(0, 4, 75))
    assert swift.markers(order) == ["claimed", "ended:answered"]
    assert swift.endings()[0] == "answered"


def test_a_steady_stream_of_measurements_does_not_starve_the_orders(swift: Lane) -> None:
    """Row 13: and a busy other lane did. Lanes take turns: with room for one run, the next one is the order's."""
    swift.configure()
    swift.site.extend("[limits]\nlive_runs = 1\n")
    swift.script(swift.gated(NO_CHANGE))
    order = swift.order()
    for number in range(4):
        swift.site.change(f"print({number})\n")
        swift.tick()
        if not swift.markers(order):
            swift.settle()
    assert swift.markers(order) == ["claimed"]
    swift.gate().touch()


def test_a_pass_reads_nothing_of_runs_that_are_over(swift: Lane) -> None:
    """Row 22: every service read all records ever written, nine times a tick."""
    swift.script(NO_CHANGE)
    order = swift.order()
    swift.until_told(order, "claimed", "ended:answered")
    swift.settle()
    for folder in swift.site.runs():
        for path in folder.rglob("*"):
            if path.is_file():
                path.write_bytes(b"\xff")
    another = swift.order("Another one")
    swift.until_told(another, "claimed", "ended:answered")
    swift.site.cli("tick", expect=(0,))


def test_what_a_session_printed_is_kept_capped_and_named_in_the_report(swift: Lane) -> None:
    """Row 27: output of jobs went to /dev/null."""
    swift.script('print("I looked at the folds")\nprint("x" * 120_000_000)\n' + NO_CHANGE)
    order = swift.order()
    swift.until_told(order, "claimed", "ended:failed")
    swift.settle()
    (run, *_) = swift.stewards()
    assert swift.endings()[0] == "budget-exhausted"
    report = (run / "report.md").read_text(encoding="utf-8")
    (log,) = run.glob("tries/*/e0000.log")
    assert str(log.relative_to(run)) in report
    assert b"I looked at the folds" in log.read_bytes()
    assert log.stat().st_size < 70_000_000
