"""Documents: frozen pydantic models that carry their schema, and how to read and write them.

A newer schema than this version knows is read-only for us and said so; an unreadable file is a fault of its run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

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
        if not self.document_schema:
            # A before-validator would do this too, but makes pydantic build every document twice.
            object.__setattr__(self, "document_schema", f"{self.name}/{self.version}")
        self.check_schema(self.document_schema)
        return self

    @classmethod
    def check_schema(cls, said: str) -> None:
        """Refuse a schema that is another's, or newer than this version knows; raises ValueError."""
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
        raise Fault(f"{path}: not a readable {model.name} document: {_complaint(model, data, error)}") from error


def kept(model: type[Any], document: Mapping[str, Any], where: str) -> Any:
    """Validate a document that lies within another one, such as a conclusion in a journal; raises Fault as ``decode``.

    ``where`` names it for people.
    """
    return decode(model, json.dumps(document).encode(), Path(where))


def _complaint(model: type[Any], data: bytes, error: ValidationError) -> str:
    """Say what is wrong: a newer document may have another shape, so its schema is what people must read first."""
    try:
        model.check_schema(str(json.loads(data)["schema"]))
    except ValueError as wrong:
        if not isinstance(wrong, json.JSONDecodeError):
            return str(wrong)
    except (KeyError, TypeError, RecursionError):
        pass
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where + ': ' if where else ''}{first['msg']}"


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
