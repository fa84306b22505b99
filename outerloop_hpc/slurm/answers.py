"""What sbatch, scancel and scontrol say, understood. Pure and total.

The question after every failed ``sbatch`` is whether something was enqueued all the same: a client that lost its
connection may have handed the job over. Only a text in which Slurm (or the site's submission filter) refuses is a no.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from outerloop_hpc.process import Finished

_PARSABLE = re.compile(r"(?P<id>[0-9]{1,20})(?:;(?P<cluster>[A-Za-z0-9_.-]+))?")
_PROSE = re.compile(r"Submitted batch job (?P<id>[0-9]{1,20})(?: on cluster (?P<cluster>[A-Za-z0-9_.-]+))?")
_MAX_ARRAY_SIZE = re.compile(r"^\s*MaxArraySize\s*=\s*([0-9]{1,9})\s*$", re.MULTILINE)
_COMPLAINT = re.compile(
    r"\b(?:error|fatal): |(?:unrecognized|invalid|ambiguous) option|requires an argument", re.IGNORECASE
)
_RETRYING = "sleeping and retrying"
_GONE = re.compile(r"invalid job id|already complet|job/step already|no longer", re.IGNORECASE)

#: Texts of a conversation that broke: the controller may hold the job although the client failed.
_LOST_CONVERSATION = re.compile(
    r"""timed?\s?-?out | unable\ to\ contact | connect(?:ion)?\ (?:failure|refused|reset|aborted) | zero\ bytes
    | communication | unexpected\ message | transport\ endpoint | broken\ pipe | no\ route\ to\ host
    | network\ is\ unreachable | socket | i/o\ error | protocol\ version | temporarily\ unable | temporarily\ disabled
    | queue\ full | backup\ controller | standby\ mode | munge | authentication | name\ or\ service\ not\ known
    | message\ (?:send|receive)\ failure | insane\ message | incompatible\ versions | not\ responding | header\ lengths
    | unable\ to\ connect | \btls\b | resource\ temporarily\ unavailable | interrupted | credential
    | invalid\ user\ id""",
    re.IGNORECASE | re.VERBOSE,
)

#: Texts of a daemon that nobody could speak to at all. Narrower than the above: what is refused is not unreachable.
_UNREACHABLE = re.compile(
    r"""unable\ to\ (?:contact|connect) | connect(?:ion)?\ (?:failure|refused|reset) | can't\ be\ reached
    | (?:socket|connection|operation|message)\ timed\ out | failed\ to\ open\ persistent\ connection
    | problem\ talking\ to\ the\ database | no\ route\ to\ host | network\ is\ unreachable
    | zero\ bytes\ were\ transmitted""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Taken:
    """sbatch's answer: the id, and the cluster when it was named."""

    job_id: str
    cluster: str = ""


def parse_submission(stdout: str) -> Taken | None:
    """Read sbatch's stdout: the last line that is not empty, as ``id``, ``id;cluster`` or Slurm's own sentence.

    Banners of site wrappers stand before it and are skipped; a number in a banner is never taken for an id.
    """
    lines = [line.strip() for line in stdout.split("\n") if line.strip()]
    found = lines and (_PARSABLE.fullmatch(lines[-1]) or _PROSE.fullmatch(lines[-1]))
    return Taken(found["id"], found["cluster"] or "") if found else None


def refused(finished: Finished) -> bool:
    """Whether a failed sbatch surely enqueued nothing: it ended by itself, complained, and not about the connection.

    "Slurm job queue full, sleeping and retrying" decides nothing: it stands before refusals and before successes.
    """
    if finished.status is None or finished.status <= 0:
        return False
    decisive = [line for line in _complaints(finished) if _RETRYING not in line]
    return bool(decisive) and not any(_LOST_CONVERSATION.search(line) for line in decisive)


def unreachable(finished: Finished) -> bool:
    """Whether a command hung past its time limit or could not speak to its daemon: the next one would fare no better.

    A text in a command that succeeded with an answer (a retry, a site's banner) is none.
    """
    if finished.timed_out:
        return True
    answer = finished.ok and finished.stdout.strip()
    return not answer and any(_UNREACHABLE.search(line) for line in _complaints(finished))


def cancelled_or_gone(finished: Finished) -> bool:
    """Whether scancel did what was asked; jobs that it does not know or that ended already are just that."""
    if finished.status is None:
        return False
    complaints = _complaints(finished)
    if finished.ok:
        return not any(_LOST_CONVERSATION.search(line) for line in complaints)
    return bool(complaints) and all(_GONE.search(line) for line in complaints)


def parse_max_array_size(text: str) -> int | None:
    """Read ``MaxArraySize`` from ``scontrol show config``: one more than the largest array index."""
    found = _MAX_ARRAY_SIZE.search(text)
    return int(found[1]) if found else None


def _complaints(finished: Finished) -> list[str]:
    return [line for line in finished.stderr.split("\n") if _COMPLAINT.search(line)]
