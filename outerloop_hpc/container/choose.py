"""Choose a runtime, and believe it only after it was seen to contain."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from outerloop_hpc.container.apptainer import Apptainer
from outerloop_hpc.container.bubblewrap import Bubblewrap
from outerloop_hpc.container.probe import Probed, probe
from outerloop_hpc.container.runtime import Runtime, current_environment
from outerloop_hpc.container.uncontained import Uncontained
from outerloop_hpc.errors import ConfigError, TryLater
from outerloop_hpc.process import Runner, run_command

Which = Callable[[str], str | None]
NAMES = ("auto", "apptainer", "singularity", "bubblewrap", "none")


@dataclass(frozen=True, slots=True)
class _Key:
    program: str
    image: Path | None
    cuts_network: bool
    scratch: Path | None


#: What was seen in this process; a runtime does not change under it.
_seen: dict[_Key, Probed] = {}


def choose(  # noqa: PLR0913 - one call with everything passed in, by keyword
    name: str,
    *,
    image: Path | None,
    uncontained: bool,
    which: Which = shutil.which,
    run: Runner = run_command,
    environ: Mapping[str, str] | None = None,
    scratch: Path | None = None,
    tools: tuple[Path, ...] = (),
    seen: MutableMapping[_Key, Probed] = _seen,
) -> Runtime:
    """Return a runtime that was seen to contain (or none, where that was allowed).

    Args:
        name: ``auto`` takes apptainer or singularity when there is an image; without one bubblewrap, then ``none``.
        image: the SIF file; needed by apptainer and singularity.
        uncontained: whether somebody allowed to run without a container.
        which: finds programs.
        run: runs the probe.
        environ: the caller's environment; this process's own when None.
        scratch: node-local folder for the probe.
        tools: folders of the host that bubblewrap shows as well.
        seen: what earlier probes saw.

    Raises:
        ConfigError: an unknown name, no image, nothing installed that fits, or a runtime that does not contain.
        TryLater: the runtime is there and did not start on this node.
    """
    if name not in NAMES:
        raise ConfigError(f"unknown container runtime {name!r}; use one of {', '.join(NAMES)}")
    around = current_environment() if environ is None else environ
    picked = _pick(name, image, which, uncontained=uncontained)
    if picked == "none":
        return Uncontained(consent=uncontained, environ=around)
    program = which("bwrap" if picked == "bubblewrap" else picked)
    if program is None:
        raise ConfigError(_missing(picked))
    maker = _Maker(picked, program, image, tools, around)
    return maker.proven(run, scratch, seen)


def _pick(name: str, image: Path | None, which: Which, *, uncontained: bool) -> str:
    if name in {"apptainer", "singularity"} or (name == "auto" and image is not None):
        if image is None:
            raise ConfigError(
                f"{name} needs an image; set `image` of the target, or use `[container] runtime = 'auto'`"
            )
        if name != "auto":
            return name
        # An image was asked for, so its absence must not be papered over by the host's own programs.
        return "singularity" if which("apptainer") is None and which("singularity") else "apptainer"
    if name != "auto":
        return name
    return "none" if uncontained and which("bwrap") is None else "bubblewrap"


def _missing(picked: str) -> str:
    if picked == "bubblewrap":
        return (
            "no container runtime: there is no image to run with apptainer, and bwrap is not on PATH; set the target's "
            "`image`, install bubblewrap, or allow `[container] uncontained = true`"
        )
    return (
        f"{picked} is not on PATH on this node and the target asks for an image; load its module "
        "in the site preamble, or install it"
    )


@dataclass(frozen=True, slots=True)
class _Maker:
    """One candidate runtime, still without knowing whether it can cut the network off."""

    name: str
    program: str
    image: Path | None
    tools: tuple[Path, ...]
    environ: Mapping[str, str]

    def make(self, environ: Mapping[str, str], *, cuts_network: bool) -> Runtime:
        if self.name == "bubblewrap":
            return Bubblewrap(self.program, self.tools, cuts_network, environ)
        if self.image is None:
            raise ConfigError(f"{self.name} needs an image; set `image` of the target")
        return Apptainer(self.program, self.image.absolute(), self.name, cuts_network, environ)

    def proven(self, run: Runner, scratch: Path | None, seen: MutableMapping[_Key, Probed]) -> Runtime:
        """Return the runtime with its network off if that starts, else with the host's network, else raise."""
        details = []
        for cuts_network in (True, False):
            found = self._look(run, scratch, seen, cuts_network=cuts_network)
            if found.started:
                self._require(found)
                return self.make(self.environ, cuts_network=cuts_network and found.network_off)
            details.append(found.detail)
        raise TryLater(
            f"{self.program} does not start on this node: {details[-1]}; try another node, "
            "see `outerloop-hpc image check`"
        )

    def _look(
        self, run: Runner, scratch: Path | None, seen: MutableMapping[_Key, Probed], *, cuts_network: bool
    ) -> Probed:
        key = _Key(self.program, self.image, cuts_network, scratch)
        if key not in seen:
            found = probe(
                lambda environ: self.make(environ, cuts_network=cuts_network), self.environ, run=run, scratch=scratch
            )
            if not found.started and not cuts_network:
                return found  # a node may recover: failures are not remembered
            seen[key] = found
        return seen[key]

    def _require(self, found: Probed) -> None:
        faults = [
            text
            for good, text in (
                (found.hides_files, "files of the host outside the sandbox are visible in it"),
                (found.hides_env, "variables of the caller arrive in it"),
                (found.passes_env, "a variable of the sandbox arrives changed"),
                (found.scratch, "its /tmp or HOME does not lie in the scratch folder"),
            )
            if not good
        ]
        if faults:
            raise ConfigError(
                f"{self.program} does not contain here: {'; '.join(faults)}; ask the admins about mounts and "
                "environment that their configuration forces, or choose another runtime"
            )
