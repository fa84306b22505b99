"""Documents: frozen pydantic models that carry their schema, and how to read and write them.

A newer schema than this version knows is read-only for us and said so; an unreadable file is a fault of its run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import from_json

from outerloop_hpc import fsio
from outerloop_hpc.errors import Fault


class Value(BaseModel):
    """A frozen part of a document; unknown keys of a later minor version are kept, not lost."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="strings", defer_build=True)


class Document(Value):
    """A file of ours. Subclasses set ``name`` and ``version``; the file says ``"schema": "<name>/<version>"``."""

    name: ClassVar[str]
    version: ClassVar[int] = 1

    document_schema: str = Field(default="", alias="schema", serialization_alias="schema")
    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    @model_validator(mode="after")
    def _known_schema(self) -> Self:
        if self.document_schema:
            self._check_schema(self.document_schema)
        else:
            object.__setattr__(self, "document_schema", f"{self.name}/{self.version}")
        return self

    @classmethod
    def _check_schema(cls, said: str) -> None:
        name, _, version = said.partition("/")
        if name != cls.name or not (version.isascii() and version.isdigit()):
            raise ValueError(f"schema is {said!r}, expected {cls.name}/{cls.version}")
        if int(version) > cls.version:
            raise ValueError(
                f"schema {said} is newer than this version of outerloop-hpc knows "
                f"({cls.name}/{cls.version}); read-only: upgrade to act on it"
            )

    def encoded(self) -> bytes:
        """Return the file's bytes: UTF-8 JSON on one line, with a final newline."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"


def decode(model: type[Any], data: bytes, path: Path) -> Any:
    """Validate ``data`` as ``model``.

    Raises:
        Fault: not JSON, not of this shape, or of a newer schema; the text names the file.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        # A newer document may have another shape: that it is newer is what people must read. Asked only now, since
        # a validator that runs before the fields makes pydantic build every document twice.
        _complain_of_schema(model, data, path)
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Fault(
            f"{path}: not a readable {model.name} document: {where + ': ' if where else ''}{first['msg']}"
        ) from error


def _complain_of_schema(model: type[Any], data: bytes, path: Path) -> None:
    try:
        said = from_json(data)["schema"]
    except (ValueError, LookupError, TypeError):
        return
    try:
        if said:
            model._check_schema(str(said))  # noqa: SLF001 - one noun: a document and how to read it
    except ValueError as error:
        raise Fault(f"{path}: not a readable {model.name} document: {error}") from error


def load(model: type[Any], path: Path) -> Any:
    """Read and validate a document.

    Raises:
        FileNotFoundError: it is not there.
        Fault: it is there and cannot be understood, or cannot be read.
    """
    try:
        data = fsio.read(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Fault(f"{path}: cannot be read: {error.strerror}") from error
    return decode(model, data, path)
