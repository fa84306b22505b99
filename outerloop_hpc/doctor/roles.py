"""What ``doctor`` says about a role: its key, its files, its program, its job definitions and its name on the forge."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from outerloop_hpc.config.secret import read_secret
from outerloop_hpc.config.settings import Agent, Settings
from outerloop_hpc.container.choose import choose
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.runtime import Bind, Sandbox, make_scratch
from outerloop_hpc.doctor.finding import Finding, Level
from outerloop_hpc.engine.jobs import load_job
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import OuterloopError
from outerloop_hpc.process import Runner

_TIMEOUT_S = 60.0
_FILES = PurePosixPath("/outerloop/files")
#: Some shells take any file for a command when it is named by its path.
_ASK = """
case "$1" in
*/*) test -f "$1" && test -x "$1" ;;
*) command -v "$1" >/dev/null 2>&1 ;;
esac && echo found || echo missing
"""
_STEPS = {"steward": ("session", "validate")}


@dataclass(frozen=True, slots=True)
class RoleChecks:
    """Checks every role that has a command, and what all kinds of work need beside."""

    settings: Settings
    layout: Layout
    environ: Mapping[str, str]
    run: Runner

    def roles(self) -> Iterator[Finding]:
        """Look at each role's key, files and program."""
        for name, agent in self._agents():
            yield self._key(name, agent)
            if agent.files:
                yield _files(name, agent)
            yield from self._programs(name, agent)

    def definitions(self) -> Iterator[Finding]:
        """Look at the job definitions of the steps that may be submitted."""
        wanted = ["measure", *(step for name, _ in self._agents() for step in _STEPS.get(name, ()))]
        for step in wanted:
            try:
                load_job(self.layout, step)
            except (OuterloopError, OSError) as error:
                yield Finding("job definitions", Level.FAIL, str(error), "mend or remove it: the shipped one counts")
            else:
                yield Finding("job definitions", Level.OK, step)

    def forge(self) -> Iterator[Finding]:
        """Say under which name the tool writes: claims are believed from that one alone."""
        forge = self.settings.forge
        yield Finding("forge", Level.OK, f"{forge.kind}; the tool writes as {forge.identity}, and nobody else may")

    def _agents(self) -> Iterator[tuple[str, Agent]]:
        for name, section in self.settings:
            if isinstance(section, Agent) and section.command:
                yield name, section

    def _key(self, name: str, agent: Agent) -> Finding:
        if not agent.key_file:
            return Finding(f"{name} key", Level.OK, "none is configured")
        try:
            read_secret(Path(agent.key_file))
        except OuterloopError as error:
            return Finding(
                f"{name} key", Level.FAIL, str(error), f"mend [{name}] key_file; no order is taken until then"
            )
        return Finding(f"{name} key", Level.OK, f"{agent.key_file}, in {agent.key_env}")

    def _programs(self, name: str, agent: Agent) -> Iterator[Finding]:
        """Ask inside the same container as a session's; without targets there is none to ask in."""
        check = f"{name} program"
        for image in sorted({target.image for target in self.settings.targets.values()}):
            where = f" in {image}" if image else ""
            try:
                answer = self._ask(agent, image)
            except (OuterloopError, OSError) as error:
                answer = str(error)
            if answer == "found":
                yield Finding(check, Level.OK, f"{agent.command[0]}{where}")
            elif answer == "missing":
                advice = f"mend [{name}] command: its first word must be there, where the session runs"
                yield Finding(check, Level.FAIL, f"{agent.command[0]} is not there{where}", advice)
            else:
                advice = "a session finds out; see the container's own check"
                yield Finding(check, Level.WARN, f"{agent.command[0]}{where}: cannot be told: {answer}", advice)

    def _ask(self, agent: Agent, image: str) -> str:
        given = self.settings.container
        runtime = choose(
            given.runtime,
            image=Path(image) if image else None,
            uncontained=given.uncontained,
            run=self.run,
            environ=self.environ,
        )
        files = Path(agent.files) if agent.files else None
        if runtime.name == "none":
            program = agent.command[0].replace("{files}", str(files or ""))
            return "found" if shutil.which(program, path=self.environ.get("PATH")) else "missing"
        program = agent.command[0].replace("{files}", str(_FILES))
        with tempfile.TemporaryDirectory(prefix="outerloop-doctor-", ignore_cleanup_errors=True) as folder:
            scratch, work = Path(folder) / "scratch", Path(folder) / "work"
            make_scratch(scratch)
            work.mkdir()
            binds = (Bind(files, _FILES),) if files is not None and files.is_dir() else ()
            where = Enclosure(runtime, Sandbox(binds, PurePosixPath("/work"), scratch))
            launch = where.command(("/bin/sh", "-c", _ASK, "sh", program), {}, work)
            ended = self.run(launch.argv, timeout=_TIMEOUT_S, env=launch.env, cwd=launch.cwd)
        return ended.stdout.strip() if ended.ok else ended.complaint()


def _files(name: str, agent: Agent) -> Finding:
    check = f"{name} files"
    if not Path(agent.files).is_dir():
        return Finding(check, Level.FAIL, f"{agent.files}: no such folder", f"mend [{name}] files; no order is taken")
    return Finding(check, Level.OK, agent.files)
