"""The local forge with real files and real git: orders, comments, labels, alarms, and changes that are merged."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.errors import Fault, TryLater, UsageError
from outerloop_hpc.forge.local import ALARM, LocalForge
from outerloop_hpc.forge.port import NotThere, Proposal
from outerloop_hpc.target.merge import Branches
from outerloop_hpc.target.mirror import Mirror
from outerloop_hpc.target.repository import Repository
from tests.local.forge.test_publish import git
from tests.unit.engine.made import T0

pytestmark = pytest.mark.local

LABEL = "outerloop:steward"
BRANCH = "feat/steward/x"


class Hours:
    """A clock on which each look is an hour later."""

    def __init__(self) -> None:
        self.at = T0

    def now(self) -> datetime:
        self.at += timedelta(hours=1)
        return self.at

    def steady(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@pytest.fixture
def forge(tmp_path: Path) -> LocalForge:
    return LocalForge(tmp_path / "forge" / "iris", identity="outerloop", clock=Hours())


def order(forge: LocalForge, title: str = "Resample", *labels: str) -> str:
    return forge.open_order(author="ann", title=title, body="benchmark: accuracy", labels=labels or (LABEL,))


def test_orders_come_by_label_oldest_first(forge: LocalForge) -> None:
    """Issues were fetched newest first, three pages: old orders behind many newer ones were never seen."""
    first = order(forge)
    for number in range(60):
        order(forge, f"other {number}", "question")
    last = order(forge)
    assert [one.order_id for one in forge.orders(LABEL)] == [first, last]
    assert forge.orders("nothing") == []


def test_labels_are_given_and_taken_and_the_time_of_it_is_known(forge: LocalForge) -> None:
    number = order(forge)
    assert forge.order(number).relabelled_at is None
    forge.relabel(number, author="ann", added=("urgent",), removed=(LABEL,))
    found = forge.order(number)
    assert found.labels == ("urgent",)
    assert found.relabelled_at == found.touched_at > found.opened_at


def test_the_tool_says_a_thing_once_and_people_as_often_as_they_like(forge: LocalForge) -> None:
    number = order(forge)
    assert forge.comment(number, "k", "taken") == forge.comment(number, "k", "taken, again")
    forge.comment(number, "other", "done")
    forge.say(number, author="ann", body="thanks")
    forge.say(number, author="ann", body="thanks")
    assert [one.body for one in forge.comments(number)] == ["taken", "done", "thanks", "thanks"]
    since = forge.comments(number)[2].at
    assert [one.body for one in forge.comments(number, since)] == ["thanks", "thanks"]


def test_a_person_with_the_key_of_ours_in_a_comment_does_not_keep_us_silent(forge: LocalForge) -> None:
    number = order(forge)
    forge.say(number, author="ann", body="k")
    forge.comment(number, "k", "taken")
    assert [one.author for one in forge.comments(number)] == ["ann", "outerloop"]


@pytest.mark.parametrize("author", ["outerloop", ""])
def test_nobody_writes_under_the_tool_s_name(forge: LocalForge, author: str) -> None:
    number = order(forge)
    with pytest.raises(UsageError, match="the tool's own name"):
        forge.say(number, author=author, body="x")
    with pytest.raises(UsageError, match="the tool's own name"):
        forge.relabel(number, author=author, added=("a",), removed=())
    with pytest.raises(UsageError, match="the tool's own name"):
        forge.open_order(author=author, title="t", body="b", labels=(ALARM,))
    with pytest.raises(UsageError, match="the tool's own name"):
        forge.close_order(number, author=author)
    assert forge.order_ids() == [number]
    assert [said.kind for said in forge.order_events(number)] == ["opened"]


def test_nobody_merges_under_the_tool_s_name(forge: LocalForge, repositories: Repositories) -> None:
    change_id = proposed(forge, repositories)
    with pytest.raises(UsageError, match="the tool's own name"):
        forge.merge(change_id, author="outerloop", repository=str(repositories.source))
    assert repositories.head() == repositories.base
    assert [said.kind for said in forge.change_events(change_id)] == ["opened"]


@pytest.mark.parametrize("name", ["9", "../1", "x", "", "1/../1", "²"])
def test_an_order_that_is_not_there_is_said_so(forge: LocalForge, name: str) -> None:
    order(forge)
    with pytest.raises(NotThere):
        forge.order(name)


def test_an_order_can_be_closed_and_is_then_in_nobody_s_way(forge: LocalForge) -> None:
    number = order(forge)
    forge.close_order(number, author="ann")
    forge.close_order(number, author="ann")
    assert forge.orders(LABEL) == []
    assert not forge.order(number).open


def test_an_order_that_two_close_at_once_is_closed_once(forge: LocalForge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two merges at the same moment both found it open, and both closed it."""
    number, said = order(forge), LocalForge._said

    def slow(self: LocalForge, *arguments: Any, **keywords: Any) -> Any:
        monkeypatch.setattr(LocalForge, "_said", said)
        forge.close_order(number, author="bob")
        return said(self, *arguments, **keywords)

    monkeypatch.setattr(LocalForge, "_said", slow)
    forge.close_order(number, author="ann")
    events = sorted((forge.folder / "orders" / number).iterdir())
    assert not forge.order(number).open
    assert len(events) == 2
    assert "bob" in events[1].read_text(encoding="utf-8")


