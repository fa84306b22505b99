"""What differs between the two recorded versions: texts, lags and columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_DATA = Path(__file__).parents[1] / "data" / "sacct"

#: The name of a job in the accounting of 22.05 during its first seconds.
NAMELESS = "allocation"


@dataclass(frozen=True)
class Dialect:
    """One version.

    Attributes:
        row_s: seconds after sbatch until accounting has a row, without name and eligible time; named_s: until it is
            right; started_s: seconds after a start until accounting says so.
        endless_s: seconds after an outage of slurmdbd until jobs that ended meanwhile have a row without End;
            whole_s: until that row is whole.
        requeued_row: whether a job that was requeued by hand has a new row at once; otherwise with its start.
        node_fail_exit: exit code of NODE_FAIL.
        no_node_cpus: whether a job that never started has AllocCPUS 0.
        keeps_reason: whether accounting says why a queued job waits.
        start_flag: what Flags holds; lost_cluster: the end of what squeue says of a cluster that it does not know.
    """

    version: str
    row_s: float
    named_s: float
    started_s: float
    endless_s: float | None
    whole_s: float
    requeued_row: bool
    node_fail_exit: tuple[int, int]
    no_node_cpus: bool
    database_function: str
    keeps_reason: bool
    start_flag: str
    lost_cluster: str

    def columns(self) -> list[str]:
        """Return the columns of ``sacct --helpformat``, as recorded."""
        text = (_DATA / self.version / "errors.txt").read_text(encoding="utf-8")
        return text.partition("$ sacct --helpformat\n")[2].partition("--- ")[0].split()

    def exit_code(self, status: int, sig: int) -> str:
        """Print an exit code: up to 25.05 sacct takes 128 from a status of 128 or more."""
        shown = status - 128 if status >= 128 and self.version < "25.11" else status
        return f"{shown}:{sig}"

    def database_down(self) -> str:
        """What sacct says without slurmdbd."""
        return (
            f"sacct: error: {self.database_function}: failed to open persistent connection to host:127.0.0.1:6819: "
            "Connection refused\nsacct: error: Sending PersistInit msg: Connection refused\n"
            "sacct: error: Problem talking to the database: Connection refused\n"
        )


DIALECTS = {
    "22.05.8": Dialect(
        version="22.05.8",
        row_s=1,
        named_s=4,
        started_s=3,
        endless_s=4,
        whole_s=7,
        requeued_row=False,
        node_fail_exit=(0, 0),
        no_node_cpus=False,
        database_function="slurm_persist_conn_open_without_init",
        keeps_reason=True,
        start_flag="StartRecieved",
        lost_cluster="",
    ),
    "26.05.5": Dialect(
        version="26.05.5",
        row_s=0,
        named_s=0,
        started_s=0,
        endless_s=None,
        whole_s=7,
        requeued_row=True,
        node_fail_exit=(1, 0),
        no_node_cpus=True,
        database_function="_open_persist_conn",
        keeps_reason=False,
        start_flag="StartReceived",
        lost_cluster="squeue: fatal: Could not get cluster information\n",
    ),
}

NO_CONTROLLER = "Unable to contact slurm controller (connect failure)"
NO_ACCOUNTING = "Slurm accounting storage is disabled\n"
