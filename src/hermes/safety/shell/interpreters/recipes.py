"""Files of tasks: make, just, task, npm scripts. Their recipes are shell, judged where known.

Known is what the text itself writes, pipes in or hands over; recipes that a project keeps are its
own ordinary work.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.opening import run_words
from hermes.safety.shell.stream import ANYTHING, NETWORK, Stream
from hermes.safety.shell.written import code_at, code_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

_SHELL_CALL = re.compile(r"\$\(shell ([^)]*)\)")
_DEFINED = re.compile(r"^\s*(?:export\s+)?(\w+)\s*(?::|\?|\+|::)?=\s*(.*)$")
_USED = re.compile(r"\$[({](\w+)[)}]|\{\{\s*\.?(\w+)\s*\}\}")
_STDIN = ("-", "/dev/stdin", "/dev/fd/0")
_STEPS_OF_A_LINE = 4
_TASK_LINE = re.compile(
    r"^\s*(?:-\s+)?(?:(?:cmd|sh|run|script|command)\s*:\s*)?[|>]?-?\s*(.+?)\s*$"
)
_YAML_KEY = re.compile(r"^\s*[\w-]+\s*:\s*$")


def _run(line: str, command: Command, judge: Judge) -> None:
    line = line.strip().lstrip("@-+ ").replace("$$", "$")
    if line and judge.step(_STEPS_OF_A_LINE):
        judge.run_text(line, command.origin.vague(), command.scope.copy())


def _fill(line: str, defined: dict[str, str]) -> str:
    return _USED.sub(
        lambda found: defined.get(found.group(1) or found.group(2), found.group()), line
    )


def _make_lines(text: str) -> list[str]:
    """The recipes of a makefile: what a tab starts, or what follows the `;` of a rule."""
    defined: dict[str, str] = {}
    lines = []
    for line in text.replace("\\\n", " ").splitlines():
        found = _DEFINED.match(line) if not line.startswith("\t") else None
        if found:
            defined[found.group(1)] = found.group(2)
            lines += _SHELL_CALL.findall(found.group(2))
            continue
        recipe = line if line.startswith("\t") else line.partition(";")[2]
        lines.append(_fill(recipe, defined))
        lines += _SHELL_CALL.findall(line)
    return lines


def _just_lines(text: str) -> list[str]:
    defined = dict(re.findall(r"^(\w+)\s*:=\s*['\"]?([^'\"\n]*)", text, re.M))
    return [_fill(line, defined) for line in text.splitlines() if line[:1] in (" ", "\t")]


def _task_lines(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        found = _TASK_LINE.match(line)
        if found and not _YAML_KEY.match(line):
            lines.append(found.group(1).strip("'\""))
    return [line for line in lines if not re.match(r"[\w-]+:\s", line)]


def _npm_lines(text: str) -> list[str]:
    try:
        scripts = json.loads(text).get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return []
    return [line for line in scripts.values() if isinstance(line, str)]


def _known(
    command: Command, judge: Judge, names: tuple[str, ...], options: tuple[str, ...]
) -> list[str]:
    """The texts of the task files that a command names, or takes by their usual names."""
    written: list[Stream | None] = []
    words = command.words
    given = [words[at + 1] for at, word in enumerate(words[:-1]) if word.text in options]
    given += [w.part(w.text.partition("=")[2]) for w in words if w.text.split("=")[0] in options]
    streams: list[Stream | None] = []
    for word in given:
        if word.text in _STDIN:
            streams.append(command.stdin)
        elif word.process is not None:
            streams.append(word.process)
        else:
            written.append(code_in(word, command.scope))
    for stream in streams:
        if stream is not None and (stream.text is None or NETWORK in stream.tags):
            judge.blame("remote-code.unknown-input", command)
    if not given:
        written += [code_at(name, command.scope) for name in names]
    return [known.text for known in (*written, *streams) if known is not None and known.text]


def _make(command: Command, judge: Judge) -> Stream | None:
    for value in command.values("--eval", "-E"):
        for line in re.split(r"[\n;]", value.text):
            head, colon, tail = line.partition(":")
            recipe = tail if colon and "=" not in head else line
            for found in _SHELL_CALL.findall(recipe):
                _run(found, command, judge)
            if "$(shell" not in recipe:
                _run(recipe, command, judge)
    for word in command.operands:
        for found in _SHELL_CALL.findall(word.text):
            _run(found, command, judge)
        name, equals, program = word.text.partition("=")
        if equals and name in ("SHELL", "CC", "MAKE"):
            _run(program, command, judge)
    usual = ("Makefile", "makefile", "GNUmakefile")
    for text in _known(command, judge, usual, ("-f", "--file", "--makefile")):
        for line in _make_lines(text):
            _run(line, command, judge)
    if command.scope.elevated:
        judge.blame("system.elevated-script", command)
    return ANYTHING


def _just(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    for index, word in enumerate(words):
        if word.text in ("-c", "--command"):
            return run_words(words[index + 1 :], command, judge)
    for text in _known(command, judge, ("justfile", "Justfile"), ("-f", "--justfile")):
        for line in _just_lines(text):
            _run(line, command, judge)
    return None


def _task(command: Command, judge: Judge) -> Stream | None:
    usual = ("Taskfile.yml", "Taskfile.yaml")
    for text in _known(command, judge, usual, ("-t", "--taskfile")):
        for line in _task_lines(text):
            _run(line, command, judge)
    return None


def judge_npm_scripts(command: Command, judge: Judge) -> None:
    """Judge the scripts of a `package.json` that this very text has written."""
    known = code_at("package.json", command.scope)
    for line in _npm_lines((known.text or "") if known is not None else ""):
        _run(line, command, judge)


RECIPES: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(("make", "gmake", "bmake"), _make),
    "just": _just,
    **dict.fromkeys(("task", "go-task"), _task),
}
