"""Changes between lines are always right, whatever they cost."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hermes.text.diff import Change, line_changes

few = st.lists(st.integers(0, 4), max_size=30)


def applied(old: list[int], new: list[int], changes: list[Change]) -> list[int]:
    made: list[int] = []
    at = 0
    for change in changes:
        made += old[at : change.old_start]
        assert len(made) == change.new_start
        made += new[change.new_start : change.new_end]
        at = change.old_end
    return made + old[at:]


@given(few, few)
def test_changes_turn_one_side_into_the_other(old: list[int], new: list[int]) -> None:
    assert applied(old, new, line_changes(old, new)) == new


@given(few, few)
def test_changes_are_in_order_and_apart_from_each_other(old: list[int], new: list[int]) -> None:
    changes = line_changes(old, new)

    for one, following in pairwise(changes):
        assert one.old_end <= following.old_start
        assert one.new_end <= following.new_start
        assert one[1::2] != following[::2]


@given(few)
def test_equal_sides_have_no_changes(lines: list[int]) -> None:
    assert line_changes(lines, list(lines)) == []


def test_a_single_line_among_many_is_a_single_change() -> None:
    old = [f"line {number % 50}" for number in range(5_000)]
    new = [*old[:2_500], "new", *old[2_500:]]

    assert len(line_changes(old, new)) == 1


def test_a_moved_function_is_two_changes() -> None:
    block, rest = ["a {", "x", "}"], ["b {", "y", "}", "c {", "z", "}"]

    changes = line_changes([*block, *rest], [*rest, *block])

    assert len(changes) == 2


def test_sides_with_nothing_in_common_and_no_order_stay_right() -> None:
    chance = random.Random(1)
    old = [str(chance.randrange(30)) for _ in range(3_000)]
    new = [str(chance.randrange(30)) for _ in range(3_000)]
    shuffled = chance.sample(range(5_000), 5_000)

    assert line_changes(old, new)
    assert applied(list(range(5_000)), shuffled, line_changes(range(5_000), shuffled)) == shuffled
