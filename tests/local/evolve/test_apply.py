from __future__ import annotations

import errno
import hashlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc import documents
from outerloop_hpc.errors import TryLater
from outerloop_hpc.evolve.applying.apply import ApplyRefused, Recovery, Unfinished, apply, foreseen, mend
from outerloop_hpc.evolve.applying.exchange import Exchange, FileExchange
from outerloop_hpc.evolve.overlays.overlay import MOST_BYTES, InvalidOverlay, Overlay
from outerloop_hpc.evolve.work import Copy, OverlayRules
from tests.local.evolve import trees

BEFORE_COMMIT = ("compare", "claim", "stage", "recheck", "exchange", "parity", "finish")


class BoomError(Exception):
    pass


@pytest.fixture(params=list(trees.EXCHANGES))
def exchange(request: pytest.FixtureRequest) -> Exchange:
    return trees.EXCHANGES[request.param]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return trees.make(tmp_path / "checkout")


@pytest.fixture
def recovery(tmp_path: Path) -> Path:
    return tmp_path / "recovery.json"


def at(number: int, action: Callable[[], None], seen: list[tuple[str, str]]) -> Callable[[str, str], None]:
    """Let something happen at the n-th step, counted from 0; all steps are noted."""

    def watch(step: str, path: str) -> None:
        seen.append((step, path))
        if len(seen) == number + 1:
            action()

    return watch


def boom() -> None:
    raise BoomError


