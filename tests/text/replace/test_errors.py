"""Refusals: what they say, and that it is enough for the next try."""

from __future__ import annotations

import pytest
from tests.corpus import each

from hermes.core.errors import EditError
from hermes.text.replace.engine import replace_text
from hermes.text.replace.errors import AlreadyAppliedError


def refusal(text: str, old: str, new: str) -> EditError:
    """The error of an edit that must not be made."""
    with pytest.raises(EditError) as caught:
        replace_text(text, old, new)
    return caught.value


def test_nothing_to_do_is_refused() -> None:
    assert "empty" in str(refusal("a", "", "b"))
    assert "nothing to change" in str(refusal("a", "a", "a"))
    assert "nothing to change" in str(refusal("a\r\nb", "a\r\nb", "a\nb"))


def test_every_candidate_is_listed_with_its_line_and_a_neighbour_of_its_own() -> None:
    text = "def one():\n    return 0\n\ndef two():\n    return 0\n"

    message = str(refusal(text, "    return 0", "    return 1"))

    assert "2 times" in message
    assert "line 2" in message
    assert "def one():" in message
    assert "line 5" in message
    assert "def two():" in message


def test_places_that_overlap_are_two_places() -> None:
    assert "2 times" in str(refusal("x = 1\n" * 3, "x = 1\nx = 1\n", "y = 1\n"))


@pytest.mark.parametrize(
    ("text", "old", "words"),
    [
        ("alpha(1)\nbeta(2)\n", "beta(9)", ["line 2", "`2`", "`9`", "beta(2)"]),
        ("x\n\tfoo = bar1\n", "    foo = bar2", ["line 2", "tab (U+0009)", "space (U+0020)"]),
        ("a = “x”\n", "b = 'x'", ["U+201C LEFT DOUBLE QUOTATION MARK"]),
        ("price = 1\n", "pr\u0456ce = 1", ["U+0456 CYRILLIC"]),
        ("a\u00a0= one\n", "a = two", ["U+00A0 NO-BREAK SPACE"]),
        ("one()\ntwo()\nthree()\n", "one()\n2()\nthree()", ["lines 1-3", "line 2", "two()"]),
    ],
)
def test_the_nearest_text_is_shown_with_each_difference(
    text: str, old: str, words: list[str]
) -> None:
    error = refusal(text, old, "new")

    for word in words:
        assert word in f"{error}\n{error.hint}"


def test_lines_that_only_one_side_has_are_named() -> None:
    text = "one()\ntwo()\nthree()\nfour()\n"

    missing = refusal(text, "one()\nthree()\nfour()", "x")
    added = refusal(text, "two()\nmore()\nthree()", "x")

    assert "line 2 of the file is not in old: `two()`" in str(missing)
    assert "lines 1-4" in str(missing)
    assert "old has a line that the file does not have here: `more()`" in str(added)
    assert "lines 2-3" in str(added)


def test_the_nearest_text_can_be_sent_as_it_is_shown() -> None:
    text = "def f():\n\tvalue = 1\n\treturn value\n"
    error = refusal(text, "def f():\n\tvalue = 2\n\treturn value", "x")

    shown = [
        line.split("|", 1)[1] for line in (error.hint or "").splitlines() if line[:1].isdigit()
    ]

    assert replace_text(text, "\n".join(shown), "x").text == "x\n"


def test_text_that_resembles_nothing_says_so() -> None:
    assert "nothing in the file resembles it" in str(refusal("a\nb\n", "quux(frob)", "x"))
    assert refusal("", "quux", "x").hint
    assert refusal("a\n", "   ", "x").hint


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("result = compute(1)\n", "result = compute(0)", "result = compute(1)"),
        ("import os\nimport sys\n", "import os", "import os\nimport sys"),
        ("f(a, timeout=3)\n", "f(a", "f(a, timeout=3"),
        ("a\r\nnew line here\r\n", "a", "a\nnew line here"),
        ("    x = first()\n    y = second()\n", "x = first()", "x = first()\n    y = second()"),
        ("a  =  bcdefg\n", "a = bcdefg", "a  =  bcdefg"),
    ],
)
def test_an_edit_that_is_there_already_is_not_made_again(text: str, old: str, new: str) -> None:
    error = refusal(text, old, new)

    assert isinstance(error, AlreadyAppliedError)
    assert error.already_applied
    assert "already applied" in str(error)


@each(
    "marker",
    [
        "...",
        "…",
        "# ...",
        "// ... existing code ...",
        "    # rest unchanged",
        "// rest of the function remains the same",
        "/* ... */",
        "<!-- ... -->",
        "<!-- rest of the page -->",
        "{/* existing code */}",
        "# ... (rest of the code) ...",
        "-- unchanged",
        "... rest of file ...",
        "[...]",
        "// ...existing code...",
        "# (omitted for brevity)",
        "# … unchanged …",
        "// other methods unchanged",
    ],
)
def test_text_left_out_is_refused_in_old_and_in_new(marker: str) -> None:
    text = "def f():\n    a()\n    b()\n    c()\n"

    assert "leaves text out" in str(refusal(text, f"def f():\n{marker}\n    c()", "x = 1"))
    assert "leaves text out" in str(refusal(text, "    a()", f"    x()\n{marker}\n    y()"))


def test_dots_that_are_in_the_file_are_text() -> None:
    text = "a\n...\nb\n# rest unchanged\n"

    assert replace_text(text, "a\n...\nb", "a\n...\nc").text == "a\n...\nc\n# rest unchanged\n"
    assert replace_text(text, "# rest unchanged", "# all").text == "a\n...\nb\n# all\n"


def test_new_lines_that_can_not_move_as_far_are_refused() -> None:
    error = refusal("if a:\n    b()\n", "        if a:\n            b()", "    if a:\n        c()")

    assert "moved" in str(error)


def test_escapes_that_can_be_read_in_two_ways_are_refused() -> None:
    error = refusal('print("a")\n', 'print(\\"a\\")', 'print(\\"a\\")\\nprint(b)')

    assert "two ways" in str(error)


def test_line_numbers_in_half_of_the_new_text_are_refused() -> None:
    assert "line-numbers" in str(refusal("a\nb\n", "1|a\n2|b", "1|a\nc"))


def test_an_escape_that_would_cut_a_literal_is_refused() -> None:
    error = refusal("x = 1\ny = 2\n", "x = 1\\ny = 2", 'x = 1\\nprint("a\\n")')

    assert "can't be read" in str(error)
