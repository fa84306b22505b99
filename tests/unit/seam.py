"""Find calls that write something durable or start a program, by the words of the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

#: Functions and methods that make, change, move or remove files, whoever's they are.
_MAKING = {"write_text", "write_bytes", "touch", "mkdir", "makedirs", "mkfifo", "mknod", "mkdtemp", "mkstemp"}
_TEMPORARY = {"TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile", "SpooledTemporaryFile"}
_LINKING = {"link", "symlink", "symlink_to", "hardlink_to", "rename", "renames", "move"}
_REMOVING = {"unlink", "rmdir", "removedirs", "rmtree", "truncate", "ftruncate"}
_CHANGING = {"chmod", "chown", "lchmod", "utime", "copy2", "copyfile", "copytree", "copyfileobj"}
_WRITING = _MAKING | _TEMPORARY | _LINKING | _REMOVING | _CHANGING
#: Functions that start a program.
_STARTING = {"Popen", "check_call", "check_output", "system", "popen", "posix_spawn", "fork", "forkpty"}
_MODULES = {"os", "shutil", "subprocess"}
_OF_OS = {"remove", "replace", "write", "pwrite", "writev", "sendfile"}
_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}


def found(source: str) -> Iterator[tuple[str, str]]:
    """Yield (function that holds it, call) for each such call; a call in no function is of ``<module>``."""
    yield from _Finder().in_body(ast.parse(source), "<module>")


class _Finder:
    def in_body(self, node: ast.AST, holder: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            inner = holder
            if named:
                assert isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                inner = child.name if holder == "<module>" else f"{holder}.{child.name}"
            if isinstance(child, ast.Call) and _suspect(child):
                yield holder, ast.unparse(child.func)
            elif isinstance(child, ast.Attribute) and _handed_on(child, node):
                yield holder, ast.unparse(child)
            yield from self.in_body(child, inner)


def _suspect(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute):
        name = function.id if isinstance(function, ast.Name) else ""
        return name in _WRITING | _STARTING or (name == "open" and _writes(call, 1))
    module = function.value.id if isinstance(function.value, ast.Name) else ""
    match function.attr:
        case "open":
            return _opens_by_flags(call) if module == "os" else _opens(call)
        case name if module == "os" and (name in _OF_OS or name.startswith(("exec", "spawn"))):
            return True
        case "run" | "call":
            return module == "subprocess"
        case "replace":  # of a path: one argument; of a text or a date: two, or names
            return len(call.args) == 1 and not call.keywords
        case name:
            return name in _WRITING | _STARTING


def _opens_by_flags(call: ast.Call) -> bool:
    parts = [part for argument in call.args for part in ast.walk(argument)]
    named = any(isinstance(part, ast.Name) and part.id == "flags" for part in call.args)
    return named or any(isinstance(part, ast.Attribute) and part.attr in _FLAGS for part in parts)


def _opens(call: ast.Call) -> bool:
    """Whether it is ``open`` of a path with a mode that writes; other things have a method of that name, too."""
    modes = [*call.args[:1], *(key.value for key in call.keywords if key.arg == "mode")]
    return any(isinstance(mode, ast.Constant) for mode in modes) and _writes(call, 0)


def _handed_on(attribute: ast.Attribute, parent: ast.AST) -> bool:
    """Whether a function of a module is not called here but given away, as to ``partial``."""
    if isinstance(parent, ast.Call) and parent.func is attribute:
        return False
    module = attribute.value.id if isinstance(attribute.value, ast.Name) else ""
    return module in _MODULES and attribute.attr in _WRITING | _OF_OS | {"run", "call"} | _STARTING - {"Popen"}


def _writes(call: ast.Call, place: int) -> bool:
    """Whether ``open`` is called with a mode that writes, or with one that is not written down here."""
    modes = [*call.args[place : place + 1], *(key.value for key in call.keywords if key.arg == "mode")]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes)


def imports(source: str, module: str) -> bool:
    """Whether a module is imported anywhere in it."""
    nodes = list(ast.walk(ast.parse(source)))
    whole = {name.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for name in node.names}
    parts = {(node.module or "").partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    return module in whole | parts


def calls(source: str, function: str) -> bool:
    """Whether a function of that plain name is called anywhere in it."""
    nodes = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(isinstance(node, ast.Name) and node.id == function for node in nodes)


def in_package(package: Path) -> set[tuple[str, str]]:
    """Return (file, function) of every such call in a package."""
    return {
        (str(path.relative_to(package)), holder)
        for path in sorted(package.rglob("*.py"))
        for holder, _ in found(path.read_text(encoding="utf-8"))
    }
