"""A target with a local forge, and steward runs that hold its orders, without any repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outerloop_hpc import fsio
from outerloop_hpc.clock import SystemClock
from outerloop_hpc.engine import runs
from outerloop_hpc.engine.claims import ClaimEnded, claim_path, ended_path
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.forge.local import LocalForge
from outerloop_hpc.forge.markers import EndReason, Marker
from outerloop_hpc.steward.work import claim_id, order_key
from tests.unit.engine.made import SPEC, T0

LABEL = "outerloop:steward"
SETTINGS = """\
[targets.iris]
repository = "/nowhere/iris.git"

[targets.rose]
repository = "/nowhere/rose.git"
"""


def new_state(folder: Path) -> Layout:
    """Make a state folder, and the project file that names its targets."""
    (folder / "outerloop.toml").write_text(SETTINGS, encoding="utf-8")
    layout = Layout(folder / "state")
    fsio.make_folder(layout.root)
    return layout


def forge_of(layout: Layout, target: str = "iris") -> LocalForge:
    return LocalForge(layout.forge / target, identity="outerloop", clock=SystemClock())


def steward_run(number: int, target: str = "iris") -> str:
    return f"steward-{target}-20261129T12000{number}Z-0000000{number}"


def steward_spec(run: str, target: str = "iris") -> RunSpec:
    work: dict[str, Any] = {"claim": claim_id(target, run)}
    return SPEC.model_copy(update={"run": run, "kind": "steward", "target": target, "work": work})


def take(layout: Layout, run: str, order: str = "1", attempt: int = 1, target: str = "iris") -> str:
    """Claim an order for a run that is not made yet; returns the claim's id."""
    runs.claim(layout, order_key(order, attempt), steward_spec(run, target))
    return claim_id(target, run)


def hold(layout: Layout, run: str, order: str = "1", attempt: int = 1, target: str = "iris") -> str:
    """Claim an order and make the run; returns the claim's id."""
    claim = take(layout, run, order, attempt, target)
    runs.ensure(layout, steward_spec(run, target))
    runs.made(layout, run)
    return claim


def end(layout: Layout, run: str, reason: EndReason, order: str = "1", attempt: int = 1, target: str = "iris") -> None:
    """Let a claim end, and its run be closed."""
    key = order_key(order, attempt)
    over = ClaimEnded(
        run=run, order=key, claim=claim_id(target, run), reason=reason, ending="aborted", why="it broke", at=T0
    )
    fsio.publish(layout.root / ended_path(target, key), over.encoded())
    fsio.remove(layout.live / run)


def tell(forge: LocalForge, run: str, order: str = "1", attempt: int = 1, reason: EndReason | None = None) -> None:
    """Write a claim's marker on its order."""
    marker = Marker(claim=claim_id("iris", run), run=run, attempt=attempt, reason=reason)
    forge.comment(order, f"{run}/{reason}", f"{marker.line()}\nwords for people")


def claim_file(layout: Layout, order: str = "1", attempt: int = 1, target: str = "iris") -> Path:
    return layout.root / claim_path(target, order_key(order, attempt))
