"""A plan in the making: events, their fold, and the lines that say why. Pure."""

from __future__ import annotations

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.basis import Basis
from outerloop_hpc.engine.fold import apply
from outerloop_hpc.engine.plan import Input, Line


class Planner:
    """Collects events; ``state`` is always the fold of all of them."""

    def __init__(self, given: Input) -> None:
        self.given = given
        self.state = given.state
        self.events: list[ev.Event] = []
        self.lines: list[Line] = []
        self.given_up: dict[tuple[str, int], str] = {}
        self.rulings: dict[tuple[str, int], str] = {}
        self.held: set[str] = set()

    def add(self, *new: ev.Event) -> None:
        """Add events and fold them at once."""
        if not new:
            return
        self.events.extend(new)
        author = ev.Author(host=self.given.here.host, pid=0, user=self.given.here.user, version="plan")
        transaction = ev.Transaction(
            run=self.state.run, seq=self.state.seq + 1, nonce="", at=self.given.now, by=author, events=new
        )
        self.state = apply(self.state, transaction)

    def say(
        self, subject: str, rule_name: str, verdict: str, reason: str, needs: str = "", basis: Basis | None = None
    ) -> None:
        """Add a line for people."""
        self.lines.append(Line(subject, rule_name, verdict, reason, needs, basis))
