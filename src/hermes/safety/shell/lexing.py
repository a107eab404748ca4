"""Scanners over shell text: brackets, heredocs, and rewrites of text that the grammar misreads."""

from __future__ import annotations

import re
from itertools import pairwise

# `for x do`, and `in` on a line of its own.
_FOR_DO = re.compile(r"(\bfor[ \t]+\w+[ \t]*)[ \t](?=do\b)")
_IN_BELOW = re.compile(r"\b(?:for|select|case)[ \t]+\S+[ \t]*\n\s*(?=in\b)")
# Negation, which takes no assignment and no `case` in the grammar.
_NOT = re.compile(
    r"((?:^|[;&|({\n]|\b(?:if|while|until|elif|then|else|do)(?=[ \t]))[ \t]*)!(?=[ \t])"
)
# An operator at the end of a line goes on below, whatever blank lines are in between.
_GOES_ON = re.compile(r"(?:\|\||&&|\|&?)[ \t]*\n\s*")
_FUNCTION = re.compile(r"\([ \t]*\)[ \t]*\n\s*(?=[{(])")
# A line that goes on where no word does.
_CONTINUED = re.compile(r"(?<=\s)\\\n|\A\\\n|\\\n(?=\s|\Z)")
# Assignments that fill a line: the grammar takes the next line for the command that they precede.
_VALUE = r"\w+\+?=[^\s;&|<>()]*"
_SILENCED = r"(?:[12&]?>[ \t]*/dev/null[ \t]*|2>&1[ \t]*)"
_ASSIGNING = re.compile(
    rf"^([ \t]*{_VALUE}(?:[ \t]+{_VALUE})*)([ \t]*{_SILENCED}*)\n(?!\s*;)", re.M
)
_MERGED = re.compile(
    r"^[ \t]*\w+\+?=\S*(?:[ \t]+(?:\w+\+?=\S*|[12&]?>[ \t]*\S+))+[ \t]*\n\s*\S", re.M
)
_ODD_START = re.compile(r"\n[ \t]*[\\`]")
# Where a line with a pipeline does not end yet.
_OPEN_END = re.compile(r"[;&|({\\]\Z|(?:\A|[\s;&|])(?:then|do|else|in|if|while|until|elif)\Z")
_SINGLE_TEST = re.compile(r"(?<![^\s;&|({)])\[(?=\s)|(?<=\s)(?:[=!]=|=~?|!|\])(?=[\s;&|)]|\Z)")
_DOUBLE_TEST = re.compile(r"(?<![^\s;&|({)])\[\[(?=\s)")
_DOUBLE_END = re.compile(r"(?<=\s)\]\](?=[\s;&|)]|\Z)")
# Where `[[` can be nothing but the keyword, and where it may be a word like any other.
_SURE = re.compile(
    r"(?:\A|;|(?<!\\)\n|&&|\|\||(?<![=\w$])\()[ \t]*"
    r"(?:(?:if|while|until|elif|then|else|do|time|[{!])[ \t]+)*\Z"
)
_PERHAPS = re.compile(r"[&|)][ \t]*\Z")
_GROUP = re.compile(r"\([^()]*\)")
_BEFORE = 120


def is_merged(text: str) -> bool:
    """Whether the grammar would take a line and the one before it for one command.

    It does with a line of assignments, with one that begins with an escape or a backtick, and
    with the line after a pipeline of three.
    """
    return (
        _MERGED.search(text) is not None
        or _ODD_START.search(text) is not None
        or text.count("|") > 1
    )


def smooth(text: str) -> str:
    """A text of the same length and meaning that the grammar reads without errors, if it can."""
    if "\\\n" in text:
        text = _CONTINUED.sub("  ", text)
    text = _IN_BELOW.sub(_on_one_line, text)
    text = _FOR_DO.sub(r"\1;", text)
    text = _GOES_ON.sub(_on_one_line, text)
    text = _FUNCTION.sub(_on_one_line, text)
    if "|" in text and "\n" in text:
        text = _with_ends(text)
    if "=" in text:
        text = _ASSIGNING.sub(_as_statement, text)
    if "!" in text:
        text = _NOT.sub(r"\1 ", text)
    if "[[" in text:
        text = _without_double_tests(text)
    if "[" in text:
        text = "\n".join(map(_without_single_tests, text.split("\n")))
    return text


