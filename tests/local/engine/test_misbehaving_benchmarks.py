"""Whatever a benchmark does, its run ends with a clear outcome and reason, in lists and in the report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.local.driver import Driver
from tests.local.site import CONTRACT_OF, Site, document, new_site, tiny_target, wait_for
from tests.local.steward.markdown import outline

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]

EVALUATE = """\
import json, os, pathlib, signal, sys, time
MARKS = pathlib.Path(MARKS_FOLDER)
how = sys.argv[1]
print(json.dumps({"score": 1.5}) if how == "two_lines" else "warming up", flush=True)
if how == "garbage":
    sys.stdout.buffer.write(bytes(range(256)) * 40 + b'\\n{"score": \\n<b>| `rm -rf` | release-marker</b>\\n')
elif how == "nan":
    print('{"score": NaN}')
elif how == "two_lines":
    print(json.dumps({"score": 2.5}))
elif how == "ten_megabytes":
    for number in range(10_000):
        print(f"{number:06d} " + 1016 * "x")
    print(json.dumps({"score": 3.5}))
elif how == "never_ends":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
elif how == "later_once":
    mark = MARKS / "asked-once"
    if not mark.exists():
        mark.touch()
        print("licence server is away", file=sys.stderr)
        sys.exit(75)
    print(json.dumps({"score": 4.5}))
elif how == "always_later":
    sys.exit(75)
elif how == "exit_1":
    print("could not load | the `data` </table>", file=sys.stderr)
    sys.exit(1)
elif how == "kills_itself":
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "daemon":
    if os.fork() == 0:
        os.setsid()
        for number in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        (MARKS / "daemon").write_text(str(os.getpid()))
        time.sleep(1000)
    while not (MARKS / "daemon").exists():
        time.sleep(0.01)
    print(json.dumps({"score": 5.5}))
"""

_BENCHMARK = """\
  - {{name: {name}, command: python3 evaluate.py {name}, metric: score, direction: max, eval_minutes: {minutes}}}
"""


@dataclass(frozen=True)
class Expected:
    """The run's ending, what became of each try, the value, and words of the reason."""

    ending: str
    tries: tuple[str, ...]
    value: float | None = None
    reason: str = ""


CASES: Mapping[str, Expected] = {
    "garbage": Expected("failed", ("done",), reason="no line of the output is a JSON object with 'score'"),
    "nan": Expected("failed", ("done",), reason="'score' is not finite"),
    "two_lines": Expected("measured", ("done",), 2.5),
    "ten_megabytes": Expected("measured", ("done",), 3.5),
    "never_ends": Expected("failed", ("done",), reason="did not end within 60 s"),
    "later_once": Expected("measured", ("lost", "done"), 4.5),
    "always_later": Expected("failed", ("lost",) * 3, reason="asked to be tried later (exit status 75)"),
    "exit_1": Expected("failed", ("done",), reason="exit status 1: could not load"),
    "kills_itself": Expected("failed", ("done",), reason="ended by SIGKILL"),
    "daemon": Expected("measured", ("done",), 5.5),
}


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, marks: Path, driver: Driver) -> Iterator[Site]:
    """One target with all these benchmarks, and every run closed: they ran side by side."""
    root = tmp_path_factory.mktemp("misbehaviour")
    contract = CONTRACT_OF.format(benchmarks="".join(_benchmark(name) for name in CASES))
    source = tiny_target(root / "target", EVALUATE.replace("MARKS_FOLDER", repr(str(marks))), contract)
    site = new_site(root / "site", targets={"tiny": source}, driver=driver, seeds=1)
    site.cli("tick")
    assert len(site.runs()) == len(CASES)
    site.until_closed(limit_s=300)
    yield site
    site.stop_jobs()


def _benchmark(name: str) -> str:
    """They run side by side: only the one that is to reach its limit has a short one."""
    return _BENCHMARK.format(name=name, minutes=1 if name == "never_ends" else 5)


def run_of(site: Site, name: str) -> Path:
    (found,) = (f for f in site.runs() if json.loads(document(f / "spec.json"))["work"]["benchmark"] == name)
    return found


def payload(run: Path) -> dict[str, Any]:
    newest = max(run.glob("tries/*/*.record.json"), key=os.path.getmtime)
    found: dict[str, Any] = json.loads(document(newest))["payload"]
    return found


@pytest.mark.parametrize("name", CASES)
def test_it_ends_with_a_clear_outcome_and_reason(site: Site, name: str) -> None:
    run, expected = run_of(site, name), CASES[name]
    rows = site.rows("runs", "show", run.name)
    assert tuple(row["outcome"] for row in rows) == expected.tries
    (listed,) = (row for row in site.rows("runs", "list", "--all") if row["run"] == run.name)
    assert (listed["phase"], listed["ending"]) == ("closed", expected.ending)
    report = (run / "report.md").read_text(encoding="utf-8")
    assert f"**{expected.ending}**" in report
    assert payload(run).get("value") == expected.value
    if expected.reason:
        assert expected.reason in rows[-1]["reason"]
        assert expected.reason in listed["reason"]
        assert expected.reason.replace("'", "") in report.replace("'", "").replace("&#39;", "")
    else:
        (point,) = (row for row in site.rows("bench", "history", "tiny") if row["benchmark"] == name)
        assert point["median"] == expected.value


def test_the_benchmarks_text_stays_inside_its_line_of_the_report(site: Site) -> None:
    report = (run_of(site, "exit_1") / "report.md").read_text(encoding="utf-8")
    assert "could not load &#124; the &#96;data&#96; &lt;/table&gt;" in report
    assert not any(line.startswith("html") for line in outline(report))


def test_a_try_that_asked_for_later_says_why(site: Site) -> None:
    first, _ = site.rows("runs", "show", run_of(site, "later_once").name)
    assert "licence server is away" in first["reason"]


def test_a_flood_of_output_is_cut_in_the_log_and_said(site: Site) -> None:
    run = run_of(site, "ten_megabytes")
    (log,) = run.glob("tries/*/*.log")
    assert log.stat().st_size < 9 * 2**20
    assert (payload(run)["output_cut"], payload(run)["output_bytes"] > 10_000_000) == (True, True)


def test_a_daemon_is_gone_with_its_benchmark(site: Site, marks: Path) -> None:
    pid = int((marks / "daemon").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the daemon is gone")
    assert any("still there" in note for note in payload(run_of(site, "daemon"))["notes"])


def test_a_command_without_end_is_stopped_soon_after_its_limit(site: Site) -> None:
    found = payload(run_of(site, "never_ends"))
    assert found["seconds"] >= 60
    assert "exit_status" not in found
