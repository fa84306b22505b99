from __future__ import annotations

import pytest

from outerloop_hpc.errors import ConfigError
from outerloop_hpc.evolve.sweepfile.document import is_time, load
from tests.unit.evolve.sweeps import SWEEP, sweep

_GRID = """{kind: grid, template: {src/p.json: '{"a": {{a}}}'}, values: {a: [1, 2.5, x]}}"""
_TASK = "{id: small, command: python run.py small, timeout_s: 10, resources: {cpus: 2}}"


def _said(*changes: tuple[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        load(sweep(*changes))
    return str(refused.value)


def test_a_sweep_is_read_with_its_defaults() -> None:
    found = load(SWEEP.encode())
    assert (found.name, found.budget.generations, found.repeats.confirm, found.gate.kind) == (
        "demo",
        1,
        10,
        "paired-v1",
    )
    assert found.tasks[0].command == ("python", "run.py", "small")
    assert found.budget.deadline is not None
    assert found.budget.deadline.isoformat() == "2026-12-01T00:00:00+00:00"


@pytest.mark.parametrize(
    "text",
    [
        "{kind: dirs, folders: [a, b]}",
        "{kind: grid, template: templates, values: {a: [1]}}",
        "{kind: ask-tell, template: {src/p: '{{x}}'}, parameters: [{name: x, kind: float, low: 0, high: 1}]}",
        "{kind: command, command: [python, idea.py], environment: [MY_KEY], candidates: 4}",
        "{kind: agent, command: agent --quick}",
    ],
)
def test_each_kind_of_proposer_is_read(text: str) -> None:
    assert load(sweep((_GRID, text))).proposer.kind == text.split()[1].rstrip(",")


BAD = [
    ("another schema", ("sweep/1", "sweep/2"), "schema: must be sweep/1, which this version reads, found 'sweep/2'"),
    ("no schema", ("schema: sweep/1", "# no"), "schema: must be sweep/1, which this version reads, found nothing"),
    ("unknown key", ("overlay:", "overlays:"), "overlays: unknown key; did you mean 'overlay'?"),
    ("unknown key deep down", ("cpus:", "cpu:"), "tasks[0].resources.cpu: unknown key; did you mean 'cpus'?"),
    ("unknown key of a proposer", ("values:", "valuse:"), "proposer.valuse: unknown key; did you mean 'values'?"),
    ("unknown kind", ("kind: grid", "kind: gird"), "'dirs', 'grid', 'ask-tell', 'command', 'agent'"),
    ("bound", ("cpus: 2", "cpus: 0"), "tasks[0].resources.cpus: input should be greater than or equal to 1, found 0"),
    ("type", ("timeout_s: 10", "timeout_s: soon"), "tasks[0].timeout_s: input should be a valid number, found 'soon'"),
    ("endless", ("timeout_s: 10", "timeout_s: .inf"), "tasks[0].timeout_s: input should be"),
    ("text for a number", ("cpus: 2", "cpus: '2'"), "resources.cpus: input should be a valid integer, found '2'"),
    ("word", ("direction: min", "direction: down"), "metrics.primary.direction: input should be 'min' or 'max', found"),
    ("sbatch option", ("cpus: 2", "options: {time: 5}"), "'time' cannot be set here: outerloop-hpc decides --time"),
    ("glob", ('"src/**"', '"src/[ab]"'), "overlay.allow[0]: 'src/[ab]': only *, ? and ** are understood"),
    ("glob that leaves", ('"src/**"', '"../x"'), "overlay.allow[0]: '../x': names no path inside the repository"),
    ("no allow", ('["src/**"]', "[]"), "overlay.allow: "),
    ("no tasks", (f"\n  - {_TASK}", " []"), "tasks: "),
    ("shell", ("run.py small", "run.py | tee x"), "only a shell understands"),
    ("no command", ("command: python run.py small, ", ""), "tasks[0]: give either benchmark"),
    ("both", ("id: small,", "id: small, benchmark: b,"), "tasks[0]: give either benchmark"),
    ("no limit", ("timeout_s: 10, ", ""), "tasks[0]: a command needs timeout_s"),
    ("seed variable", ("id: small,", "id: small, seed_env: OL_TASK,"), "names that begin with OL_"),
    ("seed in PATH", ("id: small,", "id: small, seed_env: PATH,"), "tasks[0].seed_env"),
    ("naive deadline", ("00:00Z", "00:00"), "budget.deadline: 2026-12-01 00:00:00: needs a time of day and a zone"),
    ("day alone", ("2026-12-01T00:00:00Z", "2026-12-01"), "budget.deadline: 2026-12-01: needs a time of day"),
    ("no time", ("2026-12-01T00:00:00Z", "never"), "budget.deadline: 'never' is no time"),
    ("the last hour of all", ("2026-12-01T00:00:00Z", "'9999-12-31T23:59:59-12:00'"), "budget.deadline: 9999-12-31"),
    ("target", ("target: demo", "target: ../x"), "target: "),
    ("no name for the metric", ("name: seconds, ", ""), "metrics.primary.name: needed, since the task 'small'"),
    ("no direction", (", direction: min", ""), "metrics.primary.direction: needed"),
    ("place without a value", ("{{a}}", "{{a}}{{b}}"), "'src/p.json' has a place 'b' that no value is declared for"),
    ("value without a place", ("{a: [1,", "{b: [1], a: [1,"), "the value 'b' has no place {{b}}"),
    ("template", ("template: {src/p.json: '{\"a\": {{a}}}'}", "template: 5"), "proposer.template: must be texts"),
    ("template that leaves", ("src/p.json", "../p.json"), "proposer.template: not a plain path inside"),
    ("half a character", ("2.5, x]", '"\\ud800"]'), "proposer.values.a[1]: '\\ud800' holds half of a character"),
    ("half a word", ("python run.py small", '[x, "\\udc80"]'), "tasks[0].command[1]: '\\udc80' holds"),
    ("another proposer", ("kind: grid", 'kind: "g\\e[2J"'), "proposer.kind: must be one of 'dirs', 'grid',"),
    ("level", ("name: demo\n", "name: demo\ngate: {level: 5.0e-324}\n"), "gate.level: "),
    ("memory", ("cpus: 2", "memory_mb: 1000000000000"), "tasks[0].resources.memory_mb: "),
    ("parallel", ("name: demo\n", "name: demo\nparallel: 1000000000000\n"), "parallel: "),
    ("empty option", ("cpus: 2", "options: {partition: ' '}"), "tasks[0].resources.options: partition: must be"),
    ("percent", ("direction: min", "direction: min, min_effect: 5"), "min_effect: below 1, a share of what"),
    ("no values", ("[1, 2.5, x]", "[]"), "proposer.values.a: "),
    ("values of values", ("[1, 2.5, x]", "[[1]]"), "proposer.values.a: holds list"),
    ("success of nothing", ("metrics: {", "metrics: {success: {}, "), "metrics.success: no task has a success key"),
    ("most", ("name: demo\n", "name: demo\nrepeats: {most: 5}\n"), "repeats.most: at least repeats.confirm (10), fo"),
    (
        "guardrail twice",
        ("metrics: {", "metrics: {guardrails: [{name: seconds, direction: min, max_regression: 0.1}], "),
        "metrics.guardrails[0].name: 'seconds' is already metrics.primary",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_sweep_is_refused_with_the_key_what_was_found_and_what_is_allowed(
    change: tuple[str, str], message: str
) -> None:
    said = _said(change)
    assert said.startswith("sweep.yaml: ")
    assert message in said


def test_all_problems_are_told_at_once() -> None:
    said = _said(("cpus: 2", "cpus: 0"), ("direction: min", "direction: down"), ("name: demo", "nam: demo"))
    assert [word in said for word in ("cpus", "direction", "did you mean 'name'")] == [True] * 3


def test_two_tasks_cannot_share_an_id_in_any_case() -> None:
    other = _TASK.replace("small,", "SMALL,", 1)
    assert "tasks[1].id: 'SMALL' is already the id of tasks[0]" in _said((_TASK, f"{_TASK}\n  - {other}"))


def test_a_hidden_file_cannot_be_what_candidates_change() -> None:
    oracle = "id: small, oracle: {command: check, files: [src/x.py]},"
    assert "tasks[0].oracle.files[0]: 'src/x.py' is given" in _said(("id: small,", oracle), ('"src/**"', "src/x.py"))


@pytest.mark.parametrize(
    ("word", "lacking"),
    [
        ("{oracle}/check.py", "check.py"),
        ("{oracle}/hidden/x/../check.txt", "hidden/check.txt"),
        ("{oracle}/hidden/check.py", ""),
        ("{oracle}/hidden", ""),
        ("{oracle}/", ""),
        ("{oracle}", ""),
        ("check.py", ""),
        ("{oracle}/hidden/check.py::test_answer", ""),
        ("{oracle}/hidden:{oracle}/lib", ""),
    ],
)
def test_an_oracle_that_looks_for_a_file_that_is_not_handed_out_is_refused(word: str, lacking: str) -> None:
    """Its command would fail for every arm, and a sweep would find its harness broken after hours."""
    oracle = f"id: small, oracle: {{command: [python3, '{word}'], files: [hidden/check.py]}},"
    if lacking:
        assert f"names '{lacking}', which is none of oracle.files" in _said(("id: small,", oracle))
    else:
        assert load(sweep(("id: small,", oracle))).tasks[0].oracle is not None


@pytest.mark.parametrize(
    ("copies", "message"),
    [
        ("[{from: src/a, to: src/a/b}]", "copies[0]: 'src/a' and 'src/a/b' lie in one another"),
        ("[{from: src/a, to: src/b}]", "copies[0].to: 'src/b' is itself allowed"),
        ("[{from: src/a, to: x}, {from: src/b, to: X}]", "copies[1].to: 'X' is already that of copies[0]"),
        ("[{from: src/a, to: .github/x}]", "nobody but a person"),
        ("[{from: src/a, to: ../x}]", "copies[0].to: not a plain path"),
    ],
)
def test_a_copy_that_contradicts_the_overlay_is_refused(copies: str, message: str) -> None:
    assert message in _said(("name: demo\n", f"name: demo\ncopies: {copies}\n"))


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("{name: x, kind: float, low: 1, high: 1}", "low must be below high"),
        ("{name: x, kind: float, low: 0, high: 1, log: true}", "with log, low must be above 0"),
        ("{name: x, kind: int, low: 0.5, high: 2}", "whole numbers"),
        ("{name: x, kind: float}", "a number has low and high"),
        ("{name: x, kind: choice}", "a choice has choices"),
        ("{name: x, kind: choice, choices: [a], log: true}", "a choice has choices"),
        ("{name: x, kind: choice, choices: [0, a, false]}", "x: two choices are equal"),
        ("{name: x, kind: float, low: -1.0e+308, high: 1.0e+308}", "x: low and high are further apart"),
        ("{name: x, kind: int, low: 0, high: 2}, {name: x, kind: int, low: 0, high: 2}", "'x' stands here twice"),
    ],
)
def test_a_parameter_that_cannot_be_searched_is_refused(parameter: str, message: str) -> None:
    text = f"{{kind: ask-tell, template: {{src/p: '{{{{x}}}}'}}, parameters: [{parameter}]}}"
    assert message in _said((_GRID, text))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("seconds", "", True),
        ("wall_s", "", True),
        ("solve_seconds", "", True),
        ("time", "", True),
        ("Duration", "", True),
        ("loss", "", False),
        ("tokens", "", False),
        ("loss", ", kind: energy", True),
        ("seconds", ", kind: other", False),
    ],
)
def test_a_metric_that_depends_on_the_node_is_recognised(name: str, kind: str, expected: bool) -> None:
    found = load(sweep(("name: seconds", f"name: {name}{kind}")))
    assert is_time(found, name) is expected


def test_the_digest_is_of_the_meaning_and_not_of_the_spelling() -> None:
    plain = load(SWEEP.encode()).digest
    assert load(b"# remark\n" + sweep(("name: demo", "name: demo\nexpires_days: 90"))).digest == plain
    assert load(sweep(("cpus: 2", "cpus: 3"))).digest != plain


def test_the_zone_of_a_deadline_is_spelling() -> None:
    """It was told as if it were UTC, hours away from what had been written."""
    here, there = load(sweep()), load(sweep(("2026-12-01T00:00:00Z", "2026-12-01T02:00:00+02:00")))
    assert f"{there.budget.deadline:%H:%M}" == "00:00"
    assert here.digest == there.digest
