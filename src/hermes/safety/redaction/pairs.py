"""Secrets that show by the name in front of them: `password: …`, `API_KEY=…`, `"token": "…"`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.bare import find_bare, label, same_word
from hermes.safety.redaction.names import NAME_CHARS, kind_of
from hermes.safety.redaction.quotes import quoted_end
from hermes.safety.redaction.values import is_placeholder, is_secret_text, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.safety.redaction.squeeze import Span

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
