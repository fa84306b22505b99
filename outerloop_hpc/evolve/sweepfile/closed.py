"""What no candidate of a sweep may change, whatever its file says: who judges is never judged by itself. Pure."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, groupby, pairwise, takewhile

from outerloop_hpc.evolve.overlays.globs import denying
from outerloop_hpc.target.scope import LEDGER, Scope, declared

#: Files of continuous integration beside ``.github``, which is closed to everybody already.
_CI = (
    ".circleci",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".buildkite",
    ".woodpecker",
    ".woodpecker.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
)
#: What stands between the words of a shell's line.
_BETWEEN = re.compile(r"[\s;&|()<>'\"`=$:{}]+")

#: Programs whose first word that is no option is the program that they run, or its name as a module.
_INTERPRETER = re.compile(r"(?:python|perl|ruby|node|julia|Rscript|lua|bash|dash|zsh|sh)[0-9.]*")
_SHELL = re.compile(r"(?:ba|da|z)?sh")
#: Options after which a line, or a program's own text, follows.
_LINE, _CODE = re.compile(r"-[a-z]*c[a-z]*"), re.compile(r"-[a-zA-Z]*[ceE]|--eval|--print|-p")
#: What stands before a command's program.
_BEFORE = {"exec", "if", "then", "else", "elif", "do", "while", "until", "!", "time", "env", "{", "$", "command"}
_SET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def closed_paths(scope: Scope, hidden: Iterable[str], run: Mapping[str, str], allow: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that are denied in addition to a sweep's own.

    Args:
        scope: the contract's.
        hidden: every oracle file.
        run: files of the target that commands name (see ``files_run``), and by which task.
        allow: the sweep's globs; a file that a command runs is open to candidates only when it is named there.
    """
    judges = (path for path in run if path not in allow)
    always = (*scope.closed, *LEDGER, *_CI, *scope.steward_allowed, *scope.forbidden)
    return tuple(dict.fromkeys((*always, *hidden, *judges)))


def files_run(commands: Mapping[str, Iterable[Sequence[str]]], paths: Iterable[str]) -> dict[str, str]:
    """Return the files of the target that words of commands name, each with the first task that runs it.

    Args:
        commands: of each task, by its id.
        paths: every file at the commit.
    """
    known = set(paths)
    found: dict[str, str] = {}
    for task, lines in commands.items():
        for path in (place for argv in lines for word in argv for place in _places(word)):
            if path in known:
                found.setdefault(path, task)
    return found


def program_places(command: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of the checkout at which a command's own program may lie; none where it lies elsewhere.

    What else a command names is data, which a run may well have written; so it is within a shell's line.
    """
    first, *words = command
    program = first.rpartition("/")[2]
    if not _INTERPRETER.fullmatch(program):
        return tuple(_named(first)) if "/" in first else ()
    options = list(takewhile(lambda one: one.startswith("-"), words))
    rest = words[len(options) :]
    if _SHELL.fullmatch(program) and any(_LINE.fullmatch(one) for one in options):
        return tuple(_in_commands(rest[0])) if rest else ()
    if any(_CODE.fullmatch(one) for one in options):
        return ()  # the program is the word itself
    return tuple(_named(rest[0])) if rest else ()


def _in_commands(line: str) -> Iterator[str]:
    """Yield the places of the programs that a shell's line runs."""
    folder = ""
    for words in _commands(line):
        if words[0] in {"cd", "pushd"} and len(words) > 1:
            folder = _below(folder, words[1])
            continue
        for path in program_places(words):
            yield from _declared((path, _below(folder, path)) if folder else (path,))


def _commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a shell's line; nothing where its quotes do not close."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        words = list(lexer)
    except ValueError:
        return
    for ends, some in groupby(words, lambda one: bool(one) and set(one) <= set("();|&\n")):
        found = list(dropwhile(lambda one: one in _BEFORE or _SET.match(one), some))
        if not ends and found:
            yield found


def _named(word: str) -> Iterator[str]:
    """Yield the paths that a program's word names: as it is, or as a module."""
    yield from _declared((word, *_modules(word)))


def _places(word: str) -> Iterator[str]:
    """Yield the paths that a word names: as it is, behind ``--option=``, as a module, or within a shell's line."""
    yield from _declared((word, word.partition("=")[2], *_modules(word.removeprefix("-m")), *_in_line(word)))


def _declared(texts: Iterable[str]) -> Iterator[str]:
    """Yield those that are paths within the checkout."""
    for text in texts:
        try:
            yield declared(text)
        except ValueError:
            continue


def _modules(word: str) -> tuple[str, str]:
    """Return the files that Python runs for a module."""
    path = word.replace(".", "/")
    return f"{path}.py", f"{path}/__main__.py"


def _in_line(word: str) -> Iterator[str]:
    """Yield what may be paths in a word that is a whole line, as after ``bash -c``; also below where it changes to."""
    texts = _BETWEEN.split(word)
    if len(texts) == 1:
        return
    modules = [path for before, after in pairwise(texts) if before == "-m" for path in _modules(after)]
    modules += [path for text in texts if text.startswith("-m") for path in _modules(text.removeprefix("-m"))]
    for folder in _folders(texts):
        yield from (_below(folder, text) for text in (*filter(None, texts), *modules))


def _folders(texts: Sequence[str]) -> tuple[str, ...]:
    """Return where the commands of a line may run: where it begins, and each folder it changes to, from either."""
    found, here = [""], ""
    for before, after in pairwise(texts):
        if before in {"cd", "pushd", "-C"}:
            here = _below(here, after)
            found += [_below("", after), here]
    return tuple(dict.fromkeys(found))


def _below(folder: str, text: str) -> str:
    """Return a path of a line as one from the checkout on."""
    return posixpath.normpath(posixpath.join(folder, text.removeprefix("PWD/")))


def contradictions(allow: Sequence[str], closed: Sequence[str]) -> Iterator[str]:
    """Yield a line for each path that the sweep allows by name although it is closed."""
    for index, pattern in enumerate(allow):
        if "*" in pattern or "?" in pattern:
            continue
        place = denying(closed, pattern.removesuffix("/"))
        if place is not None:
            yield f"overlay.allow[{index}]: {pattern!r} is closed to every candidate ({place!r}); leave it out"
