"""The command line, called in this process on a state folder of the test's own."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from outerloop_hpc.cli.main import main
from tests.unit.cli.shell import Cli, Said


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings, caches or schedulers of the machine; logging and signals as they were afterwards."""
    for name in [name for name in os.environ if name.startswith(("OUTERLOOP_", "XDG_", "SLURM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("outerloop_hpc")
    before = (logger.level, logger.propagate, tuple(logger.handlers), signal.getsignal(signal.SIGINT))
    yield
    logger.setLevel(before[0])
    logger.propagate = before[1]
    logger.handlers[:] = before[2]
    signal.signal(signal.SIGINT, before[3])


@pytest.fixture
def cli(_alone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str, state: bool = True) -> Said:
        where = ["--state", str(tmp_path / "state")] if state else []
        monkeypatch.setattr("sys.argv", ["outerloop-hpc", *where, *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Said(left.value.code, said.out, said.err)

    return call
