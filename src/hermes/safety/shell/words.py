"""Word expansion as a shell does it: quotes, variables and their operators, substitutions."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.lexing import closing_backtick, matching_brace, matching_paren
from hermes.safety.shell.scope import HOLE, UNSET, Scope, Value
from hermes.safety.shell.word_builder import Builder, Word, both, expand_braces, unescape

if TYPE_CHECKING:
    from hermes.safety.shell.scope import Origin
    from hermes.safety.shell.stream import Substituter


def element(value: Value, index: str) -> Value:
    """One element of an array; unknown when the index is not a number in it."""
    if index.lstrip("-").isdigit() and -len(value.items) <= int(index) < len(value.items):
        return Value([value.items[int(index)]])
    return Value([HOLE])


def cut(text: str, operator: str, tail: str) -> str:
    """A value after one of the operators that cut, replace or change case."""
    if "$" in tail or "`" in tail:
        return HOLE
    if operator in ("#", "##"):
        ends = range(len(text) + 1) if operator == "#" else range(len(text), -1, -1)
        return next((text[end:] for end in ends if fnmatch.fnmatchcase(text[:end], tail)), text)
    if operator in ("%", "%%"):
        starts = range(len(text), -1, -1) if operator == "%" else range(len(text) + 1)
        return next((text[:at] for at in starts if fnmatch.fnmatchcase(text[at:], tail)), text)
    if operator in ("/", "//"):
        old, _, new = tail.partition("/")
        if any(char in old for char in "*?["):
            return HOLE
        new = new.strip("'\"")
        return text.replace(old, new) if operator == "//" else text.replace(old, new, 1)
    if operator == ":":
        first, _, count = tail.partition(":")
        start = first.strip().strip("()").strip()
        if start.lstrip("-").isdigit() and (not count or count.strip().isdigit()):
            cut = text[int(start) :]
            return cut[: int(count)] if count else cut
        return HOLE
    if operator in ("^", ","):
        if tail.startswith(operator):
            return text.upper() if operator == "^" else text.lower()
        return (text[:1].upper() if operator == "^" else text[:1].lower()) + text[1:]
    if operator == "@":
        if tail == "E":
            return unescape(text)
        return text.upper() if tail == "U" else text.lower() if tail == "L" else text
    return HOLE


_DEEPEST = 12
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:=,+@%^-]+\Z")
_PLAIN_RUN = re.compile(r"[^'\"\\$`*?\[~<>]+")
_QUOTED_RUN = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!_-]")
_PARAMETER = re.compile(r"(!?)(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(\[[^\]]*\])?")
_COMMAND_LIKE = re.compile(r"""[\w'"\\)}/]\s+--?[A-Za-z]|[\w'"\\)}]\s+(?:[\w~.$'"]|/\w)|;""")
_INNER = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}|`[^`]*`")


def expand(raw: str, origin: Origin, scope: Scope, shell: Substituter) -> list[Word]:
    """All the words that one written word becomes."""
    if _PLAIN_WORD.match(raw):
        return [Word(raw, raw, origin)]
    if "{" in raw and "}" in raw:
        spellings = expand_braces(raw, shell)
        if spellings is not None:
            vague = origin.vague()
            return [
                word for text in spellings for word in _Expander(text, vague, scope, shell).words()
            ]
    return _Expander(raw, origin, scope, shell).words()


def expand_text(raw: str, origin: Origin, scope: Scope, shell: Substituter) -> Word:
    """A word that is never split: an assignment's value, a heredoc's body, a redirect's target."""
    if _PLAIN_WORD.match(raw):
        return Word(raw, raw, origin)
    words = _Expander(raw, origin, scope, shell, split=False).words()
    return words[0] if words else Word("", raw, origin)


def expand_document(raw: str, origin: Origin, scope: Scope, shell: Substituter) -> Word:
    """The text of an unquoted heredoc: expansions happen, quotes are ordinary characters."""
    if "$" not in raw and "`" not in raw and "\\" not in raw:
        return Word(raw, raw, origin)
    expander = _Expander(raw, origin, scope, shell, split=False)
    expander.quoted(0, end=None)
    return expander.finished()[0]


