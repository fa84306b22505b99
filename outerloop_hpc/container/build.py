"""Build an image aside, and put it in place whole."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from outerloop_hpc import effects, fsio
from outerloop_hpc.container.image import ImageRef, identify
from outerloop_hpc.container.mirror import checked_mirror, own_mirror
from outerloop_hpc.errors import ConfigError, OuterloopError, UsageError
from outerloop_hpc.process import Finished, Runner, run_command

_MIRROR = re.compile(r"\{\{\s*MIRROR\s*\}\}")
_SUITE = re.compile(r"(?m)^\s*OSVersion:\s*(\S+)\s*$")
_BUILD_S = 3600.0
_PROGRAMS = ("apptainer", "singularity")
_IMAGE = "image.sif"


class BuildFailed(OuterloopError):  # noqa: N818 - states what happened
    """The image could not be built; nothing was put in place. Text: the builder's last words and its log."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A build that nothing speaks against; nothing was written for it yet.

    Attributes:
        program: the builder.
        options: what it gets besides image and source.
        source: the definition, or the folder of a root file system.
        text: the definition with its mirror filled in; None for a root file system.
        output: where the image goes, absolute.
    """

    program: str
    options: tuple[str, ...]
    source: Path
    text: str | None
    output: Path

    @property
    def stage_prefix(self) -> str:
        """How the name of the folder begins, beside ``output``, in which the image is built."""
        return f".tmp-build-{self.output.name}-"

    def staged(self, stage: Path) -> Path:
        """What the builder reads when it builds in ``stage``."""
        return self.source if self.text is None else stage / self.source.name

    def argv(self, stage: Path) -> tuple[str, ...]:
        """The builder's command line."""
        return (self.program, "build", *self.options, str(stage / _IMAGE), str(self.staged(stage)))


def rendered(definition: str, mirror: str) -> str:
    """Return a definition with ``{{ MIRROR }}`` filled in (pure)."""
    return _MIRROR.sub(lambda _: checked_mirror(mirror), definition)


def plan(
    definition: Path | None,
    output: Path,
    *,
    mirror: str | None = None,
    rootfs: Path | None = None,
    fakeroot: bool = False,
    replace: bool = False,
    which: Callable[[str], str | None] = shutil.which,
) -> Plan:
    """Say how ``output`` would be built; writes nothing.

    Args:
        definition: the definition file; None with ``rootfs``.
        output: where the SIF file goes; written under another name in the same folder first.
        mirror: Debian mirror for ``{{ MIRROR }}``; the machine's own when None.
        rootfs: build from this root file system instead; needs no privileges.
        fakeroot: pass ``--fakeroot``.
        replace: whether an existing ``output`` may be replaced.
        which: finds the builder.

    Raises:
        UsageError: both or neither of definition and rootfs, or the output exists.
        ConfigError: no builder, no mirror, or the input cannot be read.
    """
    program = next((found for found in map(which, _PROGRAMS) if found), None)
    if program is None:
        raise ConfigError("neither apptainer nor singularity is on PATH; load its module, or build on another machine")
    output = output.absolute()
    _require_fresh(output, replace=replace)
    source, text = _source(definition, rootfs, mirror)
    return Plan(program, ("--fakeroot",) if fakeroot else (), source, text, output)


def build(planned: Plan, *, replace: bool = False, run: Runner = run_command) -> ImageRef:
    """Build what was planned, and return it with its digest.

    Args:
        planned: what to build.
        replace: whether an image that came into its place meanwhile may be replaced.
        run: runs the builder.

    Raises:
        UsageError: the output exists by now.
        BuildFailed: the builder failed; the text has its last words, and its whole output lies beside ``output``.
    """
    output = planned.output
    fsio.make_folder(output.parent)
    stage = Path(tempfile.mkdtemp(prefix=planned.stage_prefix, dir=output.parent))
    try:
        if planned.text is not None:
            planned.staged(stage).write_text(planned.text, encoding="utf-8")
        finished = run(planned.argv(stage), timeout=_BUILD_S)
        if not finished.ok or not (stage / _IMAGE).is_file():
            raise BuildFailed(_failure(finished, output))
        _put_in_place(stage / _IMAGE, output, replace=replace)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return identify(output)


def described(planned: Plan) -> tuple[str, ...]:
    """Say line by line what ``build`` would do (pure); the folder's last letters are drawn when it is made."""
    stage = planned.output.parent / f"{planned.stage_prefix}XXXXXXXX"
    source = f"would write {planned.staged(stage)}: a copy of {planned.source}, any {{{{ MIRROR }}}} filled in"
    return (
        *(() if planned.text is None else (source,)),
        f"would run {shlex.join(planned.argv(stage))}",
        f"would move {stage / _IMAGE} to {planned.output}",
    )


def _require_fresh(output: Path, *, replace: bool) -> None:
    if output.exists() and not replace:
        raise UsageError(
            f"{output}: exists; runs may refer to it by its digest, "
            "so give the new image another name (or say --replace)"
        )


def _source(definition: Path | None, rootfs: Path | None, mirror: str | None) -> tuple[Path, str | None]:
    """Return what to build from: a definition with its text, or the folder of a root file system without."""
    if (definition is None) == (rootfs is None):
        raise UsageError("give either a definition file or --rootfs DIR to build an image from")
    if definition is None:
        folder = rootfs or Path()
        if not (folder / "bin/sh").exists() and not (folder / "bin/sh").is_symlink():
            raise ConfigError(f"{folder}: is not a root file system: it has no bin/sh")
        return folder.absolute(), None
    try:
        text = definition.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{definition}: the definition cannot be read: {error}") from error
    if _MIRROR.search(text):
        suite = _SUITE.search(text)
        text = rendered(text, mirror or own_mirror(suite[1] if suite else "stable"))
    return definition, text


def _failure(finished: Finished, output: Path) -> str:
    log = output.with_name(output.name + ".build.log")
    fsio.replace(log, f"$ {' '.join(finished.argv)}\n{finished.stdout}{finished.stderr}".encode())
    return f"{output}: was not built: {finished.complaint()}; the whole log is {log}"


def _put_in_place(image: Path, output: Path, *, replace: bool) -> None:
    image.chmod(0o666 & ~fsio.umask())
    with image.open("rb") as file:
        os.fsync(file.fileno())

    def move() -> None:
        _require_fresh(output, replace=replace)
        image.replace(output)
        fsio.sync_folder(output.parent)

    effects.perform("replace", str(output), move)
