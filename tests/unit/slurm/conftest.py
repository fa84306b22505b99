"""Recorded output of real clusters, and a fake of the command runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from outerloop_hpc.process import Finished

DATA = Path(__file__).parents[2] / "data" / "sacct"
VERSIONS = ("22.05.8", "26.05.5")

Recorded = Callable[[str, str], list[tuple[str, str]]]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    """``recorded(version, name)``: (command line, stdout) of each command in that capture."""

    def read(version: str, name: str) -> list[tuple[str, str]]:
        text = (DATA / version / f"{name}.txt").read_text(encoding="utf-8")
        found: list[tuple[str, str]] = []
        for block in text.split("$ ")[1:]:
            command, _, rest = block.partition("\n")
            stdout = rest.partition("--- ")[0]
            found.append((command, stdout))
        return found

    return read


def finished(argv: Sequence[str], stdout: str = "", stderr: str = "", status: int | None = 0) -> Finished:
    return Finished(tuple(argv), status, stdout, stderr, timed_out=status is None, seconds=0.1)


Reply = Callable[[Sequence[str]], Finished]


@dataclass
class FakeRunner:
    """Answers by program name (``sacct --helpformat`` apart); keeps what it was asked."""

    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)

    def says(self, program: str, stdout: str = "", stderr: str = "", status: int | None = 0) -> None:
        self.replies[program] = lambda argv: finished(argv, stdout, stderr, status)

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        assert timeout > 0
        self.asked.append(tuple(argv))
        self.environments.append(env or {})
        key = "helpformat" if "--helpformat" in argv else argv[0]
        return self.replies[key](argv)

    def calls(self, program: str) -> list[tuple[str, ...]]:
        return [argv for argv in self.asked if argv[0] == program and "--helpformat" not in argv]


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()
