"""A small filesystem of its own as a project's state folder: it can be filled, and refuse every write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from tests.slurm.project import Project

Trouble = Literal["full", "read-only"]
#: What the filesystem says, by trouble.
SAID: dict[Trouble, str] = {"full": "No space left on device", "read-only": "Read-only file system"}
_MEGABYTES = 48


class Disk:
    """The state folder of one project, on a filesystem that nodes and passes share."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._root = project.state_root
        self._trouble: Trouble | None = None

    def mount(self) -> None:
        """Make it; the state folder is empty then."""
        self._check("mount", "-t", "tmpfs", "-o", f"size={_MEGABYTES}m,mode=755", "tmpfs", self._root)
        self._check("chown", f"{self._project.user}:", self._root)

    def break_down(self, trouble: Trouble) -> None:
        """Fill it to the last byte, or let it refuse writes; files that are open for writing may stay so."""
        self._trouble = trouble
        if trouble == "full":
            filled = self._project.cluster.run(["dd", "if=/dev/zero", f"of={self._root}/ballast", "bs=4096"])
            assert SAID["full"] in filled.stderr
        else:
            # A mount on top, since one with open files cannot be remounted read-only in an orderly way.
            self._check("mount", "--bind", self._root, self._root)
            self._check("mount", "-o", "remount,bind,ro", self._root)

    def mend(self) -> None:
        """Undo it; nothing to undo is fine."""
        if self._trouble == "full":
            self._check("rm", f"{self._root}/ballast")
        elif self._trouble == "read-only":
            self._check("umount", "--lazy", self._root)
        self._trouble = None

    def unmount(self) -> None:
        """End it with all that is on it."""
        self.mend()
        self._check("umount", "--lazy", self._root)

    def _check(self, *argv: str) -> None:
        self._project.cluster.check(list(argv))


@contextmanager
def state_disk(project: Project) -> Iterator[Disk]:
    """Put a made project's state folder, empty so far, on a small filesystem; jobs that are left end with it."""
    disk = Disk(project)
    disk.mount()
    try:
        yield disk
    finally:
        disk.mend()
        project.cluster.cancel_jobs()
        disk.unmount()
