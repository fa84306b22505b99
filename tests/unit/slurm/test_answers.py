from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.process import Finished
from outerloop_hpc.slurm.answers import Taken, cancelled_or_gone, parse_max_array_size, parse_submission, refused

if TYPE_CHECKING:
    from tests.unit.slurm.conftest import Recorded

pytestmark = pytest.mark.unit


def ended(stderr: str, status: int | None) -> Finished:
    return Finished(("sbatch",), status, "", stderr, timed_out=status is None, seconds=1)


@pytest.mark.parametrize(
    ("stdout", "taken"),
    [
        ("123\n", Taken("123")),
        ("123;alpha\n", Taken("123", "alpha")),
        ("Submitted batch job 42\n", Taken("42")),
        ("Submitted batch job 42 on cluster beta\n", Taken("42", "beta")),
        ("Your last job 1 used 3 %\n\n 77;a-b.c \n\n", Taken("77", "a-b.c")),
        ("", None),
        ("\n", None),
        ("Thanks for job 1\n", None),
        ("123\nBye!\n", None),
        ("12x\n", None),
        ("123;\n", None),
        ("123;a;b\n", None),
        ("٣\n", None),
    ],
)
def test_the_id_is_the_last_line_of_stdout_or_nothing(stdout: str, taken: Taken | None) -> None:
    assert parse_submission(stdout) == taken


def test_every_recorded_refusal_of_sbatch_is_definite(recorded: Recorded, version: str) -> None:
    text = _whole(recorded, version, "errors")
    refusals = [(stderr, status) for command, stderr, status in text if command.startswith("sbatch") and status]
    assert len(refusals) == 6
    assert all(refused(ended(stderr, status)) for stderr, status in refusals)


def test_an_unreachable_controller_is_no_refusal(recorded: Recorded, version: str) -> None:
    ((stderr, status),) = [
        (stderr, status) for command, stderr, status in _whole(recorded, version, "outage_ctld") if "sbatch" in command
    ]
    assert status == 1
    assert not refused(ended(stderr, status))


@pytest.mark.parametrize(
    ("stderr", "status", "definite"),
    [
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", 1, False),
        ("sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received", 1, False),
        ("sbatch: error: Batch job submission failed: Message receive failure", 1, False),
        ("sbatch: error: Batch job submission failed: Message send failure", 1, False),
        ("sbatch: error: Batch job submission failed: Insane message length", 1, False),
        ("sbatch: error: Batch job submission failed: Incompatible versions of client and server code", 1, False),
        ("sbatch: error: Slurm job queue full, sleeping and retrying", 1, False),
        (
            (
                "sbatch: error: Slurm job queue full, sleeping and retrying\n"
                "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"
            ),
            1,
            True,
        ),
        (
            (
                "sbatch: error: slurm_receive_msg: Socket timed out on send/recv operation\n"
                "sbatch: error: Batch job submission failed: Invalid account"
            ),
            1,
            False,
        ),
        ("sbatch: error: You need a project: see https://example.org\nsbatch: error: Unspecified error", 1, True),
        ("sbatch: fatal: --mem and --mem-per-cpu are mutually exclusive", 255, True),
        ("sbatch: unrecognized option '--nosuch=1'\nTry \"sbatch --help\" for more information", 255, True),
        ("", 1, False),
        ("Killed", -9, False),
        ("sbatch: error: Batch job submission failed: Invalid qos specification", None, False),
        ("No such file or directory: 'sbatch'", None, False),
        ("sbatch: error: Batch job submission failed: Invalid qos specification", 0, False),
    ],
)
def test_only_a_refusal_in_slurms_own_words_is_definite(stderr: str, status: int | None, definite: bool) -> None:
    assert refused(ended(stderr, status)) is definite


@pytest.mark.parametrize(
    ("stderr", "status", "done"),
    [
        ("", 0, True),
        ("scancel: error: Kill job error on job id 18: Unable to contact slurm controller (connect failure)", 8, False),
        ("scancel: error: Kill job error on job id 4: Job/step already completing or completed", 1, True),
        ("scancel: error: Invalid job id 99", 1, True),
        ("scancel: error: Invalid job id 99\nscancel: error: Kill job error: Access/permission denied", 1, False),
        ("scancel: error: Kill job error on job id 18: Socket timed out on send/recv operation", 0, False),
        ("", 1, False),
        ("", None, False),
    ],
)
def test_cancelling_what_has_ended_is_done_and_silence_of_the_controller_is_not(
    stderr: str, status: int | None, done: bool
) -> None:
    assert cancelled_or_gone(ended(stderr, status)) is done


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("MailProg = /bin/mail\nMaxArraySize            = 1001\nMaxBatchRequeue = 5\n", 1001),
        ("", None),
        ("x = 1", None),
    ],
)
def test_max_array_size(text: str, size: int | None) -> None:
    assert parse_max_array_size(text) == size


@given(st.text())
def test_reading_answers_is_total(text: str) -> None:
    taken, size = parse_submission(text), parse_max_array_size(text)
    assert taken is None or taken.job_id.isdigit()
    assert size is None or size >= 0
    assert {type(judge(ended(text, 1))) for judge in (refused, cancelled_or_gone)} == {bool}


def _whole(recorded: Recorded, version: str, name: str) -> list[tuple[str, str, int]]:
    """(command, stderr, status) of each command of a capture."""
    from tests.unit.slurm.conftest import DATA  # noqa: PLC0415 - the folder is the fixture's business

    text = (DATA / version / f"{name}.txt").read_text(encoding="utf-8")
    found: list[tuple[str, str, int]] = []
    for block in text.split("$ ")[1:]:
        command, _, rest = block.partition("\n")
        body, _, status = rest.rpartition("--- rc=")
        found.append((command, body.partition("--- stderr\n")[2], int(status)))
    return found
