"""Short differences for results."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import EditError
from hermes.text.diff import short_diff
from hermes.text.patches.apply import apply_hunks
from hermes.text.patches.parse import parse_patch


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


def test_the_change_in_a_long_line_is_seen() -> None:
    before = "x" * 5_000 + "needle" + "y" * 5_000

    said = short_diff(
        f"a\n{before}\nb\n", f"a\n{before.replace('needle', 'pin')}\nb\n", "f", limit=4_000
    )

    removed, added = (line for line in said.split("\n")[3:] if line[0] in "-+")
    assert removed.startswith("-…x")
    assert "xneedley" in removed
    assert added.startswith("+…x")
    assert "xpiny" in added
    assert max(len(removed), len(added)) < 600


def test_lines_that_end_at_carriage_returns_are_lines() -> None:
    before = "".join(f"line {number}\r" for number in range(1, 1_001))

    said = short_diff(before, before.replace("line 500\r", "line five hundred\r"), "f", limit=4_000)

    assert said.split("\n")[0] == "+1 -1 lines"
    assert said.split("\n")[3] == "@@ -497,7 +497,7 @@"
    assert "-line 500" in said.split("\n")
    assert "+line five hundred" in said.split("\n")
