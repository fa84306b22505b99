from __future__ import annotations

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.evolve.overlays.overlay import InvalidOverlay, Overlay, check, content_digest, digest
from outerloop_hpc.evolve.work import OverlayRules

_RULES = OverlayRules(allow=("src/**", "params.json"), deny=("src/bench", "src/oracle.py"))
_BASE = {"src/solver.py": content_digest(b"old"), "params.json": content_digest(b"{}")}


def _refused(files: dict[str, bytes], rules: OverlayRules = _RULES) -> tuple[str, ...]:
    with pytest.raises(InvalidOverlay) as caught:
        check(Overlay(files), rules, _BASE)
    return caught.value.reasons


def test_a_digest_is_over_lengths_paths_and_bytes() -> None:
    pieces = [b"a", b"1", b"b", b""]
    expected = hashlib.sha256(b"".join(len(piece).to_bytes(8, "big") + piece for piece in pieces)).hexdigest()
    assert digest(Overlay({"b": b"", "a": b"1"})) == expected


_FILES = st.dictionaries(st.text("ab/\u00e9", min_size=1, max_size=4), st.binary(max_size=4), max_size=4)


@given(_FILES, _FILES)
def test_two_overlays_have_one_digest_only_when_they_are_one(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert (Overlay(one).digest == Overlay(other).digest) == (one == other)


@given(_FILES)
def test_the_order_of_files_changes_no_digest(files: dict[str, bytes]) -> None:
    orders = itertools.islice(itertools.permutations(files.items()), 6)
    assert len({Overlay(dict(order)).digest for order in orders}) == 1


def test_an_overlay_cannot_be_changed() -> None:
    files = {"a": b"1"}
    overlay = Overlay(files)
    files["b"] = b"2"
    assert list(overlay.files) == ["a"]
    with pytest.raises(TypeError):
        overlay.files["c"] = b""  # type: ignore[index]


def test_a_changed_file_that_is_allowed_is_a_candidate() -> None:
    check(Overlay({"src/solver.py": b"new"}), _RULES, _BASE)


def test_one_file_that_stays_as_it_was_does_no_harm_beside_one_that_changes() -> None:
    check(Overlay({"src/solver.py": b"new", "params.json": b"{}"}), _RULES, _BASE)


def test_an_overlay_of_the_incumbents_own_files_is_refused() -> None:
    assert "nothing to measure" in _refused({"src/solver.py": b"old", "params.json": b"{}"})[0]


def test_an_empty_overlay_is_refused() -> None:
    assert _refused({}) == ("it holds no file",)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("README.md", "lies outside"),
        ("SRC/solver.py", "lies outside"),
        ("src/Bench/run.py", "closed to candidates"),
        ("src/ORACLE.py", "closed to candidates"),
        ("../src/x.py", "'..'"),
        ("/src/x.py", "absolute"),
        ("src/.git/config", "git folder"),
        ("src/.gitattributes", "how git treats"),
        ("src/" + "d/" * 260 + "x.py", "longer than 512 bytes"),
    ],
)
def test_a_path_that_candidates_may_not_bring_is_named_with_its_reason(path: str, said: str) -> None:
    reasons = _refused({path: b"x", "src/solver.py": b"new"}, _RULES.model_copy(update={"may_add": True}))
    assert len(reasons) == 1
    assert said in reasons[0]


def test_a_new_file_needs_may_add() -> None:
    assert "may_add is false" in _refused({"src/new.py": b"x"})[0]
    check(Overlay({"src/new.py": b"x"}), _RULES.model_copy(update={"may_add": True}), _BASE)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("src/Solver.py", "only in letter case"),
        ("src/solver.py/x", "is a file"),
        ("src/SOLVER.py/x", "only in letter case"),
    ],
)
def test_a_new_file_cannot_take_the_place_of_another_in_disguise(path: str, said: str) -> None:
    assert said in _refused({path: b"x"}, _RULES.model_copy(update={"may_add": True}))[0]


def test_a_new_file_cannot_stand_where_a_folder_is() -> None:
    base = {"src/deep/solver.py": content_digest(b"old")}
    with pytest.raises(InvalidOverlay, match="is a folder of other files"):
        check(Overlay({"src/deep": b"x"}), _RULES.model_copy(update={"may_add": True}), base)


def test_two_new_files_that_differ_in_spelling_are_refused() -> None:
    rules = _RULES.model_copy(update={"may_add": True})
    assert len(_refused({"src/new.py": b"x", "src/NEW.py": b"y"}, rules)) == 1


def test_counts_and_bytes_are_bounded_and_every_reason_is_said() -> None:
    rules = OverlayRules(allow=("src",), max_files=1, max_bytes=3)
    reasons = _refused({"src/solver.py": b"new", "params.json": b"x"}, rules)
    assert [
        word in reason for word, reason in zip(("max_files", "max_bytes", "params.json"), reasons, strict=True)
    ] == [True] * 3
