"""What every ending leaves: ``report.md`` that a person can act on, and the kind's own pages and documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outerloop_hpc import fsio
from outerloop_hpc.engine import archive
from outerloop_hpc.engine.kind import Kind
from outerloop_hpc.engine.layout import Layout, RunFolder, element_file
from outerloop_hpc.engine.plain import plain
from outerloop_hpc.engine.records import LOG
from outerloop_hpc.engine.spec import RunSpec, stamp
from outerloop_hpc.engine.state import RunState, Step, Try
from outerloop_hpc.errors import Fault
from outerloop_hpc.forge.text import span

if TYPE_CHECKING:
    from markupsafe import Markup


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
    for name, text in kind.pages(spec, state).items():
        fsio.replace(folder.path / name, text.encode())
    fsio.replace(folder.report, report(folder, spec, state, kind.report(spec, state)).encode())


def report(folder: RunFolder, spec: RunSpec, state: RunState, words: str) -> str:
    """Return ``report.md``. Every value is made harmless on its way into the template, except the kind's ``words``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only endings need it
    from markupsafe import Markup  # noqa: PLC0415 - goes with it

    environment = Environment(
        loader=PackageLoader("outerloop_hpc.engine", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - this is Markdown; ``finalize`` neutralises each value instead
        finalize=lambda value: value if isinstance(value, Markup) else plain(str(value)),
    )
    ended = state.ended
    return environment.get_template("report.md.j2").render(
        spec=spec,
        verdict=ended.ending if ended else state.phase,
        reason=_quoted(ended.reason if ended else ""),
        made=stamp(spec.made_at),
        ended=stamp(ended.at) if ended else "",
        words=Markup(words.rstrip()),  # noqa: S704 - kinds neutralise their own text
        tries=[_try_row(folder, state, step, one) for step in state.steps.values() for one in step.tries],
        accounting=[_accounting_row(folder, name) for name in state.submissions],
    )


def _quoted(reason: str) -> Markup:
    """Return a reason as code: it may quote paths and output of strangers."""
    from markupsafe import Markup  # noqa: PLC0415 - as in ``report``

    return Markup(span(reason, 600) if reason else "")  # noqa: S704 - a code span


def _try_row(folder: RunFolder, state: RunState, step: Step, one: Try) -> dict[str, object]:
    submission = state.submissions[one.submission]
    log = folder.submission(one.submission) / element_file(one.index, LOG)
    return {
        "step": step.spec.key,
        "number": one.number,
        "job": submission.job_of(one.index),
        "outcome": one.outcome or "under way",
        "node": one.node,
        "reason": _quoted(one.reason),
        "log": log.relative_to(folder.path) if log.exists() else "none",
    }


def _accounting_row(folder: RunFolder, name: str) -> dict[str, object]:
    found = archive.read(folder, name)
    if found is None:
        return {"path": name, "text": "not archived"}
    text = f"{len(found.rows)} rows" + (f"; {found.note}" if found.note else "")
    return {"path": folder.accounting(name).relative_to(folder.path), "text": text}
