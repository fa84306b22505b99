"""The tick's templates: one command line, known placeholders, valid syntax."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parents[2] / "slurm-templates"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
TICKS = ("scrontab", "cron", "systemd/outerloop-hpc.service", "self-resubmitting.sbatch")
PLACEHOLDER = re.compile(r"@[A-Z_]+@")


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def said(name: str) -> str:
    """The file without its comments, filled in."""
    lines = [line for line in text(name).splitlines() if not line.lstrip().startswith(("#", "--"))]
    return "\n".join(lines).replace("@PREFIX@", "/opt/o").replace("@STATE@", "/s/o").replace("@VERSION@", "1.0")


def test_all_templates_are_there() -> None:
    assert [str(path.relative_to(FOLDER)) for path in FILES] == [
        "README.md",
        "cron",
        "modulefile.lua",
        "scrontab",
        "self-resubmitting.sbatch",
        "site-preamble.sh",
        "systemd/outerloop-hpc.service",
        "systemd/outerloop-hpc.timer",
    ]


@pytest.mark.parametrize("name", TICKS)
def test_every_way_runs_the_same_command_line(name: str) -> None:
    assert said(name).count("/opt/o/bin/outerloop-hpc tick --quiet") == 1
    assert "/s/o" in said(name)


@pytest.mark.parametrize("name", [*TICKS, "site-preamble.sh"])
def test_a_tick_is_not_blind_to_the_projects_settings_wherever_it_starts(name: str) -> None:
    assert said(name).count("OUTERLOOP_CONFIG=/s/o/outerloop.toml") == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_placeholders_are_known_and_explained_where_they_are_used(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    used = set(PLACEHOLDER.findall(content))
    assert used <= set(PLACEHOLDER.findall(text("README.md"))) == {"@PREFIX@", "@STATE@", "@VERSION@"}
    comments = "\n".join(line for line in content.splitlines() if line.lstrip().startswith(("#", "--")))
    if path.suffix != ".md":
        for placeholder in used:
            assert re.search(rf"{placeholder}  +\w", comments), placeholder


@pytest.mark.parametrize("name", ["scrontab", "cron"])
def test_a_crontab_has_no_percent_sign_and_ends_with_a_newline(name: str) -> None:
    # cron turns % into a newline, and drops a last line without one.
    assert "%" not in said(name)
    assert text(name).endswith("\n")


@pytest.mark.parametrize("name", ["scrontab", "cron"])
def test_crontab_entries_are_valid_shell(name: str) -> None:
    (entry,) = (line for line in said(name).splitlines() if line.startswith("*/5 * * * * "))
    subprocess.run(["sh", "-n", "-c", entry.removeprefix("*/5 * * * * ")], check=True, timeout=30)


@pytest.mark.parametrize(("shell", "name"), [("bash", "self-resubmitting.sbatch"), ("sh", "site-preamble.sh")])
def test_scripts_are_valid_shell(shell: str, name: str) -> None:
    subprocess.run([shell, "-n", str(FOLDER / name)], check=True, timeout=30)


def test_batch_options_stand_before_the_first_command() -> None:
    # sbatch stops reading options at the first line that is neither empty nor a comment.
    lines = text("self-resubmitting.sbatch").splitlines()
    assert lines[0] == "#!/bin/bash"
    first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    options = [i for i, line in enumerate(lines) if line.startswith("#SBATCH ")]
    assert options
    assert max(options) < first_command


def test_units_are_well_formed_and_belong_together() -> None:
    service, timer = (configparser.RawConfigParser(strict=False) for _ in range(2))
    service.read_string(said("systemd/outerloop-hpc.service"))
    timer.read_string(said("systemd/outerloop-hpc.timer"))
    assert service["Service"]["Type"] == "oneshot"
    assert set(service["Service"]["SuccessExitStatus"].split()) == {"75", "10", "20", "30"}
    assert timer["Timer"]["Persistent"] == "true"
    assert timer["Install"]["WantedBy"] == "timers.target"
    for parser in (service, timer):
        assert set(parser.sections()) <= {"Unit", "Service", "Timer", "Install"}


def test_the_modulefile_hides_no_python_of_the_user() -> None:
    paths = re.findall(r'prepend_path\("PATH", "([^"]+)"\)', said("modulefile.lua"))
    assert paths == ["/opt/o/share/outerloop-hpc/bin"]
