from __future__ import annotations

import pytest

from outerloop_hpc.evolve.overlays.globs import denies
from outerloop_hpc.evolve.sweepfile.closed import closed_paths, contradictions, files_run, program_places
from outerloop_hpc.target.scope import Scope

_SCOPE = Scope(allowed=("src",), forbidden=("src/locked",), steward_allowed=("bench",), roadmap="ROADMAP.md")


@pytest.mark.parametrize(
    "path",
    [
        ".outerloop.yaml",
        ".autoresearch.yaml",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "jenkinsfile",
        "results/leader.json",
        "BENCHMARKS.md",
        "ROADMAP.md",
        "bench/run.py",
        "src/locked/x.py",
        "hidden/answer.json",
        "run.py",
    ],
)
def test_who_judges_is_closed_whatever_the_sweep_says(path: str) -> None:
    closed = closed_paths(_SCOPE, ["hidden/answer.json"], {"run.py": "t"}, ["**"])
    assert any(denies(pattern, path) for pattern in closed)


def test_a_file_that_a_command_runs_is_open_only_by_name() -> None:
    run = {"src/run.py": "t"}
    assert "src/run.py" in closed_paths(_SCOPE, [], run, ["src/**", "src"])
    assert "src/run.py" not in closed_paths(_SCOPE, [], run, ["src/run.py"])


def test_a_hidden_file_is_closed_also_by_name() -> None:
    assert "x" in closed_paths(_SCOPE, ["x"], {"x": "t"}, ["x"])


@pytest.mark.parametrize(
    "argv",
    [
        ("python3", "tools/run.py"),
        ("python3", "./tools/run.py", "-v"),
        ("bash", "-c", "x", "--script=tools/run.py"),
        ("python3", "-m", "tools.run"),
        ("bash", "-c", "python3 tools/run.py --fast | tail -n 1"),
        ("bash", "-c", "OUT=$(./tools/run.py); echo $OUT"),
        ("sh", "-c", "cd tools && exec python3 'run.py'"),
        ("sh", "-c", "python3 -m tools.run>log"),
        ("sh", "-c", "cd tools; python3 -m run"),
    ],
)
def test_the_file_that_a_command_runs_is_found(argv: tuple[str, ...]) -> None:
    assert files_run({"t": [argv]}, ["tools/run.py", "src/x.py"]) == {"tools/run.py": "t"}


def test_words_that_are_no_files_are_nothing() -> None:
    assert files_run({"t": [("python3", "../x", "*", "", "tools")]}, ["tools/run.py"]) == {}


def test_a_folder_that_is_allowed_by_name_may_hold_closed_files() -> None:
    assert list(contradictions(["src"], ["src/locked"])) == []
    assert len(list(contradictions(["src/locked/x.py"], ["src/locked"]))) == 1


@pytest.mark.parametrize(
    "argv",
    [
        ("bash", "-c", "diff out.txt {oracle}/hidden/expected.txt"),
        ("sh", "-c", "cd out && cmp result.txt {oracle}/result.txt"),
        ("bash", "-ec", "python3 tools/check.py out.txt > out/said.txt 2>&1; grep -q ok out/said.txt"),
        ("bash", "-c", "python3 -c \"import json; json.load(open('out/x.json'))\""),
        ("python3", "-c", "import json; json.load(open('out.txt'))"),
        ("python3", "{oracle}/hidden/check.py", "out.txt"),
    ],
)
def test_what_an_oracles_line_reads_is_not_taken_for_its_program(argv: tuple[str, ...]) -> None:
    data = {"out", "out.txt", "result.txt", "out/result.txt", "out/said.txt", "out/x.json", "oracle"}
    assert not data.intersection(program_places(argv))


@pytest.mark.parametrize(
    "argv",
    [
        ("python3", "tools/run.py", "out.txt"),
        ("python3", "-m", "tools.run"),
        ("./tools/run.py",),
        ("bash", "-c", "python3 tools/run.py out.txt | tail -n 1"),
        ("bash", "-lc", "OUT=$(./tools/run.py); echo $OUT"),
        ("sh", "-c", "cd tools && exec python3 'run.py'"),
        ("sh", "-c", "if X=1 ./tools/run.py; then true; fi"),
        ("sh", "-c", "bash -c './tools/run.py out.txt'"),
    ],
)
def test_the_program_that_an_oracle_runs_is_found(argv: tuple[str, ...]) -> None:
    assert "tools/run.py" in program_places(argv)


@pytest.mark.parametrize(
    "line",
    [
        "cd build && ../bench/run.sh",
        "cd bench/ && sh run.sh",
        "cd bench; cd ../bench; ./run.sh",
        "env -C bench ./run.sh",
        "$PWD/bench/run.sh",
    ],
)
def test_no_way_to_write_a_path_in_a_line_leaves_its_program_open(line: str) -> None:
    assert files_run({"fast": [("bash", "-c", line)]}, ["bench/run.sh", "other.sh"]) == {"bench/run.sh": "fast"}


def test_the_programs_of_an_oracles_line_are_found_and_never_beyond_the_checkout() -> None:
    found = program_places(("bash", "-ec", "cd x && ./judge.sh < out.txt | X=1 python3 sub/z.py"))
    assert {"judge.sh", "x/judge.sh", "x/sub/z.py"} <= set(found)
    assert program_places(("sh", "-c", "cd ../.. && cd /tmp && ./judge.sh")) == ("judge.sh",)
