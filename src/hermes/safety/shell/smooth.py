"""Grammar workarounds: shell that tree-sitter misreads, rewritten in place to equal length; long
texts cut into pieces.
"""

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


def _on_one_line(found: re.Match[str]) -> str:
    return found.group().replace("\n", " ").replace("\\", " ")


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


def _as_statement(found: re.Match[str]) -> str:
    line, rest = found.groups()
    if not rest.strip() and len(line.split()) < 2:
        return found.group()
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
    for found in _TOKEN.finditer(text):
        before, token = token, found.group()
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
            if ended and not stack and found.end() - start >= _CHUNK:
                pieces.append((start, found.start() if token in ("&&", "||") else found.end()))
                start = found.end()
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
