"""Secrets in HTTP headers: Authorization, Cookie and their kin, also inside commands and code."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.quotes import LONGEST, quoted_end
from hermes.safety.redaction.values import is_placeholder, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.squeeze import Span


_ATTRIBUTES = frozenset(("path", "domain", "expires", "max-age", "samesite", "version"))
_ESCAPES = ("\\n", "\\r", "\\t")


@cache
def _authorization() -> re.Pattern[str]:
    return re.compile(
        r"(?i:orization)(?:\\{0,7}[\"'])?\]?[ \t]*(?:=>|[:=,])[ \t]*(?P<open>\\{0,7}[\"'])?"
        r"(?P<scheme>[A-Za-z][A-Za-z0-9\-]{1,20}[ \t]+(?=\S))?"
    )


@cache
def _word() -> re.Pattern[str]:
    return re.compile(r"(?:[^\s\"'`\\,;<>]|\\(?![nrtu\"'`]))+")


@cache
def _rest() -> re.Pattern[str]:
    return re.compile(
        r"(?:[^\n\r\\\"'`]|\\(?![nr\"'])|\\{1,7}\"[^\"\\]{0,300}\\{1,7}\""
        r"|\"[^\"\n]{0,300}\"(?=[ ,]|$))*"
    )


@cache
def _cookie() -> re.Pattern[str]:
    return re.compile(
        r"(?i:cookie)(?:\\{0,7}[\"'])?[ \t]*:[ \t]*(?P<open>\\{0,7}[\"'])?"
        r"(?=[\w!#$%&*+.^|~\-]{1,100}=[^\s=>])"
    )


@cache
def _bearer() -> re.Pattern[str]:
    return re.compile(r"(?i:earer)[ \t]+(?P<value>[A-Za-z0-9._~+/\-]{8,}=*)")


@cache
def _login() -> re.Pattern[str]:
    return re.compile(
        r"(?i:auth)[ \t]*(?:=[ \t]*)?\([ \t]*(?P<first>\\{0,7}[\"'])[^\"'\\\n]{0,100}(?P=first)"
        r",[ \t]*"
        r"(?P<open>\\{0,7}[\"'])(?P<value>[^\"'\\\n]{3,100})(?P=open)"
    )


def find_headers(text: str, low: str) -> Iterator[Span]:
    """Each secret in a header; `low` is `text` in lower case."""
    at = low.find("orization")
    while at >= 0:
        # The header itself, not a longer name that ends in the same word.
        before = low[max(0, at - 9) : max(0, at - 4)]
        whole = not before[-1:].isalnum() or before == "proxy" or before[-2:] in _ESCAPES
        match = _authorization().match(text, at) if whole else None
        span = _credentials(text, match) if match else None
        if span:
            yield span
        at = low.find("orization", at + 9)
    at = low.find("auth")
    while at >= 0:
        match = _login().match(text, at)
        if match and not is_placeholder(match["value"]):
            yield match.start("value"), match.end("value"), "password"
        at = low.find("auth", at + 4)
    at = low.find("cookie")
    while at >= 0:
        match = _cookie().match(text, at)
        if match:
            start = match.end()
            end = _line_end(text, start, match["open"])
            if _has_cookie(text[start:end]):
                yield start, end, "cookie"
                at = max(at, end - 6)
        at = low.find("cookie", at + 6)
    at = low.find("earer")
    while at >= 0:
        match = _bearer().match(text, at)
        if match and not is_placeholder(match["value"]) and looks_random(match["value"], least=8):
            yield match.start("value"), match.end("value"), "token"
        at = low.find("earer", at + 5)


def _has_cookie(value: str) -> bool:
    """Whether one of the cookies has a value; what only describes a cookie doesn't count."""
    pairs = [pair.strip().partition("=") for pair in value.split(";")]
    return any(
        not is_placeholder(held) for name, _, held in pairs if name.lower() not in _ATTRIBUTES
    )


def _credentials(text: str, match: re.Match[str]) -> Span | None:
    start = match.end()
    scheme = (match["scheme"] or "").strip().lower()
    if scheme in ("digest", "aws4-hmac-sha256", "oauth", "signature", "negotiate", "ntlm", "hawk"):
        end = _line_end(text, start, match["open"])
        return (start, end, "credential") if end > start else None
    word = _word().match(text, start)
    if not word:
        return None
    value = word.group()
    if (
        is_placeholder(value)
        or value.startswith(("{", "$", "<", "%"))
        or (value.isupper() and value.isalpha())
    ):
        return None
    known = scheme in (
        "bearer",
        "basic",
        "token",
        "apikey",
        "api-key",
        "key",
        "bot",
        "jwt",
        "sso-key",
    )
    if not known and not looks_random(value, least=8):
        return None
    if "(" in value or (value.islower() and re.fullmatch(r"[a-z_]+(?:\.[a-z_]+)+", value)):
        return None
    return start, word.end(), "token" if scheme != "basic" else "credential"


def _line_end(text: str, start: int, quote: str | None) -> int:
    if quote:
        return quoted_end(text, start, quote)
    match = _rest().match(text, start, start + LONGEST)
    return match.end() if match else start
