"""The documents say what is so: rules, keys, schemas, commands and links are those of the code."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

import outerloop_hpc
from outerloop_hpc.cli.main import app
from outerloop_hpc.config.keys import SECTIONS
from outerloop_hpc.config.settings import Section, Target
from outerloop_hpc.config.sources import load
from outerloop_hpc.documents import Document
from outerloop_hpc.engine.events import FORCED, GAVE_UP, PersonAction
from outerloop_hpc.errors import Exit

pytestmark = pytest.mark.unit

CHECKOUT = Path(__file__).parents[2]
ENGINE = CHECKOUT / "outerloop_hpc" / "engine"
PAGES = sorted([CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md"), *CHECKOUT.glob("[!.]*/README.md")])
RULE = re.compile(r"[a-z]+(-[a-z]+)*(\.[a-z]+(-[a-z]+)*)?")
FENCE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(outerloop-hpc [^`\n]+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def page(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def calls(module: str) -> Iterator[ast.Call]:
    tree = ast.parse((ENGINE / f"{module}.py").read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def rules_in_code() -> set[str]:
    """Every name that ends up in the ``rule`` column: where each function that makes one takes it."""
    places = {
        "rules": {"Ruling": 0},
        "reconcile": {"say": 1, "tell": 0},
        "people": {"Ruling": 0},
        "outbound": {"say": 1},
        "serve": {"say": 2},
        "tick": {"Line": 1},
        "fold": {"_end_all": 2},
    }
    found = {FORCED, GAVE_UP, *(f"person.{action}" for action in get_args(PersonAction))}
    for module, makers in places.items():
        for node in calls(module):
            position = makers.get(called(node))
            if position is not None and position < len(node.args):
                name = node.args[position]
                if isinstance(name, ast.Constant):
                    found.add(str(name.value))
            found |= {
                str(word.value.value)
                for word in node.keywords
                if word.arg == "rule" and isinstance(word.value, ast.Constant)
            }
    return found


def rules_in_page() -> set[str]:
    rows = [line.split("|")[1].strip() for line in page("docs/decisions.md").splitlines() if line.startswith("| `")]
    return {row.strip("`") for row in rows}


def test_the_decision_table_lists_every_rule_and_no_other() -> None:
    code = rules_in_code()
    assert {"record.final", "submit.refused", "kind.end", "lane.run", "person.gave-up", "submit"} <= code
    assert all(RULE.fullmatch(rule) for rule in code)
    assert rules_in_page() == code


def keys_in_page() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in page("docs/configuration.md").splitlines():
        if heading := re.fullmatch(r"### `\[(.+)\]`", line):
            section = heading[1].partition(".")[0]
            found[section] = {}
        elif line.startswith("## "):
            section = ""
        elif section and (row := re.match(r"\| `(\w+)` \| (.+?) \|", line)):
            found[section][row[1]] = row[2]
    return found


def test_the_configuration_page_lists_every_key_with_its_default_and_no_other() -> None:
    models: dict[str, type[Section]] = {**SECTIONS, "targets": Target}
    expected: dict[str, dict[str, str]] = {}
    for section, model in models.items():
        expected[section] = {name: shown(info) for name, info in model.model_fields.items()}
    listed = keys_in_page()
    assert {section: list(keys) for section, keys in listed.items()} == {
        section: list(keys) for section, keys in expected.items()
    }
    for section, keys in expected.items():
        for key, default in keys.items():
            assert listed[section][key].startswith(default), f"[{section}] {key}"


def shown(info: Any) -> str:
    """A field's default as TOML, in backticks; the two without one are explained in words."""
    if info.is_required():
        return ""
    value = info.get_default(call_default_factory=True)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | dict):
        return "`[]`" if isinstance(value, tuple) else "`{}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def schemas_in_code() -> set[str]:
    for module in pkgutil.walk_packages(outerloop_hpc.__path__, "outerloop_hpc."):
        if not module.name.startswith("outerloop_hpc.cli"):
            importlib.import_module(module.name)
    models = [kind for kind in Document.__subclasses__() if kind.__module__.startswith("outerloop_hpc.")]
    return {f"{model.name}/{model.version}" for model in models}


def test_every_schema_is_on_the_page_about_files() -> None:
    listed = set(re.findall(r"`([a-z-]+/\d+)`", page("docs/on-disk.md")))
    code = schemas_in_code()
    assert len(code) >= 13
    assert code <= listed
    assert listed - code == {"ledger/1", "started/1", "completed/1", "filesystem/1", "turns/1"}


def test_the_exit_statuses_are_explained() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", page("docs/cluster.md"), re.MULTILINE)}
    assert listed == {int(status) for status in Exit}


def typed(name: str) -> list[list[str]]:
    """Every outerloop-hpc command of a page, in console blocks and in backticks, as words."""
    text = page(name)
    lines = [line for block in FENCE.findall(text) for line in block.splitlines() if line.startswith("$ ")]
    found = [line.removeprefix("$ ") for line in lines] + INLINE.findall(text)
    split = [shlex.split(line, comments=True) for line in dict.fromkeys(found)]
    ours = [words[1:] for words in split if words[0].rpartition("/")[2] == "outerloop-hpc"]
    return [words for words in ours if "…" not in words]


NAMES = [str(path.relative_to(CHECKOUT)) for path in PAGES]
COMMANDS = [(name, words) for name in NAMES for words in typed(name)]


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 30


@pytest.mark.parametrize(
    ("where", "words"), COMMANDS, ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_every_command_in_the_documents_exists_with_these_options(where: str, words: list[str]) -> None:
    stop = next((i for i, word in enumerate(words) if word in {"|", ">", "&&", ";"}), len(words))
    # Unknown commands and options are refused before help answers; nothing is carried out.
    done = CliRunner().invoke(app, [*words[:stop], "--help"])
    assert done.exit_code == 0, f"{where}: {done.output}"


def test_the_readme_is_short() -> None:
    assert len(page("README.md").splitlines()) <= 150


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files(name: str) -> None:
    for link in LINK.findall(page(name)):
        assert ((CHECKOUT / name).parent / link).exists(), link


def test_the_example_settings_of_a_site_are_valid(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```", page("docs/cluster.md"), re.MULTILINE | re.DOTALL)
    (tmp_path / "outerloop.toml").write_text(example, encoding="utf-8")
    loaded = load(tmp_path, {"HOME": str(tmp_path)}, site=tmp_path / "none")
    assert loaded.settings.slurm.wake
