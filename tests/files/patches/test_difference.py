"""Short differences for results."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import EditError
from hermes.files.patches import apply_hunks, parse_patch, short_diff


def test_one_changed_word_is_one_changed_line() -> None:
    before = "".join(f"line {number}\n" for number in range(10_000))
    after = before.replace("line 5000\n", "line five thousand\n")

    assert short_diff(before, after, "x.txt", limit=2_000).split("\n") == [
        "+1 -1 lines",
        "--- a/x.txt",
        "+++ b/x.txt",
        "@@ -4998,7 +4998,7 @@",
        " line 4997",
        " line 4998",
        " line 4999",
        "-line 5000",
        "+line five thousand",
        " line 5001",
        " line 5002",
        " line 5003",
    ]


def test_nothing_changed_is_nothing() -> None:
    assert short_diff("a\n", "a\n", "x", limit=100) == ""


def test_line_endings_and_the_last_line_are_shown_where_they_change() -> None:
    assert "-a␍\n+a" in short_diff("a\r\nb\n", "a\nb\n", "x", limit=500)
    assert "␍" not in short_diff("a\r\nb\r\n", "a\r\nc\r\n", "x", limit=500)
    assert "+a\n\\ No newline at end of file" in short_diff("a\n", "a", "x", limit=500)


def test_what_does_not_fit_is_counted() -> None:
    before = "".join(f"{number}\n" for number in range(1_000))
    after = "".join(f"{number} changed\n" for number in range(1_000))

    text = short_diff(before, after, "x", limit=500)

    assert text.startswith("+1000 -1000 lines\n")
    assert len(text) < 600
    assert "more lines" in text.split("\n")[-1]


@pytest.mark.parametrize("repeats", [False, True])
def test_many_changes_far_apart_stay_apart(repeats: bool) -> None:
    chance = random.Random(7)
    lines = [f"value {number % 9 if repeats else number}" for number in range(10_000)]
    changed = list(lines)
    for place in chance.sample(range(10_000), 200):
        changed[place] = f"changed {place}"

    text = short_diff("\n".join(lines) + "\n", "\n".join(changed) + "\n", "x", limit=100)

    assert text.startswith("+200 -200 lines\n") or repeats


texts = st.lists(st.sampled_from(["a", "b", "long line c", "", "    d", "\te"]), max_size=12).map(
    "\n".join
)


@settings(max_examples=300, deadline=None)
@given(texts, texts, st.booleans())
def test_a_difference_applied_gives_the_other_text(before: str, after: str, ended: bool) -> None:
    before, after = (before + "\n", after + "\n") if ended else (before, after)
    text = short_diff(before, after, "x", limit=100_000)
    if not text:
        assert before == after
        return
    (patch,) = parse_patch(text)
    try:
        result = apply_hunks(before, patch.hunks)
    except EditError:
        return  # an insertion without context, or a place that repeats itself

    assert result.already or result.text == after
