"""A repository of one commit holds exactly the bytes of its folder, whatever the files say about themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from outerloop_hpc.target.compose import Signature
from outerloop_hpc.target.export import folder_tree_id
from outerloop_hpc.target.single import single_commit
from tests.local.scratch import git

pytestmark = pytest.mark.local

WHO = Signature("tool", "t@x", datetime(2026, 11, 30, tzinfo=UTC))


def test_the_commit_has_the_bytes_of_the_folder_and_no_parent(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    attributes = "* text eol=crlf ident filter=rot13\n*.u working-tree-encoding=UTF-16\n*.e text=auto\n"
    files = {".gitattributes": attributes, ".gitignore": "*.log\n", "a\nb.log": "$Id$\r\n", "x.u": "no utf-16\n"}
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())
    (folder / "sub" / "link").symlink_to("../x.u")
    (folder / "run").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "run").chmod(0o755)
    wanted = folder_tree_id(folder)
    commit = single_commit(folder, message="all of it\n", signature=WHO)
    assert git(folder, "rev-parse", f"{commit}^{{tree}}") == wanted
    assert git(folder, "rev-list", "--parents", "--all") == commit
    assert git(folder, "status", "--porcelain") == ""
