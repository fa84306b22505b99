"""Counting of tiers: what the last lines of ``make test`` say, and what makes a run fail."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest, tiers
from tests.cluster import needs
from tests.conftest import outcomes, tier_of
from tests.slurm import conftest as slurm
from tests.tiers import Count, counted

pytestmark = pytest.mark.unit

REPORT = '<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="1"/></testsuites>'


def test_a_report_is_counted() -> None:
    count = counted("unit", REPORT, 1)
    assert str(count) == "unit: 4 passed, 3 failed, 3 skipped"
    assert not count.good


@pytest.mark.parametrize("status", [2, 3, 4, 5, -9, None])
def test_an_odd_exit_status_is_trouble_even_when_all_that_ran_passed(status: int | None) -> None:
    passed = '<testsuite errors="0" failures="0" skipped="0" tests="3"/>'
    assert counted("unit", passed, 0).good
    count = counted("unit", passed, status)
    assert not count.good
    assert "exit status" in str(count)


@pytest.mark.parametrize("report", ["", " \n"])
def test_no_report_is_trouble(report: str) -> None:
    assert not counted("local", report, 0).good


def test_what_tests_that_passed_went_through_is_added_up() -> None:
    said = '<properties><property name="tried kill points" value="{}"/><property name="other" value="x"/></properties>'
    cases = [f"<testcase>{said.format(count)}</testcase>" for count in (2, 40)]
    cases.append(f"<testcase><failure/>{said.format(1000)}</testcase>")
    report = f'<testsuite errors="0" failures="1" skipped="0" tests="3">{"".join(cases)}</testsuite>'
    assert str(counted("local", report, 1)) == "local: 2 passed, 1 failed, 0 skipped; tried 42 kill points"


def test_no_tests_at_all_is_not_good() -> None:
    assert not Count("unit").good


@pytest.mark.parametrize(("ci", "good"), [("true", False), ("", True)])
def test_skipped_slurm_test_fails_in_ci_only(monkeypatch: pytest.MonkeyPatch, ci: str, good: bool) -> None:
    monkeypatch.setenv("CI", ci)
    assert Count("slurm", passed=5, skipped=1).good is good
    assert Count("local", passed=5, skipped=1).good


def test_unknown_tier_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert tiers.main(["unti"]) == 2
    assert "no tier unti; there are unit, local, slurm, python314" in capsys.readouterr().out


def test_run_prints_a_line_for_each_tier(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(tiers.RUNS, "unit", lambda: [Count("unit", passed=2)])
    monkeypatch.setitem(tiers.RUNS, "slurm", lambda: [Count("slurm", passed=1), Count("python314", failed=1)])
    assert tiers.main(["unit", "slurm"]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "unit: 2 passed, 0 failed, 0 skipped",
        "slurm: 1 passed, 0 failed, 0 skipped",
        "python314: 0 passed, 1 failed, 0 skipped",
    ]
    assert tiers.main(["unit"]) == 0


def test_tier_is_the_first_folder() -> None:
    here = Path(__file__).parents[2]
    assert tier_of(here / "slurm" / "deep" / "test_x.py") == "slurm"
    assert tier_of(here / "bench" / "test_x.py") is None
    assert tier_of(here.parent / "docs" / "test_x.py") is None


def test_an_error_in_teardown_makes_a_passed_test_a_failed_one() -> None:
    reports: Any = {
        "passed": [SimpleNamespace(nodeid="a"), SimpleNamespace(nodeid="b")],
        "error": [SimpleNamespace(nodeid="a")],
        "skipped": [SimpleNamespace(nodeid="c")],
    }
    assert outcomes(reports) == {"a": "failed", "b": "passed", "c": "skipped"}


@pytest.mark.parametrize(("ci", "ending"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_slurm_test_that_cannot_run_is_skipped_with_the_reason_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, ending: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(needs, "missing", lambda: ("the slurm tier needs root", "and a moon"))
    marked: Any = SimpleNamespace(get_closest_marker=lambda name: name == "slurm" or None)
    with pytest.raises(ending, match="needs root; and a moon"):
        conftest.pytest_runtest_setup(marked)
    other: Any = SimpleNamespace(get_closest_marker=lambda _name: None)
    conftest.pytest_runtest_setup(other)


def test_without_root_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert needs.missing.__wrapped__() == ("the slurm tier needs root (namespaces and debootstrap)",)


@pytest.mark.parametrize(
    ("parameters", "fixtures", "share"),
    [
        ({"cluster": "slurm22", "crash": True}, ["cluster", "project"], "slurm22"),
        ({"cluster": "slurm26"}, ["clusters", "cluster"], "slurm26"),
        (None, ["clusters", "cluster26"], "slurm26"),
        (None, ["clusters", "cluster22"], "slurm22"),
        ({"unaccounted": "slurm26"}, ["unaccounted"], "slurm26"),
        (None, ["clusters", "tmp_path"], "slurm22"),
    ],
)
def test_each_test_is_in_the_share_of_the_version_that_it_needs(
    parameters: dict[str, object] | None, fixtures: list[str], share: str
) -> None:
    item: Any = SimpleNamespace(fixturenames=fixtures)
    if parameters is not None:
        item.callspec = SimpleNamespace(params=parameters)
    assert slurm.share_of(item) == share


def test_shares_are_added_up_and_one_that_ran_nothing_is_trouble() -> None:
    whole = tiers.together(
        "slurm", [Count("slurm", 3, 0, 0, "", {"stops": 2}), Count("slurm", 4, 1, 0, "", {"stops": 5})]
    )
    assert str(whole) == "slurm: 7 passed, 1 failed, 0 skipped; tried 7 stops"
    half = tiers.together("slurm", [Count("slurm", 3), Count("slurm", trouble="pytest ended with exit status 5")])
    assert not half.good
    assert str(half) == "slurm: 3 passed, 0 failed, 0 skipped (pytest ended with exit status 5; a share ran no test)"
