from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from outerloop_hpc.errors import ConfigError, UsageError
from outerloop_hpc.target import strictyaml
from outerloop_hpc.target.contract import find, load
from outerloop_hpc.target.limits import Operator, limits
from outerloop_hpc.target.terms import Contract

pytestmark = pytest.mark.unit

SMALL = """\
benchmarks:
  - {name: speed, command: python3 bench.py --json, metric: seconds, direction: min}
scope:
  allowed: [src/]
"""
WHOLE = """\
benchmarks:
  - name: reach
    command: uv run python -m pkg.eval --json
    metric: success_rate
    direction: max
    display_digits: 3
    seed_env: REACH_SEED
    eval_minutes: 45
    gpus: 2
    nodes: 2
    baseline: cached
    min_delta: 0.01
    min_delta_rel: 0.1
    depth_k: 4
    sleep_k: 8
    lines: true
    verification: self_report
    regression: {max: 0.02, relative: true}
    guidance: be brief
  - name: tsp-large
    command: "python3 'bench mark.py'"
    metric: length
    direction: min
budgets:
  gpu_hours_per_run: 8
  runs_per_week: 10
  session_max_turns: 60
  session_minutes: 30
  attempt_job_minutes: 90
  followup_job_minutes: 45
  attempt_cooldown_minutes: 0
  max_active_attempts: 3
  max_concurrent_gpus: 12
  review_topup: {launches: 2, sleeps: 4, gpu_hours: 0.5}
scope:
  allowed: [src/solver, models/net.py]
  forbidden: [src/solver/vendor]
  shared: [src/solver/common]
steward: {allowed: [bench, tests/]}
suite: {metric: total, direction: max}
roadmap: docs/roadmap.md
merge: auto
channels: {siblings: true, messages: false, shared_reports: true, branches: true}
max_concurrent_gpus: 4
guidance: short
"""


def small(**extra: str) -> bytes:
    return (SMALL + "".join(f"{key}: {value}\n" for key, value in extra.items())).encode()


def benchmark(fields: str) -> bytes:
    head = "benchmarks:\n  - {name: a, command: x, metric: m, direction: min}\n"
    return f"{head}  - {{name: b, command: x, metric: m, direction: min, {fields}}}\nscope: {{allowed: [s]}}\n".encode()


def test_a_small_contract_has_plain_defaults() -> None:
    loaded = load(SMALL.encode())
    (speed,) = loaded.contract.benchmarks
    assert (speed.argv, speed.baseline, speed.gpus, speed.seed_env) == (
        ("python3", "bench.py", "--json"),
        "paired",
        0,
        None,
    )
    assert loaded.notices == ()
    assert loaded.contract.scope.allowed == ("src",)
    assert loaded.digest.startswith("sha256:")


def test_every_known_field_loads_and_unused_ones_are_named() -> None:
    loaded = load(WHOLE.encode())
    assert loaded.contract.benchmark("tsp-large").argv == ("python3", "bench mark.py")
    assert {notice.partition(":")[0] for notice in loaded.notices} == {
        *(f"benchmarks[0].{key}" for key in ("depth_k", "sleep_k", "lines", "regression", "guidance")),
        "benchmarks[0].verification",
        "benchmarks[0].nodes",
        *("channels", "guidance", "max_concurrent_gpus", "suite", "merge"),
        *("budgets.review_topup", "budgets.max_concurrent_gpus"),
    }


def test_the_example_contract_loads_without_notices() -> None:
    path = Path(__file__).parents[2] / "examples" / "iris" / ".outerloop.yaml"
    loaded = load(path.read_bytes(), name=str(path))
    assert (loaded.notices, loaded.contract.benchmark("accuracy").seed_env) == ((), "IRIS_SEED")


def test_a_contract_cannot_be_changed_after_loading() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(load(SMALL.encode()).contract, "merge", "auto")  # noqa: B010 - the type checker refuses the plain form


