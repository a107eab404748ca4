"""Values: their extent in a text, and whether one is a secret, a placeholder, a reference, code or
prose.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from operator import ne

# A value is not read further than this.
LONGEST = 20_000


@cache
def word_value() -> re.Pattern[str]:
    """An unquoted value among other text."""
    return re.compile(r"(?:[^\s\"'`,;&|<>(){}\[\]\\]++|\\(?![nrtu\"'`\\]))++")


@cache
def line_value() -> re.Pattern[str]:
    """An unquoted value to the end of the word, with any characters.

    An escaped line end, or a quote that closes the surrounding text, ends it.
    """
    return re.compile(r"(?:[^\s\"'`\\]++|['`](?=[^\s,;:)\]}'`\"])|\\(?![nrtu\"'`]))++")


def quoted_end(text: str, start: int, quote: str) -> int:
    """Where the value that opened with `quote` right before `start` ends."""
    mark = quote.lstrip("\\")
    depth = len(quote) - len(mark)
    limit = min(len(text), start + LONGEST)
    at = start
    while True:
        at = text.find(mark, at, limit)
        if at < 0:
            line = text.find("\n", start, limit)
            return limit if line < 0 or len(mark) == 3 else line
        first = at
        while first > start and text[first - 1] == "\\":
            first -= 1
        slashes = at - first
        if mark == "'" and not slashes and at > start and text[at + 1 : at + 2] == "'":
            # YAML and SQL write a quote inside as two.
            at += 2
            continue
        # A quote inside carries more backslashes than the one that opened the value.
        if slashes <= depth or (depth == 0 and slashes % 2 == 0):
            return at - min(depth, slashes)
        at += len(mark)


_PLACEHOLDER_WORDS_TEXT = """
    null none nil undefined true false yes no on off na n/a tbd todo fixme unset empty default
    required optional missing invalid valid wrong incorrect expired unknown present absent enabled
    disabled hidden masked redacted removed omitted censored filtered sensitive private encrypted
    string str text bytes byte int integer number float bool boolean object any array list dict map
    set tuple char void usize uint date datetime uuid regex bytearray varchar type value name field
    password passwd passphrase passcode pass pwd pw secret secrets token tokens key keys apikey
    api_key api-key credential credentials auth authorization bearer basic login user username
    changeme change_me change-me changeit replaceme replace_me placeholder example sample dummy fake
    test testing foo bar baz spam eggs demo mysecret mypassword mytoken my_password my-password
    my_secret my-secret my_token my-token my_api_key my-api-key yourpassword yourtoken yoursecret
    inherit self this prompt stdin env file config ask input output async await return new lambda
    function func def class import from not and or if else
"""
_PLACEHOLDER_WORDS = frozenset(_PLACEHOLDER_WORDS_TEXT.split())

_REFERENCE = (
    r"\$\{[^}]*\}?|\$\([^)]*\)?|\$\$?[A-Za-z_]\w*(?:[.:\[][\w.:\]\-]*)?|\$[0-9@*#?]|%[A-Za-z_]\w*%"
    r"|%\(\w+\)[sdr]|%[sdrvq]|\{\{.*|\{%.*|\{[^{}\"']*\}|<[^<>]*>|&lt;.*|\[[^\[\]]*\]|@\w+@|!\w+.*"
    r"|(?:op|vault|secret|file|env|ssm|awssm|keyring|keychain|gcpsm|sm|ref)\+?:[/\w].*|arn:aws.*"
    r"|projects/[^/]+/secrets/.*|\\\(.*|#\{.*"
)
_FILLER = (
    r"[xX*•●#._\-=?~ ]+|(?P<same>.)(?P=same)*|…|[\w\-]*?\*{3,}[\w\-]*|[\w\-]{0,12}(?:…|\.{3}).{0,6}"
    r"|(?:[A-Za-z]{1,12}[_\-])*[xX]{4,}|[A-Za-z]{2,10}[_\-]\.{3}|0+|abc"
)
_STAND_INS = (
    r"(?:(?:super|secret|api|access|private|db|user|password|passwd|token|key|value)[_\-\s]?)+"
)
_WORDED = (
    r"(?:your|insert|enter|replace|put|paste)[_\-\s].*|<.*>"
    rf"|(?:my|our|the|some|a|an|this|new|old|test)[_\-\s]{_STAND_INS}"
    r"|.*(?:[_\-\s](?:here|goes[_\-]here|placeholder|example)|placeholder|changeme|change[_\-]me"
    r"|your[_\-](?:api|key|token|secret|password).*)|(?:example|sample|dummy|fake)[_\-].*"
    r"|.*(?:not[_\-]?(?:a[_\-])?real|redacted|removed).*"
)
_PATHLIKE = (
    r"(?:~|\.{1,2})?(?:/[\w.@+\-]+)+/?|[A-Za-z]:[\\/].*|[\w\-]+(?:/[\w\-]+)*"
    r"\.(?:txt|pem|key|crt|json|ya?ml|env|py|js|ts|toml|md)"
)


@cache
def _not_secret() -> re.Pattern[str]:
    return re.compile(f"(?:{_REFERENCE}|{_FILLER}|(?i:{_WORDED}))\\Z", re.DOTALL)


@cache
def _path() -> re.Pattern[str]:
    return re.compile(f"(?:{_PATHLIKE}|https?://.*)\\Z")


@cache
def _identifier() -> re.Pattern[str]:
    # A name, a dotted name, a call, an index: what stands unquoted in code.
    return re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*(?:[(\[{!].*)?\Z", re.DOTALL)


@cache
def _reference() -> re.Pattern[str]:
    return re.compile(
        r"(?:[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+(?:[(\[{!].*)?|[A-Za-z_][\w.]*[(\[{].*)\Z",
        re.DOTALL,
    )


# `sha256`, `Ed25519PrivateKey`: digits that belong to a word.
_CODED = re.compile(
    r"\A(?:[A-Za-z]{1,8}[-_]?\d{1,5}|(?:[A-Z]?[a-z]?\d{1,5})?(?:[A-Z]+[a-z]{2,})+(?:\d{1,3}(?:[A-Z][a-z]{2,})*)?)\Z"
)
_COLOUR = re.compile(r"#[0-9A-Fa-f]{3,8}")

_PROSE_TEXT = """
    a an and are as at be by can cannot could do does for from has have if in into is it its may
    must no not of on only or should that the their then this to too used using was were when which
    will with without you your enter please field required invalid incorrect missing wrong
