"""Near misses: text that resembles what was sent, and is not it. Nothing may be changed."""

from __future__ import annotations

import pytest
from tests.corpus import each

from hermes.core.errors import EditError
from hermes.text.replace.engine import replace_text

TABLE = """\
| name  | size | note  |
|-------|------|-------|
| alpha | 10   | first |
| alpha | 11   | first |
"""
TWICE = """\
def one():
    x = load()
    x.sort()
    return x

def two():
    x = load()
    x.sort()
    return x
"""
CODE = """\
def total(items):
    result = 0
    for item in items:
        if item.price > 10:
            result += item.price
    return result
"""
SELECTORS = ".card .title { color: red }\n"

CASES = [
    ("another number", "alpha(1)\nbeta(2)\ngamma(3)\n", "beta(9)"),
    (
        "another number in a block",
        CODE,
        "        if item.price > 100:\n            result += item.price",
    ),
    ("a longer number", "timeout = 300\n", "timeout = 30 "),
    ("a float that is cut", "rate = 1.50\n", "rate = 1.5 "),
    ("a row of a table between two", TABLE, "| alpha | 12   | first |"),
    ("two rows that differ in padding only", "| a | b |\n|  a  | b |\n", "| a | b  |"),
    ("a block that occurs twice", TWICE, "    x = load()\n    x.sort()"),
    ("a block that occurs twice, drifted", TWICE, "x = load()\nx.sort()"),
    ("a changed operator", CODE, "        if item.price >= 10:"),
    ("operators that touch", "a = b - -c\n", "a = b --c"),
    ("assignment and comparison", "if (a = b) {\n", "if (a == b) {"),
    ("an operator with a sign more", "x += 1\n", "x + = 1"),
    ("a changed word", CODE, "    for thing in items:"),
    ("another case of letters", "Value = 1\n", "value = 1 "),
    ("words that are glued", "not in use\n", "notin use"),
    ("a missing line", CODE, "    result = 0\n        if item.price > 10:"),
    ("a line too many", CODE, "    result = 0\n    count = 0\n    for item in items:"),
    ("a missing blank line", "a = 1\n\nb = 2\n", "a = 1\nb = 2"),
    ("lines in another order", "one()\ntwo()\n", "two()\none()"),
    ("a space inside a literal", 'sep = ", "\n', 'sep = ","'),
    ("spaces inside a literal", "msg = 'a  b'\n", "msg = 'a b'"),
    ("a literal in other quotes", "msg = 'text'\n", 'msg = "text"'),
    ("descendants of a class", SELECTORS, ".card.title { color: red }"),
    ("the middle of a word, drifted", "foobar = 1\n", "bar  = 1"),
    ("a piece of a line, drifted", "x = call(a, b)\n", "call(a,  b)"),
    ("an accent left out", "cafe\u0301 = 1\n", "cafe"),
    ("a look-alike letter", "price = 1\n", "pr\u0456ce = 1"),
    ("an exponent", "area = r\u00b2\n", "area = r2"),
    ("a fraction", "half = \u00bd\n", "half = 1/2"),
    ("between two depths", "    return found\n        return found\n", "      return found"),
    ("uneven indentation", "if a:\n    b()\n        c()\n", "if a:\n  b()\n  c()"),
    ("a block that closes elsewhere", "if a:\n    b()\nc()\n", "if a:\n    b()\n    c()"),
    ("an elision", CODE, "def total(items):\n    ...\n    return result"),
    (
        "an elision in a comment",
        CODE,
        "    result = 0\n    # ... existing code ...\n    return result",
    ),
    ("a port that is no line number", "9090: web\nweb\n", "8080: web"),
    ("line numbers of other text", "a\nb\nc\n", "  1|a\n  2|x"),
    ("line numbers that jump", "a\nb\nc\n", "1|a\n5|b"),
    ("a wrong escape", 'print("a")\n', 'print(\\"b\\")'),
    ("a comment marker", "# x = 1\n", "x = 1 "),
    ("a negated condition", "if not ready:\n", "if ready: "),
    ("another key of one value", '"host": "a",\n"port": "a",\n', '"path": "a",'),
    ("a prefix of a path", "/usr/local/bin\n", "/usr/local "),
    ("a version", "requests==2.31.0\n", "requests == 2.32.0"),
    ("a sign", "offset = -1\n", "offset = 1 "),
    ("an address", "10.0.0.1\n", "10.0.0.10"),
    ("a flag", "run --fast\n", "run -- fast"),
    ("a markdown list", "* item *\n", "*item*"),
]


@each(("text", "old"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_a_near_miss_is_refused_with_a_hint(text: str, old: str) -> None:
    with pytest.raises(EditError) as caught:
        replace_text(text, old, "replaced = True")

    assert caught.value.hint
