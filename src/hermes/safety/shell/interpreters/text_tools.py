"""Filters that can start a shell or write files: awk, sed, pagers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.escapes import unescape
from hermes.safety.shell.interpreters.python_values import expand_home
from hermes.safety.shell.opening import literal
from hermes.safety.shell.places import judge_write
from hermes.safety.shell.scope import HOLE
from hermes.safety.shell.stream import ANYTHING, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

_STRING = r'"((?:[^"\\]|\\.)*)"'
_AWK_SYSTEM = re.compile(r"\bsystem\s*\(([^)]*)\)")
_AWK_PIPE = re.compile(rf"\|&?\s*{_STRING}|{_STRING}\s*\|&?\s*getline")
_AWK_WRITE = re.compile(rf"\bprintf?\b[^;}}\n]*?>>?\s*{_STRING}")
_AWK_NETWORK = re.compile(r"/inet[46]?/")
_SED_COMMAND = re.compile(
    (
        r"(?:^|[;{}\n]|\d|\$|/[IM]?)\s*(?:([ewWrR])(?:\s+(\S[^\n]*)|$)|s(.)((?:\\.|"
        r"(?!\3)[^\\])*)\3((?:\\.|(?!\3)[^\\])*)\3([gpiImM0-9]*)([ew])\s*([^\n;]*))"
    ),
    re.S,
)
# Every line deleted, none left.
_SED_NOTHING = re.compile(r"\s*(?:1,\$)?\s*d\s*;?\s*\Z")
# What was matched, in the text that replaces it.
_SED_FILLED = re.compile(r"(?<!\\)&|\\\d")


def _awk(command: Command, judge: Judge) -> Stream | None:
    scripts = command.values("-e", "--source")
    if not scripts and not command.values("-f", "--file", "-E", "--exec"):
        scripts = command.operands[:1]
    for script in scripts:
        text = script.text
        for found in _AWK_SYSTEM.finditer(text):
            pieces = re.findall(_STRING, found.group(1))
            known = re.sub(_STRING, "", found.group(1)).strip() == ""
            line = "".join(unescape(piece) for piece in pieces)
            _shell(line if known else line + HOLE, command, judge)
        for found in _AWK_PIPE.finditer(text):
            fed = ANYTHING if found.group(1) else None
            line = unescape(found.group(1) or found.group(2) or "")
            judge.run_text(line, command.origin.vague(), command.scope.copy(), fed)
        if re.search(r"\|\s*(?:getline|[a-z_]\w*\s*(?:;|\}|$))", text) and "|" in text.replace(
            "||", ""
        ):
            for found in re.finditer(rf"(\w+)\s*=\s*{_STRING}", text):
                if re.search(rf"\b{found.group(1)}\s*\|\s*getline|\|\s*{found.group(1)}\b", text):
                    _shell(unescape(found.group(2)), command, judge)
        for found in _AWK_WRITE.finditer(text):
            _write(found.group(1), command, judge)
        if _AWK_NETWORK.search(text):
            judge.blame("network.raw-socket", command)
    return None


def _sed(command: Command, judge: Judge) -> Stream | None:
    scripts = command.values("-e", "--expression")
    if not scripts and not command.values("-f", "--file"):
        scripts = command.operands[:1]
    for script in scripts:
        if _SED_NOTHING.match(script.text) and any(
            flag.startswith(("-i", "--in-place")) for flag in command.flags
        ):
            judge.blame("delete.emptied", command)
        for found in _SED_COMMAND.finditer(script.text):
            letter, argument = found.group(1), found.group(2)
            if letter == "e":
                _shell(argument or HOLE, command, judge)
            elif letter in ("w", "W") and argument:
                _write(argument, command, judge)
            elif found.group(7) == "e":
                _shell(_SED_FILLED.sub(HOLE, found.group(5)), command, judge)
            elif found.group(7) == "w":
                _write(found.group(8), command, judge)
    return None


def _pager(command: Command, judge: Judge) -> Stream | None:
    for word in command.words[1:]:
        if word.text.startswith("+!"):
            _shell(word.text[2:], command, judge)
    return None


def _write(path: str, command: Command, judge: Judge) -> None:
    word = literal(expand_home(path, command.scope), command)
    judge_write(word, command.text, command.scope, judge)


def _shell(text: str, command: Command, judge: Judge) -> None:
    judge.run_text(text, command.origin.vague(), command.scope.copy())


TEXT_TOOLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "sed": _sed,
    "gsed": _sed,
    **dict.fromkeys(("less", "more", "most"), _pager),
}
