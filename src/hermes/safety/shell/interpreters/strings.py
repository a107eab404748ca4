"""Inline code of languages that nothing here can read: the strings in it, as commands.

Every language has its own way to start a program, and all of them hand over a string. A string
that would be dangerous in a shell is taken for what it looks like; code without any passes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.stream import Stream
    from hermes.safety.shell.word_building import Word

_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`([^`]*)`")
_CODE = names("-e -x -r -E -c -eval -run --eval --execute --run --expression -batch -code eval")
_MOST = 50
# Code that starts something says so outside its strings.
_STARTS = re.compile(
    r"exec|system(?!\.(?:out|err|in|get|nano|current)\b)|cmd|command|shell|process|spawn|popen|"
    r"proc|run|\bsh\b|!",
    re.I,
)


def _strings(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    for index, word in enumerate(words[1:], 1):
        option, equals, value = word.text.partition("=")
        if option in _CODE:
            judge_strings(value if equals else _text(words[index + 1 : index + 2]), command, judge)
    if command.stdin is not None and command.stdin.text is not None:
        judge_strings(command.stdin.text, command, judge)
    return None


def _text(words: list[Word]) -> str:
    return words[0].text if words else ""


def judge_strings(code: str, command: Command, judge: Judge) -> None:
    """Report strings in some code that would be dangerous as commands."""
    if not _STARTS.search(_STRING.sub("", code)):
        return
    for count, found in enumerate(_STRING.finditer(code)):
        text = next((group for group in found.groups() if group), "")
        if count >= _MOST or not judge.step():
            judge.blame("text.too-complex", command)
            return
        if " " not in text.strip():
            continue
        own = judge.apart(len(text))
        own.run_text(text.replace('\\"', '"'), command.origin.vague(), command.scope.copy())
        for finding in own.findings:
            if not finding.rule.startswith("text."):
                judge.report(finding.rule, command.origin, finding.command, scope=command.scope)


STRINGS: dict[str, Callable[[Command, Judge], Stream | None]] = dict.fromkeys(
    names(
        "ghc runghc runhaskell stack sbcl clisp ecl ccl guile racket csi gosh chez scheme janet bb "
        "clj clojure lein octave matlab gnuplot erl iex swift crystal nim kotlin kotlinc scala "
        "scala-cli amm ocaml raku perl6 jshell maxima gp sage wolframscript pike io factor gforth "
        "swipl prolog newlisp picolisp hy coffee livescript wish groovysh beanshell"
    ),
    _strings,
)