def written(path: Path) -> tuple[int, ...]:
    """What changes when somebody writes there; reading changes nothing of it."""
    found = path.stat()
    return (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def steps(tmp_path: Path) -> list[tuple[str, str]]:
    """Return every step of an apply that goes well."""
    seen: list[tuple[str, str]] = []
    folder = trees.make(tmp_path / "rehearsal")
    apply(trees.CANDIDATE, trees.work(), folder, tmp_path / "rehearsal.json", watch=at(-1, boom, seen))
    return seen


def test_every_file_and_every_copy_is_written_with_the_rights_that_it_had(
    checkout: Path, recovery: Path, exchange: Exchange
) -> None:
    done = apply(trees.CANDIDATE, trees.work(), checkout, recovery, exchange=exchange)
    found = trees.state(checkout)
    assert {path: data for path, (data, _) in found.items()} == trees.NEW
    assert {path: found[path][1] for path in trees.MODES} == trees.MODES
    assert set(done.changed) == set(trees.NEW)
    assert not recovery.exists()


def test_a_file_that_stays_as_it_was_is_compared_and_not_touched(checkout: Path, recovery: Path) -> None:
    overlay = Overlay({"src/a.py": b"old a\n", "src/deep/b.py": b"new b\n"})
    before = (checkout / "src/a.py").stat()
    done = apply(overlay, trees.work(), checkout, recovery)
    assert (done.changed, set(done.same)) == (("src/deep/b.py",), {"src/a.py", "dist/a.py"})
    assert (checkout / "src/a.py").stat() == before
    (checkout / "src/deep/b.py").write_bytes(b"old b\n")
    (checkout / "src/a.py").write_bytes(b"drifted\n")
    with pytest.raises(ApplyRefused, match="drifted"):
        apply(overlay, trees.work(), checkout, recovery)


def test_a_file_larger_than_any_candidate_can_be_replaced_and_put_back(checkout: Path, recovery: Path) -> None:
    """It was measured, and then refused as drifted although nobody had touched it."""
    large = checkout / "src/deep/b.py"
    os.truncate(large, MOST_BYTES + 1)
    with large.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    work = trees.work(base={**trees.work().base, "src/deep/b.py": digest})

    def fails(step: str, _path: str) -> None:
        if step == "finish":
            boom()

    with pytest.raises(BoomError):
        apply(trees.CANDIDATE, work, checkout, recovery, watch=fails)
    assert (large.stat().st_size, recovery.exists()) == (MOST_BYTES + 1, False)
    apply(trees.CANDIDATE, work, checkout, recovery)
    assert large.read_bytes() == b"new b\n"


def test_missing_unexpected_and_drifted_are_told_apart_all_at_once(checkout: Path, recovery: Path) -> None:
    (checkout / "src/a.py").write_bytes(b"drifted\n")
    (checkout / "dist/a.py").unlink()
    trees.save(checkout / "src/deep/b.py", b"old b\n")
    (checkout / "src/more/deep").mkdir(parents=True)
    (checkout / "src/more/deep/c.py").write_bytes(b"mine\n")
    before = trees.state(checkout)
    with pytest.raises(ApplyRefused) as refused:
        apply(trees.CANDIDATE, trees.work(), checkout, recovery)
    assert {kind: len(lines) for kind, lines in refused.value.differences.items()} == {
        "missing": 1,
        "unexpected": 1,
        "drifted": 1,
    }
    assert "missing (there at submit): 'dist/a.py'" in str(refused.value)
    assert trees.state(checkout) == before
    assert not recovery.exists()


@pytest.mark.parametrize("error", [BoomError, KeyboardInterrupt])
def test_whatever_fails_before_the_end_everything_is_put_back(
    tmp_path: Path, exchange: Exchange, error: type[BaseException], tried: Callable[[str, int], None]
) -> None:
    def fail() -> None:
        raise error

    wanted = steps(tmp_path)
    count = sum(step in BEFORE_COMMIT for step, _ in wanted)
    for number in range(count):
        folder, recovery = trees.make(tmp_path / f"{number}"), tmp_path / f"{number}.json"
        before, made = trees.state(folder), trees.folders(folder)
        with pytest.raises(error):
            apply(trees.CANDIDATE, trees.work(), folder, recovery, exchange=exchange, watch=at(number, fail, []))
        assert trees.state(folder) == before, wanted[number]
        assert trees.folders(folder) == made, wanted[number]
        assert not recovery.exists()
    tried("failures of apply", count)


def _killed(run: Callable[[], object]) -> None:
    """Run in a process that is gone at once where it is told to be, as by SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9, "it was to be killed"


def die() -> None:
    os._exit(9)


def test_wherever_an_apply_is_killed_mend_leaves_the_tree_whole(
    tmp_path: Path, exchange: Exchange, tried: Callable[[str, int], None]
) -> None:
    wanted = steps(tmp_path)
    for number, (step, path) in enumerate(wanted):
        folder, recovery = trees.make(tmp_path / f"{number}"), tmp_path / f"{number}.json"
        before, made = trees.state(folder), trees.folders(folder)
        watch = at(number, die, [])
        _killed(lambda: apply(trees.CANDIDATE, trees.work(), folder, recovery, exchange=exchange, watch=watch))  # noqa: B023
        if recovery.exists():
            mend(recovery, exchange=exchange)
        data = {name: content for name, (content, _) in trees.state(folder).items()}
        if step == "settle":
            assert data == trees.NEW, (step, path)
        else:
            assert (trees.state(folder), trees.folders(folder)) == (before, made), (step, path)
        assert not recovery.exists()
    tried("kills of apply", len(wanted))


class DyingExchange(FileExchange):
    """One in steps that dies at its n-th file, in the middle: before the name is taken, or when it has both names."""

    def __init__(self, moment: str, number: int) -> None:
        super().__init__(trees.lacking)
        self.moment, self.number = moment, number

    def place(self, folder: int, name: str, spare: str) -> None:
        self.number -= 1
        if self.number < 0:
            if self.moment == "both names":
                os.link(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
            elif self.moment == "placed":
                super().place(folder, name, spare)
            os._exit(9)
        super().place(folder, name, spare)


@pytest.mark.parametrize("moment", ["taken away", "both names", "placed"])
def test_a_kill_in_the_middle_of_an_exchange_in_steps_is_mended(tmp_path: Path, moment: str) -> None:
    for number in range(len(trees.NEW)):
        folder, recovery = trees.make(tmp_path / f"{number}"), tmp_path / f"{number}.json"
        before, made = trees.state(folder), trees.folders(folder)
        dying = DyingExchange(moment, number)
        _killed(lambda: apply(trees.CANDIDATE, trees.work(), folder, recovery, exchange=dying))  # noqa: B023
        mend(recovery)
        assert (trees.state(folder), trees.folders(folder)) == (before, made)


def test_an_editor_who_saves_at_any_step_keeps_his_bytes(
    tmp_path: Path, exchange: Exchange, tried: Callable[[str, int], None]
) -> None:
    wanted = steps(tmp_path)
    for number, (step, path) in enumerate(wanted):
        folder, recovery = trees.make(tmp_path / f"{number}"), tmp_path / f"{number}.json"
        file = folder / "src/a.py"
        watch = at(number, lambda: trees.save(file), [])  # noqa: B023
        try:
            apply(trees.CANDIDATE, trees.work(), folder, recovery, exchange=exchange, watch=watch)
        except (ApplyRefused, Unfinished):
            others = {name: data for name, (data, _) in trees.state(folder).items() if "outerloop" not in name}
            assert others == {**trees.OLD, "src/a.py": b"by an editor\n"}, (step, path)
        assert file.read_bytes() == b"by an editor\n", (step, path)
    tried("saves during apply", len(wanted))


class CrowdedExchange(FileExchange):
    """Somebody saves the file in the very moment of the exchange."""

    def __init__(self, moment: str, file: Path) -> None:
        self.moment, self.file = moment, file
        super().__init__(trees.lacking if moment == "taken away" else None)

    def swap(self, folder: int, name: str, spare: str, aside: str) -> None:
        if self.moment == "before":
            self._save(name)
        super().swap(folder, name, spare, aside)
        if self.moment == "after":
            self._save(name)

    def place(self, folder: int, name: str, spare: str) -> None:
        if self.moment == "taken away":
            self._save(name)
        super().place(folder, name, spare)

    def _save(self, name: str) -> None:
        if self.moment and name == self.file.name:
            self.moment = ""
            trees.save(self.file)


@pytest.mark.parametrize("moment", ["before", "taken away", "after"])
def test_an_editor_who_saves_in_the_moment_of_the_exchange_keeps_his_bytes(
    checkout: Path, recovery: Path, moment: str
) -> None:
    crowded = CrowdedExchange(moment, checkout / "src/deep/b.py")
    with pytest.raises((ApplyRefused, Unfinished)):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, exchange=crowded)
    found = {name: data for name, (data, _) in trees.state(checkout).items() if "outerloop" not in name}
    assert found == {**trees.OLD, "src/deep/b.py": b"by an editor\n"}
    kept = [data for name, (data, _) in trees.state(checkout).items() if "outerloop" in name]
    assert recovery.exists() == bool(kept)
    assert set(kept) <= {b"old b\n", b"new b\n"}


class StuckExchange(FileExchange):
    """The disk gives up after so many exchanges."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def swap(self, folder: int, name: str, spare: str, aside: str) -> None:
        self.most -= 1
        if self.most < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().swap(folder, name, spare, aside)


def test_what_cannot_be_put_back_is_named_and_mended_later(checkout: Path, recovery: Path) -> None:
    before, made = trees.state(checkout), trees.folders(checkout)
    with pytest.raises(Unfinished, match=r"cannot be put back: .*recovery\.json says where"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, exchange=StuckExchange(2))
    assert recovery.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ApplyRefused, match="an earlier apply was cut off"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery)
    assert set(mend(recovery)) == set(trees.NEW)
    assert (trees.state(checkout), trees.folders(checkout)) == (before, made)


