"""Secrets handed to programs as options: `curl -u me:…`, `mysql -p…`, `sshpass -p …`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.quotes import LONGEST, line_value, quoted_end
from hermes.safety.redaction.values import is_placeholder, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.squeeze import Span

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
def _option() -> re.Pattern[str]:
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
        match = _option().match(text, at + 1)
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
