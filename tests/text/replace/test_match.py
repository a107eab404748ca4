"""What is bridged: the place is found, and what the edit does not change stays as it is."""

from __future__ import annotations

import re
import unicodedata

import pytest
from tests.corpus import each

from hermes.core.errors import EditError
from hermes.text.replace.engine import replace_text


def edited(text: str, old: str, new: str) -> tuple[str, str]:
    """The text after an edit and its strategy, with everything outside the span compared."""
    result = replace_text(text, old, new)
    ((start, end),) = result.spans
    assert result.count == 1
    assert result.text.startswith(text[:start])
    assert result.text.endswith(text[end:])
    return result.text, result.strategy


def test_the_exact_text_comes_first() -> None:
    assert edited("a b\na  b\n", "a  b", "c") == ("a b\nc\n", "exact")


def test_a_piece_of_a_line_is_replaced_exactly() -> None:
    assert edited("x = call(a)\n", "call(a", "call(b") == ("x = call(b)\n", "exact")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n"),
        ("a\nb\r\nc\n", "b", "b\nx", "a\nb\r\nx\r\nc\n"),
        ("a\nb\n", "a\r\nb", "a\r\nc", "a\nc\n"),
        ("a\rb\rc", "a\nb", "a\nx\nb", "a\rx\rb\rc"),
        ("one\r\ntwo", "two", "two\nthree", "one\r\ntwo\r\nthree"),
        ("a\r\nb\r\n", "\nb", "\nx\nb", "a\r\nx\r\nb\r\n"),
        ("\ufeffa = 1\r\nb = 2", "a = 1\nb = 2", "a = 1\nb = 3", "\ufeffa = 1\r\nb = 3"),
        ("a = 1\nb = 2\n", "\ufeffa = 1\nb = 2 ", "\ufeffa = 1\nb = 3 ", "a = 1\nb = 3\n"),
        ("progress\rdone\n", "progress\rdone", "progress\rend", "progress\rend\n"),
    ],
)
def test_line_endings_stay(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new)[0] == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("say “hi” — now", 'say "hi" - now', 'say "bye" - now', "say “bye” — now"),
        ("it’s fine", "it's fine", "it's good", "it’s good"),
        ("a\u00a0b c", "a b c", "a b d", "a\u00a0b d"),
        ("cafe\u0301 noir", "café noir", "café crème", "cafe\u0301 crème"),
        ("wait… then", "wait... then", "wait... now", "wait… now"),
        ("zero\u200bwidth x", "zerowidth x", "zerowidth y", "zero\u200bwidth y"),
        ("価格（税込）は", "価格(税込)は", "価格(税抜)は", "価格（税抜）は"),
        ("x = “a”\n  y\n", 'x = "a"\n    y', 'x = "b"\n    z', "x = “b”\n  z\n"),
        ("plain 'x'", "plain ‘x’", "plain ‘y’", "plain 'y'"),
    ],
)
def test_typography_stays_as_the_file_has_it(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new)[0] == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a  \nb\n", "a\nb", "a\nc", "a  \nc\n"),
        ("a\nb\n", "a  \nb\t", "a  \nc\t", "a\nc\n"),
        (
            "if a :\n    b( c,d )\n",
            "if a :\n    b(c, d)",
            "if a :\n    b(c, e)",
            "if a :\n    b( c,e )\n",
        ),
        ("x  =  1  # note\n", "x = 1 # note", "x = 2 # note", "x  =  2  # note\n"),
        ('{"a":1}\n', '{"a": 1}', '{"a": 2}', '{"a":2}\n'),
        ("a\n   \nb\n", "a\n\nb", "a\n\nc", "a\n   \nc\n"),
        ("a\nb", "a \nb\n", "a \nc\n", "a\nc"),
        ("a\nb\nc\n", "a \nb\n", "x", "x\nc\n"),
        ("a\nb\nc\n", "b \n", "", "a\nc\n"),
        ("x\ny\n", "\n\nx\ny\n\n", "\n\nx\nz\n\n", "x\nz\n"),
        ("don't  do it\n", "don't do it", "don't do that", "don't  do that\n"),
    ],
)
def test_spaces_stay_where_the_edit_does_not_change_them(
    text: str, old: str, new: str, expected: str
) -> None:
    assert edited(text, old, new)[0] == expected


