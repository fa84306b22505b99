from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.errors import OuterloopError
from outerloop_hpc.target.tree import (
    FILE,
    PROGRAM,
    SYMLINK,
    Change,
    Entry,
    algorithm_of,
    is_object_id,
    object_hash,
    parse_changes,
    parse_entries,
    tree_id,
)

pytestmark = pytest.mark.unit

ID = "ce013625030ba8dba906f756967f9e9ca394464a"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_entries_keep_every_byte_of_a_name() -> None:
    output = f"100644 blob {ID}\ta b\n\t'\"\0".encode() + b"120000 blob " + ID.encode() + b"\t\xff\xfe\0"
    first, second = parse_entries(output)
    assert (first.path, first.mode, first.object_id) == ("a b\n\t'\"", FILE, ID)
    assert (second.path, second.mode) == ("\udcff\udcfe", SYMLINK)


def test_changes_pair_modes_with_paths() -> None:
    zero = "0" * 40
    output = f":000000 100755 {zero} {ID} A\0n\new\0:120000 000000 {ID} {zero} D\0gone\0".encode()
    assert parse_changes(output) == (Change("n\new", 0, PROGRAM, "A"), Change("gone", SYMLINK, 0, "D"))
    assert [change.deleted for change in parse_changes(output)] == [False, True]


@pytest.mark.parametrize("parse", [parse_entries, parse_changes])
def test_no_output_is_nothing(parse: object) -> None:
    assert callable(parse)
    assert parse(b"") == ()


@pytest.mark.parametrize(
    "output",
    [
        b"100644 blob",
        f"100644 blob {ID}\ta".encode(),
        f"100644 blob {ID}\t\0".encode(),
        b"\0",
        b"x\0",
        b"100644 blob short\ta\0",
    ],
)
def test_half_an_answer_is_refused_not_guessed(output: bytes) -> None:
    with pytest.raises(OuterloopError, match="git"):
        parse_entries(output)
    with pytest.raises(OuterloopError, match="git"):
        parse_changes(output)


@given(st.binary(max_size=200))
def test_parsing_any_bytes_ends_in_values_or_a_refusal(data: bytes) -> None:
    for parse in (parse_entries, parse_changes):
        message = "parsed"
        try:
            parse(data)
        except OuterloopError as error:
            message = str(error)
        assert message


def test_tree_ids_are_those_of_git() -> None:
    assert tree_id([], "sha1") == EMPTY_TREE
    # git sorts "a.txt" before the folder "a", because a folder counts as "a/".
    entries = [Entry("a/b/c", FILE, ID), Entry("a.txt", PROGRAM, ID), Entry("link", SYMLINK, ID)]
    assert tree_id(entries, "sha1") == tree_id(reversed(entries), "sha1")
    inner = hashlib.sha1(b"tree 29\x00100644 c\0" + bytes.fromhex(ID), usedforsecurity=False).digest()
    middle = hashlib.sha1(b"tree 28\x0040000 b\0" + inner, usedforsecurity=False).digest()
    body = b"100755 a.txt\0" + bytes.fromhex(ID) + b"40000 a\0" + middle + b"120000 link\0" + bytes.fromhex(ID)
    expected = hashlib.sha1(b"tree %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
    assert tree_id(entries, "sha1") == expected


def test_a_very_deep_tree_needs_no_deep_stack() -> None:
    assert is_object_id(tree_id([Entry("/".join(["d"] * 2_000), FILE, ID)], "sha1"))


def test_object_hashes_are_those_of_git() -> None:
    assert object_hash("blob", 6, "sha1", b"hello\n").hexdigest() == ID
    assert algorithm_of(object_hash("blob", 0, "sha256").hexdigest()) == "sha256"
    assert algorithm_of(ID) == "sha1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(ID, True), ("a" * 64, True), (ID[:12], False), (ID.upper(), False), ("", False), (f"{ID}\n", False)],
)
def test_only_full_ids_are_object_ids(text: str, expected: bool) -> None:
    assert is_object_id(text) is expected
