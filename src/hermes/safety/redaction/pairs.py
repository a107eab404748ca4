"""Secrets that show by the name in front of them: `password: …`, `API_KEY=…`, `"token": "…"`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.names import kind_of
from hermes.safety.redaction.quotes import LONGEST, line_value, quoted_end, word_value
from hermes.safety.redaction.values import (
    is_code,
    is_path,
    is_placeholder,
    is_prose,
    is_secret_text,
    looks_random,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.safety.redaction.squeeze import Span

NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

# What may stand before a name that begins its line.
_LINE_HEADS = frozenset(
    ("", "-", "export", "set", "setx", "ENV", "ARG", "declare -x", "env", "+", "#", ";", ">", "$")
)
_LONGER = re.compile(r"//\Z|[^\s/\"']:(?<!env:)\Z")
_LONG_WORD = re.compile(r"(?<![\w.])[\w\-]{0,12}[A-Za-z0-9]{20,}(?![\w.(])")
_TECHNICAL = re.compile(
    r"(?i:base|sha|md|utf|aes|rs|hs|es|oauth|rot|ipv|http|pbkdf|bcrypt|v|p)-?\d+"
)
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


@cache
def _rest_of_passphrase() -> re.Pattern[str]:
    return re.compile(r"(?:[ \t]+[a-z]{2,}){2,}[ \t]*(?=\r?\n|\Z|\\n|\")")


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
    return _bare(text, name_at, name, kind, match)


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
        or value[0] in ")],;:+ \t"
        or ("f" in (match["prefix"] or "").lower() and "{" in value)
        or ("r" in (match["prefix"] or "").lower() and any(map(value.count, "[*+")))
    ):
        return None
    doubtful = match["sign"] in _COMPARISONS or match["sign"] == "," or name in ("pass", "Pass")
    if doubtful and not looks_random(value, least=6):
        return None
    if not is_secret_text(value, kind) or _same_word(value, name):
        return None
    return start, end, label(kind)


def _same_word(value: str, name: str) -> bool:
    """`FORCE_PASSWORD = "FORCE_PASSWORD"`: a constant that names itself."""
    return value.replace("-", "_").lower() in name.replace("-", "_").lower()


def _element(text: str, start: int, kind: str) -> Span | None:
    end = text.find("<", start, start + 400)
    value = text[start:end].strip() if end > start else ""
    if not value or not text.startswith(("</", "<\\/"), end) or not is_secret_text(value, kind):
        return None
    return start, end, label(kind)


def _bare(text: str, name_at: int, name: str, kind: str, match: re.Match[str]) -> Span | None:
    """An unquoted value: a literal in a settings file or a URL, an expression in code."""
    start = match.end()
    if match["close"]:
        return _number(text, start, kind, match["close"])
    own_line = _begins_line(text, name_at)
    found = (line_value() if own_line else word_value()).match(text, start, start + LONGEST)
    if not found:
        return None
    value = found.group().rstrip(",;") if own_line else found.group()
    end = start + len(value)
    if (
        not value
        or value[0] in "([{<|>"
        or is_placeholder(value)
        or is_path(value)
        or _same_word(value, name)
    ):
        return None
    if text[end : end + 1] in ("(", "[", "{"):
        return None
    if kind == "maybe-key" and not looks_random(value, least=16):
        return None
    # A word of this length, in a setting written as environment variables are, is no word.
    loud = name.isupper() and _LONG_WORD.search(value) is not None
    if kind in ("token", "key", "credential") and not (loud or looks_random(value, least=6)):
        return None
    if not any(map(str.isalpha, value)) and not (value.isdigit() and len(value) > 5):
        return None
    # `${NAME:-value}`, `pass:` and a minus sign need more than a word behind them.
    if (name in ("pass", "Pass") or value[0] == "-") and not looks_random(value, least=8):
        return None
    more = _rest_of_passphrase().match(text, end) if kind == "password" and own_line else None
    if more and match.group().endswith((": ", "=")) and not is_prose(text[start : more.end()]):
        return start, more.end(), kind
    if not loud and is_code(value, strict=kind != "password"):
        # `password: swordfish`, a line of its own, is a setting; `password = value` is code.
        alone = own_line and text[end : end + 1] in ("", "\n", "\r", "\\", '"')
        literal = match.group().endswith((": ", "=", ":\t"))
        plain = value.isalnum() and (value.islower() or name.isupper())
        ended = text[end : end + 1] in (";", "&") and match["sign"] == "="
        if kind not in ("password", "secret") or not plain or not ((alone and literal) or ended):
            return None
        if match["sign"] == ":" and value.isalpha() and not value.islower():
            return None
    return start, end, label(kind)


def _begins_line(text: str, name_at: int) -> bool:
    start = max(text.rfind("\n", 0, name_at), text.rfind("\\n", 0, name_at) + 1) + 1
    head = text[start:name_at]
    return head.strip(" \t\"'") in _LINE_HEADS or _opens_text(head)


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
