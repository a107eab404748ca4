"""Text filters that can start a shell or write files: awk, sed, pagers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.file_flow import remember_text
from hermes.safety.shell.file_operands import READERS
from hermes.safety.shell.inner_command import literal
from hermes.safety.shell.output_model import reads_nothing
from hermes.safety.shell.path_classes import is_null
from hermes.safety.shell.path_rules import judge_reads, judge_write
from hermes.safety.shell.scope import HOLE, expand_home, names
from hermes.safety.shell.stream import ANYTHING, Stream
from hermes.safety.shell.word_builder import unescape

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command


_TOKEN = re.compile(
    r"\s*?(?P<string>\"(?:[^\"\\\n]|\\.)*\")"
    # A pattern, not a division: nothing that has a value stands before it.
    r"|(?P<pattern>(?<![\w)\]\"$])(?<![\w)\]\"$] )/(?:[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]*\]|\[)+/)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\d.]*)|(?P<comment>\#[^\n]*)"
    r"|(?P<sign>>>|\|&|\|\||&&|[=!<>]=|\n|[^\s])",
    re.S,
)
# A program without any of these only reads its input and prints.
_ACTS = re.compile(r"[>|<]|\bsystem\b|/inet")
_NETWORK = re.compile(r"/inet[46]?/")
_ENDS = frozenset((";", "}", "\n"))
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
_CONTROL = names("while if for else do return print printf in delete exit next")
_MOST_TOKENS = 4_000
_MOST_WORK = 100_000
_LONGEST_VALUE = 20_000
# Calls and writes as they are spelled, wherever the tokens may have been torn apart.
_SPELLED = re.compile(r"\bsystem\s*\(\s*(\"(?:[^\"\\\n]|\\.)*\")|>>?\s*(\"(?:[^\"\\\n]|\\.)*\")")

Token = tuple[str, str]


def run_awk(command: Command, judge: Judge) -> Stream | None:
    """Judge the program that an awk was given."""
    scripts = command.values("-e", "--source")
    given = command.values("-v", "--assign")
    if not scripts and not command.values("-f", "--file", "-E", "--exec"):
        scripts = command.operands[:1]
        given = [*given, *command.operands[1:]]
    for script in scripts:
        if _ACTS.search(script.text):
            reader = _Reader(script.text, command, judge)
            for word in given:
                found = _ASSIGNED.match(word.text)
                if found:
                    reader.constants[found[1]] = unescape(found[2])
            reader.read()
    return None


class _Reader:
    def __init__(self, text: str, command: Command, judge: Judge) -> None:
        self.text = text
        self.command = command
        self.judge = judge
        self.tokens: list[Token] = [
            (found.lastgroup or "sign", found[found.lastgroup or "sign"])
            for found in _TOKEN.finditer(text)
            if found.lastgroup != "comment"
        ][:_MOST_TOKENS]
        self.constants: dict[str, str] = {}
        self.budget = _MOST_WORK
        # What is printed to each file.
        self.printed: dict[str, list[str]] = {}
        self.appended: set[str] = set()

    def read(self) -> None:
        self._constants()
        for index, (kind, token) in enumerate(self.tokens):
            if self.budget < 0:
                break
            if kind == "name":
                if token == "system":
                    self._shell(self._value(self._group(index + 1)))
                elif token in ("print", "printf"):
                    self._print(index + 1, token)
                elif token == "getline":
                    self._getline(index)
        for path, texts in self.printed.items():
            if not any(text.strip("\n") for text in texts) and not is_null(path):
                self.judge.blame("delete.emptied", self.command)
            append = path in self.appended
            remember_text(path, "".join(texts), self.command.scope, append=append)
        if len(self.tokens) == _MOST_TOKENS or self.budget < 0:
            self.judge.blame("text.too-complex", self.command)
        self._as_spelled()
        if _NETWORK.search(self.text):
            self.judge.blame("network.raw-socket", self.command)

    def _as_spelled(self) -> None:
        """Judge what stands in quotes after `system(` or `>`, if a quote in a pattern hid it."""
        strings = {token for kind, token in self.tokens if kind == "string"}
        for found in _SPELLED.finditer(self.text):
            started, written = found.groups()
            if started and started not in strings:
                self._shell(unescape(started[1:-1]))
            elif written and written not in strings:
                path = expand_home(unescape(written[1:-1]), self.command.scope)
                word = literal(path, self.command)
                judge_write(word, self.command.text, self.command.scope, self.judge)

    def _constants(self) -> None:
        tokens = self.tokens
        for index in range(1, len(tokens) - 1):
            if self.budget < 0:
                return
            if tokens[index] == ("sign", "=") and tokens[index - 1][0] == "name":
                name = tokens[index - 1][1]
                value = self._value(self._until(index + 1, _ENDS | {",", ")"}))
                known = self.constants.setdefault(name, value)
                if known != value:
                    self.constants[name] = HOLE

    def _until(self, index: int, ends: frozenset[str]) -> list[Token]:
        """The tokens from here to one of these signs, past those in brackets."""
        start, nested = index, 0
        while index < len(self.tokens):
            kind, token = self.tokens[index]
            if kind == "sign":
                if not nested and token in ends:
                    break
                nested += (token in _OPENING) - (token in _CLOSING)
                if nested < 0:
                    break
            index += 1
        self.budget -= index - start
        return self.tokens[start:index]

    def _group(self, index: int) -> list[Token]:
        """The tokens in the brackets that open here."""
        if self.tokens[index : index + 1] != [("sign", "(")]:
            return []
        return self._until(index + 1, frozenset(")"))

    def _value(self, tokens: list[Token]) -> str:
        """The text that an expression gives, with stand-ins for what is not constant."""
        out: list[str] = []
        index = 0
        while index < len(tokens):
            kind, token = tokens[index]
            index += 1
            if kind == "string":
                out.append(unescape(token[1:-1]))
            elif kind == "number":
                out.append(token)
            elif token == "ENVIRON" and len(tokens) > index + 2:
                out.append(self.command.scope.lookup(tokens[index + 1][1].strip('"')).text)
                index += 3
            elif kind == "name":
                out.append(self.constants.get(token, HOLE))
            elif token not in ("(", ")"):
                out.append(HOLE)
        text = "".join(out)
        self.budget -= len(text) // 100
        return text if len(text) <= _LONGEST_VALUE else HOLE

    def _print(self, index: int, how: str) -> None:
        given = self._until(index, _ENDS | {">", ">>", "|", "|&"})
        index += len(given)
        sign = self.tokens[index][1] if index < len(self.tokens) else ""
        if sign not in (">", ">>", "|", "|&"):
            return
        # Without anything to print it prints the line that was read.
        text = self._value(given) if given else HOLE
        if how == "printf" and "%" in text:
            text = HOLE if text.strip("%s,") else ""
        end = "\n" if how == "print" else ""
        target = self._value(self._until(index + 1, _ENDS))
        if sign[0] == "|":
            fed = ANYTHING if HOLE in text else Stream(text + end)
            origin = self.command.origin.vague()
            self.judge.run_text(target, origin, self.command.scope.copy(), fed)
            return
        path = expand_home(target, self.command.scope)
        word = literal(path, self.command)
        judge_write(word, self.command.text, self.command.scope, self.judge)
        self.printed.setdefault(path, []).append(text + end if sign == ">" or text else HOLE)
        if sign == ">>":
            self.appended.add(path)

    def _getline(self, index: int) -> None:
        """`COMMAND | getline` and `getline line < FILE`."""
        if self.tokens[index - 1] in (("sign", "|"), ("sign", "|&")) and index > 1:
            at = index - 2
            nested = 0
            while at >= 0:
                kind, token = self.tokens[at]
                nested += (token in _CLOSING) - (token in _OPENING) if kind == "sign" else 0
                if nested < 0 or (token in _ENDS and not nested) or token in _CONTROL:
                    break
                at -= 1
            self._shell(self._value(self.tokens[at + 1 : index - 1]))
        for at in range(index + 1, min(index + 3, len(self.tokens))):
            if self.tokens[at] == ("sign", "<"):
                text = self._value(self._until(at + 1, _ENDS | {")", ">", "&&", "||"}))
                word = literal(expand_home(text, self.command.scope), self.command)
                judge_reads([word], self.command, self.judge)

    def _shell(self, text: str) -> None:
        if text:
            self.judge.run_text(text, self.command.origin.vague(), self.command.scope.copy())


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

    return run_awk(command, judge)


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
    if reads_nothing(command, READERS["sed"](command)) and not is_null(word.text):
        judge.blame("delete.emptied", command)


def _shell(text: str, command: Command, judge: Judge) -> None:
    judge.run_text(text, command.origin.vague(), command.scope.copy())


TEXT_TOOLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    "sed": _sed,
    "gsed": _sed,
    **dict.fromkeys(("less", "more", "most"), _pager),
}
