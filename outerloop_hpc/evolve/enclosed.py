"""The enclosure of a sweep's jobs on this node: where one node cannot contain, another may."""

from __future__ import annotations

from outerloop_hpc.container.enclosure import Enclosure
from outerloop_hpc.container.image import OtherImage
from outerloop_hpc.engine.body import Context
from outerloop_hpc.engine.enclose import Containment, enclosure
from outerloop_hpc.errors import ConfigError, NodeUnfit


def enclosed(context: Context, containment: Containment) -> Enclosure:
    """Return where the commands of this try run, with the GPUs that its step asks for.

    A refusal ends the whole sweep, with all that it has measured. So only an image that is not the frozen one is one;
    nodes without a runtime, or whose runtime does not contain, are left out, and where all are a person is asked.

    Raises:
        NodeUnfit: this node lacks the image, a runtime that contains, or scratch space.
        OtherImage: the image is not the one that was frozen.
    """
    try:
        return enclosure(context, containment, gpus=context.element.step.resources.gpus)
    except OtherImage:
        raise
    except ConfigError as error:
        raise NodeUnfit(str(error)) from error
