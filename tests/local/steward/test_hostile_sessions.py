"""Sessions and contracts that try something else than words, through the whole lane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.scratch import git
from tests.local.steward.lane import CONTRACT, Lane, new_lane
from tests.local.steward.markdown import outline, unseen

pytestmark = pytest.mark.local

#: A metric's name is a stranger's text, and stands in the change, on the order and in the ledger.
METRIC = "score` <!-- @ada --> [x](https://evil.example) | <b>\u202e"

HALF = 'end(10, "no-change", "half \\ud800 a pair")\n'
NAMES = """\
for name in (b"a\\nb", b"\\xff\\xfe", b"-rf", b"..\\\\x", b"\\xe2\\x80\\xae@ada", b"[l](x) <!-- @ada -->"):
    Path(os.fsdecode(name)).write_text("x")
os.symlink("/etc/passwd", "checks")
os.mkfifo("pipe")
end(0, "done", "")
"""
GIT = """\
import shutil
(WORK / "evaluate.py").write_text((WORK / "evaluate.py").read_text() + "# mended\\n")
(WORK / "hook").write_text("#!/bin/sh\\ntouch {trace}\\n")
(WORK / "hook").chmod(0o755)
shutil.move(WORK / "hook", {hook!r})
with (WORK / ".git/config").open("a") as file:
    file.write("[core]\\n\\tfsmonitor = {hook}\\n\\thooksPath = {folder}\\n")
(WORK / ".git/objects/info").mkdir(exist_ok=True)
(WORK / ".git/objects/info/alternates").write_text("{folder}\\n")
end(0, "done", "")
"""


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    made = new_lane(tmp_path, steward={"attempts": 1, "seeds": 1})
    yield made
    made.site.stop_jobs()


def test_half_a_character_in_a_report_loses_no_session(lane: Lane) -> None:
    lane.script(HALF)
    order = lane.order()
    lane.until_ended()
    assert (lane.endings(), len(lane.sessions())) == (["answered"], 1)
    assert "half ? a pair" in lane.comments(order)[1].body


def test_files_with_strange_names_are_refused_and_shown_as_what_they_are(lane: Lane) -> None:
    lane.script(NAMES)
    order = lane.order()
    lane.until_ended()
    lane.tick()
    assert (lane.endings(), len(lane.sessions()), lane.changes()) == (["out-of-scope"], 1, [])
    told = [one.body for one in lane.comments(order)]
    for shown in ("`-rf`", "`checks`", "`\\udcff\\udcfe`", "is a symbolic link"):
        assert shown in told[1]
    for text in [*told, (lane.stewards()[0] / "report.md").read_text(encoding="utf-8")]:
        assert unseen(text) == set()
        assert not any("ada" in line or "link_open" in line for line in outline(text))


def test_a_workspace_whose_git_was_prepared_runs_nothing(lane: Lane, tmp_path: Path) -> None:
    folder, trace = tmp_path / "prepared", tmp_path / "it-ran"
    folder.mkdir()
    hook = str(folder / "reference-transaction")
    lane.script(
        GIT.replace("{trace}", str(trace))
        .replace("{hook!r}", repr(hook))
        .replace("{hook}", hook)
        .replace("{folder}", str(folder))
    )
    lane.order()
    change = lane.until_open()
    assert not trace.exists()
    repository = lane.forge.folder / "repository.git"
    assert git(repository, "show", f"{change.commit}:evaluate.py").endswith("# mended")


def test_a_metric_with_a_hostile_name_is_code_in_every_post_and_plain_in_the_ledger(tmp_path: Path) -> None:
    metric = json.dumps(METRIC)
    mended = f"import json\nprint(json.dumps({{{METRIC!r}: 1.0}}))\n"
    lane = new_lane(
        tmp_path,
        script=f'(WORK / "evaluate.py").write_text({mended!r})\nend(0, "done", "")\n',
        steward={"seeds": 1, "attempts": 1},
        contract=CONTRACT.replace("metric: score", f"metric: {metric}"),
    )
    try:
        order = lane.order()
        change = lane.until_open()
        opening = lane.forge.opening(change.change_id)
        ledger = git(lane.forge.folder / "repository.git", "show", f"{change.commit}:BENCHMARKS.md")
        for text in [opening.body, *(one.body for one in lane.comments(order)), ledger]:
            assert unseen(text) == set()
            assert not any(line.startswith(("link_open", "image", "html_inline")) for line in outline(text))
        assert not any("ada" in line for line in outline(opening.body))
        assert "@ada" not in ledger
    finally:
        lane.site.stop_jobs()
