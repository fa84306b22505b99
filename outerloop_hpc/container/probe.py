"""Does a runtime really contain? Start a few lines of shell in it and look at what they can see."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from outerloop_hpc.container.failures import classify
from outerloop_hpc.container.runtime import Runtime, Sandbox, make_scratch
from outerloop_hpc.errors import TryLater
from outerloop_hpc.process import Finished, Runner

LEAK = "OUTERLOOP_PROBE_LEAK"
GIVEN = "OUTERLOOP_PROBE_GIVEN"
#: A value that a shell would change if anything on the way let one see it.
GIVEN_VALUE = "as $(is) `x` \"y\" 'z' \\ %s"
#: For runtimes that let a shell see it; the builder then refuses other values.
PLAIN_VALUE = "plain 'value' %s"
_TIME_S = 60.0
#: One line per question, read by ``_answers``. Only sh, test, cat and grep are needed inside.
_SCRIPT = """
echo started=yes
test -e "$1" && echo file=seen || echo file=hidden
test -n "$OUTERLOOP_PROBE_LEAK" && echo env=leaks || echo env=clean
test "$OUTERLOOP_PROBE_GIVEN" = "$2" && echo given=intact || echo given=changed
grep -v -e '|' -e '^ *lo:' /proc/net/dev | grep -q : && echo network=on || echo network=off
touch /tmp/written && echo tmp=writable || echo tmp=readonly
touch "$HOME/written" && echo home=writable || echo home=readonly
"""


@dataclass(frozen=True, slots=True)
class Probed:
    """What was seen from inside.

    Attributes:
        started: whether anything ran at all; when not, nothing else says anything.
        hides_files: a file of the host outside the sandbox was not visible.
        hides_env: a variable of the caller did not arrive.
        passes_env: a variable of the sandbox arrived unchanged, shell characters included.
        network_off: only the loopback interface was there.
        scratch: /tmp and HOME could be written, and lie in the scratch folder.
        seconds: how long it took, start to end.
        detail: why it did not start; empty when it did.
    """

    started: bool
    hides_files: bool
    hides_env: bool
    passes_env: bool
    network_off: bool
    scratch: bool
    seconds: float
    detail: str = ""

    @property
    def contains(self) -> bool:
        """Whether host files and the caller's environment stay outside."""
        return self.started and self.hides_files and self.hides_env


class MakeRuntime(Protocol):
    """Builds the runtime for a caller's environment (the probe plants a variable in it)."""

    def __call__(self, environ: Mapping[str, str]) -> Runtime:
        """Return the runtime."""
        ...


def probe(
    make: MakeRuntime,
    environ: Mapping[str, str],
    *,
    run: Runner,
    scratch: Path | None = None,
    given: str = GIVEN_VALUE,
) -> Probed:
    """Run the probe once, with the network asked to be off.

    Args:
        make: builds the runtime.
        environ: the caller's environment.
        run: runs commands.
        scratch: node-local folder to work below; the system's default temp folder when None.
        given: value of a sandbox variable that must arrive as it is.

    Raises:
        TryLater: no scratch folder can be made here.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="outerloop-probe-", dir=scratch))
    except OSError as error:
        raise TryLater(f"{error.filename}: no scratch folder can be made: {error.strerror}") from error
    try:
        return _probe(make({**environ, LEAK: "1"}), folder, run, given)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _probe(runtime: Runtime, folder: Path, run: Runner, given: str) -> Probed:
    canary = folder / "canary"
    canary.write_text("of the host\n", encoding="ascii")
    sandbox = Sandbox((), PurePosixPath("/"), folder / "scratch", env={GIVEN: given})
    make_scratch(sandbox.scratch)
    prepared = runtime.command(("/bin/sh", "-c", _SCRIPT, "sh", str(canary), given), sandbox)
    finished = run(prepared.argv, timeout=_TIME_S, env=prepared.env, cwd=prepared.cwd)
    answers = _answers(finished.stdout)
    if answers.get("started") != "yes":
        return Probed(*(False,) * 6, seconds=finished.seconds, detail=_why(runtime, finished))
    return Probed(
        started=True,
        hides_files=answers.get("file") == "hidden",
        hides_env=answers.get("env") == "clean",
        passes_env=answers.get("given") == "intact",
        network_off=answers.get("network") == "off",
        scratch=(sandbox.scratch / "tmp/written").is_file() and (sandbox.scratch / "home/written").is_file(),
        seconds=finished.seconds,
    )


def _answers(stdout: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in stdout.splitlines() if "=" in line)


def _why(runtime: Runtime, finished: Finished) -> str:
    known = None if finished.timed_out else classify(runtime.name, finished.status, finished.stderr)
    return finished.complaint() if known is None else known.message()
