"""One external command: it ends, its group ends with it, and whatever it says is text."""

from __future__ import annotations

import errno
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from outerloop_hpc.process import Finished, run_command

pytestmark = pytest.mark.unit

#: Far above what anything here takes; only a hang reaches it.
LONG_S = 60.0


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + LONG_S
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError as error:
        return error.errno in {errno.ENOENT, errno.ESRCH}
    return state in {"Z", "X"}


def test_output_and_status_are_kept() -> None:
    found = run_command(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), timeout=LONG_S)
    assert (found.status, found.stdout, found.stderr, found.timed_out) == (3, "out\n", "err\n", False)
    assert not found.ok
    assert found.complaint().endswith("exit status 3: err")


def test_a_signal_is_a_negative_status() -> None:
    found = run_command(python("import os; os.kill(os.getpid(), 9)"), timeout=LONG_S)
    assert found.status == -signal.SIGKILL
    assert not found.timed_out


def test_input_reaches_the_command_and_is_empty_otherwise() -> None:
    echo = python("import sys; sys.stdout.write(sys.stdin.read())")
    assert run_command(echo, timeout=LONG_S, stdin=b"hello").stdout == "hello"
    assert run_command(echo, timeout=LONG_S).stdout == ""


def test_output_that_is_not_utf8_is_replaced() -> None:
    found = run_command(python(r"import os; os.write(1, b'a\xff\xc3b'); os.write(2, b'\xfe')"), timeout=LONG_S)
    assert (found.stdout, found.stderr) == ("a��b", "�")


def test_much_output_on_both_streams_does_not_block() -> None:
    found = run_command(python("import os; [os.write(n, b'x' * 50_000) for n in (1, 2) * 20]"), timeout=LONG_S)
    assert (len(found.stdout), len(found.stderr)) == (1_000_000, 1_000_000)


def test_a_missing_program_is_an_answer_and_no_exception() -> None:
    found = run_command(["no-such-program-anywhere"], timeout=LONG_S)
    assert found.status is None
    assert not found.timed_out
    assert "could not be started" in found.complaint()
    assert "no-such-program-anywhere" in found.complaint()


def test_a_missing_folder_is_an_answer_and_no_exception(tmp_path: Path) -> None:
    found = run_command(python(""), timeout=LONG_S, cwd=tmp_path / "nowhere")
    assert found.status is None
    assert "nowhere" in found.stderr


def test_the_environment_is_the_one_given_and_the_folder_too(tmp_path: Path) -> None:
    code = "import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'), os.getcwd())"
    found = run_command(python(code), timeout=LONG_S, env={"ONLY": "this"}, cwd=tmp_path)
    assert found.stdout == f"['ONLY'] {tmp_path}\n"


def test_the_command_is_the_leader_of_a_session_of_its_own() -> None:
    found = run_command(python("import os; print(os.getsid(0) == os.getpid())"), timeout=LONG_S)
    assert found.stdout == "True\n"


def cut_off(script: str, said: Path) -> Finished:
    """Run a script that writes ``said`` and then hangs; on a busy machine the limit grows until it got that far."""
    for limit in (0.5, 5.0, 50.0):
        found = run_command(["sh", "-c", script, "sh", str(said)], timeout=limit)
        if said.exists():
            return found
    raise AssertionError("the script never got going")


IGNORING = "(trap '' TERM; sleep 1000)"


@pytest.mark.parametrize(
    "child",
    ["sleep 1000", f"{IGNORING} >/dev/null 2>&1", IGNORING],
    ids=["willing", "ignores TERM, without our pipes", "ignores TERM, holds our pipes"],
)
def test_the_time_limit_ends_the_whole_group(tmp_path: Path, child: str) -> None:
    script = f'{child} & echo $! >"$1.new"; mv "$1.new" "$1"; wait'
    found = cut_off(script, tmp_path / "pid")
    assert found.timed_out
    assert found.status is None
    assert "did not answer in time" in found.complaint()
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert eventually(lambda: gone(pid))


def test_what_was_said_before_the_time_limit_is_kept(tmp_path: Path) -> None:
    found = cut_off('echo half; : >"$1"; exec sleep 1000', tmp_path / "said")
    assert (found.timed_out, found.stdout) == (True, "half\n")


def test_a_complaint_is_one_line_with_the_end_of_what_was_said() -> None:
    long = "\n".join(["sbatch: error: first"] + ["x" * 50] * 20 + ["sbatch: error: last"])
    line = Finished(("/usr/bin/sbatch",), 1, "", long, timed_out=False, seconds=0.1).complaint()
    assert line.startswith("sbatch: exit status 1: ")
    assert line.endswith("sbatch: error: last")
    assert "\n" not in line
    assert len(line) < 400
