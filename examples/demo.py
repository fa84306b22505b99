"""The main job from beginning to end, on real data: five measurements, a better solver, five more, and a verdict.

Every step is a command that a person would type; its output is shown as it came. Leaves everything in ``build/demo``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outerloop_hpc.container.choose import choose
from outerloop_hpc.errors import OuterloopError

CHECKOUT = Path(__file__).resolve().parents[1]
IRIS, BETTER = CHECKOUT / "examples" / "iris", CHECKOUT / "examples" / "improvements" / "iris-solver.py"
MARK = ".outerloop-demo"
SEEDS = 5
#: Longest wait for one array, in seconds; on a cluster the jobs may have to queue.
PATIENCE = {"local": "300", "slurm": "1800"}


class DemoError(Exception):
    """Something was not as expected; the text says what."""


@dataclass
class Demo:
    """The folder that everything happens in, and what was checked so far."""

    root: Path
    compute: str
    image: str
    uncontained: bool
    checks: list[tuple[bool, str]] = field(default_factory=list)

    def run(self, *arguments: str, follow: bool = False) -> str:
        """Show and run ``outerloop-hpc`` in the demo's folder; ``follow`` leaves stderr to the terminal's progress."""
        return self._shown(["outerloop-hpc", *arguments], follow=follow)

    def git(self, *arguments: str) -> str:
        """Show and run git."""
        return self._shown(["git", *arguments])

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """Ask ``outerloop-hpc`` for data, unseen; what a person reads is shown elsewhere."""
        done = subprocess.run(
            command(["outerloop-hpc", *arguments, "--json"]),
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return found

    def check(self, good: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
        """Remember one expectation and whether it held."""
        self.checks.append((good, what))

    def _shown(self, words: Sequence[str], *, follow: bool = False) -> str:
        print(f"$ {' '.join(quoted(word) for word in words)}", flush=True)
        done = subprocess.run(
            command(words),
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=None if follow else subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.stdout:
            print(done.stdout.rstrip("\n"))
        print(flush=True)
        if done.returncode != 0:
            raise DemoError(f"`{' '.join(words)}` ended with exit status {done.returncode}")
        return done.stdout


def say(text: str) -> None:
    """Narrate."""
    print(f"# {text}", flush=True)


def quoted(word: str) -> str:
    """Write a word as it would be typed."""
    return f'"{word}"' if " " in word else word


def command(words: Sequence[str]) -> list[str]:
    """Return what really runs: this Python's own outerloop-hpc, whatever PATH says."""
    if words[0] == "outerloop-hpc":
        return [sys.executable, "-m", "outerloop_hpc.cli.main", *words[1:]]
    return list(words)


