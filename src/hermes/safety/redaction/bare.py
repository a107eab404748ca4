"""Unquoted values: literals in settings, headers and URLs, expressions in code."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.quotes import LONGEST, line_value, word_value
from hermes.safety.redaction.values import is_code, is_path, is_placeholder, is_prose, looks_random

if TYPE_CHECKING:
    from hermes.safety.redaction.squeeze import Span

# What may stand before a name that begins its line.
_LINE_HEADS = frozenset(
    ("", "-", "export", "set", "setx", "ENV", "ARG", "declare -x", "env", "+", "#", ";", ">", "$")
)
# No line head is longer than this, however deep it stands.
_LONGEST_HEAD = 300

# `[database]` and `name = value`, as settings have them and code has not.
_SECTION = re.compile(r"\[[A-Za-z][\w .:/@\-]*\]")
_ENTRY = re.compile(r"[A-Za-z][\w.\-]* ?[=:] ?[^()\[\]{}]*\Z")


@cache
def _rest_of_passphrase() -> re.Pattern[str]:
    return re.compile(r"(?:[ \t]+[a-z]{2,}){2,}[ \t]*(?=\r?\n|\Z|\\n|\")")


def find_bare(text: str, name_at: int, name: str, kind: str, match: re.Match[str]) -> Span | None:
    """The unquoted secret behind a name; `match` covers the name's end, the sign and blanks."""
    start = match.end()
    if match["close"]:
        return _number(text, start, kind, match["close"])
    own_line = _begins_line(text, name_at)
    found = (line_value() if own_line else word_value()).match(text, start, start + LONGEST)
    value = found.group() if found else ""
    if own_line:
        value = value.rstrip(",;")
    if not value or value[0] in "([{<|>" or is_placeholder(value) or is_path(value):
        return None
    if same_word(value, name) or not (
        any(map(str.isalpha, value)) or re.fullmatch(r"\d{6,}", value)
    ):
        return None
    end = start + len(value)
    literal = own_line and (
        match.group().endswith((": ", "=", ":\t"))
        or (match["sign"] == "=" and _in_section(text, name_at))
    )
    if literal and kind == "password":
        more = _rest_of_passphrase().match(text, end)
        if more and not is_prose(text[start : more.end()]):
            return start, more.end(), kind
    if literal and ("-" in name or (name.isupper() and match["sign"] == "=")):
        # `NAME=value` of the environment and `Name-Of: value` of a header hold no expressions.
        sure = _is_setting(value, kind)
    else:
        sure = _is_literal(text, end, name, kind, value, match, alone=literal)
    return (start, end, label(kind)) if sure else None


def _is_setting(value: str, kind: str) -> bool:
    if kind == "maybe-key":
        return looks_random(value, least=16)
    return kind in ("password", "secret") or len(value) >= 8 or looks_random(value, least=6)


def _is_literal(
    text: str, end: int, name: str, kind: str, value: str, match: re.Match[str], *, alone: bool
) -> bool:
    """Whether a value among code and prose is a literal after all."""
    after = text[end : end + 1]
    if after in ("(", "[", "{"):
        return False
    if kind in ("token", "key", "credential", "maybe-key"):
        if not looks_random(value, least=16 if kind == "maybe-key" else 6):
            return False
    elif (name in ("pass", "Pass") or value[0] == "-") and not looks_random(value, least=8):
        # `pass:` is a word of its own, and `${NAME:-value}` is a default.
        return False
    if not is_code(value, strict=kind != "password"):
        return True
    # `password: swordfish`, a line of its own, is a setting; `password = value` is code.
    plain = value.isalnum() and value.islower()
    ended = after in (";", "&") and match.group().endswith("=")
    alone = alone and after in ("", "\n", "\r", "\\", '"')
    return kind in ("password", "secret") and plain and (alone or ended)


def same_word(value: str, name: str) -> bool:
    """`FORCE_PASSWORD = "FORCE_PASSWORD"`: a constant that names itself."""
    return value.replace("-", "_").lower() in name.replace("-", "_").lower()


def _begins_line(text: str, name_at: int) -> bool:
    first = max(0, name_at - _LONGEST_HEAD)
    escaped = text.rfind("\\n", first, name_at)
    start = max(text.rfind("\n", first, name_at) + 1, escaped + 2 if escaped >= 0 else 0, first)
    head = text[start:name_at]
    return head.strip(" \t\"'") in _LINE_HEADS or _opens_text(head)


def _in_section(text: str, name_at: int) -> bool:
    """Whether a line belongs to a `[section]` of settings, with nothing but settings in between."""
    before = text[max(0, name_at - 2_000) : name_at].replace("\\n", "\n").split("\n")
    for line in reversed(before[:-1]):
        line = line.strip().rpartition('"')[2]
        if line.startswith("[") and line.endswith("]"):
            return _SECTION.fullmatch(line) is not None
        if line and line[0] not in "#;" and not _ENTRY.match(line):
            return False
    return False


def _opens_text(head: str) -> bool:
    """Whether a name follows the opening quote of a text in JSON or code."""
    return head[-1:] in ('"', "'") and head[:-1].rstrip().endswith((":", ",", "[", "(", "="))


def _number(text: str, start: int, kind: str, quote: str) -> Span | None:
    # A JSON number has to become a JSON string, or the document would no longer parse.
    found = re.compile(r"\d{6,40}(?=[\s,}\]\\])").match(text, start)
    if not found or kind not in ("password", "secret"):
        return None
    return start, found.end(), quote + label(kind)


def label(kind: str) -> str:
    """What the mask calls a secret of this kind."""
    return "key" if kind == "maybe-key" else kind
