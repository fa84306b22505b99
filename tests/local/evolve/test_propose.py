"""Proposals with real processes: what each kind of proposer brings, what it may see, and what is refused of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.engine.body import Result
from outerloop_hpc.engine.enclose import Containment
from outerloop_hpc.evolve.bodies.propose import propose
from outerloop_hpc.evolve.findings import ProposalFound
from outerloop_hpc.evolve.overlays.candidates import proposal_file
from outerloop_hpc.evolve.overlays.frozen import load
from outerloop_hpc.evolve.work import Agent, AskTell, Command, Dirs, OverlayRules, Parameter
from tests.local.evolve.sweep import Sweep, carry_out, new_sweep
from tests.local.scratch import contents, git

pytestmark = pytest.mark.local

KEY = "sk-proposer/key+0815"


def ask(sweep: Sweep, generation: int = 0, count: int = 1, **more: Any) -> Result:
    return carry_out(propose, sweep.context({"generation": generation, "count": count, **more}))


def found(result: Result) -> ProposalFound:
    assert result.outcome == "completed", result
    return ProposalFound.model_validate(result.payload)


def texts(sweep: Sweep, proposal: ProposalFound) -> list[str]:
    return [load(sweep.candidates / one.digest).files["solver.py"].decode() for one in proposal.candidates]


def program(root: Path, text: str, **more: Any) -> Sweep:
    """Make a sweep whose proposer is this Python text."""
    root.mkdir(exist_ok=True)
    script = root / "proposer.py"
    script.write_text(f"import json, os, pathlib, sys\nE = os.environ\n{text}\n", encoding="utf-8")
    return new_sweep(root, proposer=Command(command=(sys.executable, str(script)), **more))


WRITE = "pathlib.Path(E['OL_OVERLAY'], 'solver.py').write_text('FACTOR = 5\\n')"


def test_prepared_overlays_come_in_their_order_and_end(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    digests = tuple(sweep.freeze(solver=f"FACTOR = {n}\n") for n in (4, 2, 9))
    sweep.change(proposer=Dirs(digests=digests), candidates=2)
    first, second = found(ask(sweep, 0, 2)), found(ask(sweep, 1, 2))
    assert [one.digest for one in first.candidates] == list(digests[:2])
    assert not first.exhausted
    assert [one.digest for one in second.candidates] == [digests[2]]
    assert second.exhausted
    assert found(ask(sweep, 2, 2)) == ProposalFound(exhausted=True)


def test_a_prepared_overlay_that_was_changed_halts_the_sweep(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    digest = sweep.freeze(solver="FACTOR = 2\n")
    file = sweep.candidates / digest / "solver.py"
    file.chmod(0o600)
    file.write_text("FACTOR = 99\n", encoding="utf-8")
    sweep.change(proposer=Dirs(digests=(digest,)))
    result = ask(sweep)
    assert result.outcome == "refused"
    assert digest[:16] in result.payload["integrity"]


def test_a_grid_goes_through_its_combinations_and_leaves_the_incumbents_own_out(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    sweep.change(candidates=2)
    first, second = found(ask(sweep, 0, 2)), found(ask(sweep, 1, 2))
    assert texts(sweep, first) == ["FACTOR = 2\n"]
    assert first.candidates[0].values == {"factor": 2}
    assert [one.kind for one in first.refused] == ["invalid-overlay"]
    assert "same as the incumbent" in first.refused[0].reason
    assert first.refused[0].values == {"factor": 1}, "a search must not be asked for it again"
    assert texts(sweep, second) == ["FACTOR = 3\n"]
    assert (first.exhausted, second.exhausted) == (False, True)


def test_the_same_proposal_made_twice_is_the_same_candidate(tmp_path: Path) -> None:
    sweep = new_sweep(tmp_path)
    parameters = (Parameter(name="factor", kind="float", low=1.0, high=2.0),)
    sweep.change(proposer=AskTell(template={"solver.py": "FACTOR = {{factor}}\n"}, parameters=parameters))
    one, again = found(ask(sweep, 0, 3)), found(ask(sweep, 0, 3))
    assert one == again
    assert len({candidate.digest for candidate in one.candidates}) == 3
    assert texts(sweep, one)[0] == f"FACTOR = {one.candidates[0].values['factor']}\n"


def test_a_program_brings_an_overlay_and_its_words(tmp_path: Path) -> None:
    sweep = program(tmp_path, WRITE + "; pathlib.Path(E['OL_PROPOSAL']).write_text('Because five is more.')")
    (candidate,) = found(ask(sweep)).candidates
    assert (candidate.files, candidate.origin, candidate.proposal) == (("solver.py",), "command", True)
    assert load(sweep.candidates / candidate.digest).files == {"solver.py": b"FACTOR = 5\n"}
    text = proposal_file(sweep.candidates, candidate.digest).read_text(encoding="utf-8")
    assert text == "Because five is more."


def test_several_proposals_come_in_numbered_folders_and_equal_ones_count_once(tmp_path: Path) -> None:
    text = """
