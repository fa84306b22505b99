"""What people write: titles, labels, and texts from an option, a file or stdin, within bounds."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from outerloop_hpc.errors import UsageError

#: Bytes of UTF-8 that an order or a comment may have.
LARGEST = 1_000_000
_LONGEST_LINE = 300
_BENCHMARK = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def text(body: str, file: str, *, option: str = "--body") -> str:
    """Return the text of ``--body``, or that of the file or stdin (``-``) that ``--body-file`` names.

    Raises:
        UsageError: both are given, the file cannot be read, is not UTF-8, or is too large; the text says how large.
    """
    if file and body:
        raise UsageError(f"{option} and {option}-file exclude each other; choose one")
    if not file:
        data, what = os.fsencode(body), option
        _refuse_large(len(data), what)
    elif file == "-":
        data, what = _bounded(sys.stdin.buffer, "stdin"), "stdin"
    else:
        data, what = _of_file(Path(file)), file
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: is not UTF-8 text (byte {error.start}); write it in UTF-8") from error


def _of_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _bounded(file, str(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _bounded(file: BinaryIO, what: str) -> bytes:
    """Read to the end, but never much more than is accepted: a text may come out of a pipe that has no end."""
    data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        _refuse_large(_size(file), what)
    return data


def _size(file: BinaryIO) -> int | None:
    try:
        found = os.fstat(file.fileno())
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _refuse_large(size: int | None, what: str) -> None:
    if size is None or size > LARGEST:
        has = f"has {size} bytes" if size is not None else f"has more than {LARGEST} bytes"
        raise UsageError(f"{what}: {has}, at most {LARGEST} are taken; shorten it, or name a file that holds the rest")


def line(given: str, option: str) -> str:
    """Return a title or a label without the blanks around it.

    Raises:
        UsageError: it is empty, long, not one line, or has characters that nobody would see.
    """
    found = given.strip()
    if not found or len(found) > _LONGEST_LINE or not found.isprintable():
        raise UsageError(
            f"{option} {found[:_LONGEST_LINE]!a}: one visible line is needed, at most {_LONGEST_LINE} characters"
        )
    return found


def with_benchmark(body: str, name: str) -> str:
    """Return the body with a line that names the benchmark it is about.

    Raises:
        UsageError: that cannot be the name of a benchmark.
    """
    if not name:
        return body
    if _BENCHMARK.fullmatch(name) is None:
        raise UsageError(
            f"--benchmark {name[:_LONGEST_LINE]!a} is not the name of a benchmark: 1 to 64 of A-Z a-z 0-9 _ . -"
        )
    above = body.rstrip("\n")
    return f"{above}\n\nbenchmark: {name}\n" if above else f"benchmark: {name}\n"
