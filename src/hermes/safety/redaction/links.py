"""Passwords and tokens inside URLs; scheme, user and host stay."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.values import is_placeholder, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.squeeze import Span


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
            yield from _login(text, at)
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


def _login(text: str, at: int) -> Iterator[Span]:
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
