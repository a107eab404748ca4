"""Command options: `--password …`, `curl -u me:…`, `mysql -p…`, netrc lines, SQL passwords."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.pairs import label
from hermes.safety.redaction.secret_names import NAME_CHARS, kind_of
from hermes.safety.redaction.values import (
    LONGEST,
    is_path,
    is_placeholder,
    is_prose,
    is_secret_text,
    line_value,
    looks_random,
    quoted_end,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.prefilter import Span


@cache
def _option() -> re.Pattern[str]:
    # One blank: two or more belong to the columns of a help text.
    return re.compile(
        r"--(?<!---)(?P<name>[A-Za-z][\w.\-]{1,60})(?: |\\{0,7}[\"'],[ ]?(?=\\{0,7}[\"']))"
        r"(?P<open>\\{0,7}[\"'])?(?=[^\s\"'\\])"
    )


@cache
def _netrc() -> re.Pattern[str]:
    return re.compile(r"ogin(?:\s|\\n)+\S+(?:\s|\\n)+(?:account\s+\S+\s+)?password(?:\s|\\n)+")


@cache
def _value_sign() -> re.Pattern[str]:
    return re.compile(r"(?:ue)?(?:\\{0,7}[\"'])?[ \t]*[:=][ \t]*(?P<open>\\{0,7}[\"'])?")


@cache
def _name_before() -> re.Pattern[str]:
    return re.compile(
        r"(?i:name|key|parameter|variable)(?:\\{0,7}[\"'])?[ \t]*[:=][ \t]*(?:\\{0,7}[\"'])?"
        r"(?P<name>[\w.\-]{3,80})(?:\\{0,7}[\"'])?(?:[ \t]*,)?(?:\s|\\[nrt])*(?:\\{0,7}[\"'])?\Z"
    )


def find_options(text: str) -> Iterator[Span]:
    """The value of each `--password hunter2`."""
    for match in _option().finditer(text):
        kind = kind_of(match["name"])
        span = _option_value(text, kind, match) if kind else None
        if span:
            yield span


def _option_value(text: str, kind: str, match: re.Match[str]) -> Span | None:
    start = match.end()
    if match["open"]:
        end = quoted_end(text, start, match["open"])
        return (start, end, label(kind)) if is_secret_text(text[start:end], kind) else None
    found = line_value().match(text, start, start + LONGEST)
    value = found.group().rstrip(",;") if found else ""
    if is_placeholder(value) or is_path(value) or value[0] in "-<[({|&>=`":
        return None
    if value.isupper() and value.isalpha():
        return None
    # A plain word is a weak password, or the sentence going on after the option's name.
    weak = kind == "password" and len(value) > 4 and not is_prose("x " + value)
    return (
        (start, start + len(value), label(kind)) if weak or looks_random(value, least=4) else None
    )


_NAME_SIGNS = frozenset(NAME_CHARS)


@cache
def _setting() -> re.Pattern[str]:
    return re.compile(
        r"(?:ENV|ARG|set(?:env|x)?)[ \t]+"
        r"(?P<name>[A-Za-z_][\w.\-]{2,60})[ \t]+(?P<open>\\{0,7}[\"'])?(?=[^\s\"'\\=])"
    )


def find_settings(text: str) -> Iterator[Span]:
    """The value of each `ENV DB_PASSWORD hunter2`, `config set api_key …`."""
    for match in _setting().finditer(text):
        before = text[max(0, match.start() - 2) : match.start()]
        if before[-1:] in _NAME_SIGNS and before not in ("\\n", "\\r", "\\t"):
            continue
        kind = kind_of(match["name"]) if re.search(r"[A-Z_\-.]", match["name"]) else None
        span = _option_value(text, kind, match) if kind else None
        if span:
            yield span


def find_netrc(text: str) -> Iterator[Span]:
    """The password of each `login me password hunter2`."""
    for match in _netrc().finditer(text):
        found = line_value().match(text, match.end(), match.end() + LONGEST)
        if found and not is_placeholder(found.group()):
            yield found.start(), found.end(), "password"


def _name_at_end(text: str) -> re.Match[str] | None:
    """The name that a text ends with, as `"name": "…"` or the like."""
    # Nearly always something else stands there, which is seen at once.
    before = text.rstrip("\"'\\nrt ,\t\r\n").rstrip(NAME_CHARS).rstrip(" \t\"'\\")
    return _name_before().search(text) if before[-1:] in (":", "=") else None


def find_named_values(text: str, low: str) -> Iterator[Span]:
    """The value in each `{"name": "DB_PASSWORD", "value": "hunter2"}`."""
    at = low.find("val")
    while at >= 0:
        sign = _value_sign().match(text, at + 3)
        name = _name_at_end(text[max(0, at - 160) : at]) if sign else None
        kind = kind_of(name["name"]) if name else None
        if kind and sign:
            start = sign.end()
            if sign["open"]:
                end = quoted_end(text, start, sign["open"])
            else:
                found = line_value().match(text, start, start + LONGEST)
                end = start + len(found.group().rstrip(",")) if found else start
            if end > start and is_secret_text(text[start:end], kind):
                yield start, end, label(kind)
        at = low.find("val", at + 3)


# Which programs take a password with which option.
_PASSWORDS = {
    "p": (
        "mysql",
        "mariadb",
        "sshpass",
        " login",
        "7z ",
        "7za ",
        "rar ",
        "mongo",
        "smbclient",
        "ftp",
    ),
    "P": ("zip ", "sqlcmd", "bcp "),
    "a": ("redis-cli",),
    "w": ("ldap", "htpasswd"),
    "k": ("openssl",),
    "N": ("ssh-keygen",),
    "b": ("curl",),
    "-cookie": ("curl",),
    "passin": ("openssl",),
    "passout": ("openssl",),
    "pass": ("openssl", "keytool"),
    "storepass": ("keytool", "jarsigner"),
    "keypass": ("keytool", "jarsigner"),
}
# Options with `user:password`.
_LOGINS = frozenset(("u", "-user", "-proxy-user", "U", "-auth", "a"))
_CLIENTS = ("curl", "wget", "http", "aria2c", "lftp", "ab ", "siege")


@cache
def _program_option() -> re.Pattern[str]:
    return re.compile(
        r"-(?P<name>-(?:proxy-)?user|-auth|-cookie|pass(?:in|out)?|storepass|keypass|[puPawkbUN])"
        r"(?P<gap>[ =]?)(?P<pass>pass:)?(?P<open>\\{0,7}[\"'])?(?=[^\s\"'\\])"
    )


@cache
def _sql() -> re.Pattern[str]:
    return re.compile(
        r"(?i:\bIDENTIFIED\s+(?:WITH\s+\S+\s+)?BY\s+(?:PASSWORD\s+)?|\bPASSWORD\s+)(?P<open>\\{0,7}'|\\{0,7}\")"
    )


def find_program_options(text: str) -> Iterator[Span]:
    """Each secret in an option that only its program explains."""
    at = text.find(" -")
    while at >= 0:
        match = _program_option().match(text, at + 1)
        if match:
            span = _judge(text, match)
            if span:
                yield span
        at = text.find(" -", at + 2)


def find_sql(text: str) -> Iterator[Span]:
    """The password of each `CREATE USER … IDENTIFIED BY '…'`."""
    for match in _sql().finditer(text):
        end = quoted_end(text, match.end(), match["open"])
        if not is_placeholder(text[match.end() : end]):
            yield match.end(), end, "password"


def _judge(text: str, match: re.Match[str]) -> Span | None:
    start = match.end()
    if match["open"]:
        end = quoted_end(text, start, match["open"])
    else:
        found = line_value().match(text, start, start + LONGEST)
        end = found.end() if found else start
    value = text[start:end]
    command = _command_before(text, match.start())
    name = match["name"]
    if name in _LOGINS:
        login = _login(value, client=any(program in command for program in _CLIENTS))
        if login:
            return start + login[0], start + login[1], "password"
    if not any(program in command for program in _PASSWORDS.get(name, ())):
        return None
    if (name.startswith("pass") and not match["pass"]) or (
        name in ("b", "-cookie") and "=" not in value
    ):
        return None
    if name == "p" and match["gap"] and ("mysql" in command or "mariadb" in command):
        # The password sticks to this option; a word after a blank is the database.
        return None
    if is_placeholder(value) or value[0] in "-$<{%":
        return None
    return start, end, "password"


def _command_before(text: str, at: int) -> str:
    before = text[max(0, at - 400) : at].lower()
    cut = max(map(before.rfind, ("\n", ";", "|", "&&", "\\n")))
    return before[cut + 1 :]


def _login(value: str, *, client: bool) -> tuple[int, int] | None:
    """Where the password of `user:password` is; where the user is when it's a key alone."""
    user, colon, password = value.partition(":")
    if not colon:
        return None
    if not password:
        return (0, len(user)) if client and looks_random(user, least=12) else None
    if is_placeholder(password) or password[0] in "<{/" or (user + password).isdigit():
        return None
    if client or (looks_random(password, least=6) and not password.isdigit()):
        return len(user) + 1, len(value)
    return None