def environment() -> dict[str, str]:
    """Return the caller's environment without settings that would lead out of the demo's folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OUTERLOOP_") or name.startswith("OUTERLOOP_SLURM__")
    }
    git = {
        f"GIT_{who}_{what}": text
        for who in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "Demo"), ("EMAIL", "demo@example.invalid"))
    }
    return {**kept, **git, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def fresh(root: Path) -> None:
    """Make an empty folder; wipes an earlier demo and nothing else.

    Raises:
        DemoError: something that is not a demo is there.
    """
    if root.exists() and any(root.iterdir()) and not (root / MARK).exists():
        raise DemoError(f"{root} is not empty and not of an earlier demo; choose another --root")
    root.mkdir(parents=True, exist_ok=True)
    # The folder itself stays: somebody may be looking at it from inside.
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != MARK:
            path.unlink()
    (root / MARK).touch()


def contained() -> bool:
    """Whether bubblewrap works here; says so, or says why not."""
    try:
        runtime = choose("auto", image=None, uncontained=False, environ=dict(os.environ))
    except OuterloopError as error:
        say(f"containment: NONE, the benchmark sees the whole machine ({str(error).partition(';')[0]})")
        return False
    say(f"containment: {runtime.name}, seen to work on this machine")
    return True


def set_up(demo: Demo) -> None:
    """Make the target's repository, a person's clone of it, and the project that measures it."""
    say("A target: a repository with a solver, a benchmark on Fisher's iris data, and a contract.")
    demo.git("init", "--quiet", "--bare", "iris.git")
    demo.git("clone", "--quiet", "iris.git", "iris")
    shutil.copytree(IRIS, demo.root / "iris", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    demo.git("-C", "iris", "checkout", "--quiet", "-B", "main")
    demo.git("-C", "iris", "add", ".")
    demo.git("-C", "iris", "commit", "--quiet", "-m", "Nearest mean flower")
    demo.git("-C", "iris", "push", "--quiet", "origin", "main")
    say("A project that measures it. Its state folder holds everything that is ever known about runs.")
    flags = ("--uncontained",) if demo.uncontained else ()
    demo.run("--state", "state", "init", "--target", "iris=iris.git", *flags)
    path = demo.root / "outerloop.toml"
    text = path.read_text(encoding="utf-8").replace('kind = "auto" ', f'kind = "{demo.compute}"', 1)
    if demo.image:
        text += f'image = "{Path(demo.image).absolute()}"\n'
    if demo.uncontained:
        # Without this a bubblewrap that is installed and does not work here would be chosen all the same.
        text = text.replace("uncontained = true", 'uncontained = true\nruntime = "none"', 1)
    path.write_text(text, encoding="utf-8")
    where = "this machine" if demo.compute == "local" else "the Slurm cluster"
    say(f'In outerloop.toml now: [compute] kind = "{demo.compute}", jobs run on {where}.')
    demo.run("doctor")


def measure_head(demo: Demo) -> str:
    """Tick, wait until the new run has ended, look at it; returns its id."""
    before = {row["run"] for row in demo.rows("runs", "list", "--all")}
    demo.run("tick")
    made = [row["run"] for row in demo.rows("runs", "list", "--all") if row["run"] not in before]
    demo.check(len(made) == 1, "a new head makes one run, one array of five jobs")
    if len(made) != 1:
        raise DemoError(f"the tick made {len(made)} runs, one was expected")
    run: str = made[0]
    say("On a site cron ticks on; here we wait for this one run (it shows its passes on a terminal).")
    demo.run("advance", run, "--wait", PATIENCE[demo.compute], follow=True)
    demo.run("runs", "show", run)
    tries = demo.rows("runs", "show", run)
    demo.check(
        len(tries) == SEEDS and all(row["rule"] == "record.final" for row in tries),
        f"{run}: each of the five seeds was measured once, and each try was settled by its own record",
    )
    rows = demo.rows("report", "jobs", "--run", run)
    measured = {row["job_id"] for row in rows if row["elapsed_s"] is not None and Path(row["source"]).is_file()}
    demo.check(
        measured == {row["job_id"] for row in tries}, f"{run}: every try has its accounting rows in the run's archive"
    )
    return run


def quiet_tick(demo: Demo) -> None:
    """Tick again: nothing has changed, so nothing may be bought."""
    before = demo.rows("report", "jobs"), demo.rows("runs", "list", "--all")
    demo.run("tick")
    after = demo.rows("report", "jobs"), demo.rows("runs", "list", "--all")
    demo.check(before == after, "a second tick on the same head launches nothing")


def improve(demo: Demo) -> None:
    """Commit a better solver, as a person would."""
    print(f"$ cp {os.path.relpath(BETTER, demo.root)} iris/solver.py", flush=True)
    shutil.copyfile(BETTER, demo.root / "iris" / "solver.py")
    demo.git("-C", "iris", "commit", "--quiet", "-a", "-m", "Linear discriminants")
    demo.git("-C", "iris", "push", "--quiet", "origin", "main")


def conclude(demo: Demo, old: str, new: str) -> None:
    """Compare, and look at everything that was kept."""
    say("Is it better? The same five seeds, in pairs.")
    demo.run("bench", "compare", old, new)
    found = demo.rows("bench", "compare", old, new)
    demo.check([row["verdict"] for row in found] == ["better"], "the better solver gets the verdict `better`")
    demo.run("bench", "history", "iris")
    history = demo.rows("bench", "history", "iris")
    used = sorted({row["runtime"] for row in history})
    allowed = {"none"} if demo.uncontained else {"apptainer", "singularity"} if demo.image else {"bubblewrap"}
    demo.check(len(used) == 1 and set(used) <= allowed, f"the records name the containment: {', '.join(used)}")
    say("The ledger: the best known number per benchmark, computed from the history.")
    demo.run("bench", "ledger", "iris")
    ledger = demo.rows("bench", "ledger", "iris")
    demo.check([row["best_run"] for row in ledger] == [new], "the ledger's best number is the new run's")
    say("What ran and what it cost, from the archived accounting rows.")
    demo.run("report", "runs")
    demo.run("report", "jobs", "-o", "job_id,state,elapsed_s,cpu_s,cpu_efficiency,memory_used_bytes,nodes")
    say("Why it ended as it did: every decision of the second run, by which rule, on which evidence.")
    demo.run("explain", new)


def story(demo: Demo) -> None:
    """Run the whole flow."""
    set_up(demo)
    say("First tick: the head was never measured, so one array of five seeds is submitted.")
    first = measure_head(demo)
    say("Second tick: the head is the same.")
    quiet_tick(demo)
    say("Somebody commits a better solver.")
    improve(demo)
    say("Third tick: the head has moved.")
    second = measure_head(demo)
    conclude(demo, first, second)


def finish(demo: Demo, seconds: float) -> int:
    """Print what was checked and how to look around; returns the exit status."""
    say(f"Checked, in {seconds:.0f} s:")
    for good, what in demo.checks:
        print(f"  {'ok    ' if good else 'NOT OK'}  {what}")
    failed = [what for good, what in demo.checks if not good]
    print()
    say(f"Everything is still there: cd {os.path.relpath(demo.root)}")
    say("  outerloop-hpc runs list --all       (the command is in .venv/bin of this checkout)")
    say("  less state/runs/*/*/report.md       what a person reads at the end of a run")
    say("  ls state/runs/*/*/                  spec, journal, tries, accounting: see docs/on-disk.md")
    return 1 if failed else 0


def chosen(arguments: argparse.Namespace) -> Demo:
    """Turn the command line into a demo.

    Raises:
        DemoError: Slurm was asked for and is not here.
    """
    if arguments.slurm and shutil.which("sbatch") is None:
        raise DemoError("--slurm: sbatch is not on PATH; load your site's Slurm module")
    root = arguments.root.absolute()
    fresh(root)
    if arguments.image:
        say(f"containment: {arguments.image}, through apptainer or singularity")
        uncontained = False
    elif arguments.uncontained:
        say("containment: NONE, as asked for: the benchmark sees the whole machine that it runs on")
        uncontained = True
    else:
        uncontained = not contained()
    return Demo(root, "slurm" if arguments.slurm else "local", arguments.image, uncontained)


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add: Callable[..., Any] = parser.add_argument
    add("--slurm", action="store_true", help="run the jobs on the cluster whose sbatch is on PATH")
    add("--root", type=Path, default=CHECKOUT / "build" / "demo", help="where; on a cluster a folder that nodes see")
    add("--image", default="", help="Apptainer image with Python and git for the measurements")
    add("--uncontained", action="store_true", help="measure without any container")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Run the demo; exit status 0 when everything was as expected."""
    begun = time.monotonic()
    arguments = parsed(words)
    try:
        demo = chosen(arguments)
        story(demo)
    except (DemoError, subprocess.CalledProcessError) as failure:
        print(f"demo: {failure}; what there is lies in {arguments.root}", file=sys.stderr)
        return 1
    return finish(demo, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
