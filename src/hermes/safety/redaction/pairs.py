"""Name and value pairs: `password: …`, `API_KEY=…`, `"token": "…"`, quoted or not."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.secret_names import NAME_CHARS, kind_of
from hermes.safety.redaction.values import (
    LONGEST,
    is_code,
    is_path,
    is_placeholder,
    is_prose,
    is_secret_text,
    line_value,
    looks_random,
    quoted_end,
    word_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.safety.redaction.prefilter import Span


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
    """The kind in the mask of such a secret."""
    return "key" if kind == "maybe-key" else kind


_LONGER = re.compile(r"//\Z|[^\s/\"']:(?<!env:)\Z")
_TECHNICAL = re.compile(
    r"(?i:base|sha|md|utf|aes|rs|hs|es|oauth|rot|ipv|http|pbkdf|bcrypt|v|p)-?\d+"
)
# The quote closed a text, as in `input("Token: ")`, and this is what follows it.
_CODE_AFTER_QUOTE = re.compile(r"\s|[)\],;:+.][\s)\],;:+(]|[)\],;:+]+\Z")
# A placeholder that stands for a masked value.
_STANDS_FOR = re.compile(r"\[secret:[a-z][a-z0-9\-]{0,30}:[a-z2-9]{10}\]")
_COMPARISONS = frozenset(("==", "===", "!=", "!==", "->", "+="))


@cache
def _rest_of_pair() -> re.Pattern[str]:
    """After a keyword: the rest of the name, its closing quote, the sign, an opening quote."""
    return re.compile(
        r"(?P<tail>[A-Za-z0-9_.\-]{0,40})"
        r"(?P<close>\\{0,7}[\"'`])?\]?[ \t]{0,20}"
        r"(?P<sign>=>|:=|===?|!==?|\?=|\+=|->|=|:(?!:)|>|,(?=[ \t]*\\{0,7}[\"'])"
        r"|(?<=[ \t])(?:is|was)(?: ?:)?(?= ))"
        r"[ \t]{0,20}(?:(?<=[:=])(?:\r?\n|\\n)[ \t]{0,40}(?=[\"'\\]))?"
        r"(?P<prefix>[bBrRfFuU@$]{0,2}(?=[\"']))?(?P<open>\\{0,7}(?:\"\"\"|'''|[\"'`]))?"
    )


def find_pairs(text: str, low: str, keywords: Sequence[str]) -> Iterator[Span]:
    """Each secret with a telling name in front.

    `low` is `text` in lower case, place by place; `keywords` are those that occur in it.
    """
    match_rest = _rest_of_pair().match
    for keyword in keywords:
        length = len(keyword)
        at = low.find(keyword)
        while at >= 0:
            match = match_rest(text, at + length)
            if match:
                span = _judge(text, at, match)
                if span:
                    yield span
                    at = max(at, span[1] - length)
            at = low.find(keyword, at + length)


def name_before(text: str, at: int) -> str:
    """The beginning of the name that goes on at `at`."""
    before = text[max(0, at - 40) : at]
    left = before[len(before.rstrip(NAME_CHARS)) :]
    # The letter of an escaped line end is not part of the name.
    return left[1:] if before.endswith("\\" + left) and left[:1] in ("n", "r", "t") else left


def _judge(text: str, at: int, match: re.Match[str]) -> Span | None:
    left = name_before(text, at)
    name = left + text[at : match.start("tail")] + match["tail"]
    kind = kind_of(name.strip("-."))
    name_at = at - len(left)
    # `scheme://token:…` is a login, `arn:…:secret:…` and `A::Key` are longer names.
    if kind is None or _LONGER.search(text[max(0, name_at - 5) : name_at]):
        return None
    if name == "secret" and _STANDS_FOR.match(text, max(0, name_at - 1)):
        return None
    sign = match["sign"]
    if sign[:2] in ("is", "wa"):
        return _told(text, kind, match)
    if match["open"]:
        if sign == "," and not _is_call(text, name_at, match):
            return None
        return _quoted(text, name, kind, match)
    if sign == ">":
        return _element(text, match.end(), kind)
    if sign == "," or sign in _COMPARISONS:
        return None
    return find_bare(text, name_at, name, kind, match)


def _told(text: str, kind: str, match: re.Match[str]) -> Span | None:
    """`the password is hunter2`: a word that no sentence has."""
    found = re.compile(r"[^\s\"'`,;<>()\\]{5,80}").match(text, match.end())
    value = found.group().rstrip(".!?") if found else ""
    if kind != "password" or not looks_random(value, least=5) or _TECHNICAL.fullmatch(value):
        return None
    if not any(map(str.isalpha, value)) or is_placeholder(value):
        return None
    return match.end(), match.end() + len(found.group() if found else ""), kind


def _is_call(text: str, name_at: int, match: re.Match[str]) -> bool:
    """Whether the pair stands alone in brackets: `("password", "hunter2")`."""
    end = quoted_end(text, match.end(), match["open"])
    close = text[end + len(match["open"]) :][:1]
    return (
        bool(match["close"])
        and text[: name_at - len(match["close"])][-1:] in ("(", "[")
        and close in (")", "]")
    )


def _quoted(text: str, name: str, kind: str, match: re.Match[str]) -> Span | None:
    start = match.end()
    end = quoted_end(text, start, match["open"])
    value = text[start:end]
    if (
        not value
        or _CODE_AFTER_QUOTE.match(value)
        or ("f" in (match["prefix"] or "").lower() and "{" in value)
        or ("r" in (match["prefix"] or "").lower() and any(map(value.count, "[*+")))
    ):
        return None
    doubtful = match["sign"] in _COMPARISONS or match["sign"] == "," or name in ("pass", "Pass")
    if doubtful and not looks_random(value, least=6):
        return None
    if not is_secret_text(value, kind) or same_word(value, name):
        return None
    return start, end, label(kind)


def _element(text: str, start: int, kind: str) -> Span | None:
    end = text.find("<", start, start + 400)
    value = text[start:end].strip() if end > start else ""
    if not value or not text.startswith(("</", "<\\/"), end) or not is_secret_text(value, kind):
        return None
    return start, end, label(kind)
