"""The body of a measurement: what a node lacks is not the run's fault, and whose GPUs are whose."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outerloop_hpc.benchmark import job
from outerloop_hpc.benchmark.work import BenchmarkWork, dump
from outerloop_hpc.container.image import ImageRef
from outerloop_hpc.container.runtime import NotWorkingHere
from outerloop_hpc.engine import enclose, measuring
from outerloop_hpc.engine.body import Context, Stop, carried_out
from outerloop_hpc.engine.enclose import Containment, enclosure
from outerloop_hpc.engine.layout import Layout
from outerloop_hpc.engine.records import ManifestElement
from outerloop_hpc.engine.spec import Image, ResourceAsk
from outerloop_hpc.target.repository import create_bare
from tests.unit.benchmark.made import any_work
from tests.unit.engine.made import SPEC, step

pytestmark = pytest.mark.unit


def work(**more: Any) -> BenchmarkWork:
    return any_work(**{"seeds": (1,), "containment": Containment(runtime="none", uncontained=True), **more})


def context(tmp_path: Path, asked: BenchmarkWork, *, image: str = "", environ: Mapping[str, str]) -> Context:
    spec = SPEC.model_copy(update={"work": dump(asked), "image": Image(path=image, sha256="0" * 64 if image else "")})
    element = ManifestElement(step=step(parameters={"seed": 1}), try_number=1)
    return Context(spec, element, Layout(tmp_path), tmp_path / "s", tmp_path / "log", Stop(), 600.0, environ)


def test_an_image_that_one_node_lacks_is_tried_elsewhere_and_not_final(tmp_path: Path) -> None:
    found = carried_out(job.measure, context(tmp_path, work(), image=str(tmp_path / "absent.sif"), environ={}))
    assert found.outcome == "infrastructure"
    assert "no such image" in found.reason
    assert found.node_unfit


def test_another_image_than_the_submitted_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.sif").write_bytes(b"x")
    found = carried_out(job.measure, context(tmp_path, work(), image=str(tmp_path / "other.sif"), environ={}))
    assert found.outcome == "refused"
    assert not found.node_unfit


def test_a_runtime_that_one_node_lacks_is_tried_elsewhere_and_not_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "one.sif"
    image.write_bytes(b"x")
    monkeypatch.setattr(enclose, "require", lambda path, _: ImageRef(path, "0" * 64))
    monkeypatch.setenv("PATH", str(tmp_path))
    asked = work(containment=Containment(runtime="apptainer"))
    found = carried_out(job.measure, context(tmp_path, asked, image=str(image), environ={}))
    assert found.outcome == "infrastructure"
    assert "apptainer is not on PATH" in found.reason
    assert found.node_unfit


@pytest.mark.parametrize("made", [False, True])
def test_a_commit_that_one_node_does_not_see_is_tried_elsewhere_and_not_final(tmp_path: Path, made: bool) -> None:
    if made:
        (tmp_path / "mirrors").mkdir()
        create_bare(tmp_path / "mirrors" / "iris.git", "main")
    given = context(tmp_path, work(), environ={})
    found = carried_out(job.measure, replace(given, spec=given.spec.model_copy(update={"commit": "c0ffee00" * 5})))
    assert found.outcome == "infrastructure"
    assert "not in the mirror as this node sees it" in found.reason
    assert found.node_unfit


def test_a_runtime_that_does_not_start_on_one_node_blames_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_fuse(*_: object, **__: object) -> None:
        raise NotWorkingHere("apptainer does not start on this node: /dev/fuse is missing")

    monkeypatch.setattr(enclose, "choose", no_fuse)
    found = carried_out(job.measure, context(tmp_path, work(), environ={}))
    assert (found.outcome, found.node_unfit) == ("infrastructure", True)


def test_a_node_whose_scratch_is_full_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(enclose, "make_scratch", full)
    found = carried_out(job.measure, context(tmp_path, work(), environ={}))
    assert (found.outcome, found.node_unfit) == ("infrastructure", True)


@pytest.mark.parametrize(
    "command",
    ["sh -c 'exit 75'", "sh -c 'echo No space left on device >&2; exit 1'"],
    ids=["try later", "says that the node is full"],
)
def test_what_a_benchmark_says_or_ends_with_excludes_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    class Exported:
        def __init__(self, _: Path) -> None:
            pass

        def export(self, _: str, folder: Path) -> str:
            folder.mkdir(parents=True)
            return "7ree"

    monkeypatch.setattr(measuring, "Mirror", Exported)
    given = context(tmp_path, work(command=command), environ={"PATH": os.environ["PATH"]})
    found = carried_out(job.measure, given)
    assert (found.outcome, found.node_unfit) == ("infrastructure", False)


@pytest.mark.parametrize(("gpus", "expected"), [(1, {"CUDA_VISIBLE_DEVICES": "3"}), (0, {})])
def test_a_measurement_is_told_which_gpus_are_its_own(tmp_path: Path, gpus: int, expected: dict[str, str]) -> None:
    asked = work(resources=ResourceAsk(minutes=10, gpus=gpus))
    given = context(tmp_path, asked, environ={"CUDA_VISIBLE_DEVICES": "3", "SECRET": "x"})
    env = enclosure(given, asked.containment, gpus=gpus).sandbox.env
    assert {name: value for name, value in env.items() if name != "LANG"} == expected
