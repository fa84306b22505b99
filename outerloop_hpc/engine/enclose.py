"""Open the enclosure of one try on this node: the image that was meant, a runtime that works here, private scratch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from outerloop_hpc.container.choose import choose
from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.image import ImageRef, require
from outerloop_hpc.container.runtime import Bind, NotWorkingHere, Sandbox, make_scratch, on_host
from outerloop_hpc.documents import Value
from outerloop_hpc.engine.body import Context

#: How Slurm tells a job its GPUs, and what their libraries obey.
_DEVICES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


class Containment(Value):
    """How a step is contained."""

    runtime: str = "auto"
    uncontained: bool = False
    network: bool = False


def enclosure(context: Context, containment: Containment, *, gpus: int = 0, binds: tuple[Bind, ...] = ()) -> Enclosure:
    """Return where the commands of this try run; beside their working folder they see ``binds`` alone.

    Raises:
        NodeUnfit: this node lacks the image, the runtime or scratch space.
        ConfigError: what was asked for cannot be.
    """
    image: ImageRef | None = None
    if context.spec.image.path:
        # Read whole each time, no kept sum: attributes may be stale on this node, and nothing checks after this does.
        image = require(Path(context.spec.image.path), context.spec.image.sha256)
    scratch = _made(context.scratch / "sandbox")
    runtime = choose(
        containment.runtime,
        image=image.path if image else None,
        uncontained=containment.uncontained,
        environ=context.environ,
        scratch=context.scratch,
    )
    sandbox = Sandbox(
        binds=binds,
        workdir=PurePosixPath("/work"),
        scratch=scratch,
        env={"LANG": "C.UTF-8", **_devices(context.environ, gpus)},
        network=containment.network,
        gpus=gpus > 0,
    )
    return Enclosure(runtime, sandbox, image)


def afresh(where: Enclosure, scratch: Path, *, network: bool, binds: tuple[Bind, ...] = ()) -> Enclosure:
    """Return an enclosure like ``where`` with its own /tmp and HOME below ``scratch`` and other ``binds``.

    What was found out about this node is not found out again, and nothing of an earlier command is there.

    Raises:
        NodeUnfit: this node lacks scratch space.
    """
    return replace(where, sandbox=replace(where.sandbox, scratch=_made(scratch), binds=binds, network=network))


def inside(where: Enclosure, path: PurePosixPath) -> str:
    """Return how a command in there names a path: as it is inside, or on the host where nothing contains it."""
    return str(on_host(where.sandbox, path)) if where.name == "none" else str(path)


def _made(scratch: Path) -> Path:
    try:
        make_scratch(scratch)
    except OSError as error:
        raise NotWorkingHere(f"{scratch}: no scratch space on this node: {error.strerror}") from error
    return scratch


def _devices(environ: Mapping[str, str], gpus: int) -> dict[str, str]:
    """Say which GPUs are this job's: where no cgroup hides the others, every job would take the first one."""
    return {name: environ[name] for name in _DEVICES if gpus and name in environ}
