"""How the programs fail: what a fault does to an answer that is otherwise right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.fakeslurm.model import Cluster, Fault


@dataclass(frozen=True)
class Said:
    """What a program writes and how it ends. ``hangs``: it does not end by itself."""

    out: str = ""
    err: str = ""
    status: int = 0
    hangs: bool = False
    raw: bytes = b""

    def stdout(self) -> bytes:
        """The bytes of standard output."""
        return self.raw or self.out.encode()


#: Every kind of fault, see ``model.Fault``.
_KINDS = "refuse hang truncate garbage banner silent status after late cluster word empty lines"
KINDS = frozenset(_KINDS.split())
_BANNER = "*** maintenance on 7 March, see 123456 ***"
_TIMED_OUT = "Batch job submission failed: Socket timed out on send/recv operation"


def due(cluster: Cluster, command: str) -> Fault | None:
    """Count a call and return the fault that strikes it."""
    struck: Fault | None = None
    for fault in cluster.faults:
        if fault.command != command:
            continue
        fault.calls += 1
        if fault.calls > fault.after and (not fault.times or fault.used < fault.times) and struck is None:
            fault.used += 1
            struck = fault
    return struck


def answered(fault: Fault | None, refusal: Said, answer: Callable[[], Said]) -> Said:
    """Return what the program says under a fault; ``answer`` does the work, ``refusal`` is its daemon being away."""
    if fault is None:
        return answer()
    instead = {
        "refuse": refusal,
        "hang": Said(hangs=True),
        "status": Said(err=fault.text, status=fault.status),
        "silent": Said(),
    }
    return instead[fault.kind] if fault.kind in instead else _bent(fault, answer())


def _bent(fault: Fault, said: Said) -> Said:
    """An answer that was given, and then went wrong on its way."""
    lines = said.out.splitlines(keepends=True)
    old, _, new = fault.text.partition("=")
    bent = {
        "after": Said(err=fault.text or f"sbatch: error: {_TIMED_OUT}\n", status=fault.status),
        "late": Said(hangs=True),
        "truncate": replace(said, out=said.out[: max(len(said.out) // 2, 1)]),
        "garbage": replace(said, raw=said.out.encode() + b"\xff\xfe\x00 \xc3\x28 not a row\n"),
        "banner": replace(said, out=f"{fault.text or _BANNER}\n{said.out}"),
        "cluster": replace(said, out=f"{said.out.strip()};{fault.text or 'test'}\n"),
        "word": replace(said, out=said.out.replace(old, new)) if old else said,
        "empty": replace(said, out="".join(lines[:1])),
        "lines": replace(said, out="".join(line for line in lines if fault.text not in line)),
    }
    return bent[fault.kind]
