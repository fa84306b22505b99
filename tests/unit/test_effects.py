"""Every durable write and command passes one seam, in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc import effects, fsio
from outerloop_hpc.process import run_command
from tests.unit import seam

pytestmark = pytest.mark.unit

_PACKAGE = Path(effects.__file__).parent
_OWN = "carried out by an effect of that module"
_SCRATCH = "a folder of this process alone, on its node's own disk or in TMPDIR; nobody else ever reads it"
_JOB = "inside the effect that runs the command"
_APPLY = "inside the one effect of apply or mend, whose own tests stop it at every step"
#: Who may write or start something by himself, and why.
_MAY = {
    "cli/main.py main": "to /dev/null",
    "cli/session.py Session.targets": _SCRATCH,
    "container/build.py build": _SCRATCH,
    "container/build.py _put_in_place": "rights of an image that is put into place later",
    "container/build.py _put_in_place.move": _OWN,
    "container/check.py _program": _SCRATCH,
    "container/probe.py probe": _SCRATCH,
    "container/probe.py _probe": _SCRATCH,
    "container/runtime.py make_scratch": _SCRATCH,
    "doctor/checks.py Doctor._clock": "a probe that is gone at once, by a command of people",
    "doctor/roles.py RoleChecks._ask": _SCRATCH,
    "engine/carry.py leave_live_index": _OWN,
    "engine/clearing.py _Clearing._entry": "for housekeeping, which is one effect, and for scratch",
    "engine/clearing.py _file": "as above",
    "engine/clearing.py _opened": "as above",
    "engine/clearing.py remove": "as above",
    "engine/inbox.py done.move": _OWN,
    "engine/room.py _take_a_file": "a probe without a name",
    "engine/runs.py ensure": "an empty folder says nothing",
    "engine/scratch.py _hold": _SCRATCH,
    "engine/scratch.py _swept": _SCRATCH,
    "engine/scratch.py made": _SCRATCH,
    "evolve/applying/apply.py _Application._claim": _APPLY,
    "evolve/overlays/descent.py folder_of": "for lay and apply, each of which is one effect",
    "evolve/applying/destination.py Tree._removed": _APPLY,
    "evolve/applying/destination.py Tree.make_folders": _APPLY,
    "evolve/applying/destination.py Tree.remove_folders": _APPLY,
    "evolve/applying/destination.py _clear": _APPLY,
    "evolve/applying/exchange.py FileExchange._in_steps": _APPLY,
    "evolve/applying/exchange.py FileExchange.place": _APPLY,
    "evolve/overlays/frozen.py _fill": _OWN,
    "evolve/overlays/frozen.py _freeze": _OWN,
    "evolve/overlays/transfer.py _put": _OWN,
    "evolve/proposers/bundle.py write": _SCRATCH,
    "evolve/hidden.py _drop_empty": _SCRATCH,
    "evolve/hidden.py _write": _SCRATCH,
    "evolve/bodies/arm.py _Trial.carry_out": _SCRATCH,
    "evolve/bodies/arm.py _Trial._enclosure": _SCRATCH,
    "evolve/proposers/agent.py propose": _SCRATCH,
    "evolve/proposers/desk.py lay_out": _SCRATCH,
    "cli/replaying.py _new": "an empty folder says nothing",
    "fsio.py _clear": "of a probe",
    "fsio.py _probe_folder_rename": "a probe in a folder of its own",
    "fsio.py _probe_link": "a probe in a folder of its own",
    "fsio.py _probe_rename": "a probe in a folder of its own",
    "fsio.py _publish": _OWN,
    "fsio.py _publish_folder": _OWN,
    "fsio.py _remove": _OWN,
    "fsio.py _replace": _OWN,
    "fsio.py _write_durably": _OWN,
    "fsio.py make_folder": "an empty folder says nothing",
    "fsio.py probe": "a probe in a folder of its own",
    "process.py _run": _OWN,
    "slurm/local.py _detached": "to /dev/null",
    "slurm/localcontroller.py _Controller._say": "stands for Slurm, in a process of its own",
    "slurm/localcontroller.py _Controller._start": "stands for Slurm, in a process of its own",
    "slurm/submit.py _write_private": _OWN,
    "steward/held.py end": _JOB,
    "steward/session.py _prepare": _SCRATCH,
    "supervision/capture.py CappedLog.__init__": _JOB,
    "supervision/capture.py CappedLog._write": _JOB,
    "supervision/child.py _Execution.run": _OWN,
    "supervision/warden.py _start": _JOB,
    "supervision/warden.py main": _JOB,
    "target/compose.py commit_on": _SCRATCH,
    "target/export.py _claim": "an empty folder says nothing",
    "target/export.py _clear": _OWN,
    "target/export.py _write_file": _OWN,
    "target/export.py _write_link": _OWN,
    "target/git.py trusting": _SCRATCH,
    "target/merge.py Branches._repository": _OWN,
    "target/mirror.py Mirror._build": _OWN,
    "target/repository.py Repository.borrow": _SCRATCH,
    "target/single.py single_commit": _SCRATCH,
}


@pytest.fixture
def seen() -> Iterator[list[tuple[str, str]]]:
    log: list[tuple[str, str]] = []

    def around(what: str, subject: str, action: Callable[[], Any]) -> Any:
        log.append((what, Path(subject).name))
        result = action()
        log.append((f"{what} done", Path(subject).name))
        return result

    effects.install(around)
    yield log
    effects.install(None)


def test_effects_pass_the_seam_in_their_order(seen: list[tuple[str, str]], tmp_path: Path) -> None:
    fsio.publish(tmp_path / "intent", b"1")
    run_command([sys.executable, "-c", ""], timeout=60)
    fsio.replace(tmp_path / "snapshot", b"2")
    fsio.remove(tmp_path / "intent")
    kinds = ["publish", "command", "replace", "remove"]
    assert [what for what, _ in seen] == [word for kind in kinds for word in (kind, f"{kind} done")]
    assert [subject for _, subject in seen[::2]] == ["intent", Path(sys.executable).name, "snapshot", "intent"]


def test_an_effect_that_is_refused_does_not_happen(tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    def refuse(_what: str, _subject: str, _action: Callable[[], Any]) -> Any:
        raise KilledError

    effects.install(refuse)
    try:
        with pytest.raises(KilledError):
            fsio.publish(tmp_path / "intent", b"1")
    finally:
        effects.install(None)
    assert list(tmp_path.iterdir()) == []
    assert fsio.publish(tmp_path / "intent", b"1")


def test_nobody_writes_or_starts_a_program_beside_the_seam() -> None:
    """A line here that is gone from the package has to go, too."""
    found = {f"{file} {function}" for file, function in seam.in_package(_PACKAGE)}
    beside, gone = sorted(found - _MAY.keys()), sorted(_MAY.keys() - found)
    assert not beside, f"let it pass effects.perform, or say here why it need not: {beside}"
    assert not gone


def test_only_the_module_for_it_has_gitpython() -> None:
    """Its ``started`` runs behind the seam, and once more to read blobs, which changes nothing."""
    texts = {str(path.relative_to(_PACKAGE)): path.read_text(encoding="utf-8") for path in _PACKAGE.rglob("*.py")}
    assert {name for name, text in texts.items() if seam.imports(text, "git")} == {"target/git.py"}
    users = {name for name, text in texts.items() if seam.calls(text, "started")}
    assert users == {"target/git.py", "target/repository.py"}


@pytest.mark.parametrize(
    "line",
    [
        "os.rename(a, b)",
        "os.replace(a, b)",
        "a.replace(b)",
        "a.rename(b)",
        "a.write_text('x')",
        "a.write_bytes(b'')",
        "a.unlink(missing_ok=True)",
        "open(a, 'w')",
        "open(a, mode='ab')",
        "open(a, how)",
        "a.open('x')",
        "os.open(a, os.O_WRONLY | os.O_CREAT)",
        "shutil.rmtree(a)",
        "later(shutil.rmtree, a)",
        "subprocess.run(['true'])",
        "subprocess.Popen(['true'])",
        "Popen(['true'])",
        "os.system('true')",
        "os.execvp('true', [])",
        "tempfile.mkdtemp()",
    ],
)
def test_a_write_or_a_program_beside_the_seam_is_noticed(line: str) -> None:
    assert [holder for holder, _ in seam.found(f"class A:\n    def f(self):\n        {line}\n")] == ["A.f"]


@pytest.mark.parametrize("line", ["a.replace('x', 'y')", "open(a, 'rb')", "a.open()", "at.replace(hour=0)"])
def test_reading_and_texts_are_no_effects(line: str) -> None:
    assert list(seam.found(line)) == []
