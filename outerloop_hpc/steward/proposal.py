"""The change that a measured candidate becomes: its branch, the one re-based row of the ledger, and its words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from outerloop_hpc.engine.kind import Propose
from outerloop_hpc.engine.spec import RunSpec
from outerloop_hpc.measure import ledger
from outerloop_hpc.steward import posts
from outerloop_hpc.steward.findings import SessionFound
from outerloop_hpc.steward.work import StewardWork, branch_of

CHANGE = "change"


def of(spec: RunSpec, work: StewardWork, found: SessionFound, numbers: Mapping[str, float]) -> Propose:
    """Return the change. It follows from the run alone, so that a repetition proposes the same."""
    after = rows(spec, work, numbers)
    benchmark = work.ruler.benchmark
    return Propose(
        key=CHANGE,
        order=work.order.order_id,
        branch=branch_of(spec.run),
        onto=work.onto,
        candidate=found.candidate,
        tree=found.tree,
        files={
            "results/leader.json": ledger.encode(after).decode(),
            "BENCHMARKS.md": ledger.render(after, digits=work.digits),
        },
        message=f"Re-base {benchmark}\n\nMeasured by {spec.run} at tree {found.tree}.\n",
        title=f"A new ruler for {benchmark}",
        body=posts.change(spec, work, found, numbers, after[benchmark]),
        reason=f"the candidate passed and was measured with {len(numbers)} fresh seeds",
    )


def rows(spec: RunSpec, work: StewardWork, numbers: Mapping[str, float]) -> dict[str, ledger.Row]:
    """Return the repository's ledger as the change leaves it: the benchmark's row starts anew, every other one stays.

    Raises:
        Fault: the ledger cannot be read. It is then not written either: every other row would be lost.
    """
    before = ledger.decode(work.leader.encode(), f"results/leader.json at {spec.commit[:12]}") if work.leader else {}
    entry = ledger.Entry(
        benchmark=work.ruler.benchmark,
        metric=work.ruler.metric,
        direction=work.ruler.direction,
        value=float(median(numbers.values())),
        run=spec.run,
        at=spec.made_at.isoformat(),
        seed=int(next(iter(numbers))) if len(numbers) == 1 else None,
        event=ledger.Event.REBASED,
    )
    return dict(sorted({**before, **ledger.fold([entry])}.items()))
