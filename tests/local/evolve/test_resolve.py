from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc.clock import SystemClock
from outerloop_hpc.config.settings import Limits, Settings, State, Target
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.targets import Targets
from outerloop_hpc.errors import UsageError
from outerloop_hpc.evolve import work as works
from outerloop_hpc.evolve.overlays.overlay import InvalidOverlay, Overlay, check
from outerloop_hpc.evolve.sweepfile.document import load
from outerloop_hpc.evolve.sweepfile.resolve import Resolved, resolve
from tests.local.scratch import commit, git, new_source

CONTRACT = """\
benchmarks:
  - {name: speed, command: python3 evaluate.py -q, metric: seconds, direction: min, eval_minutes: 2, seed_env: SEED}
  - {name: other, command: python3 -m bench.other, metric: seconds, direction: min, eval_minutes: 2}
  - {name: score, command: python3 evaluate.py, metric: score, direction: max, eval_minutes: 2, gpus: 1}
scope: {allowed: [src]}
steward: {allowed: [evaluate.py, reference]}
"""
FILES = {
    ".outerloop.yaml": CONTRACT,
    "evaluate.py": "print(1)\n",
    "bench/other.py": "print(1)\n",
    "reference/data.json": "{}\n",
    "src/solver.py": "old\n",
    "src/p.json": "{}\n",
    "src/run.py": "print(1)\n",
    "src/hidden.py": "answer\n",
    "shipped/solver.py": "old\n",
}
SWEEP = """\
schema: sweep/1
name: demo
target: demo
overlay: {allow: ["**"]}
proposer: {kind: command, command: propose, timeout_s: 600, candidates: 3}
tasks:
  - {id: quick, benchmark: speed}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = new_source(tmp_path / "source")
    for path, text in FILES.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    (source / "src/link.py").symlink_to("solver.py")
    commit(source)
    git(source, "branch", "-M", "main")
    return source


Resolver = Callable[..., Resolved]


@pytest.fixture
def resolving(source: Path, tmp_path: Path) -> Resolver:
    """Resolve the sweep with texts put in the place of others; texts at the end come from ``more``."""
    settings = Settings(
        state=State(root=tmp_path / "state"),
        limits=Limits(eval_minutes=30),
        targets={"demo": Target(repository=str(source))},
    )
    layout = Layout(tmp_path / "state")

    def call(*changes: tuple[str, str], more: str = "", expensive: bool = False) -> Resolved:
        text = SWEEP + more
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        targets = Targets(settings, layout, SystemClock(), mirrors=tmp_path / "mirrors", cache=tmp_path / "cache")
        return resolve(targets, load(text.encode()), tmp_path, expensive=expensive)

    return call


def _said(resolving: Resolver, *changes: tuple[str, str], **more: str) -> str:
    with pytest.raises(UsageError) as refused:
        resolving(*changes, **more)
    return str(refused.value)


_QUICK = "{id: quick, benchmark: speed}"


def test_a_task_is_pinned_with_what_its_benchmark_says(resolving: Resolver, source: Path) -> None:
    found = resolving().work
    task = found.task("quick")
    assert task.commit == git(source, "rev-parse", "HEAD")
    assert task.tree == git(source, "rev-parse", "HEAD^{tree}")
    assert (task.command, task.seed_env, task.timeout_s) == (("python3", "evaluate.py", "-q"), "SEED", 120.0)
    assert (found.gate.primary.name, found.gate.primary.direction, found.unit) == ("seconds", "min", "pair")


def test_work_survives_being_written_into_a_specification(resolving: Resolver) -> None:
    work = resolving().work
    assert works.EvolveWork.model_validate(works.dump(work)) == work


def test_a_branch_that_moves_later_changes_nothing_of_the_work(resolving: Resolver, source: Path) -> None:
    before = resolving(("target: demo", f"target: demo\nref: {git(source, 'rev-parse', 'HEAD')}")).work
    (source / "src/solver.py").write_text("moved\n")
    commit(source)
    after = resolving(("target: demo", f"target: demo\nref: {before.tasks[0].commit}")).work
    assert (after.base, after.tasks) == (before.base, before.tasks)


def test_the_base_holds_each_file_that_is_open_and_nothing_that_judges(resolving: Resolver) -> None:
    hidden = "{id: quick, benchmark: speed, oracle: {command: python3 src/hidden.py, files: [src/hidden.py]}}"
    base = resolving((_QUICK, hidden)).work.base
    assert base.keys() == {"src/solver.py", "src/p.json", "src/run.py", "shipped/solver.py"}
    assert base["src/solver.py"] == hashlib.sha256(b"old\n").hexdigest()


def test_the_program_of_a_command_is_closed_and_a_notice_says_so(resolving: Resolver) -> None:
    task = "{id: quick, command: python3 src/run.py, timeout_s: 5}"
    metrics = "metrics: {primary: {name: seconds, direction: min}}\n"
    found = resolving((_QUICK, task), more=metrics)
    assert "src/run.py" not in found.work.base
    assert any("'src/run.py' is run by quick" in notice for notice in found.notices)
    opened = resolving((_QUICK, task), ('["**"]', '["**", src/run.py]'), more=metrics)
    assert "src/run.py" in opened.work.base


def test_what_is_closed_cannot_be_allowed_by_name(resolving: Resolver) -> None:
    said = _said(resolving, ('["**"]', '["src/**", Evaluate.py, .github]'))
    assert "overlay.allow[1]: 'Evaluate.py' is closed to every candidate" in said
    assert "overlay.allow[2]: '.github' is closed to every candidate" in said


def test_a_denied_file_is_no_file_of_the_incumbent(resolving: Resolver) -> None:
    assert "src/p.json" not in resolving(('["**"]', '["**"], deny: ["src/*.JSON"]')).work.base


def test_no_matching_file_is_refused(resolving: Resolver) -> None:
    assert "no file of demo at" in _said(resolving, ('["**"]', '["lib/**"]'))


def test_an_unknown_target_ref_or_benchmark_is_named(resolving: Resolver) -> None:
    assert "'dmo' is not a configured target (there are: demo)" in _said(resolving, ("target: demo", "target: dmo"))
    assert "'v9'" in _said(resolving, ("target: demo", "target: demo\nref: v9"))
    assert "task quick: benchmark: the contract has no benchmark 'sped'" in _said(resolving, ("speed", "sped"))


def test_every_problem_is_told_at_once(resolving: Resolver) -> None:
    tasks = "{id: a, benchmark: sped}\n  - {id: b, benchmark: speed, ref: v9}"
    said = _said(resolving, (_QUICK, tasks), ('["**"]', '["lib/**"]'))
    assert [word in said for word in ("task a", "task b", "overlay.allow")] == [True] * 3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "repeats: {screen: 2}\n",
            "repeats.screen: 2 pairs over 1 tasks can never reach the screen level 0.2; at least 3 a task are needed",
        ),
        (
            "repeats: {confirm: 5, most: 5}\nbudget: {generations: 4}\n",
            "repeats.most: 5 pairs over 1 tasks can never reach the level of one look 0.0125; at least 7 a task",
        ),
        ("budget: {generations: 900}\n", "plan fewer generations"),
    ],
)
def test_a_plan_that_can_promote_nothing_is_refused_before_anything_is_measured(
    resolving: Resolver, more: str, said: str
) -> None:
    assert said in _said(resolving, more=more)


def test_a_metric_that_is_not_the_benchmarks_own_is_said(resolving: Resolver) -> None:
    """A misspelt one failed every cell and ended as a broken harness."""
    found = resolving(more="metrics: {primary: {name: secnods, direction: min}}\n")
    assert any("quick: its benchmark's metric is 'seconds'" in notice for notice in found.notices)
    assert not any("metric" in notice for notice in resolving().notices)


def test_expensive_tasks_are_skipped_and_named_unless_they_are_included(resolving: Resolver) -> None:
    tasks = f"{_QUICK}\n  - {{id: dear, benchmark: other, expensive: true}}"
    found = resolving((_QUICK, tasks))
    assert ([task.id for task in found.work.tasks], found.skipped) == (["quick"], ("dear",))
    assert "dear: expensive, skipped" in found.notices
    assert len(resolving((_QUICK, tasks), expensive=True).work.tasks) == 2
    assert "every task is expensive (quick)" in _said(resolving, ("speed}", "speed, expensive: true}"))


def test_the_oracle_of_a_skipped_task_stays_hidden(resolving: Resolver) -> None:
    """Whoever could read it now would know the answers when the task is measured."""
    tasks = (
        f"{_QUICK}\n  - {{id: dear, benchmark: other, expensive: true, "
        "oracle: {command: [cat, '{oracle}/src/hidden.py'], files: [src/hidden.py]}}"
    )
    for expensive in (False, True):
        assert resolving((_QUICK, tasks), expensive=expensive).work.hidden() == ("src/hidden.py",)


def test_a_pair_asks_for_the_time_of_both_arms(resolving: Resolver) -> None:
    task = "{id: quick, benchmark: speed, setup: [make], setup_timeout_s: 60, timeout_s: 120}"
    assert resolving((_QUICK, task)).work.tasks[0].resources.minutes == 2 * 3 + 5
    assert resolving((_QUICK, task), ("name: demo", "name: demo\nunit: cell")).work.tasks[0].resources.minutes == 3 + 5


def test_a_walltime_that_the_work_does_not_fit_into_is_refused(resolving: Resolver) -> None:
    said = _said(resolving, ("speed}", "speed, resources: {minutes: 8}}"))
    assert "task quick: resources.minutes: at least 9" in said
    assert resolving(("speed}", "speed, resources: {minutes: 90}}")).work.tasks[0].resources.minutes == 90


def test_the_operators_limit_of_a_measurement_holds(resolving: Resolver) -> None:
    assert "timeout_s: at most 1800 s ([limits] eval_minutes)" in _said(
        resolving, ("speed}", "speed, timeout_s: 1801}")
    )


def test_resources_of_a_task_win_over_those_of_the_job_definition(resolving: Resolver, tmp_path: Path) -> None:
    (tmp_path / "state/jobs").mkdir(parents=True)
    (tmp_path / "state/jobs/propose.toml").write_text("max_tries = 3\n")
    (tmp_path / "state/jobs/cell.toml").write_text('cpus = 2\nmax_tries = 4\n[options]\nconstraint = "a"\nnice = 5\n')
    task = "{id: quick, benchmark: score, resources: {memory_mb: 100, options: {constraint: b}}}"
    found = resolving((_QUICK, task)).work
    ask = found.tasks[0].resources
    assert (ask.cpus, ask.memory_mb, ask.gpus) == (2, 100, 1)
    assert (ask.options, found.max_tries) == ({"constraint": "b", "nice": 5}, 4)
    assert found.proposing_tries == 3


def test_a_proposal_job_has_time_for_every_candidate(resolving: Resolver) -> None:
    work = resolving().work
    assert (work.candidates, work.proposing.minutes) == (3, 3 * 10 + 10)


def test_benchmarks_with_different_metrics_need_one_that_is_named(resolving: Resolver) -> None:
    tasks = f"{_QUICK}\n  - {{id: b, benchmark: score}}"
    assert "metrics.primary.name: needed" in _said(resolving, (_QUICK, tasks))
    named = "metrics: {primary: {name: score}}\n"
    assert resolving((_QUICK, tasks), more=named).work.gate.primary.direction == "max"


def test_a_direction_against_the_contracts_is_refused(resolving: Resolver) -> None:
    said = _said(resolving, more="metrics: {primary: {direction: max}}\n")
    assert "the sweep says max, the contract quick: min" in said


def test_a_task_at_another_commit_needs_the_same_incumbent(resolving: Resolver, source: Path) -> None:
    first = git(source, "rev-parse", "HEAD")
    (source / "reference/data.json").write_text("[]\n")
    second = commit(source)
    task = f"{{id: quick, benchmark: speed, ref: {first}}}"
    assert resolving((_QUICK, task)).work.tasks[0].commit == first != second
    (source / "src/solver.py").write_text("moved\n")
    commit(source)
    assert "the incumbent's files are others there ('src/solver.py')" in _said(resolving, (_QUICK, task))


@pytest.mark.parametrize(
    ("files", "message"),
    [("[gone.py]", "oracle: 'gone.py' is not there"), ("[src/link.py]", "oracle: 'src/link.py' is not a regular file")],
)
def test_an_oracle_that_cannot_be_mounted_is_refused(resolving: Resolver, files: str, message: str) -> None:
    task = f"{{id: quick, benchmark: speed, oracle: {{command: check, files: {files}}}}}"
    assert message in _said(resolving, (_QUICK, task))


def test_success_is_judged_when_a_task_can_succeed(resolving: Resolver) -> None:
    assert resolving().work.gate.success is None
    assert resolving(("speed}", "speed, success: ok}")).work.gate.success is not None


_SRC = ('["**"]', '["src/**"]')


@pytest.mark.parametrize(
    ("copies", "message"),
    [
        ("[{from: src/gone.py, to: shipped/gone.py}]", "copies[0].from: 'src/gone.py' is no file"),
        ("[{from: src/p.json, to: shipped/p.json}]", "copies[0].to: 'shipped/p.json' is not there"),
        ("[{from: src/p.json, to: shipped/solver.py}]", "copies[0].to: 'shipped/solver.py' differs from 'src/p.json'"),
        ("[{from: src/p.json, to: reference/data.json}]", "copies[0].to: 'reference/data.json' is closed"),
    ],
)
def test_a_copy_must_be_one(resolving: Resolver, copies: str, message: str) -> None:
    assert message in _said(resolving, _SRC, more=f"copies: {copies}\n")


_FOLDER = "copies: [{from: src, to: shipped}]\n"


def test_a_file_of_a_folder_that_is_copied_is_not_itself_one_that_candidates_bring(resolving: Resolver) -> None:
    """Two contents for one place could be measured for weeks and never be applied."""
    allowed = ('["**"]', '["src/solver.py", "shipped/*.py"]')
    assert "copies[0].to: 'shipped/solver.py' is itself allowed" in _said(resolving, allowed, more=_FOLDER)


def test_a_new_file_whose_copy_would_meet_another_file_is_closed_before_it_is_measured(
    resolving: Resolver, source: Path
) -> None:
    """It could never be applied: what is at the further place was not there at submit for all that apply knows."""
    (source / "shipped/extra.py").write_text("of the shipped one alone\n")
    commit(source)
    allowed = ('["**"]', '["src/solver.py", "src/extra*"], may_add: true')
    work = resolving(allowed, more=_FOLDER).work
    with pytest.raises(InvalidOverlay, match=r"'src/extra\.py' is closed"):
        check(Overlay({"src/extra.py": b"new\n"}), work.overlay, work.base, work.copies)
    check(Overlay({"src/extras.py": b"new\n"}), work.overlay, work.base, work.copies)


def test_no_file_of_a_folder_is_copied_to_where_no_candidate_may_write(resolving: Resolver) -> None:
    closed = ('["**"]', '["src/solver.py"], deny: [shipped/solver.py]')
    assert "copies[0].to: 'shipped/solver.py' is closed to every candidate" in _said(resolving, closed, more=_FOLDER)


def test_a_new_file_is_not_copied_to_where_no_candidate_may_write(resolving: Resolver) -> None:
    allowed = ('["**"]', '["src/solver.py", "src/new/*"], deny: [shipped/new], may_add: true')
    work = resolving(allowed, more=_FOLDER).work
    with pytest.raises(InvalidOverlay, match="'src/new/a' would be copied to 'shipped/new/a', which is closed"):
        check(Overlay({"src/new/a": b"new\n"}), work.overlay, work.base, work.copies)


def test_a_copy_that_is_one_is_kept(resolving: Resolver) -> None:
    found = resolving(_SRC, more="copies: [{from: src/solver.py, to: shipped/solver.py}]\n").work
    assert found.copies == (works.Copy(source="src/solver.py", to="shipped/solver.py"),)


def _dirs(*names: str) -> tuple[str, str]:
    return "{kind: command, command: propose, timeout_s: 600, candidates: 3}", f"{{kind: dirs, folders: {list(names)}}}"


def _prepare(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def test_prepared_overlays_are_read_and_named_by_their_digests(resolving: Resolver, tmp_path: Path) -> None:
    _prepare(tmp_path / "a", "src/solver.py", "new\n")
    _prepare(tmp_path / "b", "src/p.json", "[]\n")
    found = resolving(_dirs("a", "b"))
    assert found.work.proposer == works.Dirs(digests=tuple(one.digest for one in found.overlays))
    assert dict(found.overlays[0].files) == {"src/solver.py": b"new\n"}


def test_each_prepared_overlay_that_breaks_a_rule_is_named_with_its_folder(resolving: Resolver, tmp_path: Path) -> None:
    _prepare(tmp_path / "a", "evaluate.py", "print(9)\n")
    _prepare(tmp_path / "b", "src/solver.py", "old\n")
    _prepare(tmp_path / "c", "src/solver.py", "new\n")
    _prepare(tmp_path / "d", "src/solver.py", "new\n")
    said = _said(resolving, _dirs("a", "b", "c", "d", "e"))
    assert "proposer.folders[0]: 'a': 'evaluate.py' is closed to candidates" in said
    assert "proposer.folders[1]: 'b': every file is the same" in said
    assert "proposer.folders[3]: 'd': holds the same as 'c'" in said
    assert "proposer.folders[4]: 'e': 'e' is not there" in said


_GRID = "{kind: grid, template: TEMPLATE, values: {a: [1, 2]}}"


def _grid(template: str) -> tuple[str, str]:
    return _dirs()[0], _GRID.replace("TEMPLATE", template)


def test_a_template_may_lie_in_a_folder(resolving: Resolver, tmp_path: Path) -> None:
    _prepare(tmp_path / "t", "src/p.json", '{"a": {{a}}}\n')
    proposer = resolving(_grid("t")).work.proposer
    assert isinstance(proposer, works.Grid)
    assert proposer.template == {"src/p.json": '{"a": {{a}}}\n'}


def test_a_template_of_files_that_candidates_may_not_bring_is_refused(resolving: Resolver, tmp_path: Path) -> None:
    _prepare(tmp_path / "t", "evaluate.py", "{{a}}{{b}}")
    said = _said(resolving, _grid("t"))
    assert "'evaluate.py' is closed to candidates" in said
    assert "has a place 'b' that no value is declared for" in said
    assert "may_add is false" in _said(resolving, _grid("{src/new.py: '{{a}}'}"))


def test_nothing_is_written_but_the_mirror(resolving: Resolver, tmp_path: Path) -> None:
    _prepare(tmp_path / "a", "src/solver.py", "new\n")
    before = {path.name for path in tmp_path.iterdir()}
    resolving(_dirs("a"))
    assert {path.name for path in tmp_path.iterdir()} - before == {"mirrors"}