"""
_PROSE = frozenset(_PROSE_TEXT.split())


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret without being one: empty, `xxxx`, `$TOKEN`, `<key>`."""
    if len(value) < 3 or value.lower() in _PLACEHOLDER_WORDS:
        return True
    # What is longer than a line is no placeholder, unless it repeats one sign.
    return _not_secret().match(value) is not None if len(value) < 200 else len(set(value)) == 1


def is_path(value: str) -> bool:
    """Whether a value names a place (a file, a page) rather than a secret."""
    if len(value) > 1000 or not _path().match(value):
        return False
    return value.startswith("http") or not looks_random(value.rpartition("/")[2], least=20)


def is_code(value: str, *, strict: bool) -> bool:
    """Whether an unquoted value reads as an expression: a name, an attribute, a call.

    A name with a digit in it counts as one only when `strict`, and only when it's built of words.
    """
    if len(value) > 1000 or not _identifier().match(value):
        return False
    if _reference().match(value):
        return "(" in value or "[" in value or not is_tangled(value.replace(".", ""))
    if is_tangled(value) and not _CODED.search(value):
        return False
    digits = sum(map(str.isdigit, value))
    if not digits:
        return True
    few = digits < 3 and _groups(value) < 3
    return strict and len(value) < 20 and (few or _CODED.search(value) is not None)


def is_secret_text(value: str, kind: str) -> bool:
    """Whether a quoted value is a secret, given the kind of its name."""
    if is_placeholder(value) or is_path(value) or "\n" in value.strip():
        return False
    blank = any(map(str.isspace, value))
    if kind in ("token", "key", "maybe-key", "credential"):
        if blank or "(" in value or value.startswith("--") or _COLOUR.fullmatch(value):
            return False
        if value.isalnum() and len(value) >= 24 and not _CODED.search(value):
            return True
        return looks_random(value, least=16 if kind == "maybe-key" else 6)
    if value.isupper() and "_" in value and not any(map(str.isdigit, value)):
        return False
    return not (blank and is_prose(value)) and any(map(str.isalnum, value))


def is_prose(value: str) -> bool:
    """Whether a value with blanks in it is a sentence."""
    words = value.split()
    return len(words) > 1 and (
        any(word.strip(".,:;!?'\"()").lower() in _PROSE for word in words)
        or (value[:1].isupper() and words[1].islower())
    )


def looks_random(value: str, *, least: int) -> bool:
    """Whether a value of `least` characters or more has digits among its letters."""
    if len(value) < least:
        return False
    value = value[:400]
    if is_tangled(value) and not _CODED.search(value):
        return True
    digits = sum(map(value.count, "0123456789"))
    if not digits:
        return False
    if not any(map(str.isalpha, value)):
        return len(value) >= 6 and value.isdigit()
    # `step2`, `my_table_2024`: one group of digits at the end of words says little.
    return least <= 8 or _groups(value) >= 2


def is_tangled(value: str) -> bool:
    """Whether small letters, capitals, digits and signs change all the time, as in no word."""
    kinds = [2 if c.isdigit() else c.islower() if c.isalpha() else 3 for c in value]
    changes = sum(map(ne, kinds, kinds[1:]))
    return len(value) >= 8 and changes * 9 >= len(value) * 4 and any(map(str.isalpha, value))


def _groups(value: str) -> int:
    return sum(a.isdigit() != b.isdigit() for a, b in pairwise(value))