for number, factor in ((0, 5), (1, 6), (2, 5), (3, "x" * 9000)):
    folder = pathlib.Path(E["OL_OVERLAY"], str(number)); folder.mkdir()
    (folder / "solver.py").write_text(f"FACTOR = {factor}\\n")
(pathlib.Path(E["OL_OVERLAY"]) / "4").mkdir(); (pathlib.Path(E["OL_OVERLAY"]) / "4" / "bench.py").write_text("x")
"""
    sweep = program(tmp_path, text)
    sweep.change(overlay=OverlayRules(allow=("solver.py",), max_bytes=1000))
    whole = found(ask(sweep, count=5))
    assert texts(sweep, whole) == ["FACTOR = 5\n", "FACTOR = 6\n"]
    assert len(whole.refused) == 2
    assert whole.refused[1].reason.startswith("command[4]: ")
    assert "'bench.py' lies outside" in whole.refused[1].reason


@pytest.mark.parametrize(
    "text",
    [
        "os.symlink('/etc/hostname', E['OL_OVERLAY'] + '/solver.py')",
        "os.rmdir(E['OL_OVERLAY']); os.symlink(E['OL_WORKSPACE'], E['OL_OVERLAY'])",
        "os.rmdir(E['OL_OVERLAY']); open(E['OL_OVERLAY'], 'w').write('x')",
        "os.mkfifo(E['OL_OVERLAY'] + '/solver.py')",
        "os.mkdir(E['OL_OVERLAY'] + '/checks'); open(E['OL_OVERLAY'] + '/checks/hidden.py', 'w').write('')",
    ],
    ids=["link", "linked folder", "no folder", "fifo", "oracle"],
)
def test_what_is_no_plain_allowed_file_is_an_invalid_overlay(tmp_path: Path, text: str) -> None:
    whole = found(ask(program(tmp_path, text)))
    assert [one.kind for one in whole.refused] == ["invalid-overlay"]
    assert whole.candidates == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sys.exit('no model')", "exit status 1: no model"),
        ("pass", "left nothing"),
        ("import time; time.sleep(60)", "did not end within 1 s"),
        ("os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_a_proposer_that_fails_is_recorded_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    # Only who sleeps is to reach the limit, however late the others begin.
    whole = found(ask(program(tmp_path, text, timeout_s=1 if "sleep" in text else 100)))
    assert [one.kind for one in whole.refused] == ["proposer-failed"]
    assert reason in whole.refused[0].reason


def test_a_program_that_is_not_there_has_failed(tmp_path: Path) -> None:
    whole = found(ask(new_sweep(tmp_path, proposer=Command(command=("/nowhere/proposer",)))))
    assert whole.refused[0].kind == "proposer-failed"
    assert "'/nowhere/proposer' could not be started" in whole.refused[0].reason


def test_status_10_is_the_end_of_ideas_and_75_nobodys_fault(tmp_path: Path) -> None:
    assert found(ask(program(tmp_path / "a", "sys.exit(10)"))) == ProposalFound(exhausted=True)
    assert ask(program(tmp_path / "b", "sys.exit(75)")).outcome == "infrastructure"


def test_a_program_sees_one_commit_no_oracle_no_history_and_the_evidence_that_was_given(tmp_path: Path) -> None:
    sweep = program(tmp_path, f"import shutil; shutil.copytree(E['OL_WORKSPACE'], {str(tmp_path / 'seen')!r}); {WRITE}")
    sweep.change(proposer=sweep.work.proposer.model_copy(update={"environment": ()}))
    found(ask(sweep, rows=[{"task": "toy", "word": "failed"}]))
    seen = tmp_path / "seen"
    assert sorted(path.name for path in seen.iterdir()) == [".git", "README", "bench.py", "solver.py"]
    assert git(seen, "rev-list", "--all", "--count") == "1"
    assert git(seen, "status", "--porcelain") == ""
    assert git(seen, "remote") == ""
    objects = git(seen, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").splitlines()
    blobs = [git(seen, "cat-file", "blob", line.split()[0]) for line in objects if line.endswith("blob")]
    assert not any("answer" in blob for blob in blobs)
    assert not (seen / ".git/objects/info/alternates").exists()


def test_the_evidence_is_whole_read_only_and_says_what_was_left_out(tmp_path: Path) -> None:
    text = f"""
