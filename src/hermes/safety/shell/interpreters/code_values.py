"""What the arguments of calls stand for in a source, as far as they are constant."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.escapes import unescape
from hermes.safety.shell.interpreters.code_names import FORMATS, JOIN, LISTING, SILENT, THROUGH
from hermes.safety.shell.interpreters.code_tokens import HOME_MARK, PART, Token
from hermes.safety.shell.interpreters.python_values import expand_home
from hermes.safety.shell.scope import HOLE

if TYPE_CHECKING:
    from hermes.safety.shell.scope import Scope

_INTERPOLATED = re.compile(r"[#$]\{([^}]*)\}|[$@](\w+)(?:->)?(?:\{[^}]*\}|\[[^\]]*\])?")
# Where a bare `$name` in a string is text, and only brackets after a sign are filled in.
_BRACKETS_ALONE = re.compile(r"[#$]\{([^}]*)\}()")
_TICKS_ALONE = frozenset(("node", "nodejs", "bun", "deno", "tsx", "ts-node"))
_BARE_NAMES_ARE_TEXT = _TICKS_ALONE | {"ruby", "elixir", "mix", "crystal"}
_PLACE = re.compile(r"%%|%[-+ 0#]*\d*(?:\.\d+)?[sdvqi]|\{\}")
_ENDS = frozenset(("if", "unless", "for", "foreach", "while", "or", "and", "do"))
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_DEEPEST = 12
_EQUALS = ("other", "=")
_LONGEST_ARGUMENT = 200
_MOST_TOKENS = 60_000
_NO_INTERPOLATION = frozenset(("lua", "luajit", "go", "java", "c", "rust", "rscript", "r"))


class Argument:
    """One argument: its text, the items of a list, and the tokens that it is made of."""

    __slots__ = ("items", "text", "tokens")

    def __init__(self, text: str, items: list[str], tokens: list[Token]) -> None:
        self.text = text
        self.items = items
        self.tokens = tokens


class CodeValues:
    """Constant values in one source."""

    def __init__(self, tokens: list[Token], scope: Scope, language: str) -> None:
        self.tokens = tokens
        self.scope = scope
        self.language = language
        # Where each name is set, and what it was found to stand for.
        self._set_at: dict[str, list[int]] = {}
        self._known: dict[str, str | None] = {}
        # Tokens that may still be looked at; hostile sources would have each read over and over.
        self.budget = _MOST_TOKENS

    def read_constants(self) -> None:
        """Find where the names of the source are set; their values are worked out when asked."""
        tokens = self.tokens
        for index in range(1, len(tokens) - 1):
            if tokens[index] != _EQUALS or tokens[index - 1][0] != "name":
                continue
            if tokens[index + 1] == _EQUALS or tokens[index + 1] == ("other", ">"):
                continue
            name = tokens[index - 1][1]
            self._set_at.setdefault(name, []).append(index + 1)
            if self.language == "perl" and name[0] in "$@%&":
                self._set_at.setdefault(name.lstrip("$@%&"), []).append(index + 1)

    def statements(self, name: str) -> list[Token]:
        """The tokens that set a name, for whoever asks where its text comes from."""
        return [token for at in self._set_at.get(name, ()) for token in self._statement(at)]

    def named(self, name: str) -> str | None:
        """What a name stands for; None when the source never sets it."""
        if name in self._known:
            return self._known[name]
        places = self._set_at.get(name)
        if places is None:
            return None
        # A name that is made from itself is not known while it is being worked out.
        self._known[name] = HOLE
        values = {self.value(self._statement(at)) for at in places}
        self._known[name] = values.pop() if len(values) == 1 else HOLE
        return self._known[name]

    def _statement(self, index: int) -> list[Token]:
        """The tokens from here to the end of an assignment."""
        start, nested = index, 0
        if self.budget < 0:
            return []
        while index < len(self.tokens) and index - start < _LONGEST_ARGUMENT:
            kind, token = self.tokens[index]
            if kind == "line" and not nested:
                break
            if kind == "other":
                if token in _OPENING:
                    nested += 1
                elif token in _CLOSING:
                    nested -= 1
                    if nested < 0:
                        break
                elif token in ";," and not nested:
                    break
            index += 1
        self.budget -= index - start
        return self.tokens[start:index]

    def arguments(self, index: int) -> list[Argument]:
        """The arguments of a call whose name stands before this position."""
        tokens = self.tokens
        if self.budget < 0:
            return []
        called = index < len(tokens) and tokens[index] == ("other", "(")
        parts = _split(tokens, index + 1 if called else index, lines=not called)
        self.budget -= 4 + 3 * sum(len(part) for part in parts)
        return [self._argument(part) for part in parts if part]

    def _argument(self, tokens: list[Token]) -> Argument:
        opening = tokens[0][1] in ("[", "{", "&[") or tokens[0] == ("name", "c")
        if tokens[0][0] == "quote" and tokens[0][1][:2] in ("%w", "qw"):
            items = self.string(tokens[0][1]).split()
            return Argument(" ".join(items), items, tokens)
        if tokens[0][1] == "&" or tokens[0] == ("name", "vec"):
            opening = any(token == "[" for _, token in tokens[:3])
        if opening and len(tokens) > 1:
            at = next((i for i, (_, token) in enumerate(tokens) if token in _OPENING), 0)
            inner = _split(tokens, at + 1, lines=False)
            if tokens[at][1] == "{":
                # Of settings, the words that a program is started with count.
                inner = [part for part in inner if part[:1] == [("name", "args")]]
                inner = _split(inner[0], 3, lines=False) if inner else []
            items = [self.value(part) for part in inner if part]
            return Argument(items[0] if items else "", items, tokens)
        text = self.value(tokens)
        return Argument(text, [text], tokens)

    def value(self, tokens: list[Token], depth: int = 0) -> str:
        """The string that an expression gives, with stand-ins for what is not constant."""
        out: list[str] = []
        index = 0
        while index < len(tokens):
            kind, token = tokens[index]
            index += 1
            if kind in ("string", "quote") or (kind == "tick" and token[0] == "`"):
                out.append(self.string(token))
            elif kind == "name":
                called = tokens[index : index + 1] == [("other", "(")]
                if called and depth < _DEEPEST:
                    inner, index = _inside(tokens, index)
                    if out and token == "format":
                        # A method of the text before it, as in Lua and Java.
                        out = [self._formatted("".join(out), inner, depth + 1)]
                        continue
                    out.append(self._called(token, inner, depth + 1, "".join(out)))
                elif (known := self.named(token)) is not None:
                    out.append(known)
                elif token in LISTING:
                    out.append("*")
                elif PART.split(token)[-1] in THROUGH or PART.split(token)[-1] in JOIN:
                    # Without brackets: `File.expand_path "~/x"`.
                    continue
                elif token not in SILENT:
                    out.append(HOLE)
            elif kind == "number" or (token in "-*" and not out):
                out.append(token)
            elif token in "([{" and not out:
                continue
        return expand_home("".join(out), self.scope)

    def _called(self, name: str, inner: list[Token], depth: int, before: str) -> str:
        last = PART.split(name)[-1]
        if last in LISTING:
            return "*"
        parts = [self.value(part, depth) for part in _split(inner, 0, lines=False) if part]
        if last in FORMATS and parts and not before:
            return formatted(parts[0], parts[1:])
        if last in JOIN and parts:
            return posixpath.join(*([before] if before else []), *parts)
        if last in THROUGH and parts:
            return expand_home(parts[0], self.scope)
        if last in ("unwrap", "toString", "to_s", "expanduser", "clone", "toPath", "toFile"):
            return ""
        return HOLE if not before else ""

    def _formatted(self, form: str, inner: list[Token], depth: int) -> str:
        given = [self.value(part, depth) for part in _split(inner, 0, lines=False) if part]
        return formatted(form, given)

    def receiver(self, index: int) -> str:
        """What a method is called on: `new File("x").delete()`, `f.delete()` after `f = …`."""
        tokens = self.tokens
        owner = PART.split(tokens[index][1])
        if len(owner) > 1:
            return self.named(".".join(owner[:-1])) or HOLE
        if index < 2 or self.budget < 0 or tokens[index - 1][1] not in (".", "->", "?"):
            return HOLE
        at = index - 2
        if tokens[at][1] == ")":
            nested = 0
            while at >= max(0, index - _LONGEST_ARGUMENT):
                self.budget -= 1
                nested += (tokens[at][1] == ")") - (tokens[at][1] == "(")
                if not nested:
                    break
                at -= 1
            at -= 1
        return self.value(tokens[max(at, 0) : index - 1])

    def string(self, token: str) -> str:
        """The text of a string token."""
        if token[0] == "'":
            plain = token[1:-1].replace("\\'", "'").replace("\\\\", "\\")
            return plain.replace(HOME_MARK, self.scope.home)
        if token[0] == '"' and self.language in _TICKS_ALONE:
            return unescape(token[1:-1]).replace(HOME_MARK, self.scope.home)
        if token[0] in '"`':
            return self.fill(unescape(token[1:-1]))
        return self.fill(re.sub(r"^(?:q[qw]?|%[wqQ])", "", token)[1:-1])

    def fill(self, text: str) -> str:
        """A text with what it interpolates."""
        for opening in ("#{", "${"):
            text = text.replace(f"{opening}'{HOME_MARK}'}}", HOME_MARK)
        text = text.replace(f"'{HOME_MARK}'", HOME_MARK)
        if self.language in _BARE_NAMES_ARE_TEXT:
            text = _BRACKETS_ALONE.sub(self._interpolated, text)
        elif self.language not in _NO_INTERPOLATION:
            text = _INTERPOLATED.sub(self._interpolated, text)
        return text.replace(HOME_MARK, self.scope.home)

    def _interpolated(self, found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2) or ""
        known = self.named(name)
        known = self.named("$" + name) if known is None else known
        return HOLE if known is None else known


def formatted(form: str, values: list[str]) -> str:
    """A text whose places are filled with values in turn, and stand-ins where there are none."""
    given = iter(values)
    return _PLACE.sub(lambda found: "%" if found.group() == "%%" else next(given, HOLE), form)


def _inside(tokens: list[Token], index: int) -> tuple[list[Token], int]:
    """The tokens between the bracket at this position and its partner, and where that is."""
    nested, start = 0, index + 1
    while index < len(tokens):
        kind, token = tokens[index]
        if kind == "other":
            if token in _OPENING:
                nested += 1
            elif token in _CLOSING:
                nested -= 1
                if not nested:
                    return tokens[start:index], index + 1
        index += 1
    return tokens[start:], index


def _split(tokens: list[Token], index: int, *, lines: bool) -> list[list[Token]]:
    """The tokens of each argument, up to the bracket or statement end that closes them all."""
    parts: list[list[Token]] = [[]]
    nested, start = 0, index
    while index < len(tokens) and index - start < _LONGEST_ARGUMENT:
        kind, token = tokens[index]
        index += 1
        if kind == "line":
            if lines and not nested and parts[-1]:
                break
            continue
        if kind == "other":
            if token in _OPENING:
                nested += 1
            elif token in _CLOSING:
                if not nested:
                    break
                nested -= 1
            elif token == ";" and not nested and lines:
                break
            elif token in ";," and not nested:
                parts.append([])
                continue
        elif lines and not nested and kind == "name" and token in _ENDS:
            break
        parts[-1].append((kind, token))
    return parts