def test_an_alarm_is_raised_once_and_closed_with_a_word(forge: LocalForge) -> None:
    for _ in range(3):
        forge.raise_alarm("contract", "The contract cannot be used", "unknown key")
    (alarm,) = forge.orders(ALARM)
    forge.clear_alarm("contract", "healthy")
    forge.clear_alarm("contract", "healthy")
    assert forge.orders(ALARM) == []
    forge.raise_alarm("contract", "The contract cannot be used", "again")
    assert [one.order_id for one in forge.orders(ALARM)] != [alarm.order_id]


def test_an_alarm_of_a_person_s_making_is_not_ours_to_close(forge: LocalForge) -> None:
    order(forge, "mine", ALARM)
    forge.clear_alarm("contract", "healthy")
    assert len(forge.orders(ALARM)) == 1


# --- changes


class Repositories:
    """A target's repository, its mirror with a candidate, and a person's clone."""

    def __init__(self, folder: Path) -> None:
        self.source, self.clone = folder / "source.git", folder / "clone"
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.source))
        git(folder, "clone", "-q", str(self.source), str(self.clone))
        self.base = self.commit("README.md", "a target\n")
        self.mirror = Mirror(folder / "mirror.git")
        self.mirror.sync(str(self.source), "main")
        git(self.clone, "checkout", "-q", "-b", "candidate")
        (self.clone / "evaluate.py").write_text("print(2)\n")
        git(self.clone, "add", ".")
        git(self.clone, "commit", "-qm", "candidate")
        git(self.clone, "push", "-q", str(self.mirror.path), "HEAD:refs/outerloop/cand/x")
        self.candidate = git(self.clone, "rev-parse", "HEAD")
        git(self.clone, "checkout", "-q", "main")

    def commit(self, name: str, text: str) -> str:
        git(self.clone, "checkout", "-q", "-B", "main")
        (self.clone / name).write_text(text)
        git(self.clone, "add", ".")
        git(self.clone, "commit", "-qm", name)
        git(self.clone, "push", "-q", "origin", "main")
        return git(self.clone, "rev-parse", "HEAD")

    def head(self) -> str:
        return git(self.source, "rev-parse", "main")


@pytest.fixture
def repositories(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path / "git")


def proposed(forge: LocalForge, repositories: Repositories, number: str = "") -> str:
    forge.push(repositories.mirror.path, repositories.candidate, BRANCH)
    proposal = Proposal(BRANCH, "main", repositories.candidate, number, "A fairer ruler", "because")
    return forge.propose(proposal).change_id


