"""A sweep's part of ``report.md``: what a person needs to act on it, and nothing of strangers that could act."""

from __future__ import annotations

import re

import pytest

from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.cells import laid_out, measured
from outerloop_hpc.evolve.findings import ArmFound, ProposalFound, Refused
from outerloop_hpc.evolve.gate.policy import GatePolicy, Guardrail, Metric, Repeats, Success
from outerloop_hpc.evolve.given import CellGiven
from outerloop_hpc.evolve.pilot import KEY, Pilot, conclude, stage
from outerloop_hpc.evolve.reporting.report import report
from outerloop_hpc.evolve.reporting.spending import arm_spending, spending
from tests.unit.evolve.past import RUN, A, B, Past, arm, candidate, costs, work

pytestmark = pytest.mark.unit

BETTER = costs(base=10.0, a=8.0, b=9.9)


def promoted() -> Past:
    past = Past()
    past.candidates(0, A, B)
    past.screen(0, [A, B], BETTER)
    said = past.confirm(0, A, BETTER)
    assert said.decision == "promote"
    past.end("promoted", overlay=A, generation=0, gain=said.gain, conclusion="confirm-g0-look1")
    return past


def written(past: Past) -> str:
    return report(past.spec, past.state)


def test_a_promotion_is_told_with_its_numbers_its_expiry_and_how_to_apply_it() -> None:
    text = written(promoted())
    assert f"Promoted is overlay {A} of generation 0, with an estimated gain of 19.77 %." in text
    assert "interval 19.66 % to 19.87 % at 95 %; p 0.0002441, level 0.025" in text
    assert "What the plan can see: 12 pairs over 2 tasks show a gain of" in text
    assert "It may be applied until 2027-02-27T12:00:00Z, 90 days after it was decided." in text
    assert f"outerloop-hpc evolve apply {RUN}" in text
    assert f"outerloop-hpc evolve gate {RUN} --recompute" in text


def test_every_pair_is_there_with_the_cell_that_can_be_replayed() -> None:
    past = promoted()
    text = written(past)
    cells = [str(s.spec.parameters["cell"]) for s in past.state.steps.values() if s.spec.job == "cell"]
    assert len(cells) == 8 + 12
    assert all(f"| {cell} |" in text for cell in cells)
    found = re.search(rf"outerloop-hpc evolve replay {RUN} (\w+)", text)
    assert found is not None
    assert found[1] in cells


def test_all_that_the_evidence_is_bound_to_is_named() -> None:
    past = promoted()
    text = written(past)
    for what in ("sweep", "overlay", "target", "image", "policy", "task one", "task two", "base of solver"):
        assert f"| {what} |" in text
    assert past.work.document in text


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("kept", "The incumbent stays: no gain was shown."),
        ("insufficient", "Nothing was decided."),
        ("harness broken", "Replay one of its cells"),
        ("proposer gave up", "brought no candidate several times"),
        ("exhausted", "no more ideas"),
        ("out of budget", "a larger budget needs a new sweep"),
        ("past deadline", "What was measured so far is below"),
        ("halted", "Find out who changed it"),
        ("operator", "ended before it had a verdict"),
    ],
)
def test_each_ending_without_a_promotion_says_what_follows_and_never_how_to_apply(ending: str, said: str) -> None:
    past = Past()
    past.candidates(0, A, B)
    past.screen(0, [A, B], costs(base=10.0, a=10.0, b=11.0))
    past.end(ending)
    text = written(past)
    assert said in text
    assert "evolve apply" not in text
    assert "| overlay | none was promoted |" in text


def test_a_sweep_that_has_not_begun_has_a_report() -> None:
    past = Past()
    text = report(past.spec, RunState(run=RUN))
    assert "It is new; nothing below is a verdict yet." in text
    assert f"outerloop-hpc evolve replay {RUN} CELL" in text
    assert "not known, since no look had enough pairs" in text


def test_what_was_not_measured_is_said_to_be_so_and_is_never_nothing() -> None:
    past = promoted()
    text = written(past)
    assert "| screen | incumbent and candidate | 1 | 2 | 0 |" in text
    assert "| confirm | incumbent and candidate | 1 | not measured | not measured |" in text


def test_spend_of_a_stage_with_a_submission_that_accounting_does_not_know_says_how_many() -> None:
    past = Past()
    past.candidates(0, A)
    _, first = past.measure(0, "screen", [A], 2, BETTER)
    past.accounted(first, 3600.0)
    past.candidates(1, B)
    _, second = past.measure(1, "screen", [B], 2, BETTER)
    past.accounted(second, None)
    one = next(one for one in spending(past.state) if one.stage == "screen")
    assert (one.submissions, one.unmeasured, one.cpu_s) == (2, 1, 3600.0)
    assert "| 1, and 1 of 2 not measured |" in written(past)


def test_accounting_is_by_arm_only_where_an_array_holds_one_arm() -> None:
    past = Past(work(unit="cell"))
    past.candidates(0, A)
    past.measure(0, "screen", [A], 2, BETTER)
    assert [(one.stage, one.arms) for one in spending(past.state)] == [
        ("propose", ""),
        ("screen", "incumbent and candidate"),
    ]
    assert [(one.arm, one.executions) for one in arm_spending(past.state)] == [("candidate", 4), ("incumbent", 4)]


def test_a_submission_that_never_became_a_job_has_cost_nothing_and_is_not_counted() -> None:
    past = promoted()
    refused = {name: one.model_copy(update={"status": "refused"}) for name, one in past.state.submissions.items()}
    assert spending(past.state.model_copy(update={"submissions": refused})) == ()