def _on_one_line(match: re.Match[str]) -> str:
    return match.group().replace("\n", " ").replace("\\", " ")


def _with_ends(text: str) -> str:
    """The lines with pipelines, each with a sign that ends it in the place of the line's end."""
    pieces = text.split("\n")
    out = [pieces[0]]
    for before, after in pairwise(pieces):
        line = before.rstrip()
        ends = (
            line.count("|") > 1
            and not _OPEN_END.search(line)
            and not (line[-1:] == ")" and line.count("(") < line.count(")"))
            and not after.lstrip().startswith(";")
        )
        out += [";" if ends else "\n", after]
    return "".join(out)


def _as_statement(match: re.Match[str]) -> str:
    line, rest = match.groups()
    if not rest.strip() and len(line.split()) < 2:
        return match.group()
    return f"{line}{' ' * len(rest)};"


def _without_single_tests(line: str) -> str:
    # In arithmetic the same signs mean something to the grammar.
    if "[" not in line or "((" in line:
        return line
    return _SINGLE_TEST.sub(lambda sign: "z" * len(sign.group()), line)


def _without_double_tests(text: str) -> str:
    """Each `[[ … ]]` as one long word."""
    pieces = []
    done = end = 0
    for opening in _DOUBLE_TEST.finditer(text):
        start = opening.start()
        if start < done:
            continue
        if end <= start:
            closing = _DOUBLE_END.search(text, start)
            if closing is None:
                break
            end = closing.end()
        if _is_test(text, start, end):
            pieces += [text[done:start], "z" * (end - start)]
            done = end
    return "".join([*pieces, text[done:]])


def _is_test(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _BEFORE) : start]
    if _SURE.search(before):
        return True
    if not _PERHAPS.search(before):
        return False
    # Were it a word after all, what follows a separator would be a command of its own.
    plain = _GROUP.sub("", text[start:end]).replace("&&", "").replace("||", "")
    return not any(char in plain for char in ";&|\n`")


_TOKEN = re.compile(r"&>>?|[<>]&|&&|\|\||;;|[;&|\n(){}]|[^\s;&|(){}<>]+|[<>]+")
_SYNTAX = re.compile(r"[^\w\s/.:=,-]|\b(?:if|for|while|until|case|select|do|then|function)\b")
_CLOSED_BY = {
    "(": ")",
    "{": "}",
    "if": "fi",
    "for": "done",
    "while": "done",
    "until": "done",
    "select": "done",
    "case": "esac",
}
_EXPECTS_COMMAND = frozenset(
    ("then", "do", "else", "elif", "if", "while", "until", "!", "{", "time")
)
_STATEMENT = re.compile(r"\S[ \t]*[\n;&|]")
_CHUNK = 1000
_MOST_STATEMENTS = 2500
_MORE_IN_SCRIPTS = 5
_MOST_SYNTAX = 1500


def split_pieces(text: str) -> list[tuple[int, int]]:
    """Where the pieces of a prepared text start and end; several statements share a short piece."""
    pieces: list[tuple[int, int]] = []
    start = 0
    # What is open, by what closes it; a `)` after a pattern of `case` closes nothing.
    stack: list[str] = []
    at_command = True
    before = token = ""
    for match in _TOKEN.finditer(text):
        before, token = token, match.group()
        if token == "(" or (token == "{" and at_command):
            stack.append(_CLOSED_BY[token])
            at_command = True
        elif token == ")" or (token == "}" and at_command):
            if stack and stack[-1] == token:
                stack.pop()
            at_command = token == ")"
        elif token in (";", "\n", "&", "&&", "||", ";;", "|"):
            at_command = True
            ended = token not in ("|", ";;") and not _goes_on(before, token)
            if ended and not stack and match.end() - start >= _CHUNK:
                pieces.append((start, match.start() if token in ("&&", "||") else match.end()))
                start = match.end()
        elif at_command and token in _CLOSED_BY:
            stack.append(_CLOSED_BY[token])
            at_command = token in _EXPECTS_COMMAND
        elif at_command and stack and token == stack[-1]:
            stack.pop()
            at_command = False
        else:
            at_command = token in _EXPECTS_COMMAND
    if start < len(text):
        pieces.append((start, len(text)))
    return pieces


