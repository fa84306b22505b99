"""Logging of the command line: text on stderr, JSON lines in a file when one is asked for."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from outerloop_hpc.cli.cells import harmless
from outerloop_hpc.errors import UsageError

#: The package's root logger; every module logs below it.
ROOT: Final = "outerloop_hpc"
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def level_of(verbosity: int) -> int:
    """Translate ``-q`` (-1), nothing (0), ``-v`` (1) and ``-vv`` (2) to a logging level."""
    levels = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
    return levels[max(-1, min(verbosity, 2)) + 1]


def set_up(verbosity: int, stream: TextIO, log_file: Path | None = None) -> None:
    """Send the package's log to ``stream`` and, from INFO on, to a file. May be called again; the last call holds.

    Raises:
        UsageError: the log file cannot be opened.
    """
    logger = logging.getLogger(ROOT)
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    level = level_of(verbosity)
    to_stream = logging.StreamHandler(stream)
    to_stream.setFormatter(TextLine())
    to_stream.setLevel(level)
    logger.addHandler(to_stream)
    if log_file is not None:
        logger.addHandler(_to_file(log_file, min(level, logging.INFO)))
        level = min(level, logging.INFO)
    logger.setLevel(level)
    logger.propagate = False


def _to_file(path: Path, level: int) -> logging.Handler:
    try:
        handler = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"{path}: the log file cannot be opened: {error.strerror}") from None
    handler.setFormatter(JsonLine())
    handler.setLevel(level)
    return handler


class _LogFile(logging.FileHandler):
    """A full disk must not end a pass, nor fill stderr with a traceback for each line that it loses."""

    _told = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        if not self._told:
            self._told = True
            logging.getLogger(ROOT).warning(
                "%s: the log file cannot be written; the log goes on here only", self.baseFilename
            )
        del record

    def close(self) -> None:
        """Close; what could not be written before is not written now either."""
        with suppress(OSError):
            super().close()


class TextLine(logging.Formatter):
    """``warning: text``; control characters from outside stay visible escapes. Tracebacks only keep their lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record on one line, plus its traceback when there is one."""
        text = f"{record.levelname.lower()}: {harmless(record.getMessage())}"
        if record.exc_info:
            text += "\n" + harmless(self.formatException(record.exc_info), keep="\n")
        return text


class JsonLine(logging.Formatter):
    """One JSON object a line: ``time`` (UTC), ``level``, ``logger``, ``message``, and what ``extra`` adds."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record as one line of ASCII JSON."""
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _STANDARD},
        }
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)