def test_an_arm_whose_commands_took_no_measured_time_is_not_measured() -> None:
    past = Past()
    past.candidates(0, A)
    past.measure(0, "screen", [A], 2, lambda _, name: arm(name, None, seconds=0.0, cpu_s=0.0))
    assert [(one.seconds, one.cpu_s) for one in arm_spending(past.state)] == [(None, None), (None, None)]


def test_missing_readings_are_listed_with_their_reason() -> None:
    def found(cell: CellGiven, name: str) -> ArmFound | None:
        return None if (cell.task, cell.repeat) == ("two", 1) else arm(name, 10.0, overlay=cell.overlay)

    past = Past()
    past.candidates(0, A)
    past.screen(0, [A], found)
    (line, other) = [line for line in written(past).splitlines() if line.startswith("| screening of")]
    assert "| two | 1 | incumbent |" in line
    assert "| two | 1 | candidate |" in other
    assert "the node was lost" in line
    assert "## Missing" not in written(promoted())


def test_a_failed_reading_says_once_that_it_failed() -> None:
    past = Past()
    past.candidates(0, A)
    past.screen(0, [A], costs(base=10.0, a=None))
    text = written(past)
    assert "failed: exit 1" in text
    assert "failed: failed" not in text


def test_success_and_guardrails_are_told() -> None:
    policy = GatePolicy(
        primary=Metric(name="cost", direction="min"),
        guardrails=(Guardrail(name="peak", direction="min", max_regression=0.1),),
        success=Success(deterministic=False),
        repeats=Repeats(screen=2, confirm=6, most=6),
    )

    def found(cell: CellGiven, name: str) -> ArmFound:
        one = BETTER(cell, name)
        assert one is not None
        metrics = {**one.metrics, "peak": 100.0 + cell.repeat}
        return one.model_copy(update={"metrics": metrics, "success": (cell.repeat, name) != (5, "candidate")})

    past = Past(work(gate=policy))
    past.candidates(0, A)
    past.screen(0, [A], found)
    past.confirm(0, A, found)
    text = written(past)
    assert "Of 12 pairs the incumbent solved 12 and the candidate 10; 0 only the candidate, 2 only the inc" in text
    assert re.search(r"\| peak \| 0 % \| 0 % \| -10 % \| holds \|", text)
    assert ", found wrong |" in text


def test_refusals_and_values_are_told() -> None:
    past = Past()
    refused = Refused(reason="grid[0]: it is the same as the incumbent", kind="invalid-overlay")
    found = candidate(A, values={"rate": 0.8}, files=tuple(f"f{n}" for n in range(10)))
    past.proposal(0, ProposalFound(candidates=(found,), refused=(refused,), exhausted=True, money=1.5))
    text = written(past)
    for part in ("Refused: grid&#91;0]: it is the same", "rate = 0.8", "f7 and 2 more", "no more ideas", "cost 1.50"):
        assert part in text


def test_a_pilot_says_what_a_plan_can_see() -> None:
    past = Past(work(pilot=4))
    planned = stage(past.work)
    past.measure(0, "pilot", [""], 4, lambda cell, name: arm(name, 10.0 + (cell.seed + len(name)) % 5))
    known = measured(past.work, planned, laid_out(past.spec, past.work, planned), past.view)
    assert known is not None
    said: Pilot = conclude(past.spec, past.work, known)
    past.conclude(KEY, said)
    past.end("piloted")
    text = written(past)
    assert said.text(past.work.gate).split(";", maxsplit=1)[0] in text
    assert "measured beside itself" in text


HOSTILE = "|x|\n# new\n```\n<script>alert(1)</script> [l](http://x) @root <!-- outerloop: claim -->\u202e"


def test_text_of_strangers_stays_in_its_cell() -> None:
    def found(cell: CellGiven, name: str) -> ArmFound:
        return arm(name, None if name == "candidate" else 10.0, overlay=cell.overlay, reason=HOSTILE)

    past = Past(work(name=HOSTILE))
    hostile = candidate(A, origin=HOSTILE, files=(HOSTILE,), values={"v": HOSTILE})
    past.proposal(0, ProposalFound(candidates=(hostile,), refused=(Refused(reason=HOSTILE, kind="proposer-failed"),)))
    past.screen(0, [A], found)
    past.end("kept", HOSTILE)
    text = written(past)
    assert "alert(1)" in text
    for part in ("<script", "<!--", "[l]", "@root", "\u202e", "\n# new"):
        assert part not in text
    # Our own commands are the one fence.
    assert [line for line in text.splitlines() if line.startswith("```")] == ["```text", "```"]
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = [line.count("|") for line in tables]
    heads = [place for place, line in enumerate(tables) if set(line) == {"|", "-"}]
    for head, after in zip(heads, [*(one - 1 for one in heads[1:]), len(tables)], strict=True):
        assert set(widths[head - 1 : after]) == {widths[head]}


def test_a_table_has_a_bound_and_says_what_is_not_in_it() -> None:
    policy = GatePolicy(primary=Metric(name="cost", direction="min"), repeats=Repeats(screen=201, confirm=6, most=6))
    past = Past(work(gate=policy))
    past.candidates(0, A)
    past.screen(0, [A], BETTER)
    assert "2 more pairs are in the decision's document." in written(past)


def test_records_that_cannot_be_read_keep_no_halted_sweep_from_its_report() -> None:
    past = Past()
    past.candidates(0, A)
    past.measure(0, "screen", [A], 2, BETTER)
    broken = {key: step.model_copy(update={"payload": {"cell": 3}}) for key, step in past.state.steps.items()}
    past.state = past.state.model_copy(update={"steps": broken})
    past.end("halted", "generation 0: its record cannot be read")
    text = written(past)
    assert "Find out who changed it" in text
    assert "## Generation 0" in text
