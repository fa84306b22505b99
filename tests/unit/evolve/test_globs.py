from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.evolve.overlays.globs import allows, denies, glob_problem


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/solver.py", "src/solver.py"),
        ("src", "src/deep/solver.py"),
        ("src/", "src/solver.py"),
        ("src/*.py", "src/solver.py"),
        ("src/**", "src/deep/solver.py"),
        ("src/**/*.py", "src/solver.py"),
        ("src/**/*.py", "src/a/b/solver.py"),
        ("**", "solver.py"),
        ("**/solver.py", "solver.py"),
        ("a/?.py", "a/b.py"),
    ],
)
def test_a_glob_allows_what_it_names(pattern: str, path: str) -> None:
    assert allows(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/*.py", "src/deep/solver.py"),
        ("src/*", "src/deep/solver.py"),
        ("src", "srcs/solver.py"),
        ("src/solver.py", "src/Solver.py"),
        ("src/**", "lib/solver.py"),
        ("a/?.py", "a/bc.py"),
        ("*.py", "solver.pyc"),
        ("src/**/x/*.py", "src/x.py"),
    ],
)
def test_a_glob_allows_nothing_else(pattern: str, path: str) -> None:
    assert not allows(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (".github", ".GitHub/workflows/ci.yml"),
        ("bench", "bench/deep/run.py"),
        ("bench/*", "bench/deep/run.py"),
        ("*.lock", "poetry.LOCK"),
        ("**/oracle.py", "a/b/Oracle.py"),
        ("caf\u00e9.py", unicodedata.normalize("NFD", "caf\u00e9.py")),
        ("stra\u00dfe.py", "STRASSE.py"),
        ("?.py", "\u00df.py"),
    ],
)
def test_what_is_denied_is_denied_in_every_spelling_and_with_all_in_it(pattern: str, path: str) -> None:
    assert denies(pattern, path)


def test_a_denied_name_does_not_deny_its_neighbours() -> None:
    assert not denies("bench", "benchmarks/run.py")
    assert not denies("bench/*.py", "bench/data.json")


@pytest.mark.parametrize("pattern", ["", "/etc/passwd", "../x", "a/../b", "a//b", "src/[ab].py", "a**b", "!x", "a\nb"])
def test_a_glob_that_names_no_path_is_refused(pattern: str) -> None:
    assert glob_problem(pattern)


@pytest.mark.parametrize("pattern", ["src/*.py", "src/", "**", "src/**/x?.py", "a.b/c"])
def test_a_plain_glob_is_taken(pattern: str) -> None:
    assert glob_problem(pattern) is None


_PART = st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "?", "a?", "**"])


@given(
    st.lists(_PART, min_size=1, max_size=4), st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1, max_size=5)
)
def test_globs_with_wildcards_mean_what_the_same_regular_expression_means(glob: list[str], path: list[str]) -> None:
    pattern, joined = "/".join(glob), "/".join(path)
    if "*" not in pattern and "?" not in pattern:
        return
    written = "".join(
        "(?:[^/]+/)*" if part == "**" else re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]") + "/"
        for part in glob
    )
    assert allows(pattern, joined) == bool(re.fullmatch(written, joined + "/"))


def test_a_glob_made_to_be_slow_is_not() -> None:
    assert not allows("/".join(["**", "a*a*a*a*a*a*a*a*a*a*b"] * 8), "/".join(["a" * 200] * 20))
