"""Where settings come from: built-in < site file < user file < project file < environment < command line.

Read with tomllib and merged by hand: pydantic-settings would add 0.3 s to every start of a command that a cluster runs
every few minutes, and it does not say which layer a value came from (``config show --origin``).
"""

from __future__ import annotations

import os
import pwd
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from outerloop_hpc.config.keys import SECTIONS, misspelt, parsed, resolved, unknown
from outerloop_hpc.config.settings import Settings
from outerloop_hpc.errors import ConfigError

APP: Final = "outerloop-hpc"
SITE_FILE: Final = Path("/etc") / APP / "config.toml"
PROJECT_FILE: Final = "outerloop.toml"
PREFIX: Final = "OUTERLOOP_"
CONFIG_VARIABLE: Final = "OUTERLOOP_CONFIG"
BUILT_IN: Final = "built-in"
COMMAND_LINE: Final = "command line"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings and where each came from.

    Attributes:
        settings: the merged settings.
        origins: dotted key to the file, variable or ``command line`` that set it; keys not in it are built-in.
        files: the configuration files that were read, weakest first.
        project: the project file among them; jobs that come back for a run read the same one.
    """

    settings: Settings
    origins: Mapping[str, str]
    files: tuple[Path, ...]
    project: Path | None = None

    def origin(self, key: str) -> str:
        """Say where a dotted key came from."""
        return self.origins.get(key, BUILT_IN)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One source: dotted keys (as tuples) to values, each with its origin; paths are relative to ``base``."""

    values: tuple[tuple[tuple[str, ...], object, str], ...]
    base: Path


def load(
    cwd: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    *,
    config: Path | None = None,
    site: Path = SITE_FILE,
) -> Loaded:
    """Read every layer and validate the sum.

    Args:
        cwd: absolute folder from which the project file is looked for, upwards.
        environ: the environment.
        overrides: dotted key to value, from flags; ``None`` values are flags that were not given.
        config: the project file, named by ``--config``; wins over ``OUTERLOOP_CONFIG`` and the search.
        site: the site's file.

    Raises:
        ConfigError: a file cannot be read or parsed, a key is unknown, a value has the wrong type or is out of range.
    """
    files = tuple(_files(cwd, environ, config, site))
    layers = [_file_layer(path) for path in files]
    targets = _target_names(layers)
    layers.append(_environment_layer(cwd, environ, targets))
    layers.append(_flag_layer(cwd, overrides or {}))
    merged: dict[str, Any] = {"state": {"root": _state_root(environ)}}
    origins: dict[str, str] = {}
    for layer in layers:
        for key, value, origin in layer.values:
            try:
                _put(merged, key, resolved(key, value, layer.base, _with_user(environ)))
            except ValueError as error:
                raise ConfigError(f"{origin}: {'.'.join(key)}: {error}") from None
            origins[".".join(key)] = origin
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_explained(error, origins)) from None
    weaker = {site, _user_file(environ)}
    return Loaded(settings, origins, files, next((path for path in files if path not in weaker), None))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of ``config show``."""

    key: str
    value: object
    origin: str


def as_rows(loaded: Loaded) -> tuple[Row, ...]:
    """List every setting with its value and origin, in the order of the documentation, targets last."""
    values = loaded.settings.model_dump(mode="json")
    if not values["targets"]:
        del values["targets"]
    return tuple(Row(".".join(key), value, loaded.origin(".".join(key))) for key, value in _flat((), values))


def _files(cwd: Path, environ: Mapping[str, str], config: Path | None, site: Path) -> Iterator[Path]:
    yield from (path for path in (site, _user_file(environ)) if _is_there(path))
    named = config or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    if named is None:
        yield from _searched(cwd)
        return
    path = cwd / named.expanduser()
    try:
        path.stat()
    except OSError as error:
        by = "--config" if config else CONFIG_VARIABLE
        raise ConfigError(f"{path}: named by {by} and cannot be read: {error.strerror}") from None
    yield path


def _user_file(environ: Mapping[str, str]) -> Path:
    return _home_folder(environ, "XDG_CONFIG_HOME", ".config") / APP / "config.toml"


def _is_there(path: Path) -> bool:
    # Not is_file(): from Python 3.14 on it takes "permission denied" for "not there", and to go on without the file
    # would be to run with other settings than the person wrote.
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ConfigError(f"{path}: cannot be looked at: {error.strerror}") from None


def _searched(cwd: Path) -> Iterator[Path]:
    for folder in (cwd, *cwd.parents):
        path = folder / PROJECT_FILE
        try:
            status = path.stat()
        except OSError:  # not there, or above what we may see
            continue
        if stat.S_ISREG(status.st_mode):
            if status.st_mode & stat.S_IWOTH:
                raise ConfigError(f"{path}: anybody can write this file, and it names what is run; chmod o-w it")
            yield path
            return


def _home_folder(environ: Mapping[str, str], variable: str, default: str) -> Path:
    named = environ.get(variable, "")
    if named.startswith("/"):  # the XDG rule: relative ones are to be ignored
        return Path(named)
    return home_folder(environ) / default


def home_folder(environ: Mapping[str, str]) -> Path:
    """Return this user's home; cron may not set it."""
    return Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)


