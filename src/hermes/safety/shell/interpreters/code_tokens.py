"""Source text of many languages as tokens, with the home directory marked wherever it is named."""

from __future__ import annotations

import re

Token = tuple[str, str]

HOME_MARK = "\ue0ff"
PART = re.compile(r"::|\?\.|\.|->")

_TOKEN = re.compile(
    # What begins with none of these is a name, a number or a sign, and most of it is.
    r"[ \t]*(?:(?=[/\#'\"`%qmsty])(?:(?P<comment>//[^\n]*|/\*.*?\*/|(?<![\w$@%&])\#(?![{!])[^\n]*)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<tick>`(?:[^`\\]|\\.)*`|(?:\bqx|%x)(?:\{[^}]*\}|\([^)]*\)|/[^/]*/|\[[^\]]*\]|![^!]*!))"
    r"|(?P<quote>\bq[qw]?(?:\{[^}]*\}|\([^)]*\)|/[^/]*/)|%[wqQ](?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\]))"
    # A pattern, not a division: nothing that has a value stands before it.
    r"|(?P<pattern>(?<![\w)\]$@%&.>])(?:m|qr)?/(?![/*\s])(?:[^/\\\n]|\\.)+/[gimsxou]*(?![\w/])"
    r"|(?<![\w$@%&.>-])(?:s|tr|y)/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gimsxor]*(?![\w/])"
    r"|%r\{[^}]*\}|(?<![\w$@%&.>])(?:m|qr)\{[^}]*\}[gimsxo]*))"
    r"|(?P<name>[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*[!?]?(?![=\w])"
    r"(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*!?)*"
    r"|[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*)*)"
    r"|(?P<number>\d[\w.]*)|(?P<line>\n)|(?P<other>\S))",
    re.S,
)
_HOME = re.compile(
    r"\$ENV\{\s*['\"]?HOME['\"]?\s*\}|ENV\[['\"]HOME['\"]\]|ENV\.fetch\(['\"]HOME['\"]\)|Dir\.home\b|"
    r"(?:require\(['\"](?:node:)?os['\"]\)|\bos)\.homedir\(\)|process\.env\.HOME|"
    r"process\.env\[['\"]HOME['\"]\]|os\.UserHomeDir\(\)|System\.user_home!?(?:\(\))?|"
    r"(?:os\.|Sys\.|System\.)?[gG]et_?[eE]nv\(['\"]HOME['\"]\)|\$_(?:SERVER|ENV)\[['\"]HOME['\"]\]|"
    r"System\.getProperty\(['\"]user\.home['\"]\)|env::var\(['\"]HOME['\"]\)(?:\.unwrap\(\))?|"
    r"\bhomedir\(\)|path\.expand\(['\"]~['\"]\)|System\.getenv\(['\"]HOME['\"]\)|"
    r"File\.expand_path\(['\"]~['\"]\)|Pathname\.home|Deno\.env\.get\(['\"]HOME['\"]\)"
)
_LUA_COMMENT = re.compile(r"--\[\[.*?\]\]|--[^\n]*", re.S)


def marked(text: str) -> str:
    """The text with every spelling of the home directory as one string."""
    if (
        "'~" not in text
        and '"~' not in text
        and "home" not in text
        and "HOME" not in text
        and "Home" not in text
    ):
        return text
    return _HOME.sub(f"'{HOME_MARK}'", text)


def tokens_of(text: str, language: str) -> list[Token]:
    """The tokens of a source without its comments."""
    if language in ("lua", "luajit"):
        text = _LUA_COMMENT.sub("", text)
    return [
        (kind, found[kind])
        for found in _TOKEN.finditer(text)
        if (kind := found.lastgroup or "other") != "comment"
    ]
