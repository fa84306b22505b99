"""Slurm's state words as a closed world: alive, ended or unknown; and which endings are soft.

Source: ``job_state_string`` of Slurm 20.11 to 26.05, squeue's compact codes, and what the words meant on real clusters.
A word that is not in the table is UNKNOWN and kept as it was printed: unknown ends nothing and releases nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

_CANCELLED_BY = re.compile(r"CANCELLED\+? BY ([0-9]{1,10})\b", re.IGNORECASE)


class Life(StrEnum):
    """What a state word says about the job; there is no fourth outcome."""

    ALIVE = "alive"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StateMeaning:
    """A classified state word.

    Attributes:
        word: canonical word (``COMPLETED``), or the text as printed when it is not known.
        life: what the word says where it stands.
        soft: the job may come back, or has: an accounting row with this word is an ending only after the job was
            absent from squeue, without a break, for a whole window. While squeue lists the job it has not ended.
    """

    word: str
    life: Life
    soft: bool

    @property
    def final(self) -> bool:
        """Whether the word alone says that the job has ended (the confirmation by squeue is still the caller's)."""
        return self.life is Life.ENDED and not self.soft


_ALIVE = (
    "PENDING RUNNING SUSPENDED COMPLETING CONFIGURING RESIZING STAGE_OUT STOPPED SIGNALING "
    "REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD EXPEDITING POWER_UP_NODE"
)

# REQUEUED says that another attempt is queued, so it is alive; but accounting keeps that row for ever when the new
# attempt was cancelled or purged before it got a row of its own (seen with `scontrol requeue` then `scancel`).
# Alive and soft: alive while squeue agrees, an ending once squeue has not known the job for the whole window.
_ALIVE_SOFT = "REQUEUED REQUEUED_CRON"

_ENDED = "COMPLETED CANCELLED FAILED TIMEOUT DEADLINE OUT_OF_MEMORY"

# Each of these words stood in accounting for jobs that ran again minutes later (node failure with requeue:
# NODE_FAIL for 120 s) and for jobs that never did; only squeue tells them apart. REVOKED: a federated sibling lives.
_ENDED_SOFT = "NODE_FAIL PREEMPTED BOOT_FAIL REVOKED LAUNCH_FAILED RECONFIG_FAIL"

TABLE: MappingProxyType[str, StateMeaning] = MappingProxyType(
    {
        word: StateMeaning(word, life, soft)
        for words, life, soft in (
            (_ALIVE, Life.ALIVE, False),
            (_ALIVE_SOFT, Life.ALIVE, True),
            (_ENDED, Life.ENDED, False),
            (_ENDED_SOFT, Life.ENDED, True),
        )
        for word in words.split()
    }
)
"""Every state word that is known, with its meaning."""

COMPACT: MappingProxyType[str, str] = MappingProxyType(
    {
        "BF": "BOOT_FAIL",
        "CA": "CANCELLED",
        "CD": "COMPLETED",
        "CF": "CONFIGURING",
        "CG": "COMPLETING",
        "DL": "DEADLINE",
        "F": "FAILED",
        "NF": "NODE_FAIL",
        "OOM": "OUT_OF_MEMORY",
        "PD": "PENDING",
        "PR": "PREEMPTED",
        "R": "RUNNING",
        "RD": "RESV_DEL_HOLD",
        "RF": "REQUEUE_FED",
        "RH": "REQUEUE_HOLD",
        "RQ": "REQUEUED",
        "RS": "RESIZING",
        "RV": "REVOKED",
        "S": "SUSPENDED",
        "SE": "SPECIAL_EXIT",
        "SI": "SIGNALING",
        "SO": "STAGE_OUT",
        "ST": "STOPPED",
        "TO": "TIMEOUT",
    }
)
"""squeue's compact codes (``%t``) and the words that they stand for."""


def state_word(text: str) -> str:
    """Return the state word of a State column: first word, upper case, without the ``+`` of a cut column.

    ``CANCELLED by 1000`` → ``CANCELLED``. Total: empty text gives an empty word.
    """
    words = text.split(maxsplit=1)
    return words[0].rstrip("+").upper() if words else ""


def cancelled_by(text: str) -> int | None:
    """Return the uid of ``CANCELLED by <uid>`` (0 is root), else None."""
    found = _CANCELLED_BY.match(text.strip())
    return int(found[1]) if found else None


@lru_cache(maxsize=256)
def classify(text: str) -> StateMeaning:
    """Classify a State column, a state word or a compact code; anything else is UNKNOWN, kept verbatim."""
    word = state_word(text)
    known = TABLE.get(COMPACT.get(word, word))
    return known or StateMeaning(text, Life.UNKNOWN, soft=False)
