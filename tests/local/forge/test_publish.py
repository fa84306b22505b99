"""A measured candidate becomes a branch and a change: the same commits however often it is done, and nothing else."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from outerloop_hpc.engine import events as ev
from outerloop_hpc.engine import publish
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import Fault
from outerloop_hpc.target.compose import Signature, commit_on
from outerloop_hpc.target.repository import Repository, create_bare
from tests.unit.engine.made import RUN, SPEC
from tests.unit.engine.memoryforge import MemoryForge

pytestmark = pytest.mark.local


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A state folder whose mirror of iris has one commit, ``candidate``."""
    layout = Layout(tmp_path / "state")
    layout.mirrors.mkdir(parents=True)
    create_bare(layout.mirrors / "iris.git", "main")
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "-q", str(layout.mirrors / "iris.git"), str(work)], check=True, capture_output=True)
    (work / "evaluate.py").write_text("print(1)\n")
    (work / "results").mkdir()
    (work / "results" / "leader.json").write_text("{}\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "candidate")
    git(work, "push", "-q", "origin", "HEAD:refs/outerloop/cand/x")
    return layout


def wanted(layout: Layout, **more: object) -> ev.ChangeWanted:
    mirror = Repository(layout.mirrors / "iris.git")
    candidate = mirror.resolve("refs/outerloop/cand/x")
    given: dict[str, object] = {
        "key": "change",
        "order": "7",
        "branch": f"feat/steward/{RUN}",
        "onto": "main",
        "candidate": candidate,
        "tree": mirror.tree(candidate),
        "files": {"results/leader.json": '{"score": 2}\n', "BENCHMARKS.md": "| ü |\n"},
        "message": "Re-base score\n",
        "title": "t",
        "body": "b",
        "reason": "r",
    }
    return ev.ChangeWanted.model_validate({**given, **more})


def test_files_come_in_a_commit_of_their_own_on_the_candidate(layout: Layout) -> None:
    forge, change = MemoryForge(), wanted(layout)
    bound = publish.propose(forge, layout, SPEC, change)
    mirror = Repository(layout.mirrors / "iris.git")
    assert forge.branches == {change.branch: bound.commit}
    assert git(mirror.folder, "rev-list", "--parents", "-1", bound.commit).split()[1:] == [change.candidate]
    assert sorted(c.path for c in mirror.changes(change.candidate, bound.commit)) == [
        "BENCHMARKS.md",
        "results/leader.json",
    ]
    assert mirror.read(bound.commit, "BENCHMARKS.md") == "| ü |\n".encode()
    said = git(mirror.folder, "show", "-s", "--format=%an|%ae|%at|%cn|%ct|%s", bound.commit)
    at = int(SPEC.made_at.timestamp())
    assert said == f"outerloop|noreply@localhost|{at}|outerloop|{at}|Re-base score"


def test_doing_it_again_makes_the_same_commit_and_finds_the_change(layout: Layout) -> None:
    forge, change = MemoryForge(), wanted(layout)
    assert publish.propose(forge, layout, SPEC, change) == publish.propose(forge, layout, SPEC, change)
    assert len(forge.opened) == 1


def test_a_candidate_that_is_not_what_was_measured_is_not_proposed(layout: Layout) -> None:
    forge = MemoryForge()
    with pytest.raises(Fault, match="it is not proposed"):
        publish.propose(forge, layout, SPEC, wanted(layout, tree="0" * 40))
    assert (forge.branches, forge.opened) == ({}, {})


@pytest.mark.parametrize("path", ["evaluate.py/leader.json", "../outside", "/etc/passwd", ".git/config"])
def test_files_that_cannot_be_there_are_a_fault_and_change_nothing(layout: Layout, path: str) -> None:
    forge = MemoryForge()
    with pytest.raises(Fault, match="cannot be put on"):
        publish.propose(forge, layout, SPEC, wanted(layout, files={path: "x"}))
    assert (forge.branches, forge.opened) == ({}, {})


def test_an_order_that_was_deleted_has_nobody_to_tell() -> None:
    forge = MemoryForge(gone={"7"})
    done = publish.post(forge, ev.PostWanted(key="claimed", order="7", text="x", reason="y"), RUN)
    assert done.comment == ""
    assert "deleted" in done.note


def test_a_program_whose_text_is_replaced_stays_a_program(layout: Layout) -> None:
    """It became a plain file, so that what ran before could not be run any more."""
    mirror = Repository(layout.mirrors / "iris.git")
    signature, base = Signature("t", "t@localhost", SPEC.made_at), mirror.resolve("refs/outerloop/cand/x")
    content = [("run.sh", 0o100755, b"#!/bin/sh\n")]
    tree = mirror.tree_with(base, content, index=layout.root / "index")
    parent = mirror.commit_tree(tree, base, message="a program", variables=signature.variables())
    made = commit_on(mirror, parent, {"run.sh": b"#!/bin/bash\n"}, message="another", signature=signature)
    (change,) = mirror.changes(parent, made)
    assert (change.path, change.new_mode) == ("run.sh", 0o100755)


def test_a_file_as_large_as_a_candidate_may_bring_can_be_proposed(layout: Layout) -> None:
    """It was promoted and applied to working trees, and refused as a change for being longer than what is read."""
    mirror = Repository(layout.mirrors / "iris.git")
    parent, large = mirror.resolve("refs/outerloop/cand/x"), bytes(17 * 1024 * 1024)
    made = commit_on(mirror, parent, {"large.bin": large}, message="m", signature=Signature("t", "t@l", SPEC.made_at))
    assert mirror.digests(made, ["large.bin"]) == {"large.bin": hashlib.sha256(large).hexdigest()}
