"""Tiers: every test belongs to the tier that its folder names; the run ends with one line for each tier."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cluster import needs

# Machines are shared and noisy: a slow example is no failure. CI tries the same examples each time: a failure is of the
# change. `make fuzz` looks for new ones.
settings.register_profile("outerloop", deadline=None, derandomize=needs.in_ci())
settings.register_profile("fuzz", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "5000")))
settings.load_profile("fuzz" if "EXAMPLES" in os.environ else "outerloop")

TIERS = ("unit", "local", "slurm")
#: Begins the names of properties that say how much a test went through.
TRIED = "tried"
#: pytest's words for reports, mildest first.
_WORDS = ((("passed", "xfailed"), "passed"), (("skipped",), "skipped"), (("failed", "error"), "failed"))
_HERE = Path(__file__).parent
#: Seconds for one test on a cluster, several times what the longest takes while nothing else runs; the cluster's own
#: start and builds are not counted.
_SLURM_LIMIT_S = 1200


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="", help="of the slurm tier: only the tests of this version, as in slurm26")


def tier_of(path: Path) -> str | None:
    """Return the tier of a test file, or None for a file outside the three folders."""
    parts = path.relative_to(_HERE).parts if path.is_relative_to(_HERE) else ()
    return parts[0] if parts and parts[0] in TIERS else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        tier = tier_of(item.path)
        if tier is not None:
            item.add_marker(getattr(pytest.mark, tier))
        if tier == "slurm" and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SLURM_LIMIT_S, func_only=True))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("slurm") is not None:
        lacking = "; ".join(needs.missing())
        if lacking and needs.in_ci():
            pytest.fail(f"{lacking}: under CI=true the slurm tier must run", pytrace=False)
        if lacking:
            pytest.skip(lacking)


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """``tried("kill points", 58)``: what a test went through, added up at the end of the run."""

    def note(what: str, count: int) -> None:
        assert count > 0, f"no {what} were tried"
        record_property(f"{TRIED} {what}", count)

    return note


def outcomes(reports: Mapping[str, Sequence[pytest.TestReport]]) -> dict[str, str]:
    """Return what became of each test, by node id: a test that passed and then failed in its teardown has failed."""
    worst: dict[str, str] = {}
    for words, outcome in _WORDS:
        for word in words:
            worst.update((report.nodeid, outcome) for report in reports.get(word, []))
    return worst


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: dict[str, Counter[str]] = {tier: Counter() for tier in TIERS}
    for test, outcome in outcomes(terminalreporter.stats).items():
        tier = tier_of(_HERE.parent / test.partition("::")[0])
        if tier is not None:
            counts[tier][outcome] += 1
    for tier, count in counts.items():
        if count:
            text = f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"
            terminalreporter.write_line(f"tier {tier}: {text}")
    for what, total in sorted(tried_in(terminalreporter.stats.get("passed", [])).items()):
        terminalreporter.write_line(f"{TRIED}: {total} {what}")


def tried_in(reports: Sequence[pytest.TestReport]) -> Counter[str]:
    """Add up what tests that passed went through."""
    total: Counter[str] = Counter()
    for report in reports:
        for name, value in report.user_properties if report.when == "call" else ():
            word, _, what = name.partition(" ")
            if word == TRIED:
                total[what] += int(str(value))
    return total
