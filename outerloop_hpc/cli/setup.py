"""``init``, ``doctor`` and ``config show``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from outerloop_hpc.cli.options import DryRun, Out, command, lists
from outerloop_hpc.cli.session import session, talk
from outerloop_hpc.errors import Exit

config_app = typer.Typer(help="Look at the configuration.", no_args_is_help=True, rich_markup_mode=None)

Origin = Annotated[bool, typer.Option("--origin", help="Say where each value comes from.")]
Folder = Annotated[Path, typer.Argument(help="Where to write outerloop.toml.")]
Repository = Annotated[str, typer.Option("--target", help="Also configure a first target: NAME=REPOSITORY.")]
Uncontained = Annotated[bool, typer.Option("--uncontained", help="Allow benchmarks to run without any container.")]

_PROJECT = """\
# outerloop-hpc: settings of this project; `outerloop-hpc config show --origin` lists all of them.
[state]
root = "{root}"

[compute]
kind = "auto"          # slurm when sbatch is on PATH, else this machine

[slurm]                # what this site adds to each submission; empty values are left out
# account = ""
# partition = ""

[container]
uncontained = {uncontained}

[housekeeping]         # what each tick clears away; the same without grace and tenfold while the disk is short
# grace_hours = 24     # so long a closed run keeps what helps debugging it
# items = 20
# seconds = 30

[steward]              # the steward lane; off without a command
# command = ["python3", "{{files}}/agent.py"]
# files = "agent"      # folder that a session sees read-only
# key_file = "keys/steward"      # chmod 600; no other role has the same
# key_env = "MODEL_API_KEY"
"""

_TARGET = """
[targets.{name}]
repository = "{repository}"
branch = "main"
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "init")(init)
    command(app, "doctor")(doctor)
    app.add_typer(config_app, name="config")


def init(
    context: typer.Context,
    folder: Folder = Path(),
    target: Repository = "",
    uncontained: Uncontained = False,
    dry_run: DryRun = False,
) -> None:
    """Write outerloop.toml, make the state folder, copy the job definitions that a site edits.

    Example: outerloop-hpc init --target iris=/projects/iris.git

    What is there already stays as it is. Refuses a filesystem on which two ticks could not be told apart.
    """
    from outerloop_hpc import fsio  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.session import Session  # noqa: PLC0415 - as above
    from outerloop_hpc.errors import ConfigError  # noqa: PLC0415 - as above
    from outerloop_hpc.shipping import shipped  # noqa: PLC0415 - as above

    before = session(context)
    project = folder.absolute() / "outerloop.toml"
    text = _PROJECT.format(root=_quoted(str(before.settings.state.root)), uncontained=str(uncontained).lower())
    section = _target(target, project.parent, before.environ) if target else ""
    text += section
    root = before.settings.state.root
    if dry_run:
        what = f"{project} is there already and would stay as it is" if project.exists() else f"would write {project}"
        talk(f"{what}; would prepare {root}")
        return
    fresh = not project.exists()
    if fresh:
        fsio.make_folder(project.parent)
        fsio.replace(project, text.encode())
    after = Session(config=project, state=before.state)
    try:
        root = after.settings.state.root
    except ConfigError:
        if fresh:
            fsio.remove(project)
        raise
    talk(f"wrote {project}" if fresh else f"{project} is there already and stays as it is")
    if section and not fresh:
        talk(f"--target was not written into it; what is to be added by hand:\n{section.strip()}")
    try:
        fsio.make_folder(root)
    except OSError as error:
        raise ConfigError(f"{root}: cannot be the state folder: {error.strerror}; set [state] root") from error
    fsio.require_exclusive(root)
    fsio.make_folder(root / "jobs")
    for definition in sorted(shipped("jobs").glob("*.toml")):
        own = root / "jobs" / definition.name
        if not own.exists():
            fsio.replace(own, definition.read_bytes())
    talk(f"state folder {root} is ready; job definitions to edit are in {root / 'jobs'}")


@lists
def doctor(context: typer.Context, *, out: Out) -> None:
    """Check the state folder, its filesystem, clocks, git, the scheduler, the container runtime, and the roles.

    Example: outerloop-hpc doctor

    Exit status 3 when something has to be mended.
    """
    from outerloop_hpc.cli.output import Column  # noqa: PLC0415 - heavy
    from outerloop_hpc.cli.wiring import wanted_kind  # noqa: PLC0415 - as above
    from outerloop_hpc.doctor.checks import Doctor  # noqa: PLC0415 - as above
    from outerloop_hpc.doctor.finding import Level  # noqa: PLC0415 - as above
    from outerloop_hpc.process import run_command  # noqa: PLC0415 - as above

    shown = (Column("level"), Column("check"), Column("saw", cut=True), Column("advice", cut=True))
    out.offer(shown)
    here = session(context)
    kind = wanted_kind(here.settings, here.environ)
    found = list(Doctor(here.settings, here.layout, here.environ, run_command, kind).examine())
    rows = [{"level": str(one.level), "check": one.check, "saw": one.saw, "advice": one.advice} for one in found]
    out.show(here, "doctor", shown, rows)
    raise typer.Exit(Exit.FINDINGS if any(one.level is Level.FAIL for one in found) else Exit.DONE)


@command(config_app, "show")
@lists
def show(context: typer.Context, *, out: Out, origin: Origin = False) -> None:
    """List every setting.

    Example: outerloop-hpc config show --origin
    """
    from outerloop_hpc.cli.output import Column  # noqa: PLC0415 - heavy
    from outerloop_hpc.config.sources import as_rows  # noqa: PLC0415 - as above

    shown = (Column("key"), Column("value"), Column("origin", shown=origin))
    out.offer(shown)
    here = session(context)
    rows = [{"key": row.key, "value": row.value, "origin": row.origin} for row in as_rows(here.loaded)]
    out.show(here, "config show", shown, rows)


def _target(given: str, base: Path, environ: Mapping[str, str]) -> str:
    """Write the section of ``--target``, checked as the file would be that is not there yet.

    Raises:
        UsageError: it is not NAME=REPOSITORY, or one of the two cannot be used.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    from outerloop_hpc.config.keys import resolved  # noqa: PLC0415 - as above
    from outerloop_hpc.config.settings import TARGET_NAME, Target  # noqa: PLC0415 - as above
    from outerloop_hpc.errors import UsageError  # noqa: PLC0415 - as above

    name, _, repository = given.partition("=")
    if not (name and repository):
        raise UsageError(f"--target {given!r}: NAME=REPOSITORY is needed, such as iris=/projects/iris.git")
    if not re.fullmatch(TARGET_NAME, name):
        rule = "1 to 64 letters, digits and _ . -, no . first"
        raise UsageError(f"--target {given!r}: the name {name!r} must be {rule}")
    path = Path(repository)
    address = str(path.absolute()) if path.exists() else repository
    try:
        Target(repository=str(resolved(("targets", name, "repository"), address, base, environ)))
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"--target {given!r}: the repository {said}") from None
    except ValueError as error:
        raise UsageError(f"--target {given!r}: the repository cannot be read: {error}") from None
    return _TARGET.format(name=_key(name), repository=_quoted(address))


def _quoted(text: str) -> str:
    """Escape text for a basic TOML string."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in plain)


def _key(text: str) -> str:
    """Write a TOML key: a name with a dot would otherwise be two."""
    bare = text.isascii() and text.replace("-", "").replace("_", "").isalnum()
    return text if bare else f'"{_quoted(text)}"'