def _goes_on(before: str, token: str) -> bool:
    """Whether a line is continued on the next one, or a function's body is still to come."""
    if token != "\n":
        return False
    return before in (")", "|", "&&", "||") or before.endswith("\\")


def is_crowded(text: str, *, script: bool) -> bool:
    """Whether a prepared text has more commands or words than anyone would read."""
    most = _MOST_STATEMENTS * (_MORE_IN_SCRIPTS if script else 1)
    if len(text) < 2 * most:
        return False
    return len(_STATEMENT.findall(text)) > most or len(text.split()) > 4 * most


def is_dense(text: str) -> bool:
    """Whether a piece has more syntax in it than can be parsed in good time."""
    return len(text) > _MOST_SYNTAX and len(_SYNTAX.findall(text)) > _MOST_SYNTAX


_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_SPECIAL = re.compile(r"['\"\\`#<>;()\n@!+?*]|\$[('{]")
_DELIMITER_END = frozenset(" \t\n;&|<>()")
_BRACKETS = re.compile(r"[(){}]")
_DEEPEST = 60
_CLOSERS = re.compile(r"['\"\\`()]|\$\(|#")


class Here:
    """A heredoc or here-string: the `body`, whether it is literal, and where it starts."""

    __slots__ = ("body", "document", "literal", "start")

    def __init__(self, body: str, start: int, *, literal: bool, document: bool) -> None:
        self.body = body
        self.start = start
        self.literal = literal
        self.document = document


def is_tangled(text: str) -> bool:
    """Whether a text nests brackets deeper than anyone writes."""
    if text.count("(") + text.count("{") <= _DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(text):
        if bracket in "({":
            depth += 1
            if depth > _DEEPEST:
                return True
        elif depth:
            depth -= 1
    return False


def needs_preparing(text: str) -> bool:
    """Whether a text has something that `prepare` must take out before parsing."""
    return "<<" in text or "<>" in text or ";&" in text or ";;&" in text


def prepare(text: str, *, simplify: bool = False) -> tuple[str, dict[int, Here], bool]:
    """A same-length copy to parse, what was found at each rewritten `<`, and whether it is whole.

    A text is not whole when a string or substitution in it never ends.
    """
    scanner = _Preparer(text, simplify)
    scanner.run()
    shown = _ascii("".join(scanner.out))
    if simplify:
        # A body at the end is blank by now, and often all there is.
        size = len(shown.rstrip()) + 1
        shown = smooth(shown[:size]) + shown[size:]
    return shown, scanner.heres, scanner.whole


def is_torn(word: str) -> bool:
    """Whether a line ends inside of a word, outside of any quotes and brackets in it."""
    return "\n" in prepare(word, simplify=True)[0].replace("\\\n", "")


def _ascii(text: str) -> str:
    return text if text.isascii() else _NON_ASCII.sub("z", text)


as_ascii = _ascii


