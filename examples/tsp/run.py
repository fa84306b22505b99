"""Run a sweep of this example on this machine, from nothing to its verdict: ``python run.py parameters``.

It makes a folder with a target repository of these files and a state folder, submits ``sweeps/<name>.yaml`` and watches
it. Other arguments: ``--root FOLDER`` to keep it there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL = (sys.executable, "-m", "outerloop_hpc.cli.main")
SETTINGS = """\
[state]
root = "state"
min_free_gb = 0.0

[compute]
kind = "local"

[container]
runtime = "none"
uncontained = true

[targets.tsp]
repository = {repository}
"""


def make(root: Path) -> None:
    """Make the site: a repository with what a solver's project holds, settings, a state folder, the sweep files."""
    source = root / "tsp"
    shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("__pycache__", "sweeps", "proposers", "run.py"))
    identity = ("-c", "user.name=Example", "-c", "user.email=example@localhost")
    for arguments in (("init", "-q", "-b", "main"), ("add", "--all"), (*identity, "commit", "-q", "-m", "a start")):
        subprocess.run(["git", *arguments], cwd=source, check=True)
    (root / "state").mkdir()
    (root / "outerloop.toml").write_text(SETTINGS.format(repository=json.dumps(str(source))), encoding="utf-8")
    shutil.copytree(HERE / "sweeps", root / "sweeps")
    function = root / "sweeps" / "function.yaml"
    proposer = json.dumps(str(HERE / "proposers" / "or-opt.py"))
    function.write_text(function.read_text(encoding="utf-8").replace("PROPOSER", proposer), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sweep", choices=["parameters", "function", "noise"])
    parser.add_argument("--root", type=Path, default=None, help="folder to make and to keep")
    given = parser.parse_args()
    root = (given.root or Path(tempfile.mkdtemp(prefix="outerloop-tsp-"))).resolve()
    root.mkdir(parents=True, exist_ok=True)
    make(root)
    print(f"in {root}", file=sys.stderr)
    sweep = f"sweeps/{given.sweep}.yaml"
    return subprocess.run([*TOOL, "evolve", "submit", sweep, "--wait", "3600"], cwd=root, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
