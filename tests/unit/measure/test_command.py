"""A benchmark command is an argument list; what only a shell understands is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outerloop_hpc.errors import ConfigError
from outerloop_hpc.measure.command import split_command

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("python bench.py --n 3", ("python", "bench.py", "--n", "3")),
        ("python 'a b.py' \"c d\"", ("python", "a b.py", "c d")),
        ("bash -c 'a | b > c; d'", ("bash", "-c", "a | b > c; d")),
        ("echo $HOME `id`", ("echo", "$HOME", "`id`")),
        ("env A=1 run", ("env", "A=1", "run")),
        (["a", "", "|"], ("a", "", "|")),
        ("run --url http://x?a=1&b=2 'a;' \"b;c\" d\\;e", ("run", "--url", "http://x?a=1&b=2", "a;", "b;c", "d;e")),
    ],
)
def test_split(command: str | list[str], argv: tuple[str, ...]) -> None:
    assert split_command(command) == argv


@pytest.mark.parametrize(
    "command",
    ["", "  ", "''", [], [""], "a 'b", "a | b", "a && b", "a > b", "A=1 run", "a ;", "a &", "a; b", "a&&b", "a ||b"],
)
def test_refused(command: str | list[str]) -> None:
    with pytest.raises(ConfigError, match="the command"):
        split_command(command)


@given(st.text())
def test_any_text_is_split_or_refused(text: str) -> None:
    try:
        assert split_command(text)
    except ConfigError as error:
        assert "the command" in str(error)  # noqa: PT017 - either way is right
