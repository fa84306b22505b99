"""Tell the person at the terminal what went wrong in passes: every fault, and the first of the problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outerloop_hpc.cli.session import talk

if TYPE_CHECKING:
    from outerloop_hpc.engine.passresult import PassResult

#: When squeue prints rubbish, each of thousands of lines is a problem; people read the first ones.
_MOST_PROBLEMS = 20


def tell_faults(result: PassResult) -> None:
    """Name every run that could not be handled, and why."""
    for run, fault in result.faults:
        talk(f"fault: {run}: {fault}")


def tell_problems(result: PassResult) -> None:
    """Name what did not answer or was refused, each once, and why nothing was launched."""
    problems = list(dict.fromkeys(result.problems))
    for problem in problems[:_MOST_PROBLEMS]:
        talk(f"problem: {problem}")
    if len(problems) > _MOST_PROBLEMS:
        talk(f"and {len(problems) - _MOST_PROBLEMS} more problems; `outerloop-hpc reconcile --json` lists all of them")
    for note in dict.fromkeys(result.notes):
        talk(f"note: {note}")
    if result.held:
        talk(f"no launches: {result.held}")
