"""HTTP secrets: Authorization and Cookie headers, passwords and tokens in URLs."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.values import LONGEST, is_placeholder, looks_random, quoted_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.prefilter import Span


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
    """Whether one of the cookies has a value, apart from attributes."""
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


@cache
def _userinfo() -> re.Pattern[str]:
    # The last `@` before the path ends it: a password may hold one itself.
    return re.compile(
        r"://(?P<user>[^\s/?#\"'`<>@:\\]{0,300})(?::(?P<password>[^\s/?#\"'`<>\\]{0,600}))?@(?=[\w\[{$<%*.\-])"
    )


@cache
def _odd_userinfo() -> re.Pattern[str]:
    # A database URL written by hand: the password may hold `/`, `?` and `#` as they are.
    return re.compile(
        r"://(?P<user>[^\s/?#\"'`<>@:\\]{0,300}):(?P<password>(?!\d{1,5}/)[^\s\"'`\\]{0,600})"
        r"@(?=[\w\[.\-]+(?:[:/,?]|\Z|[\s\"'\\]))"
    )


@cache
def _hook() -> re.Pattern[str]:
    return re.compile(
        r"://(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
        r"|(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/"
        r"|[\w.\-]{0,100}webhook\.office\.com/webhookb?\d?/|outlook\.office(?:365)?\.com/webhook/"
        r"|hooks\.zapier\.com/hooks/catch/|maker\.ifttt\.com/trigger/[^/\s]+/with/key/"
        r"|hook\.[\w.]*(?:make|integromat)\.com/|open\.(?:feishu|larksuite)\.\w+/open-apis/bot/v2/hook/"
        r"|[\w.\-]{1,200}/(?:api/)?(?:web)?hooks?/(?=[^\s\"'<>]{0,80}\d)(?=[A-Za-z0-9/_\-]{24}))"
        r"(?P<secret>[A-Za-z0-9_\-/@.+%]{6,})"
    )


@cache
def _query() -> re.Pattern[str]:
    return re.compile(
        r"[?&;#](?:amp;)?(?P<name>(?i:[\w.\-]*(?:token|secret|passw(?:or)?d|pwd|api_?key|signature|sig|credential"
        r"|access_?key)|key|auth|code|sid|x-amz-[\w\-]+))=(?P<value>[^\s&#\"'`<>\\;]{6,})"
    )


_KEEP = frozenset(
    (
        "x-amz-algorithm",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-signedheaders",
        "x-amz-content-sha256",
    )
)
_PAGES = ("page", "next", "continuation", "cursor", "sync")


def find_links(text: str) -> Iterator[Span]:
    """Each secret inside a URL."""
    at = text.find("://")
    # Most links name nobody and no hook, and need no closer look.
    logins, hooks = "@" in text, "hook" in text or "ifttt" in text
    if not logins and not hooks:
        return
    while at >= 0:
        if logins:
            yield from _url_login(text, at)
        hook = _hook().match(text, at) if hooks else None
        if hook and not is_placeholder(hook["secret"]) and not _filler(hook["secret"]):
            yield hook.start("secret"), hook.end("secret"), "webhook"
        at = text.find("://", at + 3)


def find_queries(text: str) -> Iterator[Span]:
    """Each secret among a URL's parameters, also where only the parameters are shown."""
    for match in _query().finditer(text):
        name, value = match["name"].lower(), match["value"]
        if name in _KEEP or name.startswith(_PAGES) or is_placeholder(value):
            continue
        strict = name in ("key", "code", "sid", "auth") or name.endswith(
            ("token", "sig", "signature")
        )
        if value[0] in "{$<[%" and not looks_random(value, least=12):
            continue
        if not strict or looks_random(
            value, least=12 if name in ("key", "code", "sid", "auth") else 6
        ):
            yield match.start("value"), match.end("value"), "token"


def _url_login(text: str, at: int) -> Iterator[Span]:
    before = text[max(0, at - 24) : at]
    scheme = before[
        len(before.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-")) :
    ]
    odd = not scheme.lower().endswith(("http", "https", "ws", "wss", "file"))
    match = (_odd_userinfo().match(text, at) if odd else None) or _userinfo().match(text, at)
    if match is None:
        return
    user, password = match["user"], match["password"]
    if password is None or password in ("", "x-oauth-basic", "x"):
        if looks_random(user, least=16) and not is_placeholder(user):
            yield match.start("user"), match.end("user"), "token"
        return
    if is_placeholder(password) or _filler(password):
        return
    if password.startswith(("{", "$", "%(", "<", "[")) and password.endswith(
        ("}", ")", ">", "]", "s")
    ):
        return
    yield match.start("password"), match.end("password"), "password"
    if looks_random(user, least=24):
        yield match.start("user"), match.end("user"), "token"


def _filler(value: str) -> bool:
    """`T000/B000/XXXX`, `…/xxx`: an example address."""
    return not re.sub(r"[TB]?0+|[xX]+|[/_\-.]|\d{1,18}(?=/)|TOKEN|YOUR|ID|KEY|token|id", "", value)
