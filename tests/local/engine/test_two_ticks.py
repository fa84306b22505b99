"""Ticks at the same time, with and without a lock: one run per head, one submission each, one ending."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.local.driver import Driver, Ended
from tests.local.site import CLI, EVALUATE, Site, document, environment, new_site, tiny_target, wait_for

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]

_ROUNDS = 10
_RIVALS = 3


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = new_site(tmp_path / "site", targets={"tiny": tiny_target(tmp_path / "tiny")}, seeds=1)
    yield site
    site.stop_jobs()


@pytest.fixture
def rivals(tmp_path: Path) -> Iterator[Sequence[Driver]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Driver(tmp_path, environment())) for _ in range(_RIVALS)]


def at_once(rivals: Sequence[Driver], site: Site, command: str) -> list[Ended]:
    for rival in rivals:
        rival.send("--config", str(site.config), command, polite=False)
    ended = [rival.answer() for rival in rivals]
    for one in ended:
        assert (one.status, "Traceback" in one.err) == (0, False), one.err
    return ended


def test_ticks_without_any_lock_buy_each_measurement_once(site: Site, rivals: Sequence[Driver]) -> None:
    heads = []
    for number in range(_ROUNDS):
        heads.append(site.change(EVALUATE.replace("BONUS", str(number))))
        ended = at_once(rivals, site, "tick")
        assert sum(("command", "submitit.local") in one.effects for one in ended) == 1, number
    specs = [json.loads(document(folder / "spec.json")) for folder in site.runs()]
    assert Counter(spec["commit"] for spec in specs) == Counter(heads)
    intended = [e["name"] for folder in site.runs() for e in site.events(folder) if e["type"] == "submission.intended"]
    assert {path.name for path in site.local_files()} <= {f"{name}.jsonl" for name in intended}
    assert len(intended) == _ROUNDS

    wait_for(site.jobs_gone, "every seed was measured")
    wait_for(lambda: bool(at_once(rivals, site, "reconcile")) and not site.live(), "every run is closed")
    for folder in site.runs():
        kinds = Counter(event["type"] for event in site.events(folder))
        assert kinds == dict.fromkeys(kinds, 1), folder.name
    rows = json.loads((site.state / "results/tiny/leader.json").read_bytes())["rows"]
    history = site.rows("bench", "history", "tiny")
    assert len(history) == _ROUNDS
    assert rows[0]["best"] == max(point["median"] for point in history)


def test_two_ticks_from_cron_at_once_submit_once(site: Site) -> None:
    for _ in range(3):
        processes = [
            subprocess.Popen(
                [*CLI, "--config", str(site.config), "tick"],
                cwd=site.root,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        for process in processes:
            _, said = process.communicate()
            assert process.returncode in {0, 75}, said
            assert process.returncode == 0 or "another pass is under way" in said
    (intended,) = [event["name"] for event in site.events() if event["type"] == "submission.intended"]
    assert {path.name for path in site.local_files()} <= {f"{intended}.jsonl"}
