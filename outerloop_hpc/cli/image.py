"""``image build|check``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from outerloop_hpc.cli.options import DryRun, Out, command, lists
from outerloop_hpc.cli.session import session, talk
from outerloop_hpc.errors import ConfigError, Exit

app = typer.Typer(help="Build and check container images.", no_args_is_help=True, rich_markup_mode=None)

Output = Annotated[Path, typer.Argument(metavar="OUTPUT", help="The SIF file to make.")]
Definition = Annotated[Path | None, typer.Option("--definition", help="Definition file; the shipped python.def.")]
RootFs = Annotated[Path | None, typer.Option("--rootfs", help="Build from this root file system; no privileges.")]
Mirror = Annotated[str, typer.Option("--mirror", help="Debian mirror; the one of this machine's apt.")]
Fakeroot = Annotated[bool, typer.Option("--fakeroot", help="Build without being root, where subuids exist.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace an image that is there.")]
Image = Annotated[Path, typer.Argument(metavar="IMAGE", help="A SIF file.")]


@command(app, "build")
def build(
    context: typer.Context,
    output: Output,
    definition: Definition = None,
    rootfs: RootFs = None,
    mirror: Mirror = "",
    fakeroot: Fakeroot = False,
    overwrite: Replace = False,
    dry_run: DryRun = False,
) -> None:
    """Build an image with apptainer or singularity and print its digest.

    Example: outerloop-hpc image build /projects/images/python.sif
    """
    from outerloop_hpc.cli.terminal import Progress, seconds_shown, terminal  # noqa: PLC0415 - heavy
    from outerloop_hpc.container import build as building  # noqa: PLC0415 - as above
    from outerloop_hpc.shipping import shipped  # noqa: PLC0415 - as above

    source = definition or (None if rootfs else shipped("containers") / "python.def")
    planned = building.plan(source, output, mirror=mirror or None, rootfs=rootfs, fakeroot=fakeroot, replace=overwrite)
    if dry_run:
        for line in building.described(planned):
            talk(line)
        return
    progress = Progress(sys.stderr, terminal(sys.stderr, session(context).environ), f"building {output.name}, seconds")
    with seconds_shown(progress):
        made = building.build(planned, replace=overwrite)
    talk(f"{made.path}: sha256 {made.sha256}; `outerloop-hpc image check {made.path}` tries it out")


@command(app, "check")
@lists
def check(context: typer.Context, image: Image, *, out: Out) -> None:
    """Start an image and look from inside: is the host hidden, the environment clean, the network off?

    Example: outerloop-hpc image check /projects/images/python.sif

    Exit status 3 when something is not as it should be.
    """
    from outerloop_hpc.cli.output import Column  # noqa: PLC0415 - heavy
    from outerloop_hpc.container.apptainer import Apptainer  # noqa: PLC0415 - as above
    from outerloop_hpc.container.check import check as look_inside  # noqa: PLC0415 - as above
    from outerloop_hpc.container.choose import choose  # noqa: PLC0415 - as above
    from outerloop_hpc.container.image import identify  # noqa: PLC0415 - as above

    shown = (Column("check"), Column("ok"), Column("detail", cut=True))
    out.offer(shown)
    here = session(context)
    seen = identify(image.absolute())
    runtime = choose("auto", image=seen.path, uncontained=False, environ=here.environ)
    if not isinstance(runtime, Apptainer):
        raise ConfigError(f"{seen.path}: only apptainer and singularity run images, not {runtime.name}")
    found = look_inside(lambda environ: replace(runtime, environ=environ), environ=here.environ)
    rows = [{"check": one.name, "ok": one.ok, "detail": one.detail} for one in found]
    rows.insert(0, {"check": "sha256", "ok": True, "detail": seen.sha256})
    out.show(here, "image check", shown, rows, meta={"image": str(seen.path), "sha256": seen.sha256})
    raise typer.Exit(Exit.DONE if all(one.ok for one in found) else Exit.FINDINGS)
