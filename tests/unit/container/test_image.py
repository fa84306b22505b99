"""An image is its content: digests, when they are kept, and when not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from outerloop_hpc.container import image
from outerloop_hpc.container.image import Identity, identify, require
from outerloop_hpc.errors import ConfigError, TryLater

pytestmark = pytest.mark.unit


@pytest.fixture
def sif(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image that counts as settled long ago."""
    monkeypatch.setattr(image, "_SETTLED_NS", 0)
    path = tmp_path / "an image with 'quotes'.sif"
    path.write_bytes(b"SIF" * 1000)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    seen: list[Path] = []
    digest = image._digest

    def counting(path: Path) -> str:
        seen.append(path)
        return digest(path)

    monkeypatch.setattr(image, "_digest", counting)
    return seen


def test_the_digest_is_the_sha256_of_the_file(sif: Path) -> None:
    found = identify(sif, memory={})
    assert (found.path, found.sha256) == (sif, hashlib.sha256(sif.read_bytes()).hexdigest())


def test_an_image_is_read_once_and_again_when_it_changed_or_moved(sif: Path, reads: list[Path]) -> None:
    memory: dict[Identity, str] = {}
    first = identify(sif, memory=memory)
    assert identify(sif, memory=memory) == first
    assert len(reads) == 1
    moved = sif.rename(sif.with_name("moved.sif"))
    assert identify(moved, memory=memory).sha256 == first.sha256
    assert len(reads) == 2
    moved.write_bytes(b"FIS" * 1000)
    os.utime(moved, ns=(1, 1))
    assert identify(moved, memory=memory).sha256 != first.sha256
    assert len(reads) == 3


def test_same_size_and_a_forged_time_are_still_read_again(sif: Path) -> None:
    memory: dict[Identity, str] = {}
    status = sif.stat()
    first = identify(sif, memory=memory)
    sif.write_bytes(b"FIS" * 1000)
    os.utime(sif, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert identify(sif, memory=memory).sha256 != first.sha256


def test_a_file_that_changed_just_now_is_not_remembered(sif: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_SETTLED_NS", 60_000_000_000)
    memory: dict[Identity, str] = {}
    identify(sif, memory=memory)
    assert memory == {}


def test_another_process_finds_the_digest_in_the_cache_folder(sif: Path, tmp_path: Path, reads: list[Path]) -> None:
    cache = tmp_path / "cache"
    first = identify(sif, cache=cache, memory={})
    assert identify(sif, cache=cache, memory={}) == first
    assert len(reads) == 1
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["garbage", "other", "writable by others"])
def test_a_damaged_cache_only_costs_time(sif: Path, tmp_path: Path, reads: list[Path], damage: str) -> None:
    cache = tmp_path / "cache"
    first = identify(sif, cache=cache, memory={})
    (document,) = cache.iterdir()
    if damage == "garbage":
        document.write_bytes(b"\xff{")
    elif damage == "other":
        document.write_bytes(document.read_bytes().replace(b'"key":"', b'"key":"0'))
    else:
        cache.chmod(0o777)
    assert identify(sif, cache=cache, memory={}) == first
    assert len(reads) == 2


def test_a_cache_folder_that_cannot_be_made_only_costs_time(sif: Path) -> None:
    assert identify(sif, cache=Path("/proc/no/cache"), memory={}).sha256


def test_a_file_that_changes_while_it_is_read_is_try_later(sif: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(path: Path) -> str:
        path.write_bytes(b"more")
        return "0" * 64

    monkeypatch.setattr(image, "_digest", digest)
    with pytest.raises(TryLater, match="changed while"):
        identify(sif, memory={})


def test_a_missing_image_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="image build"):
        identify(tmp_path / "none.sif", memory={})
    with pytest.raises(ConfigError, match="not an image file"):
        identify(tmp_path, memory={})


def test_another_image_than_asked_for_is_refused(sif: Path) -> None:
    wanted = hashlib.sha256(sif.read_bytes()).hexdigest()
    assert require(sif, wanted.upper()).sha256 == wanted
    with pytest.raises(ConfigError, match="another image") as caught:
        require(sif, "0" * 64)
    assert wanted[:16] in str(caught.value)
    assert "0" * 16 in str(caught.value)