NESTED = "class A:\n    def f(self):\n        if x:\n            return 1\n"
TABBED = "def f():\n\tif x:\n\t\treturn 1\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (
            NESTED,
            "def f(self):\n    if x:\n        return 1\n",
            "def f(self):\n    if x:\n        y()\n\n        return 1\n    return 2\n",
            NESTED.replace("return 1", "y()\n\n            return 1") + "        return 2\n",
        ),
        (
            "if x:\n    return 1\n",
            "        if x:\n            return 1",
            "        if x:\n            return 2",
            "if x:\n    return 2\n",
        ),
        (
            TABBED,
            "def f():\n    if x:\n        return 1\n",
            "def f():\n    if x:\n        return 1\n    else:\n        return 2\n",
            TABBED + "\telse:\n\t\treturn 2\n",
        ),
        (
            TABBED,
            "  if x:\n    return 1",
            "  if x:\n    return 1\n  for y in z:\n    pass",
            "def f():\n\tif x:\n\t\treturn 1\n\tfor y in z:\n\t\tpass\n",
        ),
        (TABBED, "if x: ", "if x:\n    y()", "def f():\n\tif x:\n\t\ty()\n\t\treturn 1\n"),
        (
            "a:\n  b:\n    c: 1\n",
            "a:\n    b:\n        c: 1",
            "a:\n    b:\n        c: 2\n        d: 3",
            "a:\n  b:\n    c: 2\n    d: 3\n",
        ),
        (
            "def f():\n    if x:\n        return 1\n",
            "def f():\n\tif x:\n\t\treturn 1",
            "def f():\n\tif x:\n\t\treturn 2",
            "def f():\n    if x:\n        return 2\n",
        ),
        (
            "    call(a,\n         b)\n    end()\n",
            "\tcall(a,\n\t     b)\n\tend()",
            "\tcall(a,\n\t     c)\n\tend()",
            "    call(a,\n         c)\n    end()\n",
        ),
        (
            "    a()\n    b()\n    c()\n",
            "a()\n    b() \n    c()",
            "a()\n    x()\n    c()",
            "    a()\n    x()\n    c()\n",
        ),
    ],
)
def test_a_block_moves_to_the_indentation_of_the_file(
    text: str, old: str, new: str, expected: str
) -> None:
    assert edited(text, old, new) == (expected, "indentation")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ('print("a")\nx\n', 'print(\\"a\\")\\nx', 'print(\\"b\\")\\nx', 'print("b")\nx\n'),
        ('print("a\\n")\n', 'print(\\"a\\\\n\\")', 'print(\\"b\\\\n\\")', 'print("b\\n")\n'),
        (
            'print("a\\n")\nx = 1\n',
            'print(\\"a\\n\\")\nx = 1',
            'print(\\"b\\n\\")\nx = 1',
            'print("b\\n")\nx = 1\n',
        ),
        ('print("a")\n', 'print(\\"a\\")', 'print(\\"a\\n\\")', 'print("a\\n")\n'),
        ("say(‘é😀’)\n", "say(\\u2018\\u00e9\\ud83d\\ude00\\u2019)", "say()", "say()\n"),
        ('re.match("\\d")\n', 're.match("\\\\d")', 're.match("\\\\w")', 're.match("\\w")\n'),
        (
            "<div>&nbsp;</div>\n",
            "&lt;div&gt;&nbsp;&lt;/div&gt;",
            "&lt;p&gt;&lt;/p&gt;",
            "<p></p>\n",
        ),
        ("a\nb\nc\n", "  2|b\n  3|c\n", "  2|b\n  3|d\n", "a\nb\nd\n"),
        ("a\n    b\n    c\n", "2:     b\n3:     c", "2:     b\n3:     d", "a\n    b\n    d\n"),
        ("a\n\tb\n", "1\ta\n2\t\tb", "1\ta\n2\t\tc", "a\n\tc\n"),
        ("a\nb\n", "     1→a\n     2→b", "x\ny", "x\ny\n"),
    ],
)
def test_escapes_and_line_numbers_are_read_as_they_were_meant(
    text: str, old: str, new: str, expected: str
) -> None:
    result, strategy = edited(text, old, new)

    assert result == expected
    assert strategy in ("escapes", "entities", "line-numbers")


def test_all_places_are_replaced_on_request() -> None:
    result = replace_text("a  b\nx\n  a  b\n", "a b", "a c", replace_all=True)

    assert result.text == "a  c\nx\n  a  c\n"
    assert result.count == 2


@each("ending", ["\n", "\r\n", "\r"])
@each("form", ["NFC", "NFD"])
@each("indent", ["    ", "\t", "  "])
@each("final", ["", "end"])
def test_a_word_in_a_block_changes_one_line(
    ending: str, form: str, indent: str, final: str
) -> None:
    lines = ["def café():", "    if “été”:", "        return 1  ", "    return 2", ""]
    old = 'def café():\n    if "été":\n        return 1\n    return 2\n'
    text = unicodedata.normalize(form, "head" + ending + ending.join(lines) + final)
    text = text.replace("    ", indent)

    result = replace_text(text, old, old.replace("return 1", "return 3"))

    assert result.text == text.replace("return 1", "return 3")


def test_the_body_of_a_stub_is_not_an_elision() -> None:
    assert edited("def f():\n    pass\n", "    pass", "    ...")[0] == "def f():\n    ...\n"
    stub = "class P:\n    def f(self) -> None:\n        ...\n"
    assert edited(stub, "f(self) -> None:\n        ...", "g(self) -> None:\n        ...")[0]


@each(
    "new",
    [
        "function f(...args) {}",
        "# Existing users keep their settings.",
        "print('Loading...')",
        "# TODO: fix the rest...",
        "# the rest is history",
        "[...props, 1]",
        "x = a[..., 0]",
        "// unchanged since 1999",
        "# keep the rest",
        "    'omitted',",
        "## Unchanged",
        "* unchanged",
        "# existing configuration",
        "- ... and so on",
    ],
)
def test_ordinary_text_with_dots_and_such_words_is_no_elision(new: str) -> None:
    assert edited("a\nb\n", "b", new)[0] == f"a\n{new}\n"


@pytest.mark.parametrize("new", ["    return 2\n", "    return 2", "    return 2\n\n"])
def test_the_final_line_end_stays_where_a_blank_line_too_many_was_sent(new: str) -> None:
    text = "def f():\n    return 1\n"

    assert replace_text(text, "    return 1\n\n", new).text.startswith("def f():\n    return 2\n")


def test_errors_call_the_texts_by_the_names_that_are_known() -> None:
    for old in ("", "beta(9)", "a", "..."):
        with pytest.raises(EditError) as caught:
            replace_text("a\nbeta(2)\na\n", old, "x", names=("old_string", "new_string"))

        said = f"{caught.value} {caught.value.hint}"
        assert "old_string" in said or not old
        assert not re.search(r"\b(old|new)\b|[\ufdd0-\ufdef]", said)
