"""Tiers: every test belongs to the tier that its folder names; the run ends with one line for each tier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import needs

TIERS = ("unit", "local", "slurm")
_HERE = Path(__file__).parent
#: Seconds for one test on a cluster; the cluster's own start and builds are not counted.
_SLURM_LIMIT_S = 600


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


def _outcomes(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str]]:
    for outcome, words in (
        ("passed", ("passed", "xfailed")),
        ("failed", ("failed", "error")),
        ("skipped", ("skipped",)),
    ):
        for word in words:
            for report in reporter.stats.get(word, []):
                # A test's parts share its name: an error in its teardown must not count as a second test.
                tier = report.nodeid.partition("tests/")[2].partition("/")[0]
                if tier in TIERS:
                    yield tier, outcome


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: dict[str, Counter[str]] = {tier: Counter() for tier in TIERS}
    for tier, outcome in _outcomes(terminalreporter):
        counts[tier][outcome] += 1
    for tier, count in counts.items():
        if count:
            text = f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"
            terminalreporter.write_line(f"tier {tier}: {text}")
