"""What jobs run as their Python: forks of a process that has imported everything, so that hundreds of jobs are cheap.

``python -m tests.fakeslurm.warm SOCKET``. The interpreter of the jobs is a small program (``STUB``) that hands its
words, folder, environment and streams over and ends as the fork does.
"""

from __future__ import annotations

import array
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

import submitit.core._submit  # noqa: F401 - warms the forks

from outerloop_hpc import effects
from outerloop_hpc.cli import main, wake, wiring  # noqa: F401 - as above
from outerloop_hpc.engine import job  # noqa: F401 - as above
from tests.fakeslurm import virtualclock
from tests.local.driver import Reaper

STUB = """#!{python} -IS
import array, json, os, signal, socket, sys
link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
link.connect({path!r})
said = json.dumps({{"words": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}).encode()
streams = array.array("i", [0, 1, 2])
link.sendmsg([len(said).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
link.sendall(said)
status = int(link.makefile().read() or "71")
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status not in (9, 19) else None
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def serve(path: str) -> None:
    """Answer until the parent goes away: its end closes our standard input."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    server.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        sys.stdin.read()
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)
    while True:
        link, _ = server.accept()
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _attend(link)
        link.close()


def _attend(link: socket.socket) -> None:
    """Fork the job's Python, wait for it, tell how it ended; does not return."""
    head, rights, _, _ = link.recvmsg(8, socket.CMSG_SPACE(3 * 4))
    streams = array.array("i", rights[0][2])
    wanted, data = int.from_bytes(head, "big"), b""
    while len(data) < wanted:
        data += link.recv(1 << 20)
    child = os.fork()
    if child == 0:
        link.close()
        _become(json.loads(data), streams)
    _, status = os.waitpid(child, 0)
    link.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    link.close()
    os._exit(0)


def _become(asked: dict[str, object], streams: array.array[int]) -> None:
    """Be the job's Python; does not return."""
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.setsid()
        env, words = asked["env"], asked["words"]
        assert isinstance(env, dict)
        assert isinstance(words, list)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(str(asked["cwd"]))
        virtualclock.install(virtualclock.RunningClock(Path(env["FAKESLURM_CLOCK"])))
        if at := env.get("FAKESLURM_KILL"):
            diary = os.open(os.devnull, os.O_WRONLY)
            number = int(at[1:]) if at[:1] == "#" else 0
            effects.install(Reaper(number, "before", diary, None, 0, at="" if number else at))
        words = [word for word in words if word != "-u"]
        assert words[0] == "-m"
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException as error:  # noqa: BLE001 - the fork must end here, whatever happened
        os.write(2, f"Traceback: {type(error).__name__}: {error}\n".encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


if __name__ == "__main__":
    serve(sys.argv[1])
