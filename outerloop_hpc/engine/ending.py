"""What every ending leaves: ``report.md`` that a person can act on, and the kind's own documents."""

from __future__ import annotations

from outerloop_hpc import fsio
from outerloop_hpc.engine import archive
from outerloop_hpc.engine.kind import Kind
from outerloop_hpc.engine.layout import Layout, RunFolder, element_file
from outerloop_hpc.engine.records import LOG
from outerloop_hpc.engine.spec import RunSpec, stamp
from outerloop_hpc.engine.state import RunState, Step, Try
from outerloop_hpc.errors import Fault


def publish(layout: Layout, folder: RunFolder, spec: RunSpec, state: RunState, kind: Kind) -> None:
    """Write the report and publish the kind's documents; doing it again changes nothing.

    Raises:
        Fault: a document of this run is there already with other content.
    """
    for relative, data in kind.documents(spec, state).items():
        path = layout.root / relative
        fsio.make_folder(path.parent)
        if not fsio.publish(path, data):
            raise Fault(f"{path}: is there with other content than this run's; it was changed by hand")
    fsio.replace(folder.report, report(folder, spec, state, kind.report(spec, state)).encode())


def report(folder: RunFolder, spec: RunSpec, state: RunState, words: str) -> str:
    """Return ``report.md``."""
    ended = state.ended
    verdict = f"**{ended.ending}**: {plain(ended.reason)}" if ended else f"**{state.phase}**"
    lines = [
        f"# {spec.kind} run {spec.run}",
        "",
        verdict,
        "",
        f"- target `{spec.target}` at commit `{spec.commit}`, because of {plain(spec.cause)}",
        f"- image `{spec.image.path or 'none'}`" + (f" (sha256 {spec.image.sha256})" if spec.image.sha256 else ""),
        f"- made {stamp(spec.made_at)} by {spec.made_by}" + (f", ended {stamp(ended.at)}" if ended else ""),
        f"- everything about it: `outerloop-hpc explain {spec.run}`",
        "",
    ]
    if words:
        lines += [words.rstrip(), ""]
    lines += ["## Tries", "", "| step | try | job | outcome | node | why | log |", "|---|---|---|---|---|---|---|"]
    for step in state.steps.values():
        lines += [_try_line(folder, state, step, one) for one in step.tries]
    lines += ["", "## Accounting", "", *_accounting(folder, state), ""]
    return "\n".join(lines)


def plain(text: str) -> str:
    """One line of outside text, harmless in Markdown: no line breaks, table cells, tags or control characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())[:500]
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("`", "&#96;")):
        flat = flat.replace(character, entity)
    return flat


def _try_line(folder: RunFolder, state: RunState, step: Step, one: Try) -> str:
    submission = state.submissions[one.submission]
    job = job_of(submission.job_id, one.index, len(submission.elements))
    log = folder.submission(one.submission) / element_file(one.index, LOG)
    shown = log.relative_to(folder.path) if log.exists() else "none"
    outcome = one.outcome or "under way"
    return f"| {step.spec.key} | {one.number} | {job} | {outcome} | {one.node} | {plain(one.reason)} | `{shown}` |"


def job_of(job_id: str, index: int, count: int) -> str:
    """Name one element's job as the scheduler does: ``123`` or ``123_4``; ``-`` before it has an id."""
    if not job_id:
        return "-"
    return job_id if count == 1 else f"{job_id}_{index}"


def _accounting(folder: RunFolder, state: RunState) -> list[str]:
    lines = []
    for name in state.submissions:
        path = folder.accounting(name).relative_to(folder.path)
        found = archive.read(folder, name)
        if found is None:
            lines.append(f"- `{name}`: not archived")
        else:
            lines.append(f"- `{path}`: {len(found.rows)} rows" + (f"; {found.note}" if found.note else ""))
    return lines or ["- nothing was submitted"]
