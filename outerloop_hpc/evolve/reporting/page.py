"""A sweep as one page of HTML: self-contained, without a script, every text of strangers escaped. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outerloop_hpc.engine.spec import RunSpec, stamp
from outerloop_hpc.engine.state import RunState
from outerloop_hpc.evolve.reporting.account import account
from outerloop_hpc.evolve.reporting.plot import plot
from outerloop_hpc.evolve.reporting.section import Section
from outerloop_hpc.evolve.work import work_of
from outerloop_hpc.forge.text import visible

if TYPE_CHECKING:
    from markupsafe import Markup

#: Its name, beside ``report.md``.
NAME = "report.html"
#: Longer tables are folded up.
_FOLDED = 24


def page(spec: RunSpec, state: RunState) -> str:
    """Return the page; the same account as in ``report.md``, and plots of the paired differences."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only pages need it
    from markupsafe import Markup  # noqa: PLC0415 - goes with it

    environment = Environment(
        loader=PackageLoader("outerloop_hpc.evolve.reporting", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        # Escaping keeps marks that turn the direction of what follows; these go, too.
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    ended, parked = state.ended, state.parked
    return environment.get_template("page.html.j2").render(
        spec=spec,
        title=f"Sweep {work_of(spec).name}",
        verdict=ended.ending if ended else state.phase,
        reason=ended.reason if ended else parked.question if parked else "",
        made=stamp(spec.made_at),
        ended=stamp(ended.at) if ended else "",
        sections=[(one, _drawing(one, number)) for number, one in enumerate(account(spec, state))],
        folded=_FOLDED,
    )


def _drawing(section: Section, number: int) -> Markup | None:
    """Return a part's plot; its own texts are escaped where they are put in."""
    from markupsafe import Markup  # noqa: PLC0415 - as in ``page``

    if section.plot is None or not (drawn := plot(section.plot, f"plot{number}")):
        return None
    return Markup(drawn)  # noqa: S704 - an SVG of our own
