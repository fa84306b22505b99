"""kill -9 of a job before and after every effect of its own: each number is there in the end, once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.site import CHECKOUT, CONTRACT_OF, Site, environment, new_site, tiny_target, wait_for

pytestmark = [pytest.mark.local, pytest.mark.timeout(1200)]

#: Read by every Python that is started; the n-th element to start dies at effect n // 2 + 1, before or after it.
_DEADLY = """\
import os, signal, sys
if "outerloop_hpc.slurm.element" in sys.orig_argv:
    number = 0
    while True:
        try:
            os.close(os.open(os.path.join(MARKS, f"{number:04d}"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            number += 1
    from outerloop_hpc import effects
    count = 0
    def around(what, subject, action):
        global count
        count += 1
        due = count == number // 2 + 1
        with open(os.path.join(MARKS, f"{number:04d}"), "a") as diary:
            diary.write(f"{what} {os.path.basename(subject)}\\n")
        if due and number % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = action()
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    effects.install(around)
"""

_BENCHMARK = """\
  - {{name: b{number}, command: python3 evaluate.py, metric: score, direction: max, seed_env: SEED, eval_minutes: 1}}
"""
#: As many runs as one tick starts; more than a job has effects, so the last ones are not killed.
_RUNS = 16


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def site(tmp_path: Path, marks: Path) -> Iterator[Site]:
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "sitecustomize.py").write_text(_DEADLY.replace("MARKS", repr(str(marks))), encoding="utf-8")
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(patches), str(CHECKOUT)])}
    contract = CONTRACT_OF.format(benchmarks="".join(_BENCHMARK.format(number=number) for number in range(_RUNS)))
    source = tiny_target(tmp_path / "target", contract=contract)
    site = new_site(tmp_path / "site", targets={"tiny": source}, env=env, seeds=1)
    yield site
    site.stop_jobs()


def test_a_job_killed_at_any_effect_of_its_own_is_measured_all_the_same(site: Site, marks: Path) -> None:
    site.cli("tick")
    wait_for(lambda: len(site.local_jobs()) == _RUNS and site.jobs_gone(), "every first try has started and ended")
    diaries = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in sorted(marks.iterdir())]
    whole = diaries[-1]
    points = 2 * len(whole)
    assert points < _RUNS, "the last element was to be left alone"
    assert whole[-1].endswith("record.json")
    assert [len(diary) for diary in diaries] == [number // 2 + 1 for number in range(points)] + [len(whole)] * (
        _RUNS - points
    )
    site.until_closed()
    rows = site.rows("runs", "list", "--all")
    assert [row["ending"] for row in rows] == ["measured"] * _RUNS
    tries = [row["outcome"] for run in rows for row in site.rows("runs", "show", str(run["run"]))]
    # Killed after its record was there, a job has said all that it had to say.
    assert (tries.count("done"), tries.count("lost")) == (_RUNS, points - 1)
    assert len(site.rows("bench", "history", "tiny")) == _RUNS
    print(f"{points} kill points of a job: {', '.join(whole)}")
