"""Run test tiers and end with one line for each: ``python -m tests.tiers unit local slurm``.

``slurm`` also runs the unit tier under the newer root file system's Python (the other end of the supported range);
``python314`` asks for that alone. Under ``CI=true`` a skipped slurm test is a failure.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import needs, rootfs
from tests.cluster.__main__ import prepare
from tests.cluster.cache import BuildFailed
from tests.cluster.machine import SOURCE, VENV, Bind, Machine, Plan
from tests.cluster.needs import in_ci
from tests.cluster.venv import CHECKOUT, venv

_PYTHON314_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Count:
    """What became of the tests of one tier."""

    tier: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    trouble: str = ""
    tried: Mapping[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether tests ran and none failed; in CI no slurm test may have been skipped either."""
        strict = in_ci() and self.tier == "slurm"
        return not self.trouble and not self.failed and not (strict and self.skipped) and self.passed + self.skipped > 0

    def __str__(self) -> str:
        line = f"{self.tier}: {self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        tried = f"; tried {', '.join(f'{n} {what}' for what, n in self.tried.items())}" if self.tried else ""
        return f"{line}{tried} ({self.trouble})" if self.trouble else f"{line}{tried}"


def counted(tier: str, report: str, status: int | None) -> Count:
    """Count a JUnit report (XML text, empty when there is none); an odd exit status of pytest is trouble."""
    if not report.strip():
        return Count(tier, trouble=f"pytest left no report, exit status {status}")
    suite = ET.fromstring(report)  # noqa: S314 - written by our own pytest a moment ago
    suites = [suite] if suite.tag == "testsuite" else list(suite.iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(each.get(name, "0")) for each in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    trouble = "" if status in {0, 1} else f"pytest ended with exit status {status}"
    return Count(tier, max(total - failed - skipped, 0), failed, skipped, trouble, _tried(suites))


def _tried(suites: Sequence[ET.Element]) -> dict[str, int]:
    """Add up what the tests say that they went through, see the fixture ``tried``."""
    total: Counter[str] = Counter()
    for case in (case for suite in suites for case in suite.iter("testcase")):
        if case.find("failure") is None and case.find("error") is None:
            for one in case.iter("property"):
                word, _, what = one.get("name", "").partition(" ")
                if word == "tried":
                    total[what] += int(one.get("value", "0"))
    return dict(sorted(total.items()))


def pytest_tier(tier: str, options: Sequence[str] = ()) -> Count:
    """Run one tier's folder with this Python."""
    return side_by_side(tier, [options])


def side_by_side(tier: str, shares: Sequence[Sequence[str]]) -> Count:
    """Run a tier's folder once for each of these options, all at the same time; what they print comes one by one."""
    folder = CHECKOUT / "tests" / tier
    if not folder.is_dir():
        return Count(tier, trouble=f"there is no folder tests/{tier}")
    with tempfile.TemporaryDirectory() as scratch:
        running = []
        for number, options in enumerate(shares):
            report, printed = Path(scratch, f"{number}.xml"), Path(scratch, f"{number}.txt")
            argv = [sys.executable, "-m", "pytest", str(folder), "-q", f"--junitxml={report}", *options]
            with printed.open("wb") as out:
                to = None if len(shares) == 1 else out
                running.append((report, printed, subprocess.Popen(argv, cwd=CHECKOUT, stdout=to, stderr=to)))
        counts = []
        for report, printed, process in running:
            status = process.wait()
            _say(printed.read_text(encoding="utf-8", errors="replace"))
            counts.append(counted(tier, report.read_text(encoding="utf-8") if report.exists() else "", status))
        return together(tier, counts)


def together(tier: str, counts: Sequence[Count]) -> Count:
    """Add up the shares of one tier; each of them has to be good by itself."""
    tried: Counter[str] = Counter()
    for count in counts:
        tried.update(count.tried)
    nothing = "a share ran no test" if any(count.passed + count.skipped + count.failed == 0 for count in counts) else ""
    return Count(
        tier,
        sum(count.passed for count in counts),
        sum(count.failed for count in counts),
        sum(count.skipped for count in counts),
        "; ".join(dict.fromkeys(trouble for trouble in (*(count.trouble for count in counts), nothing) if trouble)),
        dict(sorted(tried.items())),
    )


def slurm_tier() -> Count:
    """Run the slurm tier, both versions side by side; what they need is built first, outside any test's time limit."""
    if not needs.missing():
        try:
            prepare()
        except BuildFailed as error:
            return Count("slurm", trouble=str(error))
    return side_by_side("slurm", [["--share", version] for version in ("slurm22", "slurm26")])


def python314_tier() -> Count:
    """Run the unit tier with the Python of the newer root file system."""
    tier = "python314"
    lacking = "; ".join(needs.missing())
    if lacking:
        _say(f"{tier}: skipped: {lacking}\n")
        return Count(tier, skipped=1, trouble=lacking if in_ci() else "")
    try:
        plan = Plan(rootfs.root(rootfs.SLURM26), (Bind(venv(rootfs.SLURM26), VENV),), ((CHECKOUT, SOURCE),))
        with Machine(plan) as machine:
            argv = ["python", "-m", "pytest", "tests/unit", "-q", "-n", "2", "--junitxml=/tmp/report.xml"]
            done = machine.run(argv, cwd=SOURCE, timeout=_PYTHON314_LIMIT_S)
            _say(done.stdout + done.stderr)
            report = machine.run(["cat", "/tmp/report.xml"]).stdout
    except BuildFailed as error:
        return Count(tier, trouble=str(error))
    return counted(tier, report, done.status)


RUNS: dict[str, Callable[[], Sequence[Count]]] = {
    "unit": lambda: [pytest_tier("unit", ["-n", "2"])],
    "local": lambda: [pytest_tier("local", ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"])],
    "slurm": lambda: [slurm_tier(), python314_tier()],
    "python314": lambda: [python314_tier()],
}


def main(tiers: Sequence[str]) -> int:
    """Run the tiers asked for (all three by default); returns the exit status."""
    unknown = [tier for tier in tiers if tier not in RUNS]
    if unknown:
        _say(f"tests.tiers: no tier {', '.join(unknown)}; there are {', '.join(RUNS)}\n")
        return 2
    counts = [count for tier in tiers or ("unit", "local", "slurm") for count in RUNS[tier]()]
    _say("\n" + "".join(f"{count}\n" for count in counts))
    return 0 if all(count.good for count in counts) else 1


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
