"""Builtins and assignments that change the meaning of later commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.command import Command, run_line, run_word
from hermes.safety.shell.file_flow import fetch
from hermes.safety.shell.output_model import output
from hermes.safety.shell.path_classes import absolute, in_workspace, is_temporary
from hermes.safety.shell.read_only import changes_meaning
from hermes.safety.shell.scope import (
    ENVIRONMENT,
    HOLE,
    NOTHING,
    SET_UP,
    UNKNOWN,
    UNSET,
    Stream,
    Value,
    tagged,
)
from hermes.safety.shell.shells import run_script
from hermes.safety.variables import GATE, LIBRARY_PATHS, RUN_LATER, loads_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.scope import Scope, Word


def judge_assignment(name: str, word: Word, scope: Scope, judge: Judge) -> None:
    """Report an assignment that is dangerous in itself."""
    text = word.text
    if changes_meaning(name):
        judge.reads_only = False
    if loads_code(name, text):
        judge.report("loader.injection", word.origin, f"{name}={text}", scope=scope)
    elif name in LIBRARY_PATHS:
        for part in text.split(":"):
            if part.startswith("/") and HOLE not in part and _is_shared(part, scope):
                judge.report("loader.injection", word.origin, f"{name}={text}", scope=scope)
    elif name in RUN_LATER:
        if name in ("LESSOPEN", "LESSCLOSE"):
            # What it starts may be given through a pipe, which `less` spells in front of it.
            text = text.lstrip("|-")
        if " " in text or "$" in text or "`" in text or ";" in text:
            judge.run_text(text, word.origin.vague(), scope.copy())
    elif name in GATE or (name.startswith("HERMES_") and _loosens(name, text)):
        judge.report("hermes.environment", word.origin, f"{name}={text}", scope=scope)


def _is_shared(part: str, scope: Scope) -> bool:
    """Whether anybody may put something into a folder; a workspace is its user's own."""
    path = absolute(part, scope)
    if path in ("/tmp", "/var/tmp", "/dev/shm"):
        return True
    return is_temporary(path) and not in_workspace(path, scope)


def _loosens(name: str, text: str) -> bool:
    switch = any(
        part in name for part in ("YOLO", "APPROV", "UNSAFE", "SKIP", "TRUST", "GATE", "POLICY")
    )
    return switch and text != ""


_MOST_LINES = 200


def _cd(command: Command, _judge: Judge) -> Stream:
    scope = command.scope
    operands = command.operands
    if not operands:
        scope.go(scope.lookup("HOME").text)
    elif operands[0].text == "-":
        scope.go(scope.oldpwd)
    else:
        text = operands[0].text
        scope.go(scope.home if text == UNSET else text.replace(UNSET, HOLE))
    return NOTHING


def _popd(command: Command, _judge: Judge) -> Stream:
    command.scope.go(command.scope.oldpwd)
    return NOTHING


def _read(command: Command, _judge: Judge) -> Stream:
    names = [word.text for word in command.operands if word.text.isidentifier()]
    stdin = command.stdin
    for name in names or ["REPLY"]:
        text = HOLE
        if (
            stdin is not None
            and stdin.text is not None
            and len(names) == 1
            and not command.scope.loop
        ):
            text = stdin.text.partition("\n")[0]
        command.scope.assign(name, Value([text]))
    return NOTHING


def _mapfile(command: Command, _judge: Judge) -> Stream:
    stdin = command.stdin
    known = stdin is not None and stdin.text is not None
    items = stdin.text.splitlines()[:_MOST_LINES] if known else [HOLE]  # type: ignore[union-attr]
    for word in command.operands[-1:] or [command.words[0].part("MAPFILE")]:
        command.scope.assign(word.text, Value(items or [""], array=True))
    return NOTHING


def _set(command: Command, _judge: Judge) -> Stream:
    args = command.args
    if not args:
        return tagged(ENVIRONMENT)
    if "--" in args:
        command.scope.positional = args[args.index("--") + 1 :]
    elif args and not args[0].startswith(("-", "+")):
        command.scope.positional = args
    return NOTHING


def _shift(command: Command, _judge: Judge) -> Stream:
    if command.scope.positional:
        command.scope.positional = command.scope.positional[1:]
    return NOTHING


def _alias(command: Command, _judge: Judge) -> Stream:
    for word in command.operands:
        name, equals, value = word.text.partition("=")
        if equals:
            command.scope.aliases[name] = value
    return NOTHING


def _declare(command: Command, judge: Judge) -> Stream:
    if command.args in ([], ["-p"], ["-x"], ["-px"]):
        return tagged(ENVIRONMENT)
    for word in command.operands:
        name, equals, value = word.text.partition("=")
        if equals:
            judge_assignment(name, word.part(value), command.scope, judge)
            command.scope.assign(name, Value([value]))
    return NOTHING


def _eval(command: Command, judge: Judge) -> Stream:
    words = command.words[1:]
    if not words or all(_is_set_up(word) for word in words):
        return NOTHING
    return run_line(words, command, judge, scope=command.scope)


def _is_set_up(word: Word) -> bool:
    """Whether a word is what an installed program prints to set up a shell, and nothing else."""
    stream = word.stream
    return word.text == HOLE and stream is not None and stream.tags == {UNKNOWN, SET_UP}


def _source(command: Command, judge: Judge) -> Stream:
    args = [word.text for word in command.words[2:]]
    return run_script(command.words[1:2], command, judge, args=args, sourced=True)


def _trap(command: Command, judge: Judge) -> Stream:
    operands = command.operands
    if len(operands) > 1 and operands[0].text not in ("", "-"):
        run_word(operands[0], command, judge)
    return NOTHING


def _printf(command: Command, _judge: Judge) -> Stream | None:
    if command.args[:1] == ["-v"] and len(command.args) > 2:
        formatted = Command([command.words[0], *command.words[3:]], command.scope)
        text = output(formatted).text
        command.scope.assign(command.args[1], Value([HOLE if text is None else text]))
    return None


def _mkfifo(command: Command, _judge: Judge) -> None:
    """A pipe with a name: who reads commands from it gets what nobody has seen."""
    for word in command.operands:
        if word.known:
            fetch(word.text, command.scope)


def _let(command: Command, _judge: Judge) -> Stream:
    for word in command.operands:
        command.scope.assign(word.text.partition("=")[0].strip(), Value([HOLE]))
    return NOTHING


def _getopts(command: Command, _judge: Judge) -> Stream:
    for word in command.operands[1:2]:
        command.scope.assign(word.text, Value([HOLE]))
    return NOTHING


BUILTINS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "cd": _cd,
    "chdir": _cd,
    "pushd": _cd,
    "set-location": _cd,
    "popd": _popd,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "set": _set,
    "shift": _shift,
    "alias": _alias,
    "export": _declare,
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "readonly": _declare,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "printf": _printf,
    "mkfifo": _mkfifo,
    "let": _let,
    "getopts": _getopts,
}