class _Preparer:
    def __init__(self, text: str, simplify: bool) -> None:
        self.text = text
        self.out = list(text)
        self.simplify = simplify
        self.heres: dict[int, Here] = {}
        self.pending: list[tuple[int, str, bool, bool]] = []
        # What is open, and where it began: a string, a substitution, a subshell.
        self.stack: list[tuple[str, int]] = []
        self.inside = 0
        self.ticks = False
        self.whole = True

    def run(self) -> None:
        text, index, size = self.text, 0, len(self.text)
        while index < size:
            match = _SPECIAL.search(text, index)
            if not match:
                break
            index = self._step(match.start(), match.group())
        self.whole = self.whole and not self.inside

    def _open(self, kind: str, at: int, width: int) -> int:
        self.stack.append((kind, at))
        self.inside += kind != "("
        return at + width

    def _close(self, end: int) -> int:
        kind, start = self.stack.pop()
        self.inside -= kind != "("
        if self.simplify and kind != "(" and not self.inside:
            # To a shell this is one word; what is inside is read again from the original.
            self.out[start:end] = "z" * (end - start)
        return end

    def _step(self, at: int, token: str) -> int:
        text = self.text
        top = self.stack[-1][0] if self.stack else ""
        if token == "\\":
            if self.simplify and text[at + 1 : at + 2] not in ("", "\n"):
                self.out[at] = self.out[at + 1] = "z"
            return at + 2
        if token == '"':
            return self._close(at + 1) if top == '"' else self._open('"', at, 1)
        if token == "`":
            return self._backtick(at)
        if token == "$(":
            return self._open("$(", at, 2)
        if token == "${":
            end = matching_brace(text, at + 2)
            return self._flatten(at, end + 1) if end > 0 else at + 2
        if top == '"':
            return at + 1
        if token == "'" or (token == "$'"):
            return self._single(at, token)
        if token == "#":
            if at == 0 or text[at - 1] in " \t\n;&|(":
                end = text.find("\n", at)
                end = end if end > 0 else len(text)
                if self.simplify:
                    self.out[at:end] = " " * (end - at)
                return end
            return self._flatten(at, at + 1)
        if token == "(":
            return self._parenthesis(at)
        if token == ")":
            if top in ("(", "$(", "<("):
                return self._close(at + 1)
            return at + 1
        if token == "<":
            return self._less(at)
        if token == ">":
            return self._open("<(", at, 2) if text.startswith(">(", at) else at + 1
        if token == "\n":
            return self._bodies(at + 1) if self.pending else at + 1
        if token == ";":
            return self._semicolon(at)
        if self.simplify and token in "@!+?*" and text.startswith("(", at + 1):
            end = matching_paren(text, at + 2)
            if end > 0 and "\n" not in text[at:end] and (at == 0 or text[at - 1] != "$"):
                return self._flatten(at, end + 1)
        return at + 1

    def _flatten(self, start: int, end: int) -> int:
        if self.simplify and not self.inside:
            self.out[start:end] = "z" * (end - start)
        return end

    def _backtick(self, at: int) -> int:
        if not self.ticks:
            self.ticks = True
            return self._open("`", at, 1)
        self.ticks = False
        while self.stack[-1][0] != "`":
            self.inside -= self.stack.pop()[0] != "("
        return self._close(at + 1)

    def _parenthesis(self, at: int) -> int:
        text = self.text
        if text.startswith("((", at) and (at == 0 or text[at - 1] in " \t\n;&|"):
            end = text.find("))", at)
            if end > 0 and "\n" not in text[at:end]:
                return end + 2
        return self._open("(", at, 1)

    def _semicolon(self, at: int) -> int:
        if self.text.startswith(";;&", at):
            self.out[at + 2] = " "
            return at + 3
        if self.text.startswith(";&", at):
            self.out[at + 1] = ";"
            return at + 2
        return at + 1

    def _single(self, at: int, token: str) -> int:
        text, start = self.text, at + len(token)
        end = text.find("'", start)
        while token == "$'" and end > 0 and _escaped(text, end, start):
            end = text.find("'", end + 1)
        if end < 0:
            self.whole = False
            return len(text)
        return self._flatten(at, end + 1)

    def _less(self, at: int) -> int:
        text = self.text
        if text.startswith("<(", at):
            return self._open("<(", at, 2)
        if text.startswith("<<<", at):
            self.out[at + 1] = self.out[at + 2] = " "
            self.heres[at] = Here("", at + 3, literal=False, document=False)
            return at + 3
        if text.startswith("<<", at):
            index = at + 2
            stripped = text.startswith("-", index)
            index += stripped
            while index < len(text) and text[index] in " \t":
                index += 1
            delimiter, literal, end = _delimiter(text, index)
            if delimiter:
                self.out[at + 1 : index] = " " * (index - at - 1)
                self.pending.append((at, delimiter, literal, stripped))
                return end
            # Never left for the parser, which keeps open heredocs in a buffer of fixed size.
            self.out[at] = self.out[at + 1] = "|"
            self.whole = False
            return at + 2
        if text.startswith("<>", at):
            self.out[at + 1] = " "
            return at + 2
        return at + 1

    def _bodies(self, index: int) -> int:
        text = self.text
        for at, delimiter, literal, stripped in self.pending:
            start, end, after = index, len(text), len(text)
            while index < len(text):
                stop = text.find("\n", index)
                stop = len(text) if stop < 0 else stop
                line = text[index:stop]
                if (line.lstrip("\t") if stripped else line) == delimiter:
                    end, after = index, stop
                    break
                index = min(stop + 1, len(text))
            self.out[start:after] = _blanked(text[start:after])
            self.heres[at] = Here(text[start:end], start, literal=literal, document=True)
            index = after
        self.pending.clear()
        return index


