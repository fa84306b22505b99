"""Forms, columns, terminals, and what hostile text may not do."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.cli.cells import Measured, duration, escaped, harmless, plain, readable, size, width
from outerloop_hpc.cli.output import Column, Form, Listing, Manner, choose, emit, helpformat
from outerloop_hpc.cli.terminal import Terminal
from outerloop_hpc.errors import UsageError

pytestmark = pytest.mark.unit

COLUMNS = (
    Column("run_id", "the run"),
    Column("elapsed_s", "wall seconds"),
    Column("memory_used_bytes", "peak"),
    Column("cpu_efficiency", "share"),
    Column("note", "free text", cut=True),
    Column("source", "file", shown=False),
)
ROWS: Sequence[Mapping[str, object]] = (
    {"run_id": "r-1", "elapsed_s": 3661, "memory_used_bytes": 218103808, "cpu_efficiency": 0.133, "note": "fine"},
    {"run_id": "r-22", "elapsed_s": None, "cpu_efficiency": 1.0, "note": "", "source": "a/b.json"},
)
HOSTILE = "a\x1b[31m|b\nc\r\u202edef\x9b5m\x07\\n\ud800é漢"


def written(
    manner: Manner,
    rows: Sequence[Mapping[str, object]] = ROWS,
    terminal: Terminal | None = None,
    columns: Sequence[Column] = COLUMNS,
) -> str:
    stream = io.StringIO()
    listing = Listing("report jobs", columns, rows, meta={"window": None}, footer=("window: all",))
    emit(listing, manner, stream, terminal or Terminal())
    return stream.getvalue()


def test_a_table_is_aligned_and_readable() -> None:
    assert written(Manner()).splitlines() == [
        "run_id  elapsed_s  memory_used_bytes  cpu_efficiency  note",
        "r-1      01:01:01               208M          13.3 %  fine",
        "r-22            -                  -         100.0 %",
        "",
        "window: all",
    ]


def test_json_is_one_object_with_every_column_and_plain_numbers() -> None:
    document = json.loads(written(Manner(Form.JSON)))
    assert (document["schema"], document["command"], document["window"]) == ("output/1", "report jobs", None)
    assert document["rows"][0]["memory_used_bytes"] == 218103808
    assert document["rows"][0]["source"] is None
    assert document["rows"][1]["elapsed_s"] is None
    assert list(document["rows"][0]) == [column.name for column in COLUMNS]
    assert list(json.loads(written(Manner(Form.JSON, "note")))["rows"][0]) == ["note"]


def test_parsable_has_no_trailing_pipe_and_unknown_is_empty() -> None:
    assert written(Manner(Form.PARSABLE, "run_id,elapsed_s,cpu_efficiency")).splitlines() == [
        "run_id|elapsed_s|cpu_efficiency",
        "r-1|3661|0.133",
        "r-22||1.0",
    ]
    assert written(Manner(Form.PARSABLE, "run_id,note", header=False)) == "r-1|fine\nr-22|\n"


def test_csv() -> None:
    assert written(Manner(Form.CSV, "run_id,elapsed_s")) == "run_id,elapsed_s\nr-1,3661\nr-22,\n"


@pytest.mark.parametrize("form", [Form.TABLE, Form.PARSABLE, Form.CSV])
def test_a_single_column_is_a_list_for_a_pipe(form: Form) -> None:
    assert written(Manner(form, "run_id")) == "r-1\nr-22\n"


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("tty", [True, False])
def test_no_rows_is_no_error(form: Form, header: bool, tty: bool) -> None:
    text = written(Manner(form, header=header), (), Terminal(tty=tty))
    assert text.count("r-") == 0
    assert (text == "") == (not header and form is not Form.JSON)


def test_an_unknown_column_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"there is no column 'elapsed'; did you mean elapsed_s\?"):
        written(Manner(chosen="run_id,elapsed"))
    with pytest.raises(UsageError, match="known: run_id, elapsed_s"):
        choose(COLUMNS, "zzzzzz")


def test_columns_are_chosen_in_order_once_and_plus_adds() -> None:
    assert [c.name for c in choose(COLUMNS, " NOTE, run_id,note,")] == ["note", "run_id"]
    assert [c.name for c in choose(COLUMNS, "+source")][-1] == "source"
    assert "source" not in [c.name for c in choose(COLUMNS, "")]


def test_helpformat_names_every_column_with_its_meaning() -> None:
    stream = io.StringIO()
    helpformat(COLUMNS, stream)
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == [column.name for column in COLUMNS]
    assert lines[1] == "elapsed_s          wall seconds"


def test_on_a_narrow_terminal_free_text_is_cut_and_ids_are_not() -> None:
    rows = [{"run_id": "r" * 40, "note": "x" * 200}]
    columns = (COLUMNS[0], COLUMNS[4])
    table = written(Manner(), rows, Terminal(tty=True, columns=60), columns).splitlines()
    assert table[1] == "r" * 40 + "  " + "x" * 17 + "…"
    tiny = written(Manner(), rows, Terminal(tty=True, columns=10), columns).splitlines()
    assert tiny[1].startswith("r" * 40)
    piped = written(Manner(), rows, Terminal(), columns).splitlines()
    assert piped[1].endswith("x" * 200)


def test_colour_only_where_it_is_welcome() -> None:
    assert written(Manner(), terminal=Terminal(tty=True, colour=True)).startswith("\x1b[1mrun_id")
    assert "\x1b" not in written(Manner(), terminal=Terminal(tty=True))
    for form in (Form.JSON, Form.CSV, Form.PARSABLE):
        assert "\x1b" not in written(Manner(form), terminal=Terminal(tty=True, colour=True))


def test_data_cannot_drive_the_terminal_or_break_a_line() -> None:
    rows = [{"run_id": HOSTILE, "note": HOSTILE}, {"run_id": "next", "note": "x"}]
    for manner in (Manner(), Manner(Form.PARSABLE)):
        lines = written(manner, rows).splitlines()
        assert lines[2].startswith("next")
        for character in "\x1b\r\u202e\x9b\x07\ud800":
            assert character not in "".join(lines)
    assert json.loads(written(Manner(Form.JSON), rows))["rows"][0]["run_id"] == HOSTILE


def test_parsable_data_has_no_pipe_and_can_be_read_back() -> None:
    line = written(Manner(Form.PARSABLE, "run_id,note"), [{"run_id": HOSTILE, "note": "x"}]).splitlines()[1]
    assert line.count("|") == 1
    cell = line.split("|")[0].replace("é", "\\xe9").replace("漢", "\\u6f22")
    assert cell.encode("ascii").decode("unicode_escape") == HOSTILE


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-x", "@a", "\tx"])
def test_a_spreadsheet_does_not_run_what_a_job_is_called(text: str) -> None:
    (cell,) = next(csv.reader(io.StringIO(written(Manner(Form.CSV, "run_id"), [{"run_id": text}]))))
    assert cell == f"'{text}"


def test_negative_numbers_stay_numbers_in_csv() -> None:
    assert written(Manner(Form.CSV, "elapsed_s"), [{"elapsed_s": -1.5}]) == "-1.5\n"


def test_a_terminal_that_cannot_show_a_letter_gets_its_escape() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    emit(Listing("x", COLUMNS, [{"run_id": "é漢"}]), Manner(chosen="run_id"), stream, Terminal())
    stream.flush()
    assert raw.getvalue() == b"\\xe9\\u6f22\n"


def test_numbers_that_json_does_not_know_are_unknown() -> None:
    rows = [
        {"elapsed_s": math.nan, "note": {"a": math.inf}, "run_id": datetime(2026, 1, 2, tzinfo=UTC), "source": (1,)}
    ]
    (row,) = json.loads(written(Manner(Form.JSON), rows))["rows"]
    assert (row["elapsed_s"], row["note"], row["run_id"], row["source"]) == (
        None,
        {"a": None},
        "2026-01-02T00:00:00Z",
        [1],
    )


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("x", None, "-"),
        ("x", math.nan, "-"),
        ("x", "", ""),
        ("x", 0, "0"),
        ("gpu_hours", 0.0, "0"),
        ("gpu_hours", 1234.5678, "1234.6"),
        ("gpu_hours", 0.01777, "0.0178"),
        ("median", Measured(10.002, 6), "10.002"),
        ("median", Measured(123456789.123, 4), "1.235e+08"),
        ("median", Measured(1e300, 6), "1e+300"),
        ("x", True, "yes"),
        ("x", ("a", "b"), "a,b"),
        ("memory_used_bytes", 0, "0B"),
        ("memory_used_bytes", 3670016, "3.5M"),
        ("memory_used_bytes", 2**61, "2048P"),
        ("elapsed_s", 90061, "1-01:01:01"),
        ("cpu_s", 8.548, "8.55 s"),
        ("cpu_efficiency", 0, "0.0 %"),
        ("submitted_at", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        ("class_s", "word", "word"),
    ],
)
def test_values_for_people(name: str, value: object, text: str) -> None:
    assert readable(name, value) == text


def test_a_measured_number_is_whole_for_machines() -> None:
    value = Measured(0.123456789012, 3)
    assert plain(value) == "0.123456789012"
    assert json.loads(json.dumps(value)) == 0.123456789012


def test_zero_is_not_unknown() -> None:
    assert (plain(0), plain(0.0), plain(None), plain("")) == ("0", "0.0", "", "")


@given(st.text(max_size=40))
def test_harmless_text_is_one_line_without_active_characters(text: str) -> None:
    safe = harmless(text)
    assert len(safe.splitlines()) <= 1
    assert harmless(safe) == safe
    assert "|" not in escaped(text)
    assert width(safe) >= 0


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_sizes_and_durations_are_total(value: float) -> None:
    assert size(value)
    assert duration(value)


@given(st.lists(st.fixed_dictionaries({"run_id": st.text(max_size=20), "note": st.text(max_size=60)}), max_size=4))
def test_every_table_has_one_line_for_each_row(rows: list[dict[str, str]]) -> None:
    for terminal in (Terminal(), Terminal(tty=True, columns=20)):
        columns = (COLUMNS[0], COLUMNS[4])
        assert len(written(Manner(), rows, terminal, columns).splitlines()) == len(rows) + 3
        assert len(written(Manner(Form.PARSABLE), rows, terminal, columns).splitlines()) == len(rows) + 1
