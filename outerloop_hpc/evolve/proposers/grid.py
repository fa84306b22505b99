"""The ``grid`` proposer: every combination of the values that were given, in their order."""

from __future__ import annotations

import math
from functools import partial
from itertools import islice, product

from outerloop_hpc.evolve.proposers.proposed import Draft, Occasion, Proposed
from outerloop_hpc.evolve.proposers.template import filled
from outerloop_hpc.evolve.work import Grid


def propose(occasion: Occasion, proposer: Grid) -> Proposed:
    """Return the next combinations, the last key fastest; a generation begins where the one before it ended."""
    begin = occasion.given.generation * occasion.work.candidates
    end = begin + occasion.given.count
    points = (dict(zip(proposer.values, point, strict=True)) for point in product(*proposer.values.values()))
    drafts = tuple(
        Draft(f"grid[{number}]", partial(filled, proposer.template, point), point)
        for number, point in enumerate(islice(points, begin, end), begin)
    )
    return Proposed(drafts, exhausted=end >= math.prod(map(len, proposer.values.values())))
