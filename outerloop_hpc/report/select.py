"""Which attempts a report is about: sacct's ``-u -A -M -s -S -E`` and ``--name`` (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from outerloop_hpc.errors import UsageError
from outerloop_hpc.report.costs import Window
from outerloop_hpc.report.jobs import JobReport
from outerloop_hpc.slurm.states import COMPACT, Life, classify

_ALWAYS: Final = Window()


@dataclass(frozen=True, slots=True)
class Selection:
    """What to keep; an empty set keeps everything.

    Attributes:
        window: attempts that ran, or (not started) were submitted, at some time in it.
        states: full words, upper case, of the allocation row; steps of a TIMEOUT job say CANCELLED.
    """

    window: Window = _ALWAYS
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()

    def keeps(self, job: JobReport) -> bool:
        """Whether the report is about this attempt."""
        asked = (
            (self.users, job.user),
            (self.accounts, job.account),
            (self.clusters, job.cluster),
            (self.names, job.name),
            (self.states, job.state),
        )
        return self._touches(job) and all(not wanted or value in wanted for wanted, value in asked)

    def _touches(self, job: JobReport) -> bool:
        first = job.start if job.start is not None else job.submit
        if first is None:
            return True
        before_end = self.window.end is None or first < self.window.end
        after_start = self.window.start is None or job.end is None or job.end >= self.window.start
        return before_end and after_start


def words(text: str) -> frozenset[str]:
    """Read a comma-separated list, as sacct's options take them."""
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def state_words(text: str) -> frozenset[str]:
    """Read a comma-separated list of states, short (``CD,F``) or long, in any case.

    Raises:
        UsageError: a word that sacct does not know either.
    """
    found: set[str] = set()
    for word in words(text):
        state = COMPACT.get(word.upper(), word.upper())
        if classify(state).life is Life.UNKNOWN:
            raise UsageError(f"{word!r} is not a job state; known: {', '.join(sorted(COMPACT.values()))}")
        found.add(state)
    return frozenset(found)