there = {{p.name: [p.stat().st_mode & 0o777, p.read_text()] for p in pathlib.Path(E["OL_EVIDENCE"]).iterdir()}}
pathlib.Path({str(tmp_path / "seen.json")!r}).write_text(json.dumps(there))
sys.exit(10)"""
    sweep = program(tmp_path, text)
    digest = sweep.freeze(solver="FACTOR = 2\n")
    tries = sweep.candidates.parent / "tries" / "s0"
    tries.mkdir(parents=True)
    (tries / "e0003.log").write_text("it printed this\ntoken=abcdefghijkl\n", encoding="utf-8")
    log = {"submission": "s0", "index": 3}
    proposal_file(sweep.candidates, digest).write_text("I thought that two helps.", encoding="utf-8")
    found(
        ask(
            sweep,
            2,
            rows=[{"task": "toy", "log": log}],
            gates=[{"decision": "keep_incumbent"}],
            prior={"digest": digest, "reason": "it lost 3 of 10 pairs"},
            dropped=["row toy/4"],
        )
    )
    seen = json.loads((tmp_path / "seen.json").read_text(encoding="utf-8"))
    assert set(seen) == {
        "selected-rows.json",
        "gate-summary.json",
        "prior-proposal.md",
        "manifest.json",
        "output-1.txt",
    }
    assert seen["output-1.txt"][1] == "it printed this\ntoken=[redacted]\n"
    assert {mode for mode, _ in seen.values()} == {0o444}
    assert json.loads(seen["selected-rows.json"][1]) == [{"task": "toy", "log": log, "output": "output-1.txt"}]
    assert "it lost 3 of 10 pairs" in seen["prior-proposal.md"][1]
    assert "I thought that two helps." in seen["prior-proposal.md"][1]
    manifest = json.loads(seen["manifest.json"][1])
    assert (manifest["dropped"], manifest["generation"]) == (["row toy/4"], 2)
    for file in manifest["files"]:
        assert file["sha256"] == hashlib.sha256(seen[file["name"]][1].encode()).hexdigest()


def test_a_key_reaches_the_program_and_nothing_that_is_kept(tmp_path: Path) -> None:
    text = f"""
