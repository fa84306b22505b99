"""Rulings and decisions of a pass as rows: what is done, by which rule, on which evidence, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from outerloop_hpc.cli.output import Column

if TYPE_CHECKING:
    from outerloop_hpc.engine.plan import Line

DECISION_COLUMNS = (
    Column("run", "run id, or lane and target"),
    Column("subject", "step and try, submission, or order"),
    Column("decision", "what is done, or wait / alive"),
    Column("rule", "line of the decision table"),
    Column("reason", "why", cut=True),
    Column("needs", "what would have to be seen for another decision", shown=False, cut=True),
    Column("evidence", "what it rests on: queue, accounting, files, with their times", shown=False, cut=True),
)


def decision_row(run: str, line: Line, *, evidence: bool) -> Mapping[str, object]:
    """Return one row; ``evidence`` is left out where nobody asked for it, since there may be thousands."""
    return {
        "run": run,
        "subject": line.subject,
        "decision": line.verdict,
        "rule": line.rule,
        "reason": line.reason,
        "needs": line.needs,
        "evidence": line.basis.told() if evidence and line.basis is not None else None,
    }
