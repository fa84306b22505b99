from __future__ import annotations

from pathlib import Path

import pytest

from outerloop_hpc.engine import inbox
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.errors import Fault
from tests.unit.engine.made import RUN, T0

pytestmark = pytest.mark.unit


def test_a_decision_about_another_run_ends_neither(tmp_path: Path) -> None:
    here, other = Layout(tmp_path).run(RUN), Layout(tmp_path).run(RUN.replace("iris", "other"))
    name = inbox.put(other, "end", who="ann", reason="enough", at=T0)
    here.inbox.mkdir(parents=True)
    (here.inbox / name).write_bytes((other.inbox / name).read_bytes())

    assert [one.action for one in inbox.waiting(other)] == ["end"]
    with pytest.raises(Fault, match=f"{here.inbox / name}: is about {other.run_id}"):
        inbox.waiting(here)