key = E["PROPOSER_KEY"]
assert "OTHER_KEY" not in E
line = pathlib.Path("/proc/self/cmdline").read_bytes().decode()
print(key, file=sys.stderr); print(key)
pathlib.Path(E["OL_PROPOSAL"]).write_text(f"with {{key}} and {{key in line}}")
{WRITE}
"""
    sweep = program(tmp_path, text, environment=("PROPOSER_KEY", "NOT_SET"))
    sweep.environ |= {"PROPOSER_KEY": KEY, "OTHER_KEY": "sk-other-key"}
    context = sweep.context({"generation": 0, "count": 1})
    result = carry_out(propose, context)
    (candidate,) = found(result).candidates
    assert proposal_file(sweep.candidates, candidate.digest).read_text(encoding="utf-8") == "with [redacted] and False"
    kept = [*contents(sweep.root / "state").values(), *contents(context.log.parent).values()]
    assert not any(KEY.encode() in text for text in kept)
    assert KEY not in json.dumps(dict(result.payload)) + result.reason
    assert sweep.left(context) == ["e0000.log"]


def test_a_key_in_the_words_of_a_failure_is_masked(tmp_path: Path) -> None:
    sweep = program(tmp_path, "sys.exit('refused ' + E['PROPOSER_KEY'])", environment=("PROPOSER_KEY",))
    sweep.environ["PROPOSER_KEY"] = KEY
    assert found(ask(sweep)).refused[0].reason.endswith("refused [redacted]")


def test_a_stop_in_the_middle_proposes_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "running"
    sweep = program(tmp_path, f"{WRITE}; pathlib.Path({str(marker)!r}).touch(); import time; time.sleep(60)")
    context = sweep.context({"generation": 0, "count": 1})
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(carry_out(propose, context)))
    thread.start()
    while not marker.exists() and thread.is_alive():
        thread.join(0.05)
    context.stop.ask("SIGTERM")
    thread.join()
    assert (results[0].outcome, results[0].payload) == ("infrastructure", {})
    assert not sweep.candidates.exists()


AGENT = """
brief = sys.stdin.read()
assert brief == pathlib.Path(E["OUTERLOOP_BRIEF"]).read_text() and E["OL_OVERLAY"] in brief
"""


def agent(root: Path, text: str) -> Sweep:
    script = root / "agent.py"
    script.write_text(f"import json, os, pathlib, sys\nE = os.environ\n{AGENT}\n{text}\n", encoding="utf-8")
    return new_sweep(root, proposer=Agent(command=(sys.executable, str(script)), timeout_s=100))


def test_an_agent_gets_its_brief_and_its_session_is_paid(tmp_path: Path) -> None:
    end = "print(json.dumps({'outcome': 'done', 'report': 'five is more', 'cost_usd': 0.25}))"
    whole = found(ask(agent(tmp_path, f"{WRITE}\n{end}")))
    sweep_candidates = tmp_path / "state"
    assert [one.origin for one in whole.candidates] == ["agent"]
    assert whole.money == 0.25
    (text,) = sweep_candidates.rglob(f"{whole.candidates[0].digest}.md")
    assert text.read_text(encoding="utf-8") == "five is more"


def test_a_session_that_came_to_nothing_is_paid_all_the_same(tmp_path: Path) -> None:
    end = "print(json.dumps({'outcome': 'failed', 'cost_usd': 0.5})); sys.exit(1)"
    whole = found(ask(agent(tmp_path, f"{WRITE}\n{end}")))
    assert whole.candidates == ()
    assert whole.refused[0].kind == "proposer-failed"
    assert whole.money == 0.5


def test_an_agent_without_ideas_ends_the_sweep_and_one_without_its_service_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert found(ask(agent(tmp_path / "a", "sys.exit(10)"))).exhausted
    assert ask(agent(tmp_path / "b", "sys.exit(75)")).outcome == "infrastructure"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed here")
def test_a_contained_program_sees_its_own_file_and_its_desk_alone(tmp_path: Path) -> None:
    text = f"""
closed = []
for place in (E["OL_EVIDENCE"], "/outerloop/brief", __file__):
    try:
        open(place if place == __file__ else place + "/x", "a")
    except OSError:
        closed.append(place)
seen = {{
    "work": sorted(os.listdir()), "cwd": os.getcwd(), "workspace": E["OL_WORKSPACE"],
    "beside": os.listdir(os.path.dirname(__file__)), "state": os.path.exists({str(tmp_path / "state")!r}),
    "closed": len(closed), "env": sorted(E),
}}
pathlib.Path(E["OL_PROPOSAL"]).write_text(json.dumps(seen))
{WRITE}
"""
    sweep = program(tmp_path, text, environment=("PROPOSER_KEY",))
    script = sweep.work.proposer.command[1] if isinstance(sweep.work.proposer, Command) else ""
    sweep.change(
        proposing_containment=Containment(runtime="bubblewrap"),
        proposer=Command(command=("python3", script), environment=("PROPOSER_KEY",)),
    )
    sweep.environ |= {"PROPOSER_KEY": KEY, "OTHER": os.sep}
    (candidate,) = found(ask(sweep)).candidates
    seen = json.loads(proposal_file(sweep.candidates, candidate.digest).read_text(encoding="utf-8"))
    assert seen["work"] == [".git", "README", "bench.py", "solver.py"]
    assert seen["cwd"] == seen["workspace"] == "/work"
    assert seen["beside"] == ["proposer.py"]
    assert seen["state"] is False
    assert seen["closed"] == 3
    assert "PROPOSER_KEY" in seen["env"]
    assert "OTHER" not in seen["env"]
