"""An agent that says what it sees: its environment, files, processes, brief and network; for any container.

Beside it lies ``probe.json``: ``key_env`` (the variable of its key), ``paths`` (of the host, which must not be there),
``closed`` (folders that must not be writable), ``port`` (of the host's loopback), ``leak`` (whether it writes its key
into the workspace) and ``wait`` (until a file ``go`` is laid beside it). What it found is the JSON of its report.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).parent
MEASURE = """\
import json, os, socket
try:
    socket.create_connection(("127.0.0.1", {port}), 2).close()
    reached = 1
except OSError:
    reached = 0
# Not /sys/class/net: that is of whoever mounted it.
links = [line.split(":")[0].strip() for line in open("/proc/self/net/dev") if ":" in line]
print(json.dumps({{
    "score": 1000 + int(os.environ.get("SEED", 0)) % 7,
    "reached": reached,
    "links": len([name for name in links if name != "lo"]),
    "key": int({key_env!r} in os.environ),
    "table": int(os.path.exists("/outerloop")),
    "host": sum(map(os.path.exists, {paths!r})),
}}))
"""


def seen(probe: dict[str, Any]) -> dict[str, Any]:
    """Look around."""
    brief = sys.stdin.read()
    key = os.environ.get(probe["key_env"], "")
    lines = {path.name: _read(path / "cmdline") for path in Path("/proc").iterdir() if path.name.isdigit()}
    return {
        "env": sorted(os.environ),
        "key length": len(key),
        "brief": brief == Path(os.environ["OUTERLOOP_BRIEF"]).read_text(encoding="utf-8") and len(brief) > 1000,
        "there": [path for path in probe["paths"] if os.path.lexists(path)],
        "home": _names(Path.home()),
        "tmp": _names(Path(tempfile.gettempdir())),
        "work": _names(Path.cwd()),
        "table": _names(Path(os.environ["OUTERLOOP_BRIEF"]).parent),
        "writable": [folder for folder in probe["closed"] if _writable(Path(folder))],
        "processes": [line.replace("\0", " ").strip()[:200] for line in lines.values()],
        "key in a command line": sum(key in line for line in lines.values()),
        "reached": _reached(probe["port"]),
        "git": [name for name in (".git/hooks", ".git/objects/info/alternates") if Path(name).exists()],
    }


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _writable(folder: Path) -> bool:
    try:
        (folder / "x").write_text("x", encoding="utf-8")
    except OSError:
        return False
    return True


def _reached(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 2).close()
    except OSError:
        return False
    return True


def work(probe: dict[str, Any], key: str) -> None:
    """Change the evaluation so that it looks around as well."""
    Path("evaluate.py").write_text(MEASURE.format(**probe), encoding="utf-8")
    Path("checks").mkdir()
    told = "import subprocess, sys\nfound = subprocess.check_output([sys.executable, 'evaluate.py'], text=True)\n"
    Path("checks/validate.py").write_text(f"{told}sys.exit('\"reached\": 0' not in found)\n", encoding="utf-8")
    if probe["leak"]:
        Path("checks/leaked").write_text(f"key = {base64.b64encode(key.encode()).decode()}\n", encoding="utf-8")


def main() -> None:
    """Look around, work, say everything that must not be said, and end."""
    probe = json.loads((HERE / "probe.json").read_text(encoding="utf-8"))
    key = os.environ.get(probe["key_env"], "")
    found = seen(probe)
    work(probe, key)
    until = time.monotonic() + 240
    while probe["wait"] and not (HERE / "go").exists() and time.monotonic() < until:
        time.sleep(0.05)
    spelled = [key, base64.b64encode(key.encode()).decode(), quote(key, safe=""), key.encode().hex(), json.dumps(key)]
    for stream in (sys.stdout, sys.stderr):
        for one in spelled:
            print(f"my key is {one}!", file=stream, flush=True)
    end = {"outcome": "done", "report": json.dumps({**found, "said": spelled}), "turns": 1}
    print(json.dumps(end), flush=True)


if __name__ == "__main__":
    main()
