"""Runs in fresh namespaces, still on the host's files: builds the throw-away root, moves into it, becomes init.

Standard library only, and started by file name. ``pivot_root``, not ``chroot``: inside a chroot the kernel refuses
user namespaces, and Apptainer without privileges fails.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

_TMPFS_SIZE = "6g"
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_FUSE = (10, 229)
_IGNORED = ("__pycache__", ".*_cache", ".git", ".hypothesis", "*.egg-info", "build", "dist")


def main() -> None:
    """Read the plan (JSON: ``mountpoint``, ``lower``, ``binds``, ``copies``, ``network``) from the one argument."""
    plan: dict[str, Any] = json.loads(sys.argv[1])
    _run("mount", "--make-rprivate", "/")
    root = _overlay(Path(plan["mountpoint"]), plan["lower"])
    _system(root)
    for source, target, read_only in plan["binds"]:
        _bind(source, root / target.lstrip("/"), read_only=read_only)
    for source, target in plan["copies"]:
        _copy(Path(source), root / target.lstrip("/"))
    _move_into(root)
    socket.sethostname("ctl")
    if not plan["network"]:
        _run("ip", "link", "set", "lo", "up")
        # slurmdbd's resolver wants one address that is not loopback.
        _run("ip", "addr", "add", "10.9.0.1/32", "dev", "lo")
    os.execv("/usr/bin/python3", ["init", "-I", "/run/init.py"])  # noqa: S606 - no shell is wanted


def _overlay(mountpoint: Path, lower: str) -> Path:
    _run("mount", "-t", "tmpfs", "-o", f"size={_TMPFS_SIZE},mode=755", "tmpfs", str(mountpoint))
    for name in ("lower", "upper", "work", "root"):
        (mountpoint / name).mkdir()
    _run("mount", "--bind", lower, str(mountpoint / "lower"))
    os.chdir(mountpoint)  # relative names: a comma or colon in the cache's path would end the option
    _run("mount", "-t", "overlay", "overlay", "-o", "lowerdir=lower,upperdir=upper,workdir=work", "root")
    return mountpoint / "root"


def _system(root: Path) -> None:
    _run("mount", "-t", "proc", "proc", str(root / "proc"))
    _run("mount", "--rbind", "/sys", str(root / "sys"))
    for name, mode in (("run", "755"), ("tmp", "1777"), ("dev", "755")):
        _run("mount", "-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", str(root / name))
    _devices(root / "dev")
    shutil.copyfile(Path(__file__).with_name("init.py"), root / "run" / "init.py")


def _devices(dev: Path) -> None:
    """Make a /dev of our own: the host's nodes keep their rights (an ordinary user gets fuse only in here)."""
    os.umask(0)
    for name, (major, minor) in (_DEVICES | {"fuse": _FUSE}).items():
        try:
            os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        except PermissionError:  # no CAP_MKNOD here
            _bind(f"/dev/{name}", dev / name, read_only=False)
    os.umask(0o022)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (dev / name).symlink_to(target)
    (dev / "shm").mkdir()
    (dev / "pts").mkdir()
    (dev / "ptmx").symlink_to("pts/ptmx")
    _run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(dev / "shm"))
    _run("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=620", "devpts", str(dev / "pts"))


def _bind(source: str, target: Path, *, read_only: bool) -> None:
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        target.touch()
    _run("mount", "--bind", source, str(target))
    if read_only:
        _run("mount", "-o", "remount,bind,ro", str(target))


def _copy(source: Path, target: Path) -> None:
    patterns = shutil.ignore_patterns(*_IGNORED)

    def ignored(folder: str, names: list[str]) -> set[str]:
        environments = {name for name in names if Path(folder, name, "pyvenv.cfg").is_file()}
        return environments | set(patterns(folder, names))

    shutil.copytree(source, target, ignore=ignored, symlinks=True, copy_function=shutil.copy)


def _move_into(root: Path) -> None:
    os.chdir(root)
    Path(".old").mkdir()
    _run("pivot_root", ".", ".old")
    os.chdir("/")
    os.environ.clear()
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8")
    _run("umount", "-l", "/.old")
    Path("/.old").rmdir()


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
