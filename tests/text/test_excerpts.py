"""What is shown of long lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.text.diff import common_prefix, excerpt, first_shown

texts = st.text("ab", max_size=30)


@given(texts, texts)
def test_the_common_prefix_is_the_longest(one: str, other: str) -> None:
    count = common_prefix(one, other)

    assert one[:count] == other[:count]
    assert one[count : count + 1] != other[count : count + 1] or count in (len(one), len(other))


@given(texts, st.integers(0, 40), st.integers(1, 40))
def test_an_excerpt_is_a_piece_of_the_line(line: str, start: int, most: int) -> None:
    shown = excerpt(line, start, most)

    assert shown.strip("…") in line
    assert len(shown.strip("…")) == min(len(line), most)
    assert shown == line or "…" in shown


@given(texts, texts, st.integers(1, 20))
def test_the_first_letter_that_differs_is_shown(one: str, other: str, most: int) -> None:
    (start,) = first_shown([one], [other], most=most, lead=most // 2)

    at = common_prefix(one, other)
    if max(len(one), len(other)) > most:
        assert start <= at < start + most
    else:
        assert start == 0