def test_a_change_is_found_again_by_its_branch(forge: LocalForge, repositories: Repositories) -> None:
    """Push succeeded, opening the change failed: the branch was orphaned and a retry made another."""
    first = proposed(forge, repositories)
    assert proposed(forge, repositories) == first
    (change,) = forge.every_change()
    assert (change.status, change.branch, change.commit) == ("open", BRANCH, repositories.candidate)
    assert forge.changes([first, "00000000"]) == {first: change}


def test_a_branch_that_somebody_else_moved_is_left_alone(forge: LocalForge, repositories: Repositories) -> None:
    proposed(forge, repositories)
    with pytest.raises(Fault, match="another commit"):
        forge.push(repositories.mirror.path, repositories.base, BRANCH)
    assert forge.branches.head(BRANCH) == repositories.candidate


def test_merging_moves_the_branch_and_closes_the_order(forge: LocalForge, repositories: Repositories) -> None:
    number = order(forge)
    change_id = proposed(forge, repositories, number)
    change = forge.merge(change_id, author="ann", repository=str(repositories.source))
    assert (change.status, change.merged_as) == ("merged", repositories.candidate)
    assert repositories.head() == repositories.candidate
    assert not forge.order(number).open


def test_merging_again_finds_it_merged(forge: LocalForge, repositories: Repositories) -> None:
    change_id = proposed(forge, repositories)
    first = forge.merge(change_id, author="ann", repository=str(repositories.source))
    later = repositories.head()
    assert forge.merge(change_id, author="ann", repository=str(repositories.source)) == first
    assert repositories.head() == later


