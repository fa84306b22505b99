"""What there is before the story begins: a target, a person's clone of it, and a project that measures and mends it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from stage import EXAMPLES, TARGET, Demo, say

from outerloop_hpc.container.choose import choose
from outerloop_hpc.errors import OuterloopError

AGENTS = EXAMPLES / "agents"
#: Minutes of a session; the demo's agents need a second.
_MINUTES = 10
_VALIDATION = "python3 -m unittest discover -s tests"


def contained() -> bool:
    """Whether bubblewrap works here; says so, or says why not."""
    try:
        runtime = choose("auto", image=None, uncontained=False, environ=dict(os.environ))
    except OuterloopError as error:
        reason = str(error).partition(";")[0]
        say(f"containment: NONE, benchmarks and agents see the whole machine ({reason})")
        return False
    say(f"containment: {runtime.name}, seen to work on this machine")
    return True


def set_up(demo: Demo) -> None:
    """Make the repository, the clone and the project."""
    say("A target: a repository with a solver, a benchmark on Fisher's iris data, and a contract.")
    demo.git("init", "--quiet", "--bare", "iris.git")
    demo.git("clone", "--quiet", "iris.git", TARGET)
    shutil.copytree(
        EXAMPLES / "iris", demo.root / TARGET, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    demo.git("-C", TARGET, "checkout", "--quiet", "-B", "main")
    demo.git("-C", TARGET, "add", ".")
    demo.git("-C", TARGET, "commit", "--quiet", "-m", "Nearest mean flower")
    demo.git("-C", TARGET, "push", "--quiet", "origin", "main")
    say("A project that measures it. Its state folder holds everything that is ever known about runs.")
    flags = ("--uncontained",) if demo.uncontained else ()
    demo.run("--state", "state", "init", "--target", f"{TARGET}=iris.git", *flags)
    _configure(demo)
    demo.run("doctor")


def _configure(demo: Demo) -> None:
    path = demo.root / "outerloop.toml"
    text = path.read_text(encoding="utf-8").replace('kind = "auto" ', f'kind = "{demo.compute}"', 1)
    if demo.uncontained:
        # Without this a bubblewrap that is installed and does not work here would be chosen all the same.
        text = text.replace("uncontained = true", 'uncontained = true\nruntime = "none"', 1)
    more = [f'image = "{Path(demo.image).absolute()}"'] if demo.image else []
    more += [f'validation = "{_VALIDATION}"']
    role = ['command = ["python3", "{files}/cheating-steward.py"]', f'files = "{AGENTS}"', f"minutes = {_MINUTES}"]
    text = text.replace("\n[steward] ", "\n" + "\n".join(["[steward]", *role]) + "\n", 1)
    if demo.compute == "slurm":
        # The story makes one pass right after the other, which a cluster of many users would be spared.
        text = text.replace("\n[container]\n", "\n[reconcile]\nmin_interval_s = 0\n\n[container]\n", 1)
    path.write_text(text + "\n".join(more) + "\n", encoding="utf-8")
    where = "this machine" if demo.compute == "local" else "the Slurm cluster"
    say(f'In outerloop.toml now: [compute] kind = "{demo.compute}", jobs run on {where};')
    say("[targets.iris] validation, which a steward's change must pass; [steward] command, a program of ours.")
