"""Word expansion as a shell does it: escapes, braces, quotes, variables, substitutions, fields."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.lexing import closing_backtick, matching_brace, matching_paren
from hermes.safety.shell.scope import HOLE, UNSET, Scope, Value, Word

if TYPE_CHECKING:
    from hermes.safety.shell.scope import Origin, Stream, Substituter


_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S
)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b",
    "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def unescape(text: str) -> str:
    """The text of an ANSI-C string, `printf` format or `echo -e` argument."""
    if "\\" not in text:
        return text
    plain = _ANSI_ESCAPE.sub(_unescaped, text)
    if plain.isascii():
        return plain
    try:
        # Bytes that were spelled out one by one are one character together.
        return plain.encode("latin-1").decode()
    except UnicodeError:
        return plain


def _unescaped(match: re.Match[str]) -> str:
    byte, short, long, octal, control, char = match.groups()
    if byte or short or long:
        code = int(byte or short or long, 16)
        return chr(code) if code < 0x110000 else ""
    if octal:
        return chr(int(octal, 8) & 255)
    if control:
        return chr(ord(control) & 31)
    return _ESCAPES.get(char, "\\" + char)


_LONGEST = 200_000
_MOST_NAMES = 16


class Builder:
    """Collects pieces of text into words; an unquoted blank in one of them starts another."""

    def __init__(
        self,
        raw: str,
        origin: Origin,
        scope: Scope,
        shell: Substituter,
        *,
        split: bool = True,
        depth: int = 0,
    ) -> None:
        self.raw = raw
        self.origin = origin
        self.scope = scope
        self.shell = shell
        self.split = split
        self.depth = depth
        self.size = 0
        self.done: list[Word] = []
        self.word: Word | None = None
        self.parts: list[str] = []

    def finished(self) -> list[Word]:
        self._close()
        return self.done

    def _current(self) -> Word:
        if self.word is None:
            self.word = Word("", self.raw, self.origin)
        return self.word

    def _put(self, text: str) -> None:
        self._current()
        self.size += len(text)
        if self.size > _LONGEST:
            if self.size - len(text) <= _LONGEST:
                self.shell.too_large()
                self.parts.append(HOLE)
            return
        self.parts.append(text)

    def _close(self) -> None:
        if self.word is not None:
            self.word.text = "".join(self.parts)
            self.done.append(self.word)
            self.word = None
            self.parts = []

    def _insert(self, name: str, value: Value, *, quoted: bool, every: bool) -> None:
        if self.word is not None or value.items:
            word = self._current()
            if name != "IFS" and name not in word.variables and len(word.variables) < _MOST_NAMES:
                word.variables += (name,)
            if value.glob:
                word.glob = True
        items = value.items if every else value.items[:1]
        for position, item in enumerate(items):
            if position and self.split:
                self._close()
                self._current().variables = (name,)
            elif position:
                self._put(" ")
            self._text(item, quoted=quoted)

    def _text(self, text: str, *, quoted: bool) -> None:
        if quoted or not self.split:
            self._put(text)
            return
        if "*" in text or "?" in text:
            self._current().glob = True
        blanks = self.scope.variables.get("IFS")
        if blanks is not None and blanks.text.strip():
            text = text.translate({ord(char): " " for char in blanks.text})
        if not (" " in text or "\n" in text or "\t" in text):
            self._put(text)
            return
        names = self.word.variables if self.word else ()
        if text[0].isspace() and self.parts:
            self._close()
        pieces = text.split()
        for position, piece in enumerate(pieces):
            if position:
                self._close()
            self._put(piece)
            self._current().variables = names
        if text[-1].isspace():
            self._close()


def both(one: Stream, other: Stream) -> Stream:
    """Several outputs in one word: nothing of the text is certain any more."""
    return type(one)(None, one.tags | other.tags)


_MOST = 256
_DEEPEST = 40
_WIDEST = 100_000
_RANGE = re.compile(
    r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z|([A-Za-z])\.\.([A-Za-z])(?:\.\.-?\d+)?\Z"
)
_TOKEN = re.compile(r"['\"\\$`{},]|[<>](?=\()")


class _TooManyError(Exception):
    """More spellings than anyone would mean."""


def expand_braces(raw: str, shell: Substituter) -> list[str] | None:
    """The spellings that braces multiply a word into; None when nothing is to be expanded."""
    done: list[str] = []
    waiting = [raw]
    expanded = False
    while waiting:
        text = waiting.pop()
        try:
            group = _first_group(text)
        except _TooManyError:
            shell.too_large()
            return [*done, HOLE]
        if group is None:
            done.append(text)
        else:
            expanded = True
            start, end, choices = group
            head, tail = text[:start], text[end:]
            waiting.extend(head + choice + tail for choice in reversed(choices))
        if len(done) + len(waiting) > _MOST or sum(map(len, waiting)) > 100_000:
            shell.too_large()
            return [*done, HOLE]
    return done if expanded else None


def _first_group(text: str) -> tuple[int, int, list[str]] | None:
    """The first brace group that bash would expand: where it is and what it offers."""
    opened: list[int] = []
    commas: list[list[int]] = []
    index = 0
    while match := _TOKEN.search(text, index):
        token, at = match.group(), match.start()
        index = match.end()
        if token == "\\":
            index = at + 2
        elif token in "'\"`":
            close = text.find(token, index)
            while token != "'" and close > 0 and text[close - 1] == "\\":
                close = text.find(token, close + 1)
            if close < 0:
                return None
            index = close + 1
        elif token in "$<>":
            if text.startswith(("{", "("), index):
                index = _skip(text, index)
        elif token == "{":
            if len(opened) > _DEEPEST:
                raise _TooManyError
            opened.append(at)
            commas.append([])
        elif token == "," and opened:
            commas[-1].append(at)
        elif token == "}" and opened:
            start, cuts = opened.pop(), commas.pop()
            if cuts and not opened:
                edges = [start, *cuts, at]
                pairs = pairwise(edges)
                return start, at + 1, [text[left + 1 : right] for left, right in pairs]
            if not cuts:
                choices = _range(text[start + 1 : at])
                if choices:
                    return start, at + 1, choices
    return None


def _skip(text: str, index: int) -> int:
    closer = "}" if text[index] == "{" else ")"
    opener, depth = text[index], 0
    for at in range(index, len(text)):
        if text[at] == opener:
            depth += 1
        elif text[at] == closer:
            depth -= 1
            if not depth:
                return at + 1
    return len(text)


def _range(text: str) -> list[str]:
    match = _RANGE.match(text)
    if not match:
        return []
    if match[4]:
        first, last = ord(match[4]), ord(match[5])
        step = 1 if last >= first else -1
        return [chr(code) for code in range(first, last + step, step)]
    if len(text) > 40:
        raise _TooManyError
    first, last, by = int(match[1]), int(match[2]), abs(int(match[3] or 1)) or 1
    step = by if last >= first else -by
    if abs(last - first) // by > _WIDEST:
        raise _TooManyError
    numbers = range(first, last + (1 if step > 0 else -1), step)
    # A long range says nothing more about danger than its ends do.
    if len(numbers) > 24:
        return [str(first), str(last), HOLE]
    return [str(number) for number in numbers]


_WORDS_DEEPEST = 12
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
            match = _PLAIN_RUN.match(raw, index)
            if match:
                self._put(match.group())
                index = match.end()
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
            match = _QUOTED_RUN.match(raw, index)
            if match:
                self._put(match.group())
                index = match.end()
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
        match = _NAME.match(raw, index + 1)
        if not match:
            self._put("$")
            return index + 1
        name = match.group()
        self._insert(name, self.scope.lookup(name), quoted=quoted, every=name in "@*")
        return match.end()

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
        match = _PARAMETER.match(inner)
        if not match:
            self._put(HOLE)
            return
        indirect, length, name, index = match.groups()
        rest = inner[match.end() :]
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
                value = Value([HOLE])
        if rest:
            value = self._operate(value, rest, start + match.end())
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
        return Value([value.text if unset else HOLE])

    def _scan(self, raw: str, start: int) -> None:
        """Judge the commands in a part of `${…}` whose own value is not needed."""
        if "$(" in raw or "`" in raw:
            self.shell.scan(raw, self.origin.at(start, start + len(raw)), self.scope)

    def _tail(self, raw: str, start: int) -> str:
        """The default or alternative inside `${x:-…}`."""
        if self.depth > _WORDS_DEEPEST:
            self.shell.too_large()
            return HOLE
        origin = self.origin.at(start, start + len(raw))
        inner = _Expander(raw, origin, self.scope, self.shell, split=False, depth=self.depth + 1)
        words = inner.words()
        if words and words[0].stream is not None:
            self._current().stream = words[0].stream
        return words[0].text if words else ""