def _blanked(text: str) -> str:
    """As many blanks, on as many lines."""
    return "\n".join([" " * len(line) for line in text.split("\n")])


def _delimiter(text: str, index: int) -> tuple[str, bool, int]:
    out: list[str] = []
    literal = False
    while index < len(text) and text[index] not in _DELIMITER_END:
        char = text[index]
        if char in "'\"":
            close = text.find(char, index + 1)
            if close < 0:
                return "", False, index
            out.append(text[index + 1 : close])
            literal, index = True, close + 1
        elif char == "\\":
            out.append(text[index + 1 : index + 2])
            literal, index = True, index + 2
        else:
            out.append(char)
            index += 1
    return "".join(out), literal, index


def _escaped(text: str, at: int, start: int) -> bool:
    count = 0
    while at - 1 - count >= start and text[at - 1 - count] == "\\":
        count += 1
    return count % 2 == 1


def matching_paren(text: str, start: int) -> int:
    """Index of the `)` that closes a parenthesis opened just before `start`; -1 without one."""
    stack = [")"]
    index = start
    while True:
        match = _CLOSERS.search(text, index)
        if not match:
            return -1
        token, at = match.group(), match.start()
        index = match.end()
        top = stack[-1]
        if token == "\\":
            index = at + 2
        elif token == '"':
            if top == '"':
                stack.pop()
            else:
                stack.append('"')
        elif token == "$(":
            stack.append(")")
        elif top == '"':
            continue
        elif token == "'":
            close = text.find("'", at + 1)
            if text[at - 1 : at] == "$":
                while close > 0 and _escaped(text, close, at + 1):
                    close = text.find("'", close + 1)
            if close < 0:
                return -1
            index = close + 1
        elif token == "`":
            close = closing_backtick(text, at + 1)
            if close < 0:
                return -1
            index = close + 1
        elif token == "(":
            stack.append(")")
        elif token == ")":
            stack.pop()
            if not stack:
                return at
        elif token == "#" and (at == 0 or text[at - 1] in " \t\n;(|&"):
            newline = text.find("\n", at)
            index = newline if newline > 0 else len(text)


def closing_backtick(text: str, start: int) -> int:
    """Index of the backtick that ends a substitution begun just before `start`; -1 without one."""
    at = text.find("`", start)
    while at > 0 and _escaped(text, at, start):
        at = text.find("`", at + 1)
    return at


def matching_brace(text: str, start: int) -> int:
    """Index of the `}` that closes a `${` opened just before `start`; -1 without one."""
    depth, index, size = 1, start, len(text)
    in_string = False
    while index < size:
        char = text[index]
        if char == "\\":
            index += 2
            continue
        if char == '"':
            in_string = not in_string
        elif char == "'" and not in_string:
            close = text.find("'", index + 1)
            if close < 0:
                return -1
            index = close
        elif char == "$" and text.startswith("$(", index):
            close = matching_paren(text, index + 2)
            if close < 0:
                return -1
            index = close
        elif char == "{" and text[index - 1] == "$":
            depth += 1
        elif char == "}":
            depth -= 1
            if not depth:
                return index
        index += 1
    return -1
