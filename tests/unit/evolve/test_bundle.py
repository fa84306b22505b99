"""The evidence fits into its room, and the manifest says what had none."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from outerloop_hpc.evolve.given import ProposeGiven
from outerloop_hpc.evolve.proposers.bundle import Room, bundle

pytestmark = pytest.mark.unit

PRIOR = b"p" * 500


def given(rows: int = 3, **more: Any) -> ProposeGiven:
    made = tuple({"task": f"t{n}", "repeat": n, "reason": "r" * 100} for n in range(rows))
    return ProposeGiven.model_validate({"generation": 1, "rows": made, "gates": [{"decision": "none"}], **more})


def packed(whole: int, *, file: int = 10_000, rows: int = 3, size: int = 300, **more: Any) -> tuple[set[str], Any, Any]:
    files = bundle(given(rows, **more), PRIOR, [b"o" * size] * rows, Room(file, whole))
    assert sum(len(data) for name, data in files.items() if name != "manifest.json") <= whole
    assert all(len(data) <= file for name, data in files.items() if name != "manifest.json")
    return set(files), json.loads(files["selected-rows.json"]), json.loads(files["manifest.json"])


ALL = {"selected-rows.json", "gate-summary.json", "prior-proposal.md", "manifest.json"}


def test_what_fits_is_all_there_and_each_row_names_its_output() -> None:
    names, rows, manifest = packed(100_000)
    assert names == ALL | {"output-1.txt", "output-2.txt", "output-3.txt"}
    assert [row["output"] for row in rows] == ["output-1.txt", "output-2.txt", "output-3.txt"]
    assert manifest["dropped"] == []


def test_outputs_of_the_lowest_rows_go_first_then_rows_then_the_prior_proposal() -> None:
    names, rows, manifest = packed(1_500)
    assert names == ALL | {"output-1.txt"}
    assert [row.get("output") for row in rows] == ["output-1.txt", None, None]
    assert manifest["dropped"] == [f"output of row {n}: there was no room for it" for n in (3, 2)]

    names, rows, manifest = packed(800)
    assert names == ALL
    assert [row["task"] for row in rows] == ["t0"]
    assert manifest["rows"] == 1
    assert manifest["dropped"][3:] == [f"row {n + 1} (task t{n}, repeat {n}): there was no room for it" for n in (2, 1)]

    names, rows, manifest = packed(100)
    assert names == ALL - {"prior-proposal.md"}
    assert rows == []
    assert manifest["dropped"][-1] == "the prior proposal: there was no room for it"


def test_rows_that_are_too_large_for_one_file_are_fewer_and_their_outputs_go_with_them() -> None:
    names, rows, manifest = packed(100_000, file=520, size=10)
    assert len(rows) == manifest["rows"] == 2
    assert names == ALL | {f"output-{n + 1}.txt" for n in range(len(rows))}


def test_of_decisions_that_are_too_many_for_one_file_the_oldest_go() -> None:
    gates = [{"decision": f"d{n:02}"} for n in range(40)]
    files = bundle(given(0, gates=gates), b"", (), Room(600, 100_000))
    kept = json.loads(files["gate-summary.json"])
    assert kept == gates[-len(kept) :]
    assert 0 < len(kept) < 40


def test_a_prior_proposal_that_is_too_long_is_cut_and_that_is_said() -> None:
    files = bundle(given(0), PRIOR, (), Room(100, 100_000))
    assert files["prior-proposal.md"] == PRIOR[:100]
    assert json.loads(files["manifest.json"])["dropped"] == ["the last 400 bytes of the prior proposal: it is too long"]


def test_an_output_that_is_not_there_is_said_to_be_missing() -> None:
    files = bundle(given(2), b"", [None, b"x"])
    assert "output-1.txt" not in files
    said = json.loads(files["manifest.json"])["dropped"]
    assert said == ["output of row 1: its log is not there, or is no regular file"]


def test_the_manifest_has_the_digest_of_every_other_file() -> None:
    files = bundle(given(), PRIOR, [b"a", b"b", b"c"])
    listed = {one["name"]: one["sha256"] for one in json.loads(files["manifest.json"])["files"]}
    assert listed == {n: hashlib.sha256(data).hexdigest() for n, data in files.items() if n != "manifest.json"}


def test_a_key_in_a_reason_goes_no_further() -> None:
    rows = [{"task": "t", "reason": "exit 1: token=abcdefghijkl"}]
    files = bundle(given(rows=0).model_copy(update={"rows": tuple(rows)}), b"")
    assert b"abcdefghijkl" not in files["selected-rows.json"]


def test_no_file_of_the_evidence_holds_a_key_that_a_program_printed() -> None:
    """A proposer that failed is quoted in the decisions, too, and whoever proposes next reads them."""
    said = "it ended with exit status 1: 401 for Authorization: Bearer k3yk3yk3yk3yk3y"
    rows = [{"task": "t", "repeat": 0, "reason": said}]
    gates = [{"decision": "refused", "reasons": ["it was refused", said]}]
    files = bundle(ProposeGiven.model_validate({"generation": 1, "rows": rows, "gates": gates}), b"")
    assert not [name for name, data in files.items() if b"k3yk3y" in data]
    assert b"it was refused" in files["gate-summary.json"]
