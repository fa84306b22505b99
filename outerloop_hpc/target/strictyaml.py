"""Read YAML that strangers wrote: a small, plain mapping or a clear refusal.

No anchors, aliases, merges, tags or second documents; no duplicate or non-text keys; bounded size, depth and count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from outerloop_hpc.errors import ConfigError

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 64 * 1024
MAX_DEPTH = 12
MAX_NODES = 5_000
_EXPONENT = re.compile(
    r"(?P<sign>[-+]?)(?=[0-9.]*[0-9])(?P<whole>[0-9]{0,20})(?:\.(?P<part>[0-9]{0,20}))?"
    r"[eE](?P<up>[-+]?)(?P<exponent>[0-9]{1,4})"
)


def load(data: bytes, name: str) -> dict[str, Any]:
    """Parse ``data`` as one mapping with text keys.

    Args:
        data: the file's bytes, at most 64 KiB of UTF-8.
        name: what to call the file in messages.

    Raises:
        ConfigError: anything else; the text says which line.
    """
    import yaml  # noqa: PLC0415 - slow to import, and help must answer without it

    text = _text(data, name)
    try:
        _scan(text, name)
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if not isinstance(node, yaml.MappingNode):
                raise ConfigError(f"{name}: expected a mapping of settings at the top level")
            _check_keys(node, "", name)
            loaded: dict[str, Any] = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not readable as YAML: {_first_line(error)}") from error
    except (ValueError, OverflowError, KeyError, AttributeError) as error:
        # PyYAML's scalar constructors leak these for absurd numbers, dates and escapes.
        raise ConfigError(f"{name}: a value cannot be read: {_first_line(error)}") from error
    return loaded


def shown(value: object, limit: int = 60) -> str:
    """Quote foreign text for a message: on one line, printable, short."""
    text = ascii(str(value))
    return text if len(text) <= limit else text[: limit - 2] + "…'"


def number_hint(text: str) -> str:
    """Say how to write ``1e-3``: YAML 1.1 wants a point and a signed exponent, and reads all else as text (pure)."""
    match = _EXPONENT.fullmatch(text)
    if match is None:
        return ""
    written = f"{match['sign']}{match['whole'] or '0'}.{match['part'] or '0'}e{match['up'] or '+'}{match['exponent']}"
    return f"; YAML reads {text} as text, write {written}"


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{name}: {len(data)} bytes, at most {MAX_BYTES} are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not UTF-8 text (byte {error.start})") from error


def _scan(text: str, name: str) -> None:
    """Walk the events, which needs no recursion, and refuse what must not reach the constructor."""
    import yaml  # noqa: PLC0415 - as above

    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = _line(event.start_mark)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ConfigError(f"{name}: line {line}: anchors and aliases are not allowed; write the value out")
        if (tag := getattr(event, "tag", None)) is not None:
            raise ConfigError(f"{name}: line {line}: explicit tags such as {shown(tag)} are not allowed")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise ConfigError(
                f"{name}: line {line}: too large: at most {MAX_DEPTH} levels and {MAX_NODES} values are read"
            )


def _check_keys(node: yaml.Node, where: str, name: str) -> None:
    import yaml  # noqa: PLC0415 - as above

    if isinstance(node, yaml.ScalarNode):
        _check_text(node, where, name)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _check_keys(item, f"{where}[{index}]", name)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise ConfigError(f"{name}: line {_line(key.start_mark)}: {where or 'top level'}: keys must be text")
            _check_text(key, where, name)
            if key.value in seen:
                raise ConfigError(
                    f"{name}: line {_line(key.start_mark)}: {where or 'top level'}: "
                    f"the key {shown(key.value)} stands here twice"
                )
            seen.add(key.value)
            _check_keys(value, f"{where}.{key.value}" if where else str(key.value), name)


def _check_text(node: yaml.ScalarNode, where: str, name: str) -> None:
    """Refuse halves of characters, as an escape can write them: nothing that holds one can be written to a file."""
    if any("\ud800" <= sign <= "\udfff" for sign in node.value):
        raise ConfigError(
            f"{name}: line {_line(node.start_mark)}: {where or 'top level'}: {shown(node.value)} holds half of a "
            "character, which no file can hold; write it whole"
        )


def _line(mark: Any) -> int:
    return int(mark.line) + 1


def _first_line(error: Exception) -> str:
    return shown(" ".join(str(error).split()) or type(error).__name__, 200)
