"""Look at a runtime and its image from inside, for people: ``outerloop-hpc image check``."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from outerloop_hpc.container.probe import MakeRuntime, Probed, probe
from outerloop_hpc.container.runtime import Sandbox, current_environment, make_scratch
from outerloop_hpc.process import Runner, run_command

_START_S = 60.0
_STARTS = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer of ``check``: what was looked at, whether it is as it must be, and what was seen."""

    name: str
    ok: bool
    detail: str


def check(
    make: MakeRuntime,
    *,
    environ: Mapping[str, str] | None = None,
    run: Runner = run_command,
    scratch: Path | None = None,
) -> list[Finding]:
    """Start a runtime (with its image) a few times, and say what is seen from inside.

    Args:
        make: builds the runtime for a caller's environment.
        environ: the caller's environment; this process's own when None.
        run: runs commands.
        scratch: node-local folder to work below.

    Returns:
        One finding for each thing that must hold; only the first when nothing starts.
    """
    around = current_environment() if environ is None else environ
    probes = [probe(make, around, run=run, scratch=scratch)]
    if not probes[0].started:
        return [Finding("starts", ok=False, detail=probes[0].detail)]
    probes += [probe(make, around, run=run, scratch=scratch) for _ in range(_STARTS - 1)]
    programs = [
        _program(make, around, run, scratch, "python3", "--version"),
        _program(make, around, run, scratch, "git", "--version"),
    ]
    return [*_seen(probes), *programs]


def _seen(probes: list[Probed]) -> list[Finding]:
    seconds = statistics.median(one.seconds for one in probes)
    slowest = max(one.seconds for one in probes)
    first = probes[0]
    return [
        Finding("starts", ok=True, detail=f"in {seconds:.2f} s (median of {len(probes)}, slowest {slowest:.2f} s)"),
        _finding("host files", first.hides_files, "hidden", "a file outside the sandbox is visible"),
        _finding("environment", first.hides_env, "clean", "a variable of the caller arrives"),
        _finding("variables", first.passes_env, "arrive unchanged", "a variable of the sandbox arrives changed"),
        _finding("network", first.network_off, "off", "cannot be switched off here; measurements will say so"),
        _finding("scratch", first.scratch, "HOME and /tmp lie in it", "HOME or /tmp does not lie in it"),
    ]


def _finding(name: str, good: bool, yes: str, no: str) -> Finding:  # noqa: FBT001 - private, next to its calls
    return Finding(name, good, yes if good else no)


def _program(make: MakeRuntime, environ: Mapping[str, str], run: Runner, scratch: Path | None, *argv: str) -> Finding:
    with tempfile.TemporaryDirectory(prefix="outerloop-check-", dir=scratch, ignore_cleanup_errors=True) as folder:
        sandbox = Sandbox((), PurePosixPath("/"), Path(folder) / "scratch")
        make_scratch(sandbox.scratch)
        prepared = make(environ).command(argv, sandbox)
        finished = run(prepared.argv, timeout=_START_S, env=prepared.env, cwd=prepared.cwd)
    detail = finished.stdout.strip()[:200] if finished.ok else finished.complaint()
    return Finding(argv[0], finished.ok, detail)
