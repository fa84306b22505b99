"""The commands on a made-up state folder: manners, exit statuses, and what a dry run leaves alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from outerloop_hpc import fsio
from outerloop_hpc.benchmark.work import BenchmarkWork, dump
from outerloop_hpc.cli.main import app
from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import inbox, runs
from outerloop_hpc.engine.archive import Accounting
from outerloop_hpc.engine.journal import Journal
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.spec import ResourceAsk, RunSpec
from outerloop_hpc.engine.state import RunState
from tests.unit.cli.shell import Cli, tree
from tests.unit.engine.made import ME, SPEC, T0, intended, step

pytestmark = pytest.mark.unit


def run_id(number: int, target: str = "iris") -> str:
    return f"benchmark-{target}-20261129T12000{number}Z-0000000{number}"


def spec(run: str, target: str = "iris") -> RunSpec:
    work = BenchmarkWork(
        benchmark="accuracy",
        command="true",
        metric="acc",
        direction="max",
        eval_minutes=1,
        tree="t",
        contract_digest="d",
        seeds=(1, 2),
        resources=ResourceAsk(minutes=5),
    )
    return SPEC.model_copy(update={"run": run, "target": target, "work": dump(work)})


def make(layout: Layout, run: str, *story: Sequence[ev.Event], target: str = "iris") -> Journal:
    journal = Journal(runs.ensure(layout, spec(run, target)))
    state = RunState(run=run)
    for events in story:
        state = journal.commit(state, events, by=ME, at=T0, nonce=fsio.nonce())
    return journal


STEPS = tuple(step(f"measure-{seed}", parameters={"seed": seed}) for seed in (1, 2))
BEGUN = (ev.RunStarted(spec_digest="d"), ev.StepsWanted(steps=STEPS, reason="r"))
SUBMITTED = (intended("ol.iris.1", ("measure-1", 1), ("measure-2", 1), compute="local"),)
BOUND = (ev.SubmissionBound(name="ol.iris.1", job_id="7"),)
ONE_DONE = (
    ev.TryEnded(
        step="measure-1", try_number=1, outcome="done", rule="record.final", reason="says completed", node="n1",
        evidence={"queue": "no row"}, record_outcome="completed", payload={"value": 1.0},
    ),
)  # fmt: skip
PARKED = (ev.RunParked(question="go on?", reason="somebody cancelled it"),)
ENDED = (ev.RunEnded(ending="measured", reason="all of them"),)
NEW, RUNNING, WAITING, CLOSED, BROKEN = (run_id(n) for n in range(5))
ROSE = run_id(9, "rose")
#: The seconds at which they were made.
NOON = [f"uts{int(datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()) + second}" for second in range(5)]


@pytest.fixture
def state(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "state")
    fsio.make_folder(layout.root)
    make(layout, NEW)
    make(layout, RUNNING, BEGUN, SUBMITTED, BOUND, ONE_DONE)
    make(layout, WAITING, BEGUN, PARKED)
    make(layout, CLOSED, BEGUN, ENDED, (ev.RunClosed(),))
    fsio.remove(layout.live / CLOSED)
    make(layout, BROKEN, BEGUN).folder.journal.joinpath("00000002.json").write_bytes(b"{")
    make(layout, run_id(9, "rose"), BEGUN, target="rose")
    return layout


# --- help -----------------------------------------------------------------------------------------------------------


def commands(group: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, one in getattr(group, "commands", {}).items():
        if getattr(one, "commands", None):
            yield from commands(one, *words, name)
        else:
            yield (*words, name), one


COMMANDS = dict(commands(get_command(app)))
LISTS = [words for words, one in COMMANDS.items() if any("--helpformat" in p.opts for p in one.params)]


def test_there_are_commands_and_lists_among_them() -> None:
    assert {("tick",), ("runs", "list"), ("bench", "run"), ("config", "show"), ("explain",)} <= set(COMMANDS)
    assert {("orders", "new"), ("changes", "merge"), ("claims", "release")} <= set(COMMANDS)
    assert {("tick",), ("runs", "list"), ("explain",), ("report", "jobs")} <= set(LISTS)
    assert {("orders", "list"), ("orders", "show"), ("changes", "list"), ("changes", "show")} <= set(LISTS)
    assert ("claims", "list") in LISTS


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_starts_with_an_example_of_that_very_command(cli: Cli, words: tuple[str, ...]) -> None:
    said = cli(*words, "--help", state=False)
    assert said.status == 0
    usage, first, *_ = [" ".join(part.split()) for part in said.out.split("\n\n")]
    assert usage.startswith("Usage: ")
    assert f"{first} ".startswith(f"Example: outerloop-hpc {' '.join(words)} ")


def test_the_help_of_all_starts_with_an_example(cli: Cli) -> None:
    said = cli("--help", state=False)
    usage, first, *_ = [line.strip() for line in said.out.splitlines() if line.strip()]
    assert usage.startswith("Usage: ")
    assert first.startswith("Example: outerloop-hpc")


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_every_list_tells_its_columns_without_doing_anything(cli: Cli, words: tuple[str, ...], tmp_path: Path) -> None:
    given = {"RUN": "x", "TARGET": "x", "A": "x", "B": "y", "IMAGE": "x", "NUMBER": "1", "ID": "x", "CELL": "x"}
    arguments = [given[str(p.metavar)] for p in COMMANDS[words].params if p.param_type_name == "argument"]
    said = cli(*words, *arguments, "--helpformat")
    assert (said.status, said.err) == (0, "")
    assert said.out.strip()
    assert not (tmp_path / "state").exists()


# --- runs list, runs show, explain, config show ---------------------------------------------------------------------


def test_live_runs_are_listed_with_their_phase(cli: Cli, state: Layout) -> None:
    said = cli("runs", "list", "--json")
    assert said.status == 0
    assert json.loads(said.out)["schema"] == "output/1"
    assert json.loads(said.out)["command"] == "runs list"
    phases = {row["run"]: (row["phase"], row.get("steps")) for row in said.rows}
    assert phases == {
        NEW: ("new", "0/0"),
        RUNNING: ("running", "1/2"),
        WAITING: ("parked", "0/2"),
        BROKEN: ("faulty", None),
        run_id(9, "rose"): ("running", "0/2"),
    }
    (fault,) = [row["reason"] for row in said.rows if row["phase"] == "faulty"]
    assert "00000002.json" in fault


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-s", "parked"], {WAITING}),
        (["-s", "parked,faulty"], {WAITING, BROKEN}),
        (["--target", "rose"], {run_id(9, "rose")}),
        (["--all", "-s", "closed"], {CLOSED}),
        (["--all", "--target", "iris"], {NEW, RUNNING, WAITING, CLOSED, BROKEN}),
        (["-S", NOON[2]], {WAITING, BROKEN, ROSE}),
        (["-S", NOON[1], "-E", NOON[4]], {RUNNING, WAITING}),
        (["-S", NOON[1], "-E", NOON[4], "--all"], {RUNNING, WAITING, CLOSED}),
        (["-E", NOON[1], "-u", SPEC.made_by], {NEW}),
        (["-u", "nobody"], set()),
        (["-u", "nobody", "--all"], set()),
        (["-u", f"nobody,{SPEC.made_by}"], {NEW, RUNNING, WAITING, BROKEN, ROSE}),
    ],
)
def test_runs_are_chosen_as_in_sacct(cli: Cli, state: Layout, options: list[str], expected: set[str]) -> None:
    assert {row["run"] for row in cli("runs", "list", "--json", *options).rows} == expected


def test_columns_are_chosen_as_in_sacct(cli: Cli, state: Layout) -> None:
    said = cli("runs", "list", "-P", "-o", "run,phase", "-s", "parked")
    assert said.out == f"run|phase\n{WAITING}|parked\n"
    assert cli("runs", "list", "-P", "-n", "-o", "run,phase", "-s", "parked").out == f"{WAITING}|parked\n"
    assert cli("runs", "list", "-o", "run", "-s", "parked").out == f"{WAITING}\n"


def test_a_stray_file_among_the_live_runs_is_shown_and_ends_no_list(cli: Cli, state: Layout) -> None:
    (state.live / "README").write_bytes(b"")
    said = cli("runs", "list", "--json")
    assert {"run": "README", "phase": "faulty"}.items() <= next(r for r in said.rows if r["run"] == "README").items()
    assert {row["run"] for row in cli("runs", "list", "--json", "--target", "rose").rows} == {run_id(9, "rose")}


def test_an_empty_state_folder_lists_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    said = cli("runs", "list", "-P", "-o", "run,phase")
    assert (said.status, said.out) == (0, "run|phase\n")


def test_the_tries_of_a_run_are_shown(cli: Cli, state: Layout) -> None:
    said = cli("runs", "show", RUNNING[-8:], "--json")
    assert [(row["step"], row["try"], row["job_id"], row["outcome"]) for row in said.rows] == [
        ("measure-1", 1, "7_0", "done"),
        ("measure-2", 1, "7_1", None),
    ]
    assert json.loads(said.out)["phase"] == "running"
    assert "go on?" in cli("runs", "show", WAITING).out


def test_explain_tells_every_event_and_what_it_rests_on(cli: Cli, state: Layout) -> None:
    rows = cli("explain", RUNNING, "--json").rows
    assert [row["event"] for row in rows] == [
        "run.started",
        "steps.wanted",
        "submission.intended",
        "submission.bound",
        "try.ended",
    ]
    assert rows[-1]["evidence"] == {"queue": "no row"}
    text = cli("explain", RUNNING).out
    assert "measure-1 try 1: done by record.final: says completed" in text
    assert "        queue: no row\n" in text, "a journal of an earlier version knows no more"
    assert "for another decision: nothing: the first record of a try stays" in text


def test_a_dry_advance_says_what_it_would_do_and_writes_nothing(cli: Cli, state: Layout) -> None:
    before = tree(state.root)
    said = cli("advance", NEW, "--dry-run")
    assert said.status == 0
    assert "kind.submit" in said.err
    assert tree(state.root) == before


@pytest.mark.parametrize("which", ["runs", "jobs", "costs"])
def test_every_report_is_narrowed_as_sacct_is(cli: Cli, state: Layout, which: str) -> None:
    narrowed = ["-S", "now-7days", "-E", "now", "-u", "nobody", "-A", "none", "-M", "nowhere", "--run", RUNNING]
    said = cli("report", which, *narrowed, "-s", "FAILED", "--json")
    assert (said.status, said.rows) == (0, [])


@pytest.mark.parametrize(("which", "column"), [("jobs", "job_id"), ("runs", "attempts"), ("costs", "attempts")])
def test_every_report_can_be_about_the_tries_of_one_state_alone(
    cli: Cli, state: Layout, which: str, column: str
) -> None:
    rows = tuple(
        {"JobID": f"7_{task}", "JobIDRaw": f"{7 + task}", "State": word, "Start": "1", "End": "3601", "AllocCPUS": "1"}
        for task, word in enumerate(("COMPLETED", "FAILED"))
    )
    path = state.run(RUNNING).accounting("ol.iris.1")
    fsio.make_folder(path.parent)
    fsio.publish(path, Accounting(submission="ol.iris.1", compute="slurm", job_id="7", rows=rows).encoded())
    shown = [row[column] for row in cli("report", which, "--run", RUNNING, "-s", "F", "--json").rows]
    assert shown == ["7_1" if which == "jobs" else 1]
    assert cli("report", which, "-s", "tired").status == 2


def test_explain_changes_nothing(cli: Cli, state: Layout) -> None:
    before = tree(state.root)
    assert cli("explain", RUNNING).status == 0
    assert tree(state.root) == before


def test_settings_are_shown_with_their_origin(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "outerloop.toml").write_text("[bench]\nseeds = 3\n", encoding="utf-8")
    rows = {row["key"]: row for row in cli("config", "show", "--json").rows}
    assert rows["bench.seeds"]["value"] in {3, "3"}
    assert "outerloop.toml" in rows["bench.seeds"]["origin"]
    assert str(tmp_path / "state") in str(rows["state.root"]["value"])


# --- exit statuses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["runs", "list", "--no-such-option"],
        ["runs", "show"],
        ["runs", "show", "no-such-run"],
        ["runs", "list", "-s", "tired"],
        ["runs", "list", "-o", "phse"],
        ["runs", "list", "-S", "yesterdayish"],
        ["runs", "list", "--json", "-P"],
        ["explain", "benchmark-iris"],
        ["bench", "history", "iris"],
        ["bench", "run", "iris"],
        ["bench", "compare", "aaaa", "bbbb"],
        ["report", "jobs", "-S", "yesterdayish"],
        ["report", "jobs", "-S", "now", "-E", "now-7days"],
        ["bench", "ledger", "no-such-target"],
        ["runs", "end", RUNNING],
        ["runs", "resume", RUNNING, "--reason", "it is not parked"],
        ["runs", "end", CLOSED, "--reason", "it has ended"],
        ["init", "--target", "no-equals-sign"],
    ],
    ids=" ".join,
)
def test_usage_errors_end_with_2_and_say_so_on_stderr(cli: Cli, state: Layout, arguments: list[str]) -> None:
    said = cli(*arguments)
    assert said.status == 2
    assert said.out == ""
    assert said.err.strip()
    assert "Traceback" not in said.err


@pytest.mark.parametrize("seconds", ["nan", "-nan", "-5", "-inf"])
@pytest.mark.parametrize("command", [("advance", NEW), ("bench", "run", "iris")], ids=" ".join)
def test_a_wait_that_would_never_be_over_or_is_already_is_refused(
    cli: Cli, state: Layout, command: Sequence[str], seconds: str
) -> None:
    before = tree(state.root)
    said = cli(*command, "--wait", seconds)
    assert said.status == 2
    assert "'--wait'" in said.err
    assert "0 or more" in said.err
    assert tree(state.root) == before


def test_a_column_that_does_not_exist_gets_a_suggestion(cli: Cli, state: Layout) -> None:
    assert "did you mean phase?" in cli("runs", "list", "-o", "phse").err


@pytest.mark.parametrize(
    ("text", "words"),
    [("[bench]\nsseeds = 3\n", "seeds"), ("[bench\n", "outerloop.toml"), ("[bench]\nseeds = 0\n", "seeds")],
)
def test_a_bad_configuration_ends_with_78(cli: Cli, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "outerloop.toml").write_text(text, encoding="utf-8")
    said = cli("runs", "list")
    assert said.status == 78
    assert words in said.err


def test_slurm_without_its_commands_is_a_bad_configuration(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "outerloop.toml").write_text('[compute]\nkind = "slurm"\n', encoding="utf-8")
    assert cli("reconcile").status == 78


def test_the_doctor_makes_every_other_check_when_the_scheduler_is_missing(cli: Cli, state: Layout) -> None:
    checked = {row["check"] for row in cli("doctor", "--json").rows}
    (state.root.parent / "outerloop.toml").write_text('[compute]\nkind = "slurm"\n', encoding="utf-8")
    said = cli("doctor", "--json")
    assert said.status == 3
    assert {row["check"] for row in said.rows} == checked
    (scheduler,) = [row for row in said.rows if row["check"] == "scheduler"]
    assert (scheduler["level"], "sbatch is not on PATH" in scheduler["saw"]) == ("fail", True)
    assert "module" in scheduler["advice"]


def test_a_state_folder_that_cannot_be_made_is_a_bad_configuration(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    said = cli("init")
    assert said.status == 78
    assert "cannot be the state folder" in said.err


@pytest.mark.parametrize("command", [("tick",), ("tick", "--dry-run"), ("reconcile",), ("runs", "list"), ("doctor",)])
def test_where_the_state_folder_is_not_mounted_nothing_is_made_and_bought_again(
    cli: Cli, tmp_path: Path, command: Sequence[str]
) -> None:
    said = cli(*command)
    assert said.status == 78
    assert f"{tmp_path / 'state'}: there is no state folder" in said.err
    assert not (tmp_path / "state").exists()


def test_a_fault_of_one_run_ends_a_pass_with_4_and_stops_no_other(cli: Cli, state: Layout) -> None:
    said = cli("reconcile", "--dry-run", "--json")
    assert said.status == 4
    assert f"fault: {BROKEN}" in said.err
    assert NEW in {row["run"] for row in said.rows}
    assert said.err.count("fault: ") == 1


def test_a_document_of_a_faulty_run_ends_explain_with_3(cli: Cli, state: Layout) -> None:
    assert cli("explain", BROKEN).status == 3


def test_an_empty_pass_is_done(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    assert cli("reconcile").status == 0
    assert cli("tick", "--quiet").out == ""


def test_another_pass_on_this_host_is_try_later(cli: Cli, state: Layout) -> None:
    from filelock import FileLock  # noqa: PLC0415 - only here

    fsio.make_folder(state.tick)
    with FileLock(state.tick / "lock"):
        said = cli("reconcile")
    assert said.status == 75
    assert "another pass is under way" in said.err


# --- dry runs and decisions of people -------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["tick", "reconcile"])
def test_a_dry_run_prints_its_decisions_and_writes_nothing(cli: Cli, state: Layout, command: str) -> None:
    inbox.put(Journal(state.run(WAITING)).folder, "resume", who="bob", reason="go", at=T0)
    before = tree(state.root)
    said = cli(command, "--dry-run", "--json")
    assert tree(state.root) == before
    decisions = {(row["run"], row["decision"], row["rule"]) for row in said.rows}
    assert (NEW, "submit", "kind.submit") in decisions
    assert (NEW, "submit", "submit") in decisions
    assert (WAITING, "resume", "person.resume") in decisions
    assert all(row["reason"] and {"evidence", "needs"} <= set(row) for row in said.rows)
    (unsettled,) = [row for row in said.rows if row["run"] == RUNNING and " try " in row["subject"]]
    assert unsettled["needs"] == "a row, a record, or 3600 s of this"
    assert unsettled["evidence"]["job"] == {"id": "7_1", "name": "ol.iris.1"}
    assert json.loads(said.out)["dry_run"] is True
    assert json.loads(said.out)["submitted"] == 0


@pytest.mark.parametrize(("action", "run"), [("end", RUNNING), ("resume", WAITING)])
def test_a_persons_decision_is_left_for_the_next_pass(cli: Cli, state: Layout, action: str, run: str) -> None:
    before = tree(state.root)
    assert cli("runs", action, run, "--reason", "because", "--dry-run").status == 0
    assert tree(state.root) == before
    said = cli("runs", action, run, "--reason", "because")
    assert (said.status, said.out) == (0, "")
    (decided,) = inbox.waiting(state.run(run))
    assert (decided.action, decided.reason) == (action, "because")


def test_a_pause_is_said_and_launches_nothing(cli: Cli, state: Layout) -> None:
    fsio.make_folder(state.tick)
    (state.tick / "PAUSE").write_bytes(b"")
    said = cli("tick", "--dry-run", "--json")
    assert "PAUSE" in json.loads(said.out)["held"]
    assert "no launches" in said.err
    assert (NEW, "launch.held") in {(row["run"], row["rule"]) for row in said.rows}
    followed = cli("advance", NEW)
    assert followed.status == 10
    assert "no launches" in followed.err, "who waits for one run must not wait in vain"


def test_a_dry_image_build_says_what_it_would_run_and_writes_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = tmp_path / "bin" / "apptainer"
    builder.parent.mkdir()
    builder.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    builder.chmod(0o755)
    monkeypatch.setenv("PATH", str(builder.parent))
    before = tree(tmp_path)
    said = cli("image", "build", "images/x.sif", "--mirror", "http://m.example/debian", "--dry-run")
    assert (said.status, said.out) == (0, "")
    assert f"would run {builder} build {tmp_path}/images/" in said.err
    assert tree(tmp_path) == before


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["", "dry"])
@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("a b=/projects/iris.git", "the name 'a b' must be"),
        ("a/b=/projects/iris.git", "the name 'a/b' must be"),
        (f"{'a' * 65}=/projects/iris.git", "must be 1 to 64"),
        ("iris=/projects/a\nb", "the repository must be one line"),
        ("iris=$NO_SUCH_FOLDER/iris.git", "$NO_SUCH_FOLDER is not set here"),
    ],
)
def test_a_target_that_init_cannot_write_is_blamed_on_its_option(
    cli: Cli, tmp_path: Path, target: str, wrong: str, dry: Sequence[str]
) -> None:
    said = cli("init", "--target", target, *dry)
    assert said.status == 2
    assert said.err.startswith("outerloop-hpc: --target ")
    assert wrong in said.err
    assert "outerloop.toml" not in said.err
    assert list(tmp_path.iterdir()) == []


def test_init_writes_what_is_missing_and_keeps_what_is_there(cli: Cli, tmp_path: Path) -> None:
    assert cli("init", "--dry-run").status == 0
    assert not (tmp_path / "outerloop.toml").exists()
    assert cli("init").status == 0
    (tmp_path / "outerloop.toml").write_text("[bench]\nseeds = 2\n", encoding="utf-8")
    assert "would stay as it is" in cli("init", "--dry-run").err
    assert "stays as it is" in cli("init").err
    assert "by hand:\n[targets.iris]" in cli("init", "--target", "iris=/projects/iris.git").err
    assert (tmp_path / "state" / "jobs" / "measure.toml").is_file()
    assert (tmp_path / "outerloop.toml").read_text(encoding="utf-8") == "[bench]\nseeds = 2\n"


def test_what_init_leaves_commented_out_is_valid_as_it_stands(cli: Cli, tmp_path: Path) -> None:
    assert cli("init").status == 0
    (project,) = tmp_path.rglob("outerloop.toml")
    text = re.sub(r"^# (\w+ = )", r"\1", project.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert 'command = ["python3", "{files}/agent.py"]' in text
    project.write_text(text, encoding="utf-8")
    shown = {row["key"]: row["value"] for row in json.loads(cli("config", "show", "--json").out)["rows"]}
    assert shown["housekeeping.grace_hours"] == 24
    assert shown["steward.key_file"] == f"{project.parent}/keys/steward"
