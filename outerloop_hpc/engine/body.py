"""The port of job bodies: what a kind's part of a job gets, and what it returns."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outerloop_hpc.engine import records
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.records import RecordOutcome
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.errors import ConfigError, NodeUnfit, OuterloopError

_BODY_PREFIX = "outerloop_hpc."


@dataclass(frozen=True, slots=True)
class Result:
    """What a body returns: the outcome for the engine, the payload for the kind.

    ``node_unfit`` says that this node lacks what the job needs. It is for what the body itself found out before the
    measured command ran, never for what that command said or how it ended. ``part``: of several things that the body
    carries out, the one that it was lost with, in the kind's own word.
    """

    outcome: RecordOutcome
    reason: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    node_unfit: bool = False
    part: str = ""


class Stop:
    """Why the body must end early, once anybody wants that; the first reason stays."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason = ""

    def ask(self, reason: str) -> None:
        """Ask for the end; later reasons are dropped."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    def __call__(self) -> bool:
        """Whether the body must end."""
        return self._event.is_set()


@dataclass(frozen=True, slots=True)
class Context:
    """What a body may use. ``scratch`` is node-local and removed afterwards."""

    spec: RunSpec
    element: records.ManifestElement
    layout: Layout
    scratch: Path
    log: Path
    stop: Stop
    deadline_s: float
    environ: Mapping[str, str]


#: Carries out one step. What it raises ends in a record too: NodeUnfit blames the node and is tried elsewhere, a
#: ConfigError is a refusal that no repetition would change, anything else is infrastructure.
Body = Callable[[Context], Result]


def resolve(reference: str) -> Body:
    """Import a body named ``package.module:function``; only this package's own are accepted."""
    module, _, name = reference.partition(":")
    if not module.startswith(_BODY_PREFIX) or not name.isidentifier():
        raise OuterloopError(f"{reference!r} is not a body of this package; the manifest is not one of ours")
    body: Body = getattr(importlib.import_module(module), name)
    return body


def carried_out(body: Body, context: Context) -> Result:
    """Return what a body returns, or what it means that it raised one of our errors."""
    try:
        return body(context)
    except NodeUnfit as error:
        return Result("infrastructure", str(error), node_unfit=True)
    except ConfigError as error:
        return Result("refused", str(error))