class _Expander(Builder):
    def words(self) -> list[Word]:
        raw, index, size = self.raw, 0, len(self.raw)
        if raw[0:1] == "~":
            index = self._tilde()
        while index < size:
            found = _PLAIN_RUN.match(raw, index)
            if found:
                self._put(found.group())
                index = found.end()
                continue
            index = self._special(index)
        return self.finished()

    def _tilde(self) -> int:
        raw = self.raw
        slash = raw.find("/")
        prefix = raw if slash < 0 else raw[:slash]
        user = prefix[1:]
        if not user:
            self._put(self.scope.lookup("HOME").text)
        elif user == "+":
            self._put(self.scope.cwd)
        elif user == "-":
            self._put(self.scope.oldpwd)
        elif user == "root":
            self._put("/root")
        elif user.isidentifier():
            self._put("/home/" + user)
        else:
            self._put("~")
            return 1
        return len(prefix)

    def _special(self, index: int) -> int:
        raw = self.raw
        char = raw[index]
        if char == "'":
            end = raw.find("'", index + 1)
            end = len(raw) if end < 0 else end
            self._put(raw[index + 1 : end])
            self._current().quoted = True
            return end + 1
        if char == '"':
            self._current().quoted = True
            return self.quoted(index + 1, end='"')
        if char == "\\":
            following = raw[index + 1 : index + 2]
            if following != "\n":
                self._put(following)
                self._current().quoted = True
            return index + 2
        if char == "$":
            return self._dollar(index, quoted=False)
        if char == "`":
            return self._backtick(index, quoted=False)
        if char in "<>" and raw.startswith("(", index + 1):
            return self._process(index)
        if char in "*?[":
            self._current().glob = True
        elif char == "~" and self.raw[index - 1] in "=:":
            self._put(self.scope.home)
            return index + 1
        self._put(char)
        return index + 1

    def quoted(self, index: int, *, end: str | None) -> int:
        """Read double-quoted text from `index` to its end; gives the index after it."""
        raw, size = self.raw, len(self.raw)
        self._put("")
        while index < size:
            found = _QUOTED_RUN.match(raw, index)
            if found:
                self._put(found.group())
                index = found.end()
                continue
            char = raw[index]
            if char == end:
                return index + 1
            if char == "\\":
                following = raw[index + 1 : index + 2]
                if following in ("$", "`", "\\", "\n") or following == end:
                    self._put("" if following == "\n" else following)
                else:
                    self._put("\\" + following)
                index += 2
            elif char == "$":
                index = self._dollar(index, quoted=True)
            elif char == "`":
                index = self._backtick(index, quoted=True)
            else:
                self._put(char)
                index += 1
        return index

    def _dollar(self, index: int, *, quoted: bool) -> int:
        raw = self.raw
        following = raw[index + 1 : index + 2]
        if following == "(":
            end = matching_paren(raw, index + 2)
            if end < 0:
                self._put(HOLE)
                return len(raw)
            if raw.startswith("((", index + 1) and raw[end - 1] == ")":
                inner = raw[index + 3 : end - 1]
                if _COMMAND_LIKE.search(_INNER.sub("1", inner)):
                    # No number could come of this; some shells run it in a subshell instead.
                    origin = self.origin.at(index + 3, end - 1)
                    self.shell.substitute(inner, origin, self.scope, feeds=False)
                self.shell.scan(inner, self.origin.at(index + 3, end - 1), self.scope)
                self._put(HOLE)
                return end + 1
            self._substitute(raw[index + 2 : end], index + 2, end, quoted=quoted)
            return end + 1
        if following == "{":
            end = matching_brace(raw, index + 2)
            if end < 0:
                self._put(HOLE)
                return len(raw)
            self._braced(raw[index + 2 : end], index + 2, quoted=quoted)
            return end + 1
        if following == "'" and not quoted:
            end = index + 2
            while end < len(raw) and raw[end] != "'":
                end += 2 if raw[end] == "\\" else 1
            self._put(unescape(raw[index + 2 : end]))
            self._current().quoted = True
            return end + 1
        if following == '"' and not quoted:
            return self.quoted(index + 2, end='"')
        if following == "[":
            end = raw.find("]", index)
            self._scan(raw[index + 2 : end if end > 0 else None], index + 2)
            self._put(HOLE)
            return end + 1 if end > 0 else len(raw)
        found = _NAME.match(raw, index + 1)
        if not found:
            self._put("$")
            return index + 1
        name = found.group()
        self._insert(name, self.scope.lookup(name), quoted=quoted, every=name in "@*")
        return found.end()

    def _backtick(self, index: int, *, quoted: bool) -> int:
        raw = self.raw
        end = closing_backtick(raw, index + 1)
        if end < 0:
            self._put(HOLE)
            return len(raw)
        if end == index + 1:
            self._put("")
            return end + 1
        inner = re.sub(r"\\([\\`$])", r"\1", raw[index + 1 : end])
        self._substitute(inner, index + 1, end, quoted=quoted)
        return end + 1

    def _process(self, index: int) -> int:
        raw = self.raw
        end = matching_paren(raw, index + 2)
        if end < 0:
            self._put(HOLE)
            return len(raw)
        origin = self.origin.at(index + 2, end)
        feeds = raw[index] == ">"
        stream = self.shell.substitute(raw[index + 2 : end], origin, self.scope, feeds=feeds)
        if not feeds:
            self._current().process = stream
        self._put("/dev/fd/" + HOLE)
        return end + 1

    def _substitute(self, inner: str, start: int, end: int, *, quoted: bool) -> None:
        origin = self.origin.at(start, end)
        stream = self.shell.substitute(inner, origin, self.scope, feeds=False)
        text = HOLE if stream.text is None else stream.text.rstrip("\n")
        self._text(text, quoted=quoted)
        word = self._current()
        word.stream = stream if word.stream is None else both(word.stream, stream)

    def _braced(self, inner: str, start: int, *, quoted: bool) -> None:
        found = _PARAMETER.match(inner)
        if not found:
            self._put(HOLE)
            return
        indirect, length, name, index = found.groups()
        rest = inner[found.end() :]
        value = self.scope.lookup(name)
        if indirect:
            target = value.text if value.text.isidentifier() else ""
            value = self.scope.lookup(target) if target and not index else Value([HOLE])
        elif length:
            value = Value([HOLE])
        every = name in "@*"
        if index and not length:
            every = index in ("[@]", "[*]")
            if not every:
                self._scan(index, start)
                value = element(value, index[1:-1])
        if rest:
            value = self._operate(value, rest, start + found.end())
        self._insert(name, value, quoted=quoted, every=every)

    def _operate(self, value: Value, rest: str, start: int) -> Value:
        """`${x…}` with an operator: defaults, cutting, replacing; HOLE where that is not simple."""
        unset = UNSET in value.text or not value.items
        operator = rest[:2] if rest[:2] in (":-", ":=", ":+", ":?", "##", "%%", "//") else rest[:1]
        tail = rest[len(operator) :]
        if operator not in (":-", ":=", "-", "=", ":+", "+") or not unset:
            self._scan(tail, start + len(operator))
        if operator in (":-", ":=", "-", "="):
            if unset or (not value.text and operator[0] == ":"):
                return Value([self._tail(tail, start + len(operator))])
            return value
        if operator in (":+", "+"):
            text = self._tail(tail, start + len(operator))
            return Value([UNSET if unset else text])
        if operator in (":?", "?"):
            return Value([HOLE]) if unset else value
        if unset or HOLE in value.text:
            return Value([value.text])
        return Value([cut(text, operator, tail) for text in value.items], array=value.array)

    def _scan(self, raw: str, start: int) -> None:
        """Judge the commands in a part of `${…}` whose own value is not needed."""
        if "$(" in raw or "`" in raw:
            self.shell.scan(raw, self.origin.at(start, start + len(raw)), self.scope)

    def _tail(self, raw: str, start: int) -> str:
        """The default or alternative inside `${x:-…}`."""
        if self.depth > _DEEPEST:
            self.shell.too_large()
            return HOLE
        origin = self.origin.at(start, start + len(raw))
        inner = _Expander(raw, origin, self.scope, self.shell, split=False, depth=self.depth + 1)
        words = inner.words()
        if words and words[0].stream is not None:
            self._current().stream = words[0].stream
        return words[0].text if words else ""
