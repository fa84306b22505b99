"""What one execution of a benchmark gave: a part of the record that a job leaves."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from outerloop_hpc.documents import Value


class Outcome(StrEnum):
    """What came of it. Only ``measured`` has a value; ``infrastructure`` says nothing about the code measured.

    ``out_of_memory``: the kernel killed processes of it for want of memory; one more try may ask for more.
    """

    MEASURED = "measured"
    FAILED = "failed"
    INFRASTRUCTURE = "infrastructure"
    OUT_OF_MEMORY = "out_of_memory"
    INTERRUPTED = "interrupted"


class Measurement(Value):
    """What one execution gave, with everything needed to judge or repeat it.

    Attributes:
        command: the benchmark's own command, without the container's part.
        value: the metric; only when measured.
        metrics: further finite numbers of the same JSON object.
        reason: why there is no value; empty when there is one.
        exit_status: None when it did not start, was ended by us or by a signal.
        exit_signal: name of the signal that ended it.
        seconds: wall time, container start included. cpu_user_s, cpu_system_s: of all its processes.
        max_rss_kib: of its largest process, the container runtime's own included (apptainer has about 40 MiB).
        output_bytes: stdout and stderr. output_cut: whether only the end of stdout was kept.
        network: ``off``, ``on`` (asked for) or ``host`` (could not be switched off).
    """

    outcome: Outcome
    command: tuple[str, ...]
    metric: str
    seed: int | None = None
    value: float | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    reason: str = ""
    exit_status: int | None = None
    exit_signal: str | None = None
    seconds: float = 0.0
    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    max_rss_kib: int = 0
    output_bytes: int = 0
    output_cut: bool = False
    cpus: int = 1
    node: str
    cpu_model: str
    runtime: str
    image_sha256: str | None = None
    network: str
    notes: tuple[str, ...] = ()