def test_a_candidate_that_is_in_place_is_not_taken_back_when_tidying_up_fails(checkout: Path, recovery: Path) -> None:
    def stuck(step: str, path: str) -> None:
        if (step, path) == ("settle", "src/deep/b.py"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(Unfinished, match="the candidate is in place"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, watch=stuck)
    mend(recovery)
    assert {path: data for path, (data, _) in trees.state(checkout).items()} == trees.NEW
    assert not recovery.exists()


def test_a_folder_that_was_replaced_by_another_with_the_same_files_is_noticed(checkout: Path, recovery: Path) -> None:
    def replace(step: str, path: str) -> None:
        if (step, path) == ("recheck", "src/a.py"):
            (checkout / "src/deep").rename(checkout / "away")
            (checkout / "src/deep").mkdir()
            (checkout / "src/deep/b.py").write_bytes(b"old b\n")

    with pytest.raises(ApplyRefused, match="in a folder that was replaced"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, watch=replace)
    found = {path: data for path, (data, _) in trees.state(checkout).items()}
    assert found == {**trees.OLD, "away/b.py": b"old b\n"}


def test_a_full_disk_is_a_reason_to_try_later_and_nothing_is_changed(checkout: Path, recovery: Path) -> None:
    def full(step: str, path: str) -> None:
        if (step, path) == ("stage", "src/deep/b.py"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = trees.state(checkout)
    with pytest.raises(TryLater, match="No space left"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, watch=full)
    assert trees.state(checkout) == before


def test_a_second_interrupt_waits_until_everything_is_put_back(checkout: Path, recovery: Path) -> None:
    def impatient(step: str, _path: str) -> None:
        if step in {"parity", "undo"}:
            os.kill(os.getpid(), signal.SIGINT)

    before = trees.state(checkout)
    with pytest.raises(KeyboardInterrupt):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, watch=impatient)
    assert trees.state(checkout) == before
    assert not recovery.exists()


def test_of_two_applies_at_once_one_is_refused_and_leaves_the_others_recovery_file(
    checkout: Path, recovery: Path
) -> None:
    def other(step: str, _path: str) -> None:
        if step == "claim":
            recovery.write_bytes(b"another's")

    before = trees.state(checkout)
    with pytest.raises(ApplyRefused, match="another apply began"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, watch=other)
    assert trees.state(checkout) == before
    assert recovery.read_bytes() == b"another's"


@pytest.mark.parametrize("step", ["compare", "recheck"])
def test_a_folder_that_becomes_a_link_is_not_followed(
    checkout: Path, recovery: Path, tmp_path: Path, step: str
) -> None:
    outside = tmp_path / "outside"

    def move(now: str, path: str) -> None:
        if (now, path) == (step, "src/deep/b.py"):
            (checkout / "src/deep").rename(outside)
            (checkout / "src/deep").symlink_to(outside)

    with pytest.raises(ApplyRefused, match="symbolic link"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery, watch=move)
    assert trees.state(outside) == {"b.py": (b"old b\n", 0o640)}
    assert {name for name in trees.state(checkout) if "outerloop" in name} == set()


def test_a_destination_that_is_a_link_is_drifted_and_its_end_is_untouched(
    checkout: Path, recovery: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").write_bytes(b"old a\n")
    (checkout / "src/a.py").unlink()
    (checkout / "src/a.py").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ApplyRefused, match=r"drifted .*symbolic link"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery)
    assert (tmp_path / "elsewhere").read_bytes() == b"old a\n"


def test_a_checkout_behind_a_link_is_the_callers_own(checkout: Path, recovery: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(checkout)
    apply(trees.CANDIDATE, trees.work(), tmp_path / "link", recovery)
    assert (checkout / "src/a.py").read_bytes() == b"new a\n"


def test_a_candidate_that_breaks_the_rules_is_never_written(checkout: Path, recovery: Path) -> None:
    before = trees.state(checkout)
    with pytest.raises(InvalidOverlay, match="may_add is false"):
        apply(trees.CANDIDATE, trees.work(overlay=OverlayRules(allow=("src/**",))), checkout, recovery)
    assert trees.state(checkout) == before


def test_one_place_cannot_be_a_copy_of_two_files_that_differ(checkout: Path, recovery: Path) -> None:
    copies = (Copy(source="src/a.py", to="dist/a.py"), Copy(source="src/deep/b.py", to="dist/a.py"))
    with pytest.raises(InvalidOverlay, match="copy of two files"):
        apply(trees.CANDIDATE, trees.work(copies=copies), checkout, recovery)


def test_a_checkout_that_is_not_there_is_said(tmp_path: Path, recovery: Path) -> None:
    with pytest.raises(ApplyRefused, match="is not there; nothing was changed"):
        apply(trees.CANDIDATE, trees.work(), tmp_path / "gone", recovery)


def test_a_tree_that_holds_the_candidate_already_is_left_as_it_is(checkout: Path, recovery: Path) -> None:
    apply(trees.CANDIDATE, trees.work(), checkout, recovery)
    before = {path: written(path) for path in checkout.rglob("*")}
    done = apply(trees.CANDIDATE, trees.work(), checkout, recovery)
    assert (done.changed, set(done.same)) == ((), set(trees.NEW))
    assert {path: written(path) for path in checkout.rglob("*")} == before
    (checkout / "dist/a.py").write_bytes(b"old a\n")
    with pytest.raises(ApplyRefused, match="drifted"):
        apply(trees.CANDIDATE, trees.work(), checkout, recovery)


def test_what_apply_would_do_is_foreseen_and_nothing_is_written(checkout: Path, recovery: Path) -> None:
    before, made = trees.state(checkout), trees.folders(checkout)
    assert set(foreseen(trees.CANDIDATE, trees.work(), checkout).changed) == set(trees.NEW)
    assert (trees.state(checkout), trees.folders(checkout)) == (before, made)
    apply(trees.CANDIDATE, trees.work(), checkout, recovery)
    assert foreseen(trees.CANDIDATE, trees.work(), checkout).changed == ()
    (checkout / "src/a.py").write_bytes(b"drifted\n")
    with pytest.raises(ApplyRefused, match="drifted"):
        foreseen(trees.CANDIDATE, trees.work(), checkout)


def test_a_disk_that_is_full_at_the_claim_leaves_nothing_that_stands_in_the_way_of_the_next_apply(
    checkout: Path, recovery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(TryLater):
            apply(trees.CANDIDATE, trees.work(), checkout, recovery)
    assert list(recovery.parent.iterdir()) == [checkout]
    assert apply(trees.CANDIDATE, trees.work(), checkout, recovery).changed


def test_two_applies_of_different_sweeps_and_a_mend_do_not_meet_in_one_tree(checkout: Path, tmp_path: Path) -> None:
    """Each would take the other's files for an editor's, and neither could put back all of its own."""
    refused: list[str] = []

    def meet(step: str, _path: str) -> None:
        if step == "exchange":
            for other in (
                lambda: apply(trees.CANDIDATE, trees.work(), checkout, tmp_path / "other.json"),
                lambda: mend(tmp_path / "one.json"),
            ):
                with pytest.raises(ApplyRefused, match="another apply is at work") as found:
                    other()
                refused.append(str(found.value))

    assert apply(trees.CANDIDATE, trees.work(), checkout, tmp_path / "one.json", watch=meet).changed
    assert len(refused) == 2 * len(trees.NEW)
    assert {path: data for path, (data, _) in trees.state(checkout).items()} == trees.NEW
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkout"]


def test_a_mend_that_began_while_an_apply_lived_takes_nothing_back_from_it(
    checkout: Path, recovery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it read before it had the tree to itself says that nothing was done yet."""
    loaded: list[Recovery] = []

    def gone() -> Recovery:
        raise FileNotFoundError(recovery)

    def meet(step: str, _path: str) -> None:
        if step == "exchange" and not loaded:
            loaded.append(documents.load(Recovery, recovery))

    apply(trees.CANDIDATE, trees.work(), checkout, recovery, watch=meet)
    monkeypatch.setattr(documents, "load", lambda *_: loaded.pop() if loaded else gone())
    with pytest.raises(ApplyRefused, match="came to its end"):
        mend(recovery)
    assert {path: data for path, (data, _) in trees.state(checkout).items()} == trees.NEW
