"""The sign-flip test. Pure; what chance it needs comes from a salt.

Were both arms alike, each difference would be as likely with the other sign, so p is the share of all sign patterns
that look at least as good as what was seen.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from outerloop_hpc.evolve.gate.libraries import numpy

#: Up to so many differences every sign pattern is looked at: 65,536 of them.
EXACT_UP_TO = 16
DRAWS = 20_000
#: Patterns that tie in exact arithmetic must count as ties; it is far above rounding and far below any real difference.
_TIE = 1e-12
_BLOCK = 4096
#: That are unpacked at once, however many pairs there are.
_NUMBERS = 1 << 21


def p_value(weights: Sequence[float], salt: str) -> float:
    """Return the one-sided p of the sum of ``weights`` being this large, in (0, 1].

    Args:
        weights: what each difference adds to the statistic; finite, in a fixed order.
        salt: beyond 16 weights, the text that the drawn patterns follow from. p is then (hits + 1) / (draws + 1).
    """
    largest = max((abs(weight) for weight in weights), default=0.0)
    if not largest:
        return 1.0
    scaled = [weight / largest for weight in weights]
    total = math.fsum(scaled)
    bound = total - _TIE * len(scaled)
    if len(scaled) <= EXACT_UP_TO:
        sums = _every_sum(scaled)
        return float((sums >= bound).sum()) / len(sums)
    hits = sum(int((total - 2 * part >= bound).sum()) for part in _drawn_sums(scaled, salt))
    return (hits + 1) / (DRAWS + 1)


def smallest_p(count: int) -> float:
    """Return the smallest p that so many differences can give."""
    return max(math.ldexp(1.0, -count), 1 / (DRAWS + 1) if count > EXACT_UP_TO else 0.0)


def _every_sum(weights: Sequence[float]) -> Any:
    np = numpy()
    sums = np.zeros(1)
    for weight in weights:
        sums = np.concatenate((sums + weight, sums - weight))
    return sums


def _drawn_sums(weights: Sequence[float], salt: str) -> Any:
    """Yield, block by block, the sum of the weights that each drawn pattern flips."""
    np = numpy()
    patterns = _patterns(salt, len(weights))
    column = np.array(weights)
    rows = max(1, min(_BLOCK, _NUMBERS // len(weights)))
    for begin in range(0, DRAWS, rows):
        yield np.unpackbits(patterns[begin : begin + rows], axis=1, count=len(weights)).astype(float) @ column


@lru_cache(maxsize=8)
def _patterns(salt: str, count: int) -> Any:
    """Return drawn patterns, eight bits a byte, of shape (draws, count / 8): unpacked, those of many pairs fill a node.

    They are the bits of an extendable hash and not of numpy's generator: its streams may change between versions, and
    a decision must be found again by a later one.
    """
    np = numpy()
    width = -(-count // 8)
    drawn = hashlib.shake_256(f"{salt}|{count}".encode()).digest(DRAWS * width)
    return np.frombuffer(drawn, dtype=np.uint8).reshape(DRAWS, width)