def test_a_change_that_is_closed_during_its_merge_is_merged(
    forge: LocalForge, repositories: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The branch had it and the change said closed, so that its run ended as rejected."""
    change_id, merge_into = proposed(forge, repositories), Branches.merge_into

    def slow(self: Branches, *arguments: Any, **keywords: Any) -> str:
        commit = merge_into(self, *arguments, **keywords)
        forge.close_change(change_id, author="bob", body="no")
        return commit

    monkeypatch.setattr(Branches, "merge_into", slow)
    change = forge.merge(change_id, author="ann", repository=str(repositories.source))
    assert (change.status, change.merged_as) == ("merged", repositories.head())
    with pytest.raises(UsageError, match="merged already"):
        forge.close_change(change_id, author="bob", body="no")


def test_a_merge_that_died_before_it_was_noted_is_found_in_the_history(
    forge: LocalForge, repositories: Repositories
) -> None:
    change_id = proposed(forge, repositories)
    forge.branches.merge_into(
        str(repositories.source), "main", BRANCH, message="m", author="ann", at=datetime.now(T0.tzinfo)
    )
    change = forge.merge(change_id, author="ann", repository=str(repositories.source))
    assert change.merged_as == repositories.head() == repositories.candidate


def test_a_branch_that_moved_meanwhile_is_merged_with_both_sides(forge: LocalForge, repositories: Repositories) -> None:
    change_id = proposed(forge, repositories)
    other = repositories.commit("solver.py", "pass\n")
    merged = forge.merge(change_id, author="ann", repository=str(repositories.source)).merged_as
    parents = git(repositories.source, "rev-list", "--parents", "-1", merged).split()[1:]
    assert parents == [other, repositories.candidate]
    assert sorted(git(repositories.source, "ls-tree", "--name-only", merged).split()) == [
        "README.md",
        "evaluate.py",
        "solver.py",
    ]


def test_the_same_lines_on_both_sides_are_a_person_s_work(forge: LocalForge, repositories: Repositories) -> None:
    change_id = proposed(forge, repositories)
    other = repositories.commit("evaluate.py", "print(3)\n")
    with pytest.raises(UsageError, match="the same lines"):
        forge.merge(change_id, author="ann", repository=str(repositories.source))
    assert repositories.head() == other
    assert forge.change(change_id).status == "open"


def test_a_repository_that_takes_no_push_is_said_so_and_nothing_is_noted(
    forge: LocalForge, repositories: Repositories
) -> None:
    """The branch of a repository with a working folder is checked out there."""
    change_id = proposed(forge, repositories)
    git(repositories.clone, "pull", "-q", "origin", "main")
    with pytest.raises(UsageError, match=f"takes no push of main; merge it there .git pull .* {BRANCH}"):
        forge.merge(change_id, author="ann", repository=str(repositories.clone))
    assert forge.change(change_id).status == "open"
    git(repositories.clone, "pull", "-q", "--ff-only", str(forge.branches.folder), BRANCH)
    merged = forge.merge(change_id, author="ann", repository=str(repositories.clone))
    assert merged.merged_as == repositories.candidate


def test_a_branch_that_moves_during_the_merge_is_not_overwritten(repositories: Repositories) -> None:
    later = repositories.commit("solver.py", "pass\n")
    mirror = Repository(repositories.mirror.path)
    with pytest.raises(TryLater, match="moved meanwhile"):
        mirror.push(str(repositories.source), repositories.candidate, "main", expected=repositories.base)
    assert repositories.head() == later


def test_a_closed_change_is_not_merged_and_a_merged_one_is_not_closed(
    forge: LocalForge, repositories: Repositories
) -> None:
    change_id = proposed(forge, repositories)
    assert forge.close_change(change_id, author="ann", body="no").status == "closed"
    with pytest.raises(UsageError, match="is closed"):
        forge.merge(change_id, author="ann", repository=str(repositories.source))
    assert repositories.head() == repositories.base


@pytest.mark.parametrize("name", ["../../x", "zzzzzzzz", "", "0" * 9, "/etc/pas"])
def test_a_change_that_is_not_there_is_said_so(forge: LocalForge, name: str) -> None:
    with pytest.raises(NotThere):
        forge.change(name)


class Slow(Hours):
    """A clock of a host that is behind."""

    def now(self) -> datetime:
        return T0 - timedelta(days=1)


def test_a_host_whose_clock_is_behind_speaks_after_what_it_answers(forge: LocalForge) -> None:
    """Its comment did not touch the order, so that nobody read it; its label was older than the claim's end."""
    number = order(forge)
    forge.comment(number, "released", "Over.")
    before = forge.order(number)
    elsewhere = LocalForge(forge.folder, identity="outerloop", clock=Slow())
    elsewhere.say(number, author="ann", body="Again, please.")
    spoken = forge.order(number)
    assert spoken.touched_at > before.touched_at
    elsewhere.relabel(number, author="ann", added=["urgent"], removed=[])
    labelled = forge.order(number)
    assert labelled.touched_at > spoken.touched_at
    assert labelled.relabelled_at is not None
    assert labelled.relabelled_at > forge.comments(number)[0].at
    assert [one.body for one in forge.comments(number, since=before.touched_at)] == ["Over.", "Again, please."]


def test_an_order_that_cannot_be_read_is_shown_with_its_fault_and_hides_no_other(forge: LocalForge) -> None:
    broken, whole = order(forge), order(forge)
    (forge.folder / "orders" / broken / "00000001.json").write_bytes(b"")
    found = forge.orders("question")
    assert [one.order_id for one in found] == [broken], "nobody knows what labels it has"
    assert "00000001.json" in found[0].fault
    assert [(one.order_id, bool(one.fault)) for one in forge.orders(LABEL)] == [(broken, True), (whole, False)]
    forge.raise_alarm("contract", "Broken", "since noon")
    assert len([one for one in forge.every_order() if ALARM in one.labels]) == 1


def test_nobody_opens_an_order_under_the_tool_s_own_name(forge: LocalForge) -> None:
    with pytest.raises(UsageError, match="own name"):
        forge.open_order(author="outerloop", title="Alarm", body="", labels=(ALARM,))
