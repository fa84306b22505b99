"""sacct's time words, in the user's zone."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.errors import UsageError
from outerloop_hpc.report.times import moment

pytestmark = pytest.mark.unit

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 11, 29, 13, 45, 30, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-29T13:45:30"),
        ("now-7days", "2026-11-22T13:45:30"),
        ("now-1week", "2026-11-22T13:45:30"),
        ("NOW-2hours", "2026-11-29T11:45:30"),
        ("now+90", "2026-11-29T13:47:00"),
        ("now-5minutes", "2026-11-29T13:40:30"),
        ("now-1day", "2026-11-28T13:45:30"),
        ("today", "2026-11-29T00:00:00"),
        ("midnight", "2026-11-29T00:00:00"),
        ("noon", "2026-11-29T12:00:00"),
        ("fika", "2026-11-29T15:00:00"),
        ("teatime", "2026-11-29T16:00:00"),
        ("14:30", "2026-11-29T14:30:00"),
        ("2:30pm", "2026-11-29T14:30:00"),
        ("12:00AM", "2026-11-29T00:00:00"),
        ("12:15 pm", "2026-11-29T12:15:00"),
        ("2026-01-02", "2026-01-02T00:00:00"),
        ("2026-1-2", "2026-01-02T00:00:00"),
        ("2026-01-02T03:04", "2026-01-02T03:04:00"),
        (" 2026-01-02T03:04:05 ", "2026-01-02T03:04:05"),
        ("2026-01-02 03:04", "2026-01-02T03:04:00"),
        ("0102", "2026-01-02T00:00:00"),
        ("010225", "2025-01-02T00:00:00"),
        ("01/02/25", "2025-01-02T00:00:00"),
        ("1/2", "2026-01-02T00:00:00"),
        ("01.02.25", "2025-01-02T00:00:00"),
        ("01/02/25-03:04", "2025-01-02T03:04:00"),
        ("uts1795956079", "2026-11-29T14:41:19"),
    ],
)
def test_times_mean_what_they_mean_in_sacct(text: str, expected: str) -> None:
    assert datetime.fromtimestamp(moment(text, NOW), ZONE).replace(tzinfo=None).isoformat() == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-02-30",
        "2026-13-01",
        "25:00",
        "13:00pm",
        "0:30am",
        "now-",
        "now-5parsecs",
        "now*2",
        "12",
        "1/2.25",
        "\u0663:00",
        "now+9999999999weeks",
        "2026-01-02T",
        "T12:00",
        "2026-01-02T25:00",
    ],
)
def test_what_is_no_time_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time; write it as sacct does"):
        moment(text, NOW)


@given(st.text(max_size=25))
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    try:
        found = moment(text, NOW)
    except UsageError:
        return
    assert isinstance(found, int)


@given(st.datetimes(min_value=datetime(2001, 1, 1), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001 - the zone is put on below
def test_iso_times_are_read_back(when: datetime) -> None:
    aware = when.replace(microsecond=0, tzinfo=ZONE)
    assert moment(aware.strftime("%Y-%m-%dT%H:%M:%S"), NOW) == int(aware.timestamp())


def test_without_a_zone_the_hosts_clock_counts_with_its_daylight_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        winter = datetime(2026, 11, 29, 12)  # noqa: DTZ001 - naive is what is tested
        assert moment("2026-07-01T12:00", winter) == int(datetime(2026, 7, 1, 10, tzinfo=UTC).timestamp())
        assert moment("now", winter) == int(datetime(2026, 11, 29, 11, tzinfo=UTC).timestamp())
    finally:
        monkeypatch.undo()
        time.tzset()