def _with_user(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Cron sets no USER, and a site's ``/scratch/$USER`` must mean the same there."""
    return environ if environ.get("USER") else {**environ, "USER": pwd.getpwuid(os.getuid()).pw_name}


def _state_root(environ: Mapping[str, str]) -> str:
    return str(_home_folder(environ, "XDG_STATE_HOME", ".local/state") / APP)


def _file_layer(path: Path) -> _Layer:
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    # An empty section says nothing; an empty table such as slurm.options is a value.
    said = {name: value for name, value in document.items() if value != {} or name not in {*SECTIONS, "targets"}}
    values = tuple((key, value, str(path)) for key, value in _flat((), said))
    for key, _, origin in values:
        problem = unknown(key)
        if problem:
            raise ConfigError(f"{origin}: {problem}")
    return _Layer(values, path.parent)


def _environment_layer(cwd: Path, environ: Mapping[str, str], targets: frozenset[str]) -> _Layer:
    found: list[tuple[tuple[str, ...], object, str]] = []
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE:
            continue
        key = tuple(part.lower() for part in variable.removeprefix(PREFIX).split("__"))
        if len(key) == 1:
            # Jobs carry OUTERLOOP_ variables of their own; only what was surely meant as a setting is refused.
            hint = misspelt(key[0])
            if hint:
                raise ConfigError(f"{variable}: not a setting; did you mean {PREFIX}{hint}?")
            continue
        key = _named_target(key, targets)
        problem = unknown(key)
        if problem:
            raise ConfigError(f"{variable}: {problem}")
        found.append((key, parsed(key, environ[variable]), variable))
    return _Layer(tuple(found), cwd)


def _named_target(key: tuple[str, ...], targets: frozenset[str]) -> tuple[str, ...]:
    """Variables are upper case; a target that a file declares keeps its own spelling."""
    if key[0] != "targets" or len(key) == 1:
        return key
    meant = [name for name in targets if name.lower().replace("-", "_").replace(".", "_") == key[1]]
    return (key[0], meant[0] if len(meant) == 1 else key[1], *key[2:])


def _target_names(layers: list[_Layer]) -> frozenset[str]:
    return frozenset(key[1] for layer in layers for key, _, _ in layer.values if key[0] == "targets" and len(key) > 1)


def _flag_layer(cwd: Path, overrides: Mapping[str, object]) -> _Layer:
    found: list[tuple[tuple[str, ...], object, str]] = []
    for dotted, value in overrides.items():
        if value is None:
            continue
        # The name of a target may hold dots; the section and the last part never do.
        section, _, rest = dotted.partition(".")
        name, _, last = rest.rpartition(".")
        key = (section, name, last) if name else (section, rest)
        problem = unknown(key)
        if problem:
            raise ConfigError(f"{COMMAND_LINE}: {problem}")
        found.append((key, parsed(key, value) if isinstance(value, str) else value, COMMAND_LINE))
    return _Layer(tuple(found), cwd)


def _flat(prefix: tuple[str, ...], values: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat((*prefix, name), value)
        else:
            yield (*prefix, name), value


def _put(merged: dict[str, Any], key: tuple[str, ...], value: object) -> None:
    place = merged
    for part in key[:-1]:
        inner = place.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{part!r} is a value in another file and cannot have keys")  # noqa: TRY004 - for people
        place = inner
    place[key[-1]] = value


def _explained(error: ValidationError, origins: Mapping[str, str]) -> str:
    lines: dict[str, None] = {}
    for problem in error.errors(include_url=False):
        dotted = ".".join(str(part) for part in problem["loc"] if part != "[key]")
        text = problem["msg"].removeprefix("Value error, ")
        given = "" if _unspeakable(problem) else f" (given: {problem['input']!r:.80})"
        where = f"{_said_by(dotted, origins)}: {dotted}: " if dotted else ""  # of all sections together
        lines[f"{where}{text}{given}"] = None
    return "\n".join(lines)


def _unspeakable(problem: ErrorDetails) -> bool:
    """Whether what was given stays unsaid: whole sections, and what may be a key that was put in the wrong place."""
    return isinstance(problem["input"], dict | BaseModel) or problem["loc"][-1:] in {("key_env",), ("key_file",)}


def _said_by(dotted: str, origins: Mapping[str, str]) -> str:
    """Find who said it: the key itself, the list or table it is in, or (a missing key) its neighbours."""
    parent = dotted.rpartition(".")[0]
    for matches in (
        [key for key in origins if f"{dotted}.".startswith(f"{key}.") or key.startswith(f"{dotted}.")],
        [key for key in origins if key.startswith(f"{parent}.")],
    ):
        if matches:
            return origins[max(matches, key=len)]
    return BUILT_IN
