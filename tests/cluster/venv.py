"""The virtual environment inside: the project's dependencies and pytest, built once with network, then bound in."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.cluster import cache
from tests.cluster.cache import BuildFailed
from tests.cluster.machine import SOURCE, VENV, Bind, Machine, Plan
from tests.cluster.rootfs import Recipe, root

CHECKOUT = Path(__file__).parents[2]
_TESTING = ("pytest", "hypothesis", "pytest-xdist", "pytest-timeout")
#: Of the project: what sweeps decide and search with.
_EXTRAS = "stats,search"
_PASSED_ON = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_OF_THE_HOST = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt")
_INSTALL_LIMIT_S = 1200.0


def venv(recipe: Recipe, where: Path | None = None) -> Path:
    """Return the folder with the environment for a root file system, installing it first when it is not cached.

    It holds the project itself in development form: it points at ``SOURCE``, where every machine puts a copy of
    the checkout, so a changed source file needs no installation.

    Raises:
        BuildFailed: pip found no index, a package has no wheel, …; the text names the log.
    """
    store = where or cache.folder()
    base = root(recipe, store)

    def build(aside: Path, log: Path) -> None:
        settings = pip_settings(os.environ, host_pip_configuration())
        _install(base, aside, log, settings)

    return cache.entry(store, f"venv-{recipe.name}-{_key(recipe)}", build)


def _key(recipe: Recipe) -> str:
    """Change with the root file system, the pinned versions, and what pyproject.toml says about the package."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = (CHECKOUT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    return cache.digest(recipe.key, pins, repr(project["project"]), repr(project["build-system"]), _EXTRAS, *_TESTING)


def _install(base: Path, target: Path, log: Path, settings: Mapping[str, str]) -> None:
    plan = Plan(
        base, (*host_settings(settings), Bind(target, VENV, read_only=False)), ((CHECKOUT, SOURCE),), network=True
    )
    pip = [f"{VENV}/bin/python", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    with Machine(plan, target.parent) as machine, log.open("w", encoding="utf-8") as report:
        for argv in (
            ["python3", "-m", "venv", VENV],
            [*pip, "--constraint", f"{SOURCE}/requirements/dev.txt", *_TESTING, "--editable", f"{SOURCE}[{_EXTRAS}]"],
        ):
            done = machine.run(argv, env=settings, timeout=_INSTALL_LIMIT_S)
            report.write(f"$ {' '.join(argv)}\n{done.stdout}{done.stderr}")
            if not done.ok:
                raise BuildFailed(f"the virtual environment could not be built: {done.complaint()}; log: {log}")


def host_settings(settings: Mapping[str, str]) -> list[Bind]:
    """Return what of the host an installing machine must see: name resolution, certificates, local packages."""
    needed = [*_OF_THE_HOST, *local_paths(settings.values())]
    return [Bind(Path(path), path) for path in dict.fromkeys(needed) if Path(path).exists()]


def host_pip_configuration() -> str:
    """Return what ``pip config list`` says on the host; empty where there is no pip."""
    argv = [sys.executable, "-m", "pip", "config", "list"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL).stdout


def pip_settings(environ: Mapping[str, str], configuration: str) -> dict[str, str]:
    """Turn the host's pip configuration, certificates and proxies into environment variables for inside."""
    settings = {k: v for k, v in environ.items() if k.startswith(_PASSED_ON) or k.lower() in _PROXIES}
    for line in configuration.splitlines():
        name, equals, value = line.partition("=")
        section, _, option = name.partition(".")
        if equals and section in {"global", "install"}:
            settings.setdefault(
                "PIP_" + option.replace("-", "_").upper(), value.strip().strip("'\"").replace("\\n", " ")
            )
    return settings


def local_paths(values: Iterable[str]) -> list[str]:
    """Return the files and folders of the host that settings name, as paths or as ``file://`` addresses."""
    words = [word.removeprefix("file://") for value in values for word in value.split()]
    paths = [Path(word) for word in words if word.startswith("/")]
    # An index address names a folder below the one that must be seen; its last part may be "simple" with links up.
    folders = [path.parent if path.name == "simple" else path for path in paths]
    return [str(path) for path in folders if path.exists()]
