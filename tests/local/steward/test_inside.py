"""What a session, a validation and a measurement see from inside a container, through the whole lane."""

from __future__ import annotations

import base64
import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.local.scratch import git
from tests.local.site import document, wait_for
from tests.local.steward.lane import Lane, new_lane

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed here"),
    pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no python3 in /usr/bin to run inside"),
]

KEY = "sk-steward/key+4711=secret&x"
#: Everything that a session's environment may hold; the last three are the runtime's and Python's own.
ALLOWED = {
    *("OUTERLOOP_ROLE", "OUTERLOOP_BRIEF", "OUTERLOOP_TURNS", "OUTERLOOP_MINUTES", "STEWARD_KEY"),
    *("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PWD"),
}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 2).close()
        server.accept()[0].close()
        server.setblocking(False)
        yield server


def lane_inside(root: Path, port: int, **probe: object) -> Lane:
    """Make a lane whose agent looks around in bubblewrap."""
    files, key_file = root / "files", root / "steward.key"
    files.mkdir()
    shutil.copy(Path(__file__).with_name("inside.py"), files)
    for path, text in ((key_file, KEY), (root / "reviewer.key", "sk-of-another-role-0815")):
        path.write_text(f"{text}\n", encoding="utf-8")
        path.chmod(0o600)
    steward = {
        "command": ["python3", "{files}/inside.py"],
        "files": str(files),
        "key_file": str(key_file),
        "key_env": "STEWARD_KEY",
        "network": False,
    }
    lane = new_lane(root, steward=steward, validation="python3 checks/validate.py", runtime="bubblewrap")
    host = [str(lane.site.root), str(lane.site.state), str(key_file), str(root / "reviewer.key"), str(root)]
    given = {
        "key_env": "STEWARD_KEY",
        "paths": [*host, str(Path.home() / ".ssh"), str(Path(__file__)), "/etc/shadow", "/root", "/var/lib", "/run"],
        "closed": ["/usr", "/bin", "/outerloop", "/outerloop/files"],
        "port": port,
        "leak": False,
        "wait": False,
        **probe,
    }
    (files / "probe.json").write_text(json.dumps(given), encoding="utf-8")
    return lane


def command_lines() -> list[str]:
    """Return the command line of every process of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found


def found_in(lane: Lane) -> dict[str, Any]:
    """Return what the session reported."""
    (path,) = lane.site.state.glob("runs/*/steward-*/tries/*/*.session.json")
    report: dict[str, Any] = json.loads(json.loads(document(path))["found"]["report"])
    return report


def spellings(key: str) -> set[bytes]:
    raw = key.encode()
    plain = {raw, base64.b64encode(raw).rstrip(b"="), base64.urlsafe_b64encode(raw).rstrip(b"=")}
    return plain | {quote(key, safe="").encode(), raw.hex().encode()}


def holders(folder: Path, secrets: set[bytes]) -> list[Path]:
    """Return the files below a folder, and the git objects in it, that hold a secret."""
    found = [path for path in folder.rglob("*") if path.is_file() and any(s in path.read_bytes() for s in secrets)]
    for repository in folder.rglob("*.git"):
        listed = git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
        for line in listed.splitlines():
            kind, name = line.split()
            if any(secret in git(repository, "cat-file", kind, name).encode(errors="replace") for secret in secrets):
                found.append(repository / name)
    return found


def test_a_session_sees_its_workspace_its_brief_its_own_key_and_nothing_else(
    tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "of the caller")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    lane = lane_inside(tmp_path, listener.getsockname()[1], wait=True)
    lane.order()
    try:
        lines: list[str] = []

        def held() -> bool:
            lane.tick()
            lines[:] = command_lines()
            return any("inside.py" in line for line in lines)

        wait_for(held, "the session is under way")
        assert not any(secret.decode() in line for line in lines for secret in spellings(KEY))
        (tmp_path / "files" / "go").touch()
        lane.until_open()
        found = found_in(lane)
        assert set(found["env"]) <= ALLOWED
        assert found["key length"] == len(KEY)
        assert found["brief"]
        assert found["work"] == [".git", ".outerloop.yaml", "evaluate.py", "other.py", "solver.py"]
        assert found["table"] == ["brief.md", "files"]
        empty = {"there": [], "home": [], "tmp": [], "writable": [], "git": [], "reached": False}
        assert {name: found[name] for name in empty} == empty
        assert found["key in a command line"] == 0
        assert len(found["processes"]) <= 3
        assert not any(str(tmp_path) in line and "bwrap" not in line for line in found["processes"])
        assert not any(KEY in said for said in found["said"])
        assert holders(lane.site.state, spellings(KEY)) == []
        with pytest.raises(BlockingIOError):
            listener.accept()
        measured = [e["payload"]["metrics"] for e in lane.site.events(lane.stewards()[0]) if _is_number(e)]
        assert len(measured) == 2
        for metrics in measured:
            assert metrics == {"reached": 0, "links": 0, "key": 0, "table": 0, "host": 0}
    finally:
        lane.site.stop_jobs()


def _is_number(event: dict[str, Any]) -> bool:
    return event["type"] == "try.ended" and "metrics" in event.get("payload", {})


def test_a_session_that_writes_its_key_into_the_workspace_proposes_nothing(
    tmp_path: Path, listener: socket.socket
) -> None:
    lane = lane_inside(tmp_path, listener.getsockname()[1], leak=True)
    order = lane.order()
    try:
        lane.until_ended()
        assert lane.endings()[0] == "out-of-scope"
        assert "`checks/leaked`" in lane.comments(order)[1].body
        assert holders(lane.site.state, spellings(KEY)) == []
    finally:
        lane.site.stop_jobs()
