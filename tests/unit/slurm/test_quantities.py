"""Durations, sizes and TRES lists, as printed by 22.05 and 26.05."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.slurm.quantities import UNLIMITED, bytes_of, limit_seconds, requested_memory, seconds, tres

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00:00:08", 8),
        ("00:08.548", 8.548),
        ("00:00.061", 0.061),
        ("1-00:00:00", 86400),
        ("2-03:04:05", 2 * 86400 + 3 * 3600 + 4 * 60 + 5),
        ("1-12", 36 * 3600),
        ("1-12:30", 36 * 3600 + 1800),
        ("64", 64),
        ("0", 0),
        ("100:00:00", 360000),
        ("UNLIMITED", UNLIMITED),
        ("Partition_Limit", None),
        ("INVALID", None),
        ("Unknown", None),
        ("", None),
        ("-5", None),
        ("1:2:3:4", None),
        ("00:00:08\n00:00:09", None),
        ("٣", None),
    ],
)
def test_durations(text: str, expected: float | None) -> None:
    assert seconds(text) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("raw", "text", "expected"),
    [
        ("1440", "1-00:00:00", 86400),
        ("UNLIMITED", "UNLIMITED", UNLIMITED),
        ("", "00:10:00", 600),
        ("Partition_Limit", "Partition_Limit", None),
        ("", "", None),
    ],
)
def test_limits(raw: str, text: str, expected: float | None) -> None:
    assert limit_seconds(raw, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12300K", 12300 * 1024),
        ("3.50M", 3670016),
        ("2000M", 2000 * 2**20),
        ("1G", 2**30),
        ("2T", 2**41),
        ("1P", 2**50),
        ("12595200", 12595200),
        ("0", 0),
        ("", None),
        ("-2", None),
        ("18446744073709551614", None),
        ("18446744073709551615", None),
        ("64Gn", None),
        ("nan", None),
        ("1e9", None),
        ("?", None),
    ],
)
def test_sizes(text: str, expected: int | None) -> None:
    assert bytes_of(text) == expected


@pytest.mark.parametrize(
    ("text", "nodes", "cpus", "expected"),
    [
        ("64Gn", 2, 8, 128 * 2**30),
        ("4Gc", 2, 8, 32 * 2**30),
        ("2000M", 2, 8, 2000 * 2**20),
        ("4Gc", 2, None, None),
        ("64Gn", 0, 8, None),
        ("", 1, 1, None),
        ("n", 1, 1, None),
    ],
)
def test_requested_memory_before_and_after_21_08(
    text: str, nodes: int | None, cpus: int | None, expected: int | None
) -> None:
    assert requested_memory(text, nodes=nodes, cpus=cpus) == expected


def test_a_tres_list_of_an_allocation_and_of_usage() -> None:
    assert tres("billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2,mem=100M,node=1") == {
        "billing": 1,
        "cpu": 1,
        "gres/gpu:a100": 2,
        "gres/gpu": 2,
        "mem": 100 * 2**20,
        "node": 1,
    }
    assert tres("cpu=00:00:02,energy=0,fs/disk=79469,mem=12300K") == {
        "cpu": 2,
        "energy": 0,
        "fs/disk": 79469,
        "mem": 12300 * 1024,
    }


@pytest.mark.parametrize("text", ["", ",", "=", "=4", "cpu", "cpu=", "energy=-2", "energy=18446744073709551614"])
def test_what_cannot_be_read_in_a_tres_list_is_unknown_not_zero(text: str) -> None:
    assert tres(text) == {}


@given(st.text(max_size=60))
def test_the_readers_are_total(text: str) -> None:
    assert all(count >= 0 for count in tres(text).values())
    numbers = (seconds(text), bytes_of(text), requested_memory(text, nodes=2, cpus=4))
    assert all(number is None or number >= 0 for number in numbers)
    assert limit_seconds(text, text) is None or text


@given(st.integers(0, 10**9))
def test_every_printed_duration_is_read_back(whole: int) -> None:
    days, rest = divmod(whole, 86400)
    hours, minutes, secs = rest // 3600, rest // 60 % 60, rest % 60
    clock = f"{hours:02}:{minutes:02}:{secs:02}"
    assert seconds(f"{days}-{clock}" if days else clock) == whole
    assert seconds(str(whole)) == whole


@given(st.integers(0, 2**53), st.sampled_from("KMGTP"))
def test_every_whole_size_is_read_back_exactly(count: int, unit: str) -> None:
    assert bytes_of(f"{count}{unit}") == count * 1024 ** ("KMGTP".index(unit) + 1)
