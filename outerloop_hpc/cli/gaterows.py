"""Rows about a sweep's conclusions, and whether each follows from its own pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from outerloop_hpc.cli.output import Column
from outerloop_hpc.documents import Document, kept
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.gate import decide, screening
from outerloop_hpc.evolve.gate.decision import GateDecision
from outerloop_hpc.evolve.gate.screening import Screened

GATE_COLUMNS = (
    Column("conclusion", "its key, which names its document"),
    Column("decision", "the gate's word"),
    Column("gain", "estimated"),
    Column("gain_low", "of the interval at the policy's level"),
    Column("gain_high", "of the same"),
    Column("p", "of the sign-flip test"),
    Column("level", "up to which it counts", shown=False),
    Column("pairs", "that were compared"),
    Column("missing", "pairs without a reading", shown=False),
    Column("recomputed", "same or differs; empty when that was not asked for"),
    Column("reason", "the first ones", cut=True),
)


def gate_rows(state: RunState, *, recompute: bool) -> Iterator[Mapping[str, object]]:
    """Yield a row for each screening and each look, in the order in which they were concluded."""
    for key, document in state.conclusions.items():
        if key.startswith("screen"):
            yield _screening(key, document, recompute=recompute)
        elif key.startswith("confirm"):
            yield _confirming(key, document, recompute=recompute)


def _screening(key: str, document: Mapping[str, Any], *, recompute: bool) -> Mapping[str, object]:
    found: Screened = kept(Screened, document, key)
    best = next((one for one in found.candidates if one.digest == found.chosen), None)
    rows = [row for one in found.candidates for row in one.rows]
    return {
        "conclusion": key,
        "decision": found.decision,
        "gain": None if best is None else best.gain,
        "p": None if best is None else best.p,
        "level": found.policy.screen_level,
        "pairs": sum(row.use == "compared" for row in rows),
        "missing": sum(row.use == "missing" for row in rows),
        "recomputed": _same(found, screening.recompute(found)) if recompute else "",
        "reason": found.reason,
    }


def _confirming(key: str, document: Mapping[str, Any], *, recompute: bool) -> Mapping[str, object]:
    found: GateDecision = kept(GateDecision, document, key)
    return {
        "conclusion": key,
        "decision": found.decision,
        "gain": found.gain,
        "gain_low": found.gain_low,
        "gain_high": found.gain_high,
        "p": found.p,
        "level": found.level,
        "pairs": sum(row.use == "compared" for row in found.rows),
        "missing": sum(row.use == "missing" for row in found.rows),
        "recomputed": _same(found, decide.recompute(found)) if recompute else "",
        "reason": "; ".join(found.reasons),
    }


def _same(old: Document, new: Document) -> str:
    return "same" if old.encoded() == new.encoded() else "differs"
