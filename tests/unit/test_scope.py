from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.target.scope import (
    ALWAYS_FORBIDDEN,
    LEDGER,
    Scope,
    declared,
    fold,
    inside,
    overlap,
    path_problem,
    violations,
)
from outerloop_hpc.target.tree import FILE, GITLINK, PROGRAM, SYMLINK, Change

pytestmark = pytest.mark.unit

SCOPE = Scope(
    allowed=("src", "models/net.py", "docs"),
    forbidden=("src/vendor",),
    shared=("src/common",),
    steward_allowed=("bench", "tests"),
    roadmap="docs/roadmap.md",
)


def added(path: str, mode: int = FILE) -> Change:
    return Change(path, 0, mode, "A")


def deleted(path: str, mode: int = FILE) -> Change:
    return Change(path, mode, 0, "D")


def reason(change: Change, scope: Scope = SCOPE) -> str | None:
    found = violations([change], scope.solver())
    return found[0].reason if found else None


@pytest.mark.parametrize(
    "change",
    [
        added("src/solver.py"),
        added("src/a b/ü.py"),
        added("src/run", PROGRAM),
        Change("models/net.py", FILE, FILE, "M"),
        Change("src/was-a-link", SYMLINK, FILE, "T"),
        deleted("src/old.py"),
        deleted("src/old-link", SYMLINK),
        added("docs/guide.md"),
        added("src/.gitignore"),
        added("src/x.git"),
    ],
)
def test_changes_inside_the_scope_are_accepted(change: Change) -> None:
    assert violations([change], SCOPE.solver()) == ()


REFUSED = [
    ("setup.py", "outside"),
    ("srcx/a.py", "outside"),
    ("models/net.py.bak", "outside"),
    ("src/vendor/lib.py", "'src/vendor'"),
    ("src/VENDOR/lib.py", "'src/vendor'"),
    ("SRC/a.py", "letter case"),
    ("docs/roadmap.md", "roadmap"),
    ("docs/RoadMap.MD", "roadmap"),
    ("bench/run.py", "'bench'"),
    (".github/workflows/ci.yml", "'.github'"),
    (".GitHub/workflows/ci.yml", "'.github'"),
    (".outerloop.yaml", "'.outerloop.yaml'"),
    (".autoresearch.yaml", "'.autoresearch.yaml'"),
    ("results/leader.json", "'results/leader.json'"),
    ("benchmarks.md", "'BENCHMARKS.md'"),
    ("", "empty"),
    ("/etc/passwd", "absolute"),
    ("src/../setup.py", "'..'"),
    ("src//a.py", "''"),
    ("src/./a.py", "'.'"),
    ("src/", "''"),
    ("src\\a.py", "backslash"),
    ("src/c:a.py", "colon"),
    ("src/a\nb.py", "control"),
    ("src/a\x7fb.py", "control"),
    ("src/a\u202egpj.py", "invisible"),
    ("src/a\u200db.py", "invisible"),
    ("src/a\udcff.py", "undecodable"),
    ("src/name.", "ends with a dot"),
    ("src/name ", "or a space"),
    ("src/dir./x", "ends with a dot"),
    ("src/.git/config", "git folder"),
    ("src/.GIT/hooks/post-checkout", "git folder"),
    ("src/.g\u200cit/config", "invisible"),
    ("src/git~1/config", "git folder"),
    ("src/.gitattributes", "how git treats"),
    ("src/.GitModules", "how git treats"),
    ("src/.husky/pre-commit", "how git treats"),
    ("src/.githooks/pre-commit", "how git treats"),
    ("src/.pre-commit-config.yaml", "how git treats"),
    ("src/" + "a" * 256, "longer than 255"),
    ("src/" + "ab/" * 1400 + "c", "longer than 4096"),
]


@pytest.mark.parametrize(("path", "text"), REFUSED)
def test_paths_that_leave_or_trick_are_refused_added_or_deleted(path: str, text: str) -> None:
    assert text in (reason(added(path)) or "")
    assert text in (reason(deleted(path)) or "")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (added("src/link", SYMLINK), "symbolic link"),
        (Change("src/a.py", FILE, SYMLINK, "T"), "symbolic link"),
        (added("src/sub", GITLINK), "submodule"),
        (deleted("src/sub", GITLINK), "submodule"),
        (added("src/odd", 0o100664), "mode 100664"),
        (added("src/folder", 0o040000), "mode 040000"),
    ],
)
def test_only_files_and_programs_may_be_written(change: Change, text: str) -> None:
    assert text in (reason(change) or "")


