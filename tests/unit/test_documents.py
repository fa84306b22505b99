"""Documents say their schema; what cannot be understood is a fault that names its file."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from outerloop_hpc import fsio
from outerloop_hpc.documents import Document, decode, load
from outerloop_hpc.errors import Exit, Fault

pytestmark = pytest.mark.unit

PATH = Path("/state/runs/x/spec.json")


class Note(Document):
    name: ClassVar[str] = "note"
    version: ClassVar[int] = 2

    text: str
    extra: dict[str, Any] = Field(default_factory=dict)


def read(**fields: object) -> Note:
    found: Note = decode(Note, json.dumps(fields).encode(), PATH)
    return found


def test_a_document_says_its_schema_on_one_line() -> None:
    data = Note(text="hello").encoded()
    assert json.loads(data) == {"schema": "note/2", "text": "hello", "extra": {}}
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1


def test_an_older_version_is_read() -> None:
    assert read(schema="note/1", text="old").document_schema == "note/1"


def test_a_newer_version_is_refused_with_advice() -> None:
    with pytest.raises(Fault, match=r"note/3 is newer than this version of outerloop-hpc knows .*upgrade") as fault:
        read(schema="note/3", text="from tomorrow")
    assert str(PATH) in str(fault.value)
    assert fault.value.exit_status is Exit.FINDINGS


def test_a_newer_version_of_another_shape_is_called_newer_and_not_broken() -> None:
    with pytest.raises(Fault, match="newer than this version"):
        read(schema="note/3", texts=["no field that version 2 knows"])


@pytest.mark.parametrize("schema", ["record/2", "note", "note/", "note/x", "note/-1", "note/²", "/2"])
def test_another_schema_is_refused(schema: str) -> None:
    with pytest.raises(Fault, match="expected note/2"):
        read(schema=schema, text="?")


def test_keys_of_a_later_minor_version_are_kept() -> None:
    data = read(schema="note/2", text="hello", colour="blue", nested={"a": [1, None]}).encoded()
    assert json.loads(data) == {
        "schema": "note/2",
        "text": "hello",
        "extra": {},
        "colour": "blue",
        "nested": {"a": [1, None]},
    }


def test_documents_are_frozen() -> None:
    note = Note(text="hello")
    with pytest.raises(ValidationError, match="frozen"):
        note.text = "changed"  # type: ignore[misc]  # the attempt is the test


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"null", b"[]", b"7", b'{"text": 1}', b"\xff\xfe", b"[" * 100_000, b'{"schema": 7, "text": "x"}'],
    ids=["empty", "torn", "null", "list", "number", "wrong type", "not UTF-8", "very deep", "schema no text"],
)
def test_what_cannot_be_understood_is_a_fault_that_names_the_file(data: bytes) -> None:
    with pytest.raises(Fault, match=f"^{PATH}: not a readable note document: "):
        decode(Note, data, PATH)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_document_or_a_fault(data: bytes) -> None:
    try:
        found = decode(Note, data, PATH)
    except Fault as fault:
        assert str(PATH) in str(fault)  # noqa: PT017 - most examples are faults, a few may be documents
    else:
        assert isinstance(found, Note)


@given(
    st.text(),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
)
def test_what_was_written_is_what_is_read(text: str, value: object) -> None:
    note = Note(text=text, extra={"value": value})
    assert decode(Note, note.encoded(), PATH) == note


def test_a_file_is_loaded(tmp_path: Path) -> None:
    fsio.publish(tmp_path / "note.json", Note(text="hello").encoded())
    assert load(Note, tmp_path / "note.json") == Note(text="hello")


def test_a_missing_file_is_missing_and_not_a_fault(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(Note, tmp_path / "note.json")


def test_a_file_that_cannot_be_read_is_a_fault_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(fsio, "read", refuse)
    with pytest.raises(Fault, match=r"note\.json: cannot be read: Permission denied"):
        load(Note, tmp_path / "note.json")
