"""What a sweep promoted, applied and proposed through the real command line; and its cells measured again."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.local.driver import Driver
from tests.local.evolve.test_sweeps import EVALUATE, SETTLED, Sweeps
from tests.local.scratch import commit
from tests.local.site import CLI, Site, document, environment, wait_for

pytestmark = pytest.mark.local

OLD, NEW, PATH = "1.0\n", "0.8\n", "solver/rate.txt"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory, driver: Driver) -> Sweeps:
    """A sweep that promoted a rate of 0.8, and whose copy is kept beside it; measured once for all tests."""
    sweeps = Sweeps(tmp_path_factory.mktemp("promoted"), driver)
    (sweeps.site.source() / "dist").mkdir()
    (sweeps.site.source() / "dist" / "rate.txt").write_text(OLD, encoding="utf-8")
    (sweeps.site.source() / PATH).chmod(0o755)
    evaluate = EVALUATE.format(log=str(sweeps.log), wobble=SETTLED)
    waiting = f"import time\nwhile os.path.exists({str(hanging(sweeps))!r}): time.sleep(0.02)\nprint(json"
    sweeps.site.change(evaluate.replace("print(json", waiting))
    copies = "unit: cell\ncopies: [{from: solver/rate.txt, to: dist/rate.txt}]"
    sweeps.site.cli("evolve", "submit", sweeps.file(0.8, changes={"unit: cell": copies}), "--wait", "500")
    sweeps.site.save()
    shutil.copytree(sweeps.site.source(), sweeps.site.root / "saved-source")
    return sweeps


def hanging(sweeps: Sweeps) -> Path:
    """As long as this file is there, no benchmark comes to its end."""
    return sweeps.log.with_name("hanging")


@pytest.fixture
def promoted(sweep: Sweeps) -> Iterator[Sweeps]:
    """The same, as it was after the sweep."""
    yield sweep
    sweep.site.restore()
    shutil.rmtree(sweep.site.source())
    shutil.copytree(sweep.site.root / "saved-source", sweep.site.source())
    sweep.site.how.clear()


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def rates(folder: Path) -> tuple[str, str]:
    return (folder / PATH).read_text(encoding="utf-8"), (folder / "dist/rate.txt").read_text(encoding="utf-8")


def run_of(site: Site) -> str:
    return site.run_folder().name


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


def rewrite(path: Path, **values: Any) -> None:
    """Change a published document as somebody with an editor might."""
    found = json.loads(document(path))
    path.chmod(0o644)
    path.write_text(json.dumps(found | values), encoding="utf-8")


# --- apply


def test_a_promotion_is_put_into_the_targets_own_working_tree_and_nothing_is_committed(promoted: Sweeps) -> None:
    site = promoted.site
    head = git(site.source(), "rev-parse", "HEAD")
    rows = site.rows("evolve", "apply", run_of(site)[-8:])
    assert [(row["path"], row["what"]) for row in rows] == [(PATH, "changed"), ("dist/rate.txt", "changed")]
    assert rates(site.source()) == (NEW, NEW)
    assert (site.source() / PATH).stat().st_mode & 0o777 == 0o755
    assert git(site.source(), "rev-parse", "HEAD") == head
    assert not (site.run_folder() / "apply-recovery.json").exists()
    again = site.cli("evolve", "apply", run_of(site))
    assert "holds all of it already" in again.err


def test_a_dry_run_of_apply_says_what_would_change_and_writes_nothing(promoted: Sweeps) -> None:
    site = promoted.site
    before = everything(site.state)
    rows = site.rows("evolve", "apply", run_of(site), "--dry-run")
    assert [row["what"] for row in rows] == ["would change", "would change"]
    assert rates(site.source()) == (OLD, OLD)
    site.rows("evolve", "apply", run_of(site), "--dry-run", "--propose")
    site.cli("evolve", "apply", run_of(site), "--dry-run", "--mend")
    assert everything(site.state) == before


def test_a_copy_that_drifted_since_submit_keeps_every_file_as_it_is_and_is_named(promoted: Sweeps) -> None:
    site = promoted.site
    (site.source() / "dist/rate.txt").write_text("0.9\n", encoding="utf-8")
    said = site.cli("evolve", "apply", run_of(site), expect=(5,)).err
    assert "drifted (changed since submit): 'dist/rate.txt'" in said
    assert "submit a sweep on the new ones" in said
    assert rates(site.source()) == (OLD, "0.9\n")
    site.cli("evolve", "apply", run_of(site), "--dry-run", expect=(5,))


def test_another_working_tree_is_named_by_its_root(promoted: Sweeps, tmp_path: Path) -> None:
    site, other = promoted.site, tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(site.source()), str(other))
    said = site.cli("evolve", "apply", run_of(site), "--into", str(other / "solver"), expect=(2,)).err
    assert f"--into {other}" in said
    site.cli("evolve", "apply", run_of(site), "--into", str(other / "nowhere"), expect=(2,))
    site.cli("evolve", "apply", run_of(site), "--into", str(other))
    assert (rates(other), rates(site.source())) == ((NEW, NEW), (OLD, OLD))


def test_what_was_not_promoted_is_not_applied(promoted: Sweeps) -> None:
    site = promoted.site
    run = site.cli("evolve", "submit", promoted.file(0.8)).out.strip()
    said = site.cli("evolve", "apply", run, expect=(5,)).err
    assert "promoted nothing: it has not ended yet" in said
    site.cli("runs", "end", run, "--reason", "enough")
    site.until_closed()
    assert "it ended as 'operator'" in site.cli("evolve", "apply", run, expect=(5,)).err
    assert rates(site.source()) == (OLD, OLD)


def test_evidence_that_has_expired_is_not_applied(promoted: Sweeps) -> None:
    site = promoted.site
    site.how["later"] = timedelta(days=91).total_seconds()
    for more in ((), ("--propose",)):
        assert "its evidence expired on" in site.cli("evolve", "apply", run_of(site), *more, expect=(5,)).err
    assert rates(site.source()) == (OLD, OLD)


def test_evidence_from_the_future_is_not_applied(promoted: Sweeps) -> None:
    site = promoted.site
    site.how["later"] = -timedelta(days=2).total_seconds()
    assert "decided in the future" in site.cli("evolve", "apply", run_of(site), expect=(5,)).err


def test_a_decision_that_does_not_follow_from_its_pairs_halts(promoted: Sweeps) -> None:
    site = promoted.site
    (site.run_folder() / "snapshot.json").unlink(missing_ok=True)
    for path in sorted((site.run_folder() / "journal").iterdir()):
        found = json.loads(document(path))
        for event in found["events"]:
            if event["type"] == "conclusion.reached" and event["key"].startswith("confirm"):
                event["document"]["gain"] = 0.9
                rewrite(path, events=found["events"])
    said = site.cli("evolve", "apply", run_of(site), expect=(7,)).err
    assert "does not follow from its pairs" in said
    assert rates(site.source()) == (OLD, OLD)


def test_a_candidate_that_was_tampered_with_halts(promoted: Sweeps) -> None:
    site = promoted.site
    (frozen,) = (site.run_folder() / "candidates").glob(f"*/{PATH}")
    frozen.chmod(0o644)
    frozen.write_text("0.7\n", encoding="utf-8")
    for more in ((), ("--propose",)):
        assert "now has the digest" in site.cli("evolve", "apply", run_of(site), *more, expect=(7,)).err
    assert rates(site.source()) == (OLD, OLD)


def test_a_specification_that_is_not_the_measured_one_halts(promoted: Sweeps) -> None:
    """With another base in it, a file that somebody changed since would have been overwritten."""
    site = promoted.site
    spec = site.run_folder() / "spec.json"
    work = json.loads(document(spec))["work"]
    rewrite(spec, work=work | {"base": {PATH: "0" * 64}})
    assert "is not the specification that was measured" in site.cli("evolve", "apply", run_of(site), expect=(7,)).err


def test_an_apply_that_was_killed_is_mended(promoted: Sweeps) -> None:
    site, run = promoted.site, run_of(promoted.site)
    assert "nothing is to mend" in site.cli("evolve", "apply", run, "--mend", expect=(2,)).err
    recovery = site.run_folder() / "apply-recovery.json"
    from outerloop_hpc.evolve.applying import apply as applying  # noqa: PLC0415 - beside its only use
    from outerloop_hpc.evolve.applying.destination import Destination  # noqa: PLC0415 - as above
    from outerloop_hpc.evolve.overlays.overlay import content_digest  # noqa: PLC0415 - as above

    digests = {"candidate": content_digest(NEW.encode()), "expected": content_digest(OLD.encode())}
    spare = Destination(path=PATH, spare=".outerloop-x", aside=".outerloop-x-was", **digests)
    (site.source() / "solver/.outerloop-x").write_text(OLD, encoding="utf-8")
    (site.source() / PATH).write_text(NEW, encoding="utf-8")
    cut = applying.Recovery(checkout=str(site.source()), overlay="o", destinations=(spare,))
    recovery.write_bytes(cut.encoded())
    assert "--mend" in site.cli("evolve", "apply", run, expect=(5,)).err
    assert [row["path"] for row in site.rows("evolve", "apply", run, "--mend")] == [PATH]
    assert rates(site.source()) == (OLD, OLD)
    assert not recovery.exists()
    site.cli("evolve", "apply", run)
    assert rates(site.source()) == (NEW, NEW)


# --- apply --propose


def test_a_promotion_becomes_one_change_however_often_it_is_proposed(promoted: Sweeps) -> None:
    site, run = promoted.site, run_of(promoted.site)
    said = json.loads(site.cli("evolve", "apply", run, "--propose", "--json").out)
    assert (said["state"], said["onto"], said["branch"]) == ("open", "main", f"outerloop/evolve-{run[-8:]}")
    assert [row["path"] for row in said["rows"]] == [PATH, "dist/rate.txt"]
    again = json.loads(site.cli("evolve", "apply", run, "--propose", "--json").out)
    assert (again["change"], again["commit"]) == (said["change"], said["commit"])
    assert rates(site.source()) == (OLD, OLD)
    (change,) = site.rows("changes", "list", "tiny")
    assert (change["order"], change["commit"]) == (None, said["commit"])
    shown = json.loads(site.cli("changes", "show", "tiny", said["change"], "--json").out)
    modes = {row["path"]: row["mode"] for row in shown["rows"]}
    assert modes == {PATH: "100755 100755", "dist/rate.txt": "100644 100644"}
    assert run in shown["body"]
    assert "Pairs that were confirmed" in shown["body"]


def test_a_merged_change_is_in_the_target_and_is_not_proposed_again(promoted: Sweeps) -> None:
    site, run = promoted.site, run_of(promoted.site)
    change = json.loads(site.cli("evolve", "apply", run, "--propose", "--json").out)["change"]
    git(site.source(), "checkout", "-q", "--detach")
    site.cli("changes", "merge", "tiny", change, "--author", "ann")
    git(site.source(), "checkout", "-q", "main")
    assert rates(site.source()) == (NEW, NEW)
    assert "holds all of it already; nothing is proposed" in site.cli("evolve", "apply", run, "--propose").err


def test_a_branch_that_has_other_files_by_now_gets_no_change(promoted: Sweeps) -> None:
    site = promoted.site
    (site.source() / PATH).write_text("0.95\n", encoding="utf-8")
    commit(site.source())
    said = site.cli("evolve", "apply", run_of(site), "--propose", expect=(5,)).err
    assert f"drifted: '{PATH}'" in said
    assert site.rows("changes", "list", "tiny") == []


def test_other_commits_on_the_branch_do_not_keep_a_change_from_it(promoted: Sweeps) -> None:
    site = promoted.site
    (site.source() / "README").write_text("more words\n", encoding="utf-8")
    commit(site.source())
    site.cli("evolve", "apply", run_of(site), "--propose")
    (change,) = site.rows("changes", "list", "tiny")
    assert (
        git(site.state / "mirrors/tiny.git", "rev-parse", f"{change['commit']}^")
        == json.loads(document(site.run_folder() / "spec.json"))["commit"]
    )


# --- replay


def cells(site: Site, arm: str) -> list[dict[str, Any]]:
    """Return what was recorded of cells whose first arm is this one."""
    ended = (e for e in site.events() if e["type"] == "try.ended" and e["step"].startswith("cell-"))
    return [event["payload"] for event in ended if event["payload"]["arms"][0]["arm"] == arm]


def test_a_cell_measured_again_is_equal_and_the_run_stays_as_it_is(promoted: Sweeps) -> None:
    site = promoted.site
    found = cells(site, "candidate")[0]
    before = everything(site.state)
    said = json.loads(site.cli("evolve", "replay", run_of(site), found["cell"][:12], "--json").out)
    assert (said["cell"], said["equal"], said["recorded"]["arms"]) == (found["cell"], True, found["arms"])
    assert [(row["value"], row["same"]) for row in said["rows"]] == [("word", True), ("cost", True)]
    assert everything(site.state) == before


def test_a_replay_keeps_what_its_commands_said(promoted: Sweeps, tmp_path: Path) -> None:
    site, kept = promoted.site, tmp_path / "kept"
    cell = cells(site, "incumbent")[0]["cell"]
    done = site.cli("evolve", "replay", run_of(site), cell, "--keep", str(kept))
    assert "equal to what was recorded" in done.out
    assert '"cost"' in (kept / "log").read_text(encoding="utf-8")
    assert json.loads((kept / "found.json").read_bytes())["cell"] == cell
    assert "is there already" in site.cli("evolve", "replay", run_of(site), cell, "--keep", str(kept), expect=(2,)).err


def test_a_name_that_is_no_single_cell_is_refused(promoted: Sweeps) -> None:
    site = promoted.site
    for name in ("nothing", ""):
        assert "no single cell of" in site.cli("evolve", "replay", run_of(site), name, expect=(2,)).err


def test_a_replay_of_a_candidate_that_was_tampered_with_halts(promoted: Sweeps) -> None:
    site = promoted.site
    (frozen,) = (site.run_folder() / "candidates").glob(f"*/{PATH}")
    frozen.chmod(0o644)
    frozen.write_text("0.7\n", encoding="utf-8")
    cell = cells(site, "candidate")[0]["cell"]
    assert "now has the digest" in site.cli("evolve", "replay", run_of(site), cell, expect=(7,)).err


def test_a_replay_that_is_interrupted_leaves_neither_a_process_nor_a_folder(promoted: Sweeps, tmp_path: Path) -> None:
    site, hang, scratch = promoted.site, hanging(promoted), tmp_path / "scratch"
    scratch.mkdir()
    hang.touch()
    seen, cell = promoted.executions().total(), cells(site, "candidate")[0]["cell"]
    process = subprocess.Popen(
        [*CLI, "--config", str(site.config), "evolve", "replay", run_of(site), cell],
        cwd=site.root,
        env=environment() | {"TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: promoted.executions().total() > seen, "the benchmark runs")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
        assert (process.returncode, out) == (130, ""), err
        assert "SIGINT ended the replay" in err
        assert list(scratch.iterdir()) == []
    finally:
        process.kill()
        hang.unlink()
