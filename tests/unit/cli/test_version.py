from __future__ import annotations

import pytest
from typer.testing import CliRunner

from outerloop_hpc import __version__
from outerloop_hpc.cli.main import app

pytestmark = pytest.mark.unit


def test_version_needs_no_command() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"outerloop-hpc {__version__}\n")
