"""Inline Perl, Ruby, JavaScript, PHP, Lua and other languages, read as tokens.

There is no grammar here. A call is a name that `effects.py` knows, with its arguments as far as
they are constant. Names in strings, patterns and comments are no calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.code.effects import ACTIONS, SERVICE_VERBS, Call, Effects
from hermes.safety.shell.scope import HOLE, expand_home, names
from hermes.safety.shell.words import unescape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope

Token = tuple[str, str]

_JOINS = names("join joinpath resolve file_path")
_PASSES = names(
    "expand_path realpath abspath absolute_path new Path Pathname File URI get of PathBuf from "
    "normalize toString to_s path expand String Paths tilde my our local const let var await val "
    "final return c vec require"
)
_LISTING = names("glob Dir readdirSync files children readdir globSync entries")
_SHELL_TICKS = names("perl ruby php julia crystal")
_TAGS = frozenset(("$", "$.sync", "execa", "Bun.$", "$sync"))
_BARE_NAMES = names("perl php julia groovy kotlin")
_HOME = re.compile(
    r"\$ENV\{\s*['\"]?HOME['\"]?\s*\}|ENV\[['\"]HOME['\"]\]|ENV\.fetch\(['\"]HOME['\"]\)|"
    r"(?:require\(['\"](?:node:)?os['\"]\)|\bos)\.homedir\(\)|process\.env(?:\.HOME\b|\[['\"]HOME['\"]\])|"
    r"Dir\.home\b|os\.UserHomeDir\(\)|System\.user_home!?(?:\(\))?|Pathname\.home|\bhomedir\(\)|"
    r"(?:os\.|Sys\.|System\.)?[gG]et_?[eE]nv\(['\"]HOME['\"]\)|\$_(?:SERVER|ENV)\[['\"]HOME['\"]\]|"
    r"System\.getProperty\(['\"]user\.home['\"]\)|env::var\(['\"]HOME['\"]\)(?:\.unwrap\(\))?|"
    r"(?:path\.expand|File\.expand_path)\(['\"]~['\"]\)|Deno\.env\.get\(['\"]HOME['\"]\)"
)
_TOKEN = re.compile(
    rf"(?:(?P<home>{_HOME.pattern})"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/|(?<![\w$@%&])\#(?![{!])[^\n]*)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|"
    r"\bq[qw]?(?:\{[^}]*\}|\([^)]*\)|/[^/]*/)|%[wqQ](?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\]))"
    r"|(?P<tick>`(?:[^`\\]|\\.)*`|(?:\bqx|%x)(?:\{[^}]*\}|\([^)]*\)|/[^/]*/|\[[^\]]*\]|![^!]*!))"
    # A pattern, not a division: nothing that has a value stands before it.
    r"|(?P<pattern>(?<![\w)\]$@%&.>])(?:m|qr)?/(?![/*\s])(?:[^/\\\n]|\\.)+/[gimsxou]*(?![\w/])"
    r"|(?<![\w$@%&.>-])(?:s|tr|y)/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gimsxor]*(?![\w/])"
    r"|%r\{[^}]*\}|(?<![\w$@%&.>])(?:m|qr)\{[^}]*\}[gimsxo]*)"
    r"|(?P<name>[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*[!?]?(?![=\w])"
    r"(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*!?)*"
    r"|[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*)*)"
    r"|(?P<number>\d[\w.]*)|(?P<line>\n)|(?P<other>\S))",
    re.S,
)
_LUA_COMMENT = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|--\[\[.*?\]\]|--[^\n]*", re.S)
# A module is called by the name it is required by: `require("fs").rmSync`.
_REQUIRED = re.compile(
    r"\brequire\(\s*['\"](?:node:)?(?:[\w-]+/)*([A-Za-z][\w-]*)['\"]\s*\)(?=\s*[.(])"
)
_PART = re.compile(r"::|\?\.|\.|->")
_FILLED = re.compile(r"[#$]\{([^{}]{0,200})\}")
_FILLED_NAME = re.compile(r"[$@](\w+)(?:->)?(?:\{[^}]*\}|\[[^\]]*\])?")
_ENDS = names("if unless for foreach while or and do")
_OPTION_SIGNS = frozenset((("other", ":"), ("other", ">")))
_LONGEST_CALL = 200
_STEPS_OF_A_SOURCE = 4
_MOST_CALLS = 400
_MOST_TOKENS = 40_000


def judge_script(text: str, command: Command, judge: Judge, language: str = "") -> None:
    """Report the effects of a piece of script code."""
    if judge.step(_STEPS_OF_A_SOURCE):
        _Script(text, command, judge, language or command.name).read()


class _Script:
    def __init__(self, text: str, command: Command, judge: Judge, language: str) -> None:
        if "require" in text:
            text = _REQUIRED.sub(lambda match: match[1].replace("-", "_"), text)
        self.text = text
        if language in ("lua", "luajit"):
            text = _LUA_COMMENT.sub(lambda match: match[1] or "", text)
        self.scope: Scope = command.scope
        self.language = language
        self.effects = Effects(self.text, command, judge, language)
        self.tokens: list[Token] = [
            (kind, match[kind])
            for match in _TOKEN.finditer(text)
            if (kind := match.lastgroup or "other") != "comment"
        ]
        self.constants: dict[str, list[Token] | None] = {}
        # Tokens that may still be evaluated; hostile constants would multiply without end.
        self.budget = _MOST_TOKENS

    def read(self) -> None:
        calls: list[tuple[int, str, str]] = []
        called: set[str] = set()
        for index, (kind, token) in enumerate(self.tokens):
            if kind == "tick":
                tag = self.tokens[index - 1][1] if index else ""
                if self.language in _SHELL_TICKS or tag in _TAGS:
                    self.effects.shell(self._filled(token.lstrip("qx%")[1:-1]))
            elif kind == "name":
                parts = _PART.split(token)
                called.update(parts)
                last = parts[-1].rstrip("!")
                owner = parts[-2] if len(parts) > 1 else ""
                if last in ("sync", "native", "default") and ACTIONS.get(owner) == "tree":
                    last, owner = owner, ""
                if last in ACTIONS or last.startswith(SERVICE_VERBS):
                    calls.append((index, owner, last))
            elif token == "=" and index and self.tokens[index - 1][0] == "name":
                name = self.tokens[index - 1][1]
                if self.tokens[index + 1 : index + 2] in ([("other", "=")], [("other", ">")]):
                    continue
                # A name that is set twice is no constant.
                again = name in self.constants
                self.constants[name] = None if again else self._until_end(index + 1)
        self.effects.whole(called, self._paths())
        if len(calls) > _MOST_CALLS:
            self.effects.blame("text.too-complex")
        for index, owner, last in calls[:_MOST_CALLS]:
            self._call(index, owner, last)
        if self.budget < 0:
            self.effects.blame("text.too-complex")

    def _call(self, index: int, owner: str, last: str) -> None:
        parts = [
            part[2:] if part[:1] == [("name", "args")] else part
            for part in self._arguments(index + 1)
        ]
        # Named options and callbacks are no operands.
        given = [part for part in parts if not _OPTION_SIGNS.intersection(part)] or parts
        written = ["".join(token for _, token in part) for part in parts]
        self.effects.call(Call(owner, last, [self._value(part) for part in given], written))

    def _paths(self) -> Iterator[str]:
        """Every string of the source as a path, below home too where home is named."""
        below = bool(_HOME.search(self.text))
        for kind, token in self.tokens:
            if kind == "string" and "." in token:
                yield self.scope.absolute(self._value([(kind, token)]))
                if below:
                    yield f"{self.scope.home}/{token[1:-1].strip('/')}"

    # Values

    def _until_end(self, index: int) -> list[Token]:
        end = index
        while end < len(self.tokens) and end - index < _LONGEST_CALL:
            kind, token = self.tokens[end]
            if kind == "line" or token in (";", "}"):
                break
            end += 1
        return self.tokens[index:end]

    def _arguments(self, index: int) -> list[list[Token]]:
        """The tokens of each argument; the items of a list count as arguments."""
        tokens = self.tokens
        bare = tokens[index : index + 1] != [("other", "(")]
        start = index if bare else index + 1
        parts: list[list[Token]] = [[]]
        nested = braces = 0
        for kind, token in tokens[start : start + _LONGEST_CALL]:
            if kind == "other":
                braces += (token == "{") - (token == "}")
                nested += (token == "(") - (token == ")")
                if nested < 0 or braces < 0 or (token == ";" and bare):
                    break
                if token in "[]{}":
                    continue
                if token == "," and not nested:
                    parts.append([])
                    continue
            elif bare and not nested and (kind == "line" or token in _ENDS):
                break
            parts[-1].append((kind, token))
        return [part for part in parts if part]

    def _value(self, tokens: list[Token], depth: int = 0) -> str:
        """The text of an expression, with stand-ins for its unknown parts."""
        out: list[str] = []
        self.budget -= len(tokens)
        if self.budget < 0:
            return HOLE
        joins = any(kind == "name" and _PART.split(token)[-1] in _JOINS for kind, token in tokens)
        for kind, token in tokens:
            last = _PART.split(token)[-1] if kind == "name" else ""
            if kind == "home":
                out.append(self.scope.home)
            elif kind == "string" or kind == "tick":
                out.append(self._string(token))
            elif kind == "number" or (token == "-" and not out):
                out.append(token)
            elif token == ",":
                out.append("/" if joins else HOLE)
            elif last in _LISTING:
                out.append("*")
            elif last and last not in _JOINS and last not in _PASSES:
                constant = self.constants.get(token)
                known = constant is not None and depth < 4
                out.append(self._value(constant or [], depth + 1) if known else HOLE)
        return expand_home("".join(out), self.scope)

    def _string(self, token: str) -> str:
        if token[0] == "'":
            return token[1:-1].replace("\\'", "'").replace("\\\\", "\\")
        if token[0] in "q%":
            return self._filled(token.lstrip("qwQ%")[1:-1])
        return self._filled(unescape(token[1:-1]))

    def _filled(self, text: str) -> str:
        """A text with its interpolated constants."""
        text = _HOME.sub(lambda _: self.scope.home, text)
        text = text.replace("#{" + self.scope.home + "}", self.scope.home)
        text = text.replace("${" + self.scope.home + "}", self.scope.home)
        text = _FILLED.sub(self._named, text)
        return _FILLED_NAME.sub(self._named, text) if self.language in _BARE_NAMES else text

    def _named(self, match: re.Match[str]) -> str:
        constant = self.constants.get(match[1]) or self.constants.get("$" + match[1])
        return HOLE if constant is None else self._value(constant, 2)
