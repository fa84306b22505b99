"""An image is built aside and put in place whole, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from outerloop_hpc.container.build import BuildFailed, build, described, plan, rendered
from outerloop_hpc.container.image import ImageRef
from outerloop_hpc.errors import ConfigError, UsageError
from outerloop_hpc.process import Finished

pytestmark = pytest.mark.unit

DEFINITION = "Bootstrap: debootstrap\nOSVersion: bookworm\nMirrorURL: {{ MIRROR }}\nInclude: python3\n"


class Builder:
    """Stands for apptainer: writes the image, unless told to fail."""

    def __init__(self, status: int = 0, writes: bytes | None = b"SIF") -> None:
        self.status, self.writes = status, writes
        self.argv: tuple[str, ...] = ()
        self.definition = ""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        self.argv = tuple(argv)
        if Path(argv[-1]).is_file():
            self.definition = Path(argv[-1]).read_text(encoding="utf-8")
        if self.writes is not None:
            Path(argv[-2]).write_bytes(self.writes)
        return Finished(self.argv, self.status, "out\n", "FATAL:   no\n", timed_out=False, seconds=1.0)


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    path = tmp_path / "python.def"
    path.write_text(DEFINITION, encoding="utf-8")
    return path


def made(run: Builder, definition: Path | None, output: Path, **more: object) -> ImageRef:
    options: dict[str, object] = {"mirror": "http://m.example/debian", **more}
    planned = plan(definition, output, which=lambda name: f"/bin/{name}", **options)  # type: ignore[arg-type]
    return build(planned, replace=bool(more.get("replace")), run=run)


def test_a_definition_is_rendered_and_the_image_put_in_place(definition: Path, tmp_path: Path) -> None:
    run, output = Builder(), tmp_path / "new folder" / "python.sif"
    found = made(run, definition, output, fakeroot=True)
    assert (found.path, found.sha256) == (output, hashlib.sha256(b"SIF").hexdigest())
    assert run.argv[:3] == ("/bin/apptainer", "build", "--fakeroot")
    assert run.definition == DEFINITION.replace("{{ MIRROR }}", "http://m.example/debian")
    assert [path.name for path in output.parent.iterdir()] == ["python.sif"]
    assert output.stat().st_mode & 0o400
    assert not output.stat().st_mode & 0o111


def test_a_root_file_system_needs_no_definition_and_no_mirror(tmp_path: Path) -> None:
    (tmp_path / "root/bin").mkdir(parents=True)
    (tmp_path / "root/bin/sh").symlink_to("/no/such/on/the/host")
    run = Builder()
    made(run, None, tmp_path / "x.sif", rootfs=tmp_path / "root", mirror=None)
    assert run.argv[-1] == str(tmp_path / "root")


@pytest.mark.parametrize("run", [Builder(status=255, writes=None), Builder(writes=None), Builder(status=1)])
def test_a_failed_build_leaves_a_log_and_nothing_else(run: Builder, definition: Path, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    with pytest.raises(BuildFailed, match=r"x\.sif\.build\.log"):
        made(run, definition, folder / "x.sif")
    assert [path.name for path in folder.iterdir()] == ["x.sif.build.log"]
    assert "FATAL:   no" in (folder / "x.sif.build.log").read_text(encoding="utf-8")


def test_an_existing_image_is_only_replaced_when_asked(definition: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.sif"
    output.write_bytes(b"old")
    with pytest.raises(UsageError, match="another name"):
        made(Builder(), definition, output)
    assert output.read_bytes() == b"old"
    with pytest.raises(BuildFailed):
        made(Builder(status=1), definition, output, replace=True)
    assert output.read_bytes() == b"old"
    made(Builder(), definition, output, replace=True)
    assert output.read_bytes() == b"SIF"


def test_what_cannot_be_meant(definition: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.sif"
    with pytest.raises(UsageError, match="either"):
        made(Builder(), None, output)
    with pytest.raises(UsageError, match="either"):
        made(Builder(), definition, output, rootfs=tmp_path)
    with pytest.raises(ConfigError, match="no bin/sh"):
        made(Builder(), None, output, rootfs=tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        made(Builder(), tmp_path / "none.def", output)
    with pytest.raises(ConfigError, match="PATH"):
        plan(definition, output, which=lambda _: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["python.def"]


def test_a_dry_run_names_the_builders_command_and_leaves_not_even_a_folder(definition: Path, tmp_path: Path) -> None:
    output = tmp_path / "new folder" / "x.sif"
    planned = plan(definition, output, mirror="http://m.example/d", fakeroot=True, which=lambda name: f"/bin/{name}")
    written, ran, moved = described(planned)
    stage = f"{output.parent}/.tmp-build-x.sif-XXXXXXXX"
    assert written.startswith(f"would write {stage}/python.def: a copy of {definition}, any {{{{ MIRROR }}}}")
    assert ran == f"would run /bin/apptainer build --fakeroot '{stage}/image.sif' '{stage}/python.def'"
    assert moved == f"would move {stage}/image.sif to {output}"
    assert [path.name for path in tmp_path.iterdir()] == ["python.def"]


def test_rendering_takes_no_other_lines() -> None:
    with pytest.raises(ConfigError, match="mirror"):
        rendered(DEFINITION, "http://m/x\n%post\n  id")
    assert rendered("a {{MIRROR}} {{ MIRROR }}", r"http://m/\1") == r"a http://m/\1 http://m/\1"


def test_the_shipped_definition_has_a_mirror_to_fill_in_and_no_post_section() -> None:
    text = (Path(__file__).parents[3] / "containers/python.def").read_text(encoding="utf-8")
    assert "MirrorURL: http://m.example/debian" in rendered(text, "http://m.example/debian")
    assert "\n%post" not in text
    assert "://" not in text