def test_two_spellings_of_one_name_are_refused_but_a_renaming_is_not() -> None:
    pair = [added("src/Solver.py"), added("src/solver.py")]
    (violation,) = violations(pair, SCOPE.solver())
    assert (violation.path, "only in letter case" in violation.reason) == ("src/solver.py", True)
    assert violations([deleted("src/Solver.py"), added("src/solver.py")], SCOPE.solver()) == ()
    composed = ["src/\u00fc.py", "src/u\u0308.py"]
    assert len(violations(map(added, composed), SCOPE.solver())) == 1


def test_one_violation_for_each_path_in_order() -> None:
    found = violations([added("a"), added("src/b"), added(".git/x"), added("bench/c")], SCOPE.solver())
    assert [violation.path for violation in found] == ["a", ".git/x", "bench/c"]


def test_the_steward_may_touch_the_evaluation_and_never_the_solver_or_the_ledger() -> None:
    paths = ["bench/run.py", "tests/t.py", "src/a.py", "results/leader.json", ".github/x", "docs/roadmap.md", "x"]
    refused = {violation.path for violation in violations(map(added, paths), SCOPE.steward())}
    assert refused == set(paths[2:])


def test_without_a_steward_its_territory_is_empty() -> None:
    (violation,) = violations([added("bench/a")], Scope(allowed=("src",)).steward())
    assert "nothing" in violation.reason


def test_a_deep_allowed_path_does_not_open_its_parents() -> None:
    scope = Scope(allowed=("a/b",))
    assert reason(added("a/x"), scope) is not None
    assert reason(added("a/b/x"), scope) is None
    assert reason(added("a/b"), scope) is None


def test_a_problem_names_the_entry() -> None:
    scope = Scope(allowed=("src", "results"), shared=("lib",), steward_allowed=("t", "Src/x", "results"))
    assert [key for key, _ in scope.problems()] == [
        "steward.allowed[2]",
        "scope.shared[0]",
        "steward.allowed[1]",
        "steward.allowed[2]",
    ]
    assert list(SCOPE.problems()) == [
        ("scope.allowed[2]", "'docs' overlaps 'docs/roadmap.md', which nobody may be given")
    ]


NAMES = st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=12)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PLACED = st.builds("{}/{}".format, st.sampled_from(["src", "bench", "models/net.py", "SRC"]), PATHS)
CLOSED = (*ALWAYS_FORBIDDEN, *LEDGER, "docs/roadmap.md")


def respelled(text: str, choices: list[int]) -> str:
    forms = (str.upper, str.lower, lambda c: unicodedata.normalize("NFD", c), str)
    return "".join(forms[choices[index % len(choices)] % 4](char) for index, char in enumerate(text))


@given(st.text(max_size=40) | PLACED, st.sampled_from([FILE, PROGRAM, SYMLINK, GITLINK, 0]))
def test_judging_is_total_and_what_passes_lies_inside(path: str, mode: int) -> None:
    for territory in (SCOPE.solver(), SCOPE.steward()):
        if not violations([Change(path, FILE, mode, "M")], territory):
            assert any(path == place or path.startswith(f"{place}/") for place in territory.allowed)
            assert not {"", ".", "..", ".git"} & set(path.split("/"))
            assert mode in {FILE, PROGRAM, 0}
            assert path.isprintable()


@given(st.sampled_from(CLOSED), st.lists(st.integers(0, 3), min_size=1, max_size=8), PATHS)
def test_no_spelling_opens_a_closed_path(closed: str, choices: list[int], below: str) -> None:
    generous = Scope(allowed=tuple({*CLOSED, ".", "docs", "results"}), roadmap="docs/roadmap.md")
    spelled = respelled(closed, choices)
    changes = [added(spelled), added(f"{spelled}/{below}"), deleted(spelled)]
    assert len(violations(changes, generous.solver())) == 3


@given(PATHS, PATHS)
def test_overlap_is_symmetric_and_component_wise(one: str, other: str) -> None:
    assert overlap(one, other) == overlap(other, one)
    assert inside(f"{one}/{other}", one)
    assert not inside(f"{one}x", one)


@given(PATHS)
def test_folding_is_stable(path: str) -> None:
    assert fold(fold(path)) == fold(path)
    assert fold(unicodedata.normalize("NFD", path)) == fold(unicodedata.normalize("NFC", path))


@given(st.text(max_size=30))
def test_declaring_a_path_is_total_and_yields_a_clean_one(text: str) -> None:
    path, message = "a", "declared"
    try:
        path = declared(text)
    except ValueError as error:
        message = str(error)
    assert message
    assert path_problem(path) is None
    assert declared(f"./{path}/") == path
