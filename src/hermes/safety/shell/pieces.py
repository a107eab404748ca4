"""Cutting a long text into pieces that are parsed one by one.

The parser recovers from errors in time that grows with the square of the text, so no text is
given to it that is both long and full of syntax. Pieces end where a shell would start afresh:
after `;`, a newline, `&`, `&&` or `||` that stand in no bracket and no compound statement.
"""

from __future__ import annotations

import re

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