BAD = [
    ("misspelt key deep down", benchmark("seed_evn: X"), r"benchmarks\[1\]\.seed_evn: unknown key; did you mean 'see"),
    ("misspelt section", small(budgetz="{}"), r"budgetz: unknown key; did you mean 'budgets'"),
    ("unknown in a part", small(budgets="{review_topup: {lunches: 2}}"), r"budgets\.review_topup\.lunches: .*'launche"),
    ("unknown in the steward", small(steward="{allow: [t]}"), r"steward\.allow(ed)?: "),
    ("far from any key", small(zzz="1"), r"zzz: unknown key; known here: benchmarks, "),
    ("hostile key", small(**{'"a\\nb"': "1"}), r"'a\\nb': unknown key"),
    ("managed variable", benchmark("seed_env: PYTHONPATH"), r"benchmarks\[1\]\.seed_env: this variable belongs"),
    ("managed prefix", benchmark("seed_env: APPTAINERENV_X"), r"benchmarks\[1\]\.seed_env: "),
    ("the scheduler's variable", benchmark("seed_env: SLURM_JOB_ID"), r"benchmarks\[1\]\.seed_env: this variable"),
    ("variable in lower case", benchmark("seed_env: seed"), r"benchmarks\[1\]\.seed_env: "),
    ("variable with a newline", benchmark('seed_env: "SEED\\n"'), r"benchmarks\[1\]\.seed_env: "),
    ("one digit", benchmark("display_digits: 1"), r"benchmarks\[1\]\.display_digits: "),
    ("text for a number", benchmark("gpus: '2'"), r"benchmarks\[1\]\.gpus: .*integer"),
    ("a switch for a number", benchmark("gpus: yes"), r"benchmarks\[1\]\.gpus: "),
    ("nine GPUs", benchmark("gpus: 9"), r"benchmarks\[1\]\.gpus: "),
    ("no time", benchmark("eval_minutes: 0"), r"benchmarks\[1\]\.eval_minutes: "),
    ("not a number", benchmark("min_delta: .nan"), r"benchmarks\[1\]\.min_delta: .*finite"),
    ("13 meaning percent", benchmark("min_delta_rel: 13"), r"benchmarks\[1\]\.min_delta_rel: "),
    ("cached without floor", benchmark("baseline: cached, min_delta: 0"), r"benchmarks\[1\]: baseline: cached"),
    ("65 nodes", benchmark("nodes: 65"), r"benchmarks\[1\]\.nodes: "),
    ("repeated name", benchmark("gpus: 0").replace(b"name: b", b"name: A"), r"\[1\]\.name: 'A' is already the name"),
    ("name with a slash", SMALL.replace("speed", "a/b").encode(), r"benchmarks\[0\]\.name: "),
    ("name too long", SMALL.replace("speed", "a" * 65).encode(), r"benchmarks\[0\]\.name: "),
    ("name that is a folder", SMALL.replace("name: speed", "name: '..'").encode(), r"benchmarks\[0\]\.name: must hold"),
    ("direction", SMALL.replace("direction: min", "direction: up").encode(), r"benchmarks\[0\]\.direction: .*'min' or"),
    ("empty command", SMALL.replace("python3 bench.py --json", "' '").encode(), r"benchmarks\[0\]\.command: must be"),
    ("open quote", SMALL.replace("bench.py", "it's").encode(), r"benchmarks\[0\]\.command: cannot be split"),
    ("no metric", SMALL.replace("seconds", "''").encode(), r"benchmarks\[0\]\.metric: "),
    ("no benchmarks", b"benchmarks: []\nscope: {allowed: [s]}\n", r"benchmarks: "),
    ("benchmarks as a mapping", b"benchmarks: {a: 1}\nscope: {allowed: [s]}\n", r"benchmarks: "),
    ("no scope", b"benchmarks: [{name: a, command: x, metric: m, direction: min}]\n", r"scope: field required"),
    ("nothing allowed", SMALL.replace("[src/]", "[]").encode(), r"scope\.allowed: "),
    ("root allowed", SMALL.replace("src/", "./").encode(), r"scope\.allowed\[0\]: the root"),
    ("glob", SMALL.replace("src/", "'src/*.py'").encode(), r"scope\.allowed\[0\]: glob"),
    ("parent", SMALL.replace("src/", "src/../..").encode(), r"scope\.allowed\[0\]: not a plain path"),
    ("absolute", SMALL.replace("src/", "/etc").encode(), r"scope\.allowed\[0\]: not a plain path"),
    ("colon", SMALL.replace("src/", "'c:x'").encode(), r"scope\.allowed\[0\]: not a plain path"),
    ("backslash", SMALL.replace("src/", "a\\b").encode(), r"scope\.allowed\[0\]: not a plain path"),
    ("git folder", SMALL.replace("src/", "a/.GIT/x").encode(), r"scope\.allowed\[0\]: not a plain path"),
    ("workflows", SMALL.replace("src/", ".GitHub/workflows").encode(), r"scope\.allowed\[0\]: .*'\.github'"),
    ("itself", SMALL.replace("src/", ".outerloop.YAML").encode(), r"scope\.allowed\[0\]: .*'\.outerloop\.yaml'"),
    ("its old name", SMALL.replace("src/", ".autoresearch.yaml").encode(), r"scope\.allowed\[0\]: "),
    ("roadmap inside", small(roadmap="src/plan.md"), r"scope\.allowed\[0\]: 'src' overlaps 'src/plan.md'"),
    ("ledger", SMALL.replace("src/", "results/leader.json").encode(), r"scope\.allowed\[0\]: .*lies inside"),
    ("steward and ledger", small(steward="{allowed: [results]}"), r"steward\.allowed\[0\]: .*'results/leader.json'"),
    ("steward and solver", small(steward="{allowed: [SRC/eval]}"), r"steward\.allowed\[0\]: .*judge and judged"),
    ("shared elsewhere", SMALL.replace("[src/]", "[src/]\n  shared: [lib]").encode(), r"scope\.shared\[0\]: .*nothing"),
    ("all forbidden", SMALL.replace("[src/]", "[src/a]\n  forbidden: [SRC]").encode(), r"scope\.allowed\[0\]: .*'SRC'"),
    ("runs per week", small(budgets="{runs_per_week: 0}"), r"budgets\.runs_per_week: "),
    ("negative hours", small(budgets="{gpu_hours_per_run: -1}"), r"budgets\.gpu_hours_per_run: "),
    ("infinite hours", small(budgets="{gpu_hours_per_run: .inf}"), r"budgets\.gpu_hours_per_run: "),
    ("merge", small(merge="always"), r"merge: "),
    ("empty", b"", r"expected a mapping"),
    ("a list", b"- a\n", r"expected a mapping"),
    ("a scalar", b"hello\n", r"expected a mapping"),
    ("two documents", SMALL.encode() + b"---\na: 1\n", r"not readable as YAML"),
    ("anchor", b"a: &x 1\nb: 2\n", r"line 1: anchors and aliases"),
    ("alias", b"a: *x\n", r"line 1: anchors and aliases"),
    ("merge key", b"<<: {a: 1}\n", r"keys must be text"),
    ("python tag", b"a: !!python/object/apply:os.system ['true']\n", r"explicit tags"),
    ("plain tag", b"a: !!str 1\n", r"explicit tags"),
    ("number as key", b"1: a\n", r"keys must be text"),
    ("list as key", b"? [a]\n: b\n", r"keys must be text"),
    ("key twice", b"scope: 1\nmerge: auto\nscope: 2\n", r"line 3: top level: the key 'scope' stands here twice"),
    ("key twice deep down", b"a:\n  - b: 1\n    b: 2\n", r"line 3: a\[0\]: the key 'b' stands here twice"),
    ("not UTF-8", b"a: \xff\n", r"not UTF-8 text \(byte 3\)"),
    ("UTF-16", "a: 1".encode("utf-16"), r"not UTF-8"),
    ("control character", b"a: \x07\n", r"not readable as YAML"),
    ("too long", b"#" * (64 * 1024 + 1), r"65537 bytes, at most 65536"),
    ("deep flow", b"[" * 60_000, r"too large"),
    ("deep block", b"".join(b" " * depth + b"a:\n" for depth in range(100)), r"too large"),
    ("many values", b"a: [" + b"1," * 20_000 + b"1]", r"too large"),
    ("impossible date", b"a: 2026-99-99\n", r"a value cannot be read"),
    ("endless number", b"a: " + b"9" * 6_000 + b"\n", r"a value cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("1e-3", "1.0e-3"),
        ("1e3", "1.0e+3"),
        ("2.5e3", "2.5e+3"),
        ("1E-3", "1.0e-3"),
        ("-.5e3", "-0.5e+3"),
    ],
)
def test_a_number_that_yaml_reads_as_text_is_answered_with_how_to_write_it(written: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(benchmark(f"min_delta: {written}"))
    assert "benchmarks[1].min_delta: " in str(refused.value)
    assert str(refused.value).endswith(f"; YAML reads {written} as text, write {hint}")
    assert isinstance(strictyaml.load(f"a: {hint}".encode(), "x")["a"], float)


@pytest.mark.parametrize("written", ["lots", "e3", ".e3", "[1]", "'٣e3'", "true"])
def test_what_is_no_number_gets_no_hint_how_to_write_one(written: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(benchmark(f"min_delta: {written}"))
    assert "write" not in str(refused.value)


@pytest.mark.parametrize(("data", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_contract_is_refused_with_the_place(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load(data, name="here.yaml")
    assert str(refused.value).startswith("here.yaml: ")
    assert "\x07" not in str(refused.value)


def test_all_problems_are_told_at_once_but_not_without_end() -> None:
    with pytest.raises(ConfigError, match=r"gpus: [\s\S]*merge: ") as refused:
        load(SMALL.replace("direction: min", "direction: min, gpus: 9").encode() + b"merge: x\n")
    assert len(str(refused.value).splitlines()) == 3
    many = SMALL + "".join(f"k{number}: 1\n" for number in range(40))
    with pytest.raises(ConfigError, match="and 30 more") as refused:
        load(many.encode())
    assert len(str(refused.value).splitlines()) == 12


def test_refusing_a_bomb_takes_no_time() -> None:
    begun = time.process_time()
    for data in (b"[" * 65_000, b"{a: " * 16_000, b"a: [" + b"[]," * 20_000 + b"]", b"- " * 32_000):
        with pytest.raises(ConfigError):
            load(data)
    assert time.process_time() - begun < 5


@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_contract_or_a_refusal(data: bytes) -> None:
    message = "loaded"
    try:
        load(data)
    except ConfigError as error:
        message = str(error)
    assert message


@given(st.text(alphabet="ab:-{}[]&*!|>'\"\\#? \n\t0.1~<%@`", max_size=80))
def test_any_yaml_like_text_ends_in_a_mapping_or_a_refusal(text: str) -> None:
    loaded: dict[str, object] = {}
    message = "x: loaded"
    try:
        loaded = strictyaml.load(text.encode(), "x")
    except ConfigError as error:
        message = str(error)
    assert message.startswith("x: ")
    assert all(isinstance(key, str) for key in loaded)


def test_a_byte_order_mark_is_no_part_of_the_contract() -> None:
    assert load(b"\xef\xbb\xbf" + SMALL.encode()).contract == load(SMALL.encode()).contract


@pytest.mark.parametrize(
    "target",
    [
        "outerloop-hpc",
        "https://github.com/x/Outerloop-HPC.git",
        "git@host:me/outerloop-hpc.git/",
        "outerloop-science/outerloop",
    ],
)
def test_the_tool_is_no_target_of_itself(target: str) -> None:
    with pytest.raises(ConfigError, match="cannot be a target"):
        load(SMALL.encode(), target=target)


@pytest.mark.parametrize("target", ["", "/data/outerloop", "me/outerloop-hpc-fork", "/"])
def test_other_repositories_are(target: str) -> None:
    assert load(SMALL.encode(), target=target).contract.benchmarks


def test_the_contract_is_found_under_both_names_the_new_one_first() -> None:
    files = {".autoresearch.yaml": b"old", ".outerloop.yaml": b"new"}
    assert find(lambda name: dict(files).get(name)) == (".outerloop.yaml", b"new")
    del files[".outerloop.yaml"]
    assert find(lambda name: dict(files).get(name)) == (".autoresearch.yaml", b"old")
    with pytest.raises(ConfigError, match=r"put \.outerloop\.yaml"):
        find(lambda _: None)


def test_an_unknown_benchmark_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match=r"'tsp'; it has reach, tsp-large"):
        load(WHOLE.encode()).contract.benchmark("tsp")


def contract(**budgets: object) -> Contract:
    text = ", ".join(f"{key}: {value}" for key, value in budgets.items())
    return load(small(budgets=f"{{{text}}}")).contract


LIMITS = [
    # field, operator's number, the contract's wish, what holds
    ("session_max_turns", 120, None, 120),
    ("session_max_turns", 120, 60, 60),
    ("session_max_turns", 120, 3, 10),
    ("session_max_turns", 120, 500, 120),
    ("session_max_turns", 300, 250, 250),
    ("session_max_turns", 9_999, None, 300),
    ("session_max_turns", 5, 60, 5),
    ("session_max_turns", 5, 3, 5),
    ("session_minutes", 240, 200, 200),
    ("session_minutes", 999, 999, 240),
    ("attempt_job_minutes", 120, 1, 40),
    ("followup_job_minutes", 90, 1, 20),
    ("max_active_attempts", 2, 8, 2),
    ("max_active_attempts", 4, 1, 1),
    ("attempt_cooldown_minutes", 360, 0, 360),
    ("attempt_cooldown_minutes", 360, 900, 900),
    ("runs_per_week", None, 10, 10),
    ("runs_per_week", 4, 10, 4),
    ("runs_per_week", 4, None, 4),
    ("gpu_hours_per_run", 2.5, 8, 2.5),
    ("gpu_hours_per_run", None, None, None),
]


@pytest.mark.parametrize(("field", "operator", "wish", "expected"), LIMITS)
def test_limits_clamp_the_wish_into_the_operators_numbers(
    field: str, operator: float | None, wish: float | None, expected: float | None
) -> None:
    asked = contract(**({} if wish is None else {field: wish}))
    given = Operator(**{field: operator})  # type: ignore[arg-type]
    assert getattr(limits(asked, given), field) == expected


@given(st.integers(1, 2_000), st.integers(1, 2_000))
def test_a_contract_never_raises_what_the_operator_allows(operator: int, wish: int) -> None:
    fields = ("session_max_turns", "session_minutes", "attempt_job_minutes", "followup_job_minutes")
    budgets = contract(**dict.fromkeys(fields, wish))
    held = limits(budgets, Operator(operator, operator, operator, operator))
    assert all(getattr(held, field) <= operator for field in fields)
    assert held.overhead_minutes == 20


@pytest.mark.parametrize(
    ("minutes", "operator", "expected"),
    [(None, 1440, 30), (1, 1440, 1), (5_000, 1440, 1440), (45, 20, 20), (5_000, 9_999, 1440), (None, 10, 10)],
)
def test_measurement_minutes_lie_between_one_and_the_ceiling(minutes: int | None, operator: int, expected: int) -> None:
    field = "" if minutes is None else f"eval_minutes: {minutes}"
    loaded = load(benchmark(field)).contract
    held = limits(loaded, Operator(eval_minutes=operator))
    assert held.measurement_minutes(loaded.benchmark("b")) == expected


def test_a_value_out_of_bounds_is_told_with_what_is_allowed_and_what_was_found() -> None:
    with pytest.raises(ConfigError, match=r"benchmarks\[1\]\.gpus: .*less than or equal to 8, found 9"):
        load(benchmark("gpus: 9"))
