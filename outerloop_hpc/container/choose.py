"""Choose a runtime, and believe it only after it was seen to contain."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from outerloop_hpc.container.apptainer import Apptainer
from outerloop_hpc.container.bubblewrap import Bubblewrap
from outerloop_hpc.container.probe import GIVEN_VALUE, PLAIN_VALUE, Probed, probe
from outerloop_hpc.container.runtime import NotOnThisNode, NotWorkingHere, Runtime, current_environment
from outerloop_hpc.container.uncontained import Uncontained
from outerloop_hpc.errors import ConfigError
from outerloop_hpc.process import Runner, run_command

Which = Callable[[str], str | None]
NAMES = ("auto", "apptainer", "singularity", "bubblewrap", "none")


@dataclass(frozen=True, slots=True)
class _Ability:
    """What the program is expected to be able to do."""

    cuts_network: bool
    no_eval: bool


#: From the best to the least that is taken; the first that starts is used.
_ABILITIES = tuple(_Ability(cuts_network, no_eval) for no_eval in (True, False) for cuts_network in (True, False))


@dataclass(frozen=True, slots=True)
class _Key:
    program: str
    image: Path | None
    ability: _Ability
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
        NotOnThisNode: the image's runtime is not installed here.
        NotWorkingHere: the runtime is there and did not start on this node.
    """
    if name not in NAMES:
        raise ConfigError(f"unknown container runtime {name!r}; use one of {', '.join(NAMES)}")
    around = current_environment() if environ is None else environ
    picked = _pick(name, image, which, uncontained=uncontained)
    if picked == "none":
        return Uncontained(consent=uncontained, environ=around)
    program = which("bwrap" if picked == "bubblewrap" else picked)
    if program is None:
        # Without an image nothing but this installation was asked for: no node would be better.
        raise (NotOnThisNode if image is not None else ConfigError)(_missing(picked))
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
    """One candidate runtime, still without knowing what it can do here."""

    name: str
    program: str
    image: Path | None
    tools: tuple[Path, ...]
    environ: Mapping[str, str] = field(repr=False)

    def make(self, environ: Mapping[str, str], ability: _Ability) -> Runtime:
        if self.name == "bubblewrap":
            return Bubblewrap(self.program, self.tools, ability.cuts_network, environ)
        if self.image is None:
            raise ConfigError(f"{self.name} needs an image; set `image` of the target")
        return Apptainer(self.program, self.image.absolute(), self.name, ability.cuts_network, ability.no_eval, environ)

    def proven(self, run: Runner, scratch: Path | None, seen: MutableMapping[_Key, Probed]) -> Runtime:
        """Return the runtime with the best ability that starts here and contains.

        Raises:
            ConfigError: it starts and does not contain.
            NotWorkingHere: it does not start.
        """
        details = []
        for ability in _ABILITIES:
            if self.name == "bubblewrap" and not ability.no_eval:
                continue
            found = self._look(run, scratch, seen, ability)
            if found.started:
                self._require(found)
                return self.make(self.environ, replace(ability, cuts_network=found.network_off))
            details.append(found.detail)
        raise NotWorkingHere(
            f"{self.program} does not start on this node: {details[0]}; try another node, "
            "see `outerloop-hpc image check`"
        )

    def _look(self, run: Runner, scratch: Path | None, seen: MutableMapping[_Key, Probed], ability: _Ability) -> Probed:
        key = _Key(self.program, self.image, ability, scratch)
        if key in seen:
            return seen[key]
        given = GIVEN_VALUE if ability.no_eval else PLAIN_VALUE
        found = probe(lambda environ: self.make(environ, ability), self.environ, run=run, scratch=scratch, given=given)
        if found.started:  # a node may recover, so failures are not remembered
            seen[key] = found
        return found

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
