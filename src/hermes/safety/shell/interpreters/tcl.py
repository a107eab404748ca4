"""Inline Tcl: commands of words, which brackets nest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.deleting import kind_of_delete
from hermes.safety.shell.interpreters.python_values import expand_home
from hermes.safety.shell.opening import literal, run_words
from hermes.safety.shell.places import judge_write
from hermes.safety.shell.scope import HOLE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

_TOKEN = re.compile(
    r"(?P<end>[;\n\[\]])|\"(?P<string>(?:[^\"\\]|\\.)*)\"|\{(?P<braced>[^{}]*)\}|(?P<word>[^\s;\[\]\"{}]+)"
    r"|(?P<other>[{}])"
)
_RUNS = re.compile(r"\b(?:eval|source|uplevel)\b[^\n;]*[\[$]")
_FETCHES = re.compile(r"http::geturl|\b(?:curl|wget)\b|binary decode|base64::decode")
_SEVERAL = re.compile(r"\s")
_LOOPS = re.compile(r"\b(?:foreach|lmap|while)\b|\{\*\}\s*\[\s*glob\b|\beval\s+file\s+delete")
_HOME = re.compile(r"\$(?:::)?env\(HOME\)|\[file home\]")
_VARIABLE = re.compile(r"\$\{?\w+(?:\([^)]*\))?\}?")


def judge_tcl(text: str, command: Command, judge: Judge, *, loop: bool = False) -> None:
    """Report what a piece of Tcl would do, once or for each of several things."""
    loop = loop or _LOOPS.search(text) is not None
    if _RUNS.search(text) and _FETCHES.search(text):
        judge.blame("remote-code.pipe", command)
    scope = command.scope
    line: list[str] = []
    names: dict[str, str] = {}
    for found in _TOKEN.finditer(_HOME.sub(lambda _: scope.home, text) + "\n"):
        if found.lastgroup in ("end", "other"):
            _run(line, names, command, judge, loop=loop)
            line = []
            continue
        word = found.group(found.lastgroup or "word") or ""
        if found.lastgroup == "braced" and not line and _SEVERAL.search(word.strip()):
            # The body of a loop over what brackets gave.
            judge_tcl(word, command, judge, loop=True)
            continue
        if found.lastgroup != "braced":
            word = _VARIABLE.sub(lambda f: names.get(f.group().strip("${}"), HOLE), word)
        line.append(word)


def _run(
    words: list[str], names: dict[str, str], command: Command, judge: Judge, *, loop: bool
) -> None:
    if not words or not judge.step():
        return
    if words[0] == "eval" and len(words) > 2:
        words = words[1:]
    name, args = words[0], words[1:]
    if name == "set" and len(args) == 2:
        names[args[0]] = args[1]
    elif name == "exec" and args:
        start = next((i for i, arg in enumerate(args) if not arg.startswith("-")), 0)
        inner = [literal(arg, command) for arg in args[start:]]
        run_words(inner, command, judge, scope=command.scope.copy())
    elif name == "spawn" and args:
        inner = [literal(arg, command) for arg in args]
        run_words(inner, command, judge, scope=command.scope.copy())
    elif name == "open" and args:
        if args[0].startswith("|"):
            judge.run_text(args[0][1:], command.origin.vague(), command.scope.copy())
        elif any(mode[:1] in "wa" for mode in args[1:2]):
            word = literal(expand_home(args[0], command.scope), command)
            judge_write(word, command.text, command.scope, judge)
    elif name == "file" and args[:1] == ["delete"]:
        paths = [arg for arg in args[1:] if not arg.startswith("-")]
        targets = [literal(expand_home(path, command.scope), command) for path in paths]
        many = loop and (not paths or any(HOLE in path or "*" in path for path in paths))
        recursive = "-force" in args
        rule = kind_of_delete(targets, command.scope, recursive=recursive, found=many)
        if rule:
            judge.blame(rule, command)
    elif name == "file" and args[:1] in (["rename"], ["copy"]) and len(args) > 2:
        word = literal(expand_home(args[-1], command.scope), command)
        judge_write(word, command.text, command.scope, judge)
    elif name == "socket" and "-server" in args:
        judge.blame("network.listener", command)
    elif name in ("eval", "after", "catch", "if", "while", "foreach", "proc", "namespace"):
        for arg in args:
            if " " in arg:
                judge_tcl(arg, command, judge, loop=loop)
