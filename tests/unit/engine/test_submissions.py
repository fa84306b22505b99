"""Names, groups and pauses of submissions."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine.state import RunState, Step, Try
from outerloop_hpc.engine.submissions import due_at, excluded_nodes, group, intend, job_name, waiting
from tests.unit.engine.made import POLICY, RUN, T0, after, one_try, step

pytestmark = pytest.mark.unit

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def elements(*pairs: tuple[str, int]) -> list[ev.Element]:
    return [ev.Element(step=key, try_number=number) for key, number in pairs]


def with_tries(*tries: Try, **more: Any) -> Step:
    return Step(spec=step(**more), tries=tries)


def over(outcome: ev.TryOutcome, **more: Any) -> Try:
    return one_try(outcome=outcome, ended_at=T0, **more)


@given(st.text(max_size=100), st.text(max_size=100), st.text(max_size=50), st.integers(1, 99))
def test_every_name_is_one_that_slurm_takes_whole(run: str, target: str, job: str, number: int) -> None:
    name = job_name(run, target, job, elements(("s", number)))
    assert _NAME.fullmatch(name)
    assert name == job_name(run, target, job, elements(("s", number)))


@given(st.text(max_size=100))
def test_names_of_different_tries_differ_however_long_the_target_is(target: str) -> None:
    names = {job_name(RUN, target, "measure", elements(("s", n))) for n in range(20)}
    names |= {job_name(f"{RUN}{n}", target, "measure", elements(("s", 1))) for n in range(1, 20)}
    names.add(job_name(RUN, target, "measure", elements(("s", 0), ("t", 0))))
    assert len(names) == 40


def test_a_name_is_the_same_in_every_version() -> None:
    """A tick that was killed after sbatch is healed by this name, also by the version that is installed tomorrow."""
    name = job_name(RUN, "iris", "measure", elements(("measure-1", 1), ("measure-2", 1)))
    assert name == "ol.iris.measure.9ae3fed50de15270"


def test_a_long_target_keeps_the_digest_whole() -> None:
    name = job_name(RUN, "t" * 64, "measure", elements(("s", 1)))
    assert len(name) == 64
    assert re.fullmatch(r"ol\.t+\.[0-9a-f]{16}", name)


def test_arrays_hold_one_kind_of_step_with_the_same_resources() -> None:
    steps = [
        Step(spec=step("a")),
        Step(spec=step("b", minutes=20)),
        Step(spec=step("c")),
        Step(spec=step("d", job="review")),
    ]
    made = [[s.spec.key for s in members] for _, _, members in group(steps, 100)]
    assert made == [["a", "c"], ["b"], ["d"]]


@given(st.integers(0, 40), st.integers(1, 10))
def test_chunks_hold_every_step_once_and_none_is_too_large(count: int, largest: int) -> None:
    steps = [Step(spec=step(f"s{n}")) for n in range(count)]
    sizes = [len(members) for _, _, members in group(steps, largest)]
    keys = [s.spec.key for _, _, members in group(steps, largest) for s in members]
    assert keys == [s.spec.key for s in steps]
    assert all(0 < size <= largest for size in sizes)
    assert len(sizes) == -(-count // largest)


def test_steps_that_avoid_a_node_or_need_more_memory_are_submitted_apart() -> None:
    steps = [
        Step(spec=step("a", memory_mb=100)),
        with_tries(over("lost", word="NODE_FAIL", node="n1"), key="b", memory_mb=100),
        with_tries(over("out_of_memory"), key="c", memory_mb=100),
    ]
    made = [(ask.memory_mb, avoid, [s.spec.key for s in members]) for ask, avoid, members in group(steps, 9)]
    assert made == [(100, (), ["a"]), (100, ("n1",), ["b"]), (200, (), ["c"])]


def test_the_newest_bad_nodes_are_avoided_and_not_too_many() -> None:
    tries = [over("lost", word="NODE_FAIL", node=f"n{n}") for n in (1, 2, 2, 3, 4)]
    tries += [over("lost", word="FAILED", node="n9"), over("lost", word="BOOT_FAIL", node="")]
    assert excluded_nodes(with_tries(*tries)) == ("n4", "n3", "n2")


def test_a_partition_whose_only_node_failed_once_is_asked_for_again() -> None:
    failed = over("lost", word="NODE_FAIL", node="n1")
    refused = over("refused")
    assert excluded_nodes(with_tries(failed)) == ("n1",)
    assert excluded_nodes(with_tries(failed, refused)) == ()
    assert excluded_nodes(with_tries(failed.model_copy(update={"forgiven": True}))) == ()


def test_a_node_that_lacks_what_a_job_needs_does_not_eat_all_tries() -> None:
    unfit = over("lost", node="n1", node_unfit=True)
    assert excluded_nodes(with_tries(unfit, over("lost", word="NODE_FAIL", node="n2"))) == ("n2", "n1")
    assert excluded_nodes(with_tries(over("lost", node="n1"))) == ()
    assert excluded_nodes(with_tries(unfit, over("refused"))) == ()
    assert excluded_nodes(with_tries(unfit.model_copy(update={"forgiven": True}))) == ()


def test_intents_say_how_many_are_repeats() -> None:
    steps = [Step(spec=step("a")), with_tries(over("lost"), key="b")]
    (intent,) = intend(
        RunState(run=RUN), steps, target="iris", compute="slurm", user="ann", cluster="c", host="h", largest=9, most=1
    )
    assert intent.reason == "2 measure steps to carry out, 1 of them again"
    assert [(e.step, e.try_number) for e in intent.elements] == [("a", 1), ("b", 2)]
    assert (
        intend(
            RunState(run=RUN),
            steps,
            target="iris",
            compute="slurm",
            user="ann",
            cluster="c",
            host="h",
            largest=9,
            most=-1,
        )
        == []
    )


@pytest.mark.parametrize(
    ("tries", "pause"),
    [
        ((), None),
        ((one_try(),), None),
        ((over("done"),), None),
        ((over("cancelled"),), None),
        ((over("lost"),), 60),
        ((over("lost"), over("lost")), 120),
        ((over("abandoned"),), 60),
        ((over("refused"), over("refused"), over("refused")), 240),
        ((over("lost"), over("refused")), 60),
        ((over("refused"),) * 20, 3600),
        ((over("lost", forgiven=True),), None),
    ],
)
def test_the_pause_before_the_next_try(tries: tuple[Try, ...], pause: float | None) -> None:
    expected = None if pause is None else T0 + timedelta(seconds=pause)
    assert due_at(with_tries(*tries), POLICY) == expected


def test_what_waits_is_not_settled_not_open_and_past_its_pause() -> None:
    steps = {
        "new": with_tries(key="new"),
        "open": with_tries(one_try(), key="open"),
        "done": with_tries(over("done"), key="done"),
        "lost": with_tries(over("lost"), key="lost"),
        "exhausted": with_tries(*[over("lost")] * 3, key="exhausted"),
        "forgiven": with_tries(over("cancelled", forgiven=True), key="forgiven"),
    }
    state = RunState(run=RUN, steps=steps)
    assert [s.spec.key for s in waiting(state, after(59), POLICY)] == ["new", "forgiven"]
    assert [s.spec.key for s in waiting(state, after(60), POLICY)] == ["new", "lost", "forgiven"]


def test_a_clock_that_was_ahead_once_does_not_keep_a_step_from_its_next_try_for_as_long() -> None:
    ahead = one_try(outcome="lost", ended_at=after(40 * 86_400))
    state = RunState(run=RUN, steps={"lost": with_tries(ahead, key="lost")})
    assert [s.spec.key for s in waiting(state, after(60), POLICY)] == ["lost"]
