"""Source text of many languages as tokens, with the home directory marked wherever it is named."""

from __future__ import annotations

import re
from bisect import bisect_left

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
# What a source calls a module by the moment it asks for it.
_REQUIRED = re.compile(r"\brequire\(\s*['\"](?:node:)?([A-Za-z][\w/-]*)['\"]\s*\)(?=\s*[.(])")
_TEXTS = frozenset(("string", "quote", "tick"))
# Strings come first: what looks like a comment in one of them is none.
_LUA_COMMENT = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|--\[\[.*?\]\]|--[^\n]*", re.S)


def marked(text: str) -> str:
    """The text with every spelling of the home directory as one string."""
    if "require" in text:
        text = _REQUIRED.sub(lambda found: _module(found.group(1)), text)
    if (
        "'~" not in text
        and '"~' not in text
        and "home" not in text
        and "HOME" not in text
        and "Home" not in text
    ):
        return text
    if not _HOME.search(text):
        return text
    strings = [found.span() for found in _TOKEN.finditer(text) if found.lastgroup in _TEXTS]
    starts = [start for start, _ in strings]

    def mark(found: re.Match[str]) -> str:
        at = found.start()
        before = bisect_left(starts, at)
        inside = before > 0 and at < strings[before - 1][1]
        # In a string it is text, perhaps code of another language, unless it is filled in there.
        filled = found.group()[0] == "$" or text[at - 2 : at] in ("#{", "${")
        return found.group() if inside and not filled else f"'{HOME_MARK}'"

    return _HOME.sub(mark, text)


def _module(name: str) -> str:
    return name.rpartition("/")[2].replace("-", "_")


def tokens_of(text: str, language: str) -> list[Token]:
    """The tokens of a source without its comments."""
    if language in ("lua", "luajit"):
        text = _LUA_COMMENT.sub(lambda found: found.group(1) or "", text)
    return [
        (kind, found[kind])
        for found in _TOKEN.finditer(text)
        if (kind := found.lastgroup or "other") != "comment"
    ]
