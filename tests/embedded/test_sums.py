"""What is counted for the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.embedded.arithmetic import counted_noun, sums


def test_columns_have_their_sums_and_averages() -> None:
    told = sums("day,rain\nmon,4\ntue,8\n")

    assert "The first line is a heading, 2 rows follow." in told
    assert "In the column rain the sum is 12, the average 6, the largest 8" in told


@pytest.mark.parametrize(
    "text",
    ["12.50\n7.50\n", "milk 12.50\nbread 7.50\n", "rent: 12.50 EUR\n\nfood: $7.50\n"],
)
def test_lines_with_a_number_each_are_summed_up(text: str) -> None:
    assert "the sum is 20" in sums(text)


@pytest.mark.parametrize(
    "text",
    ["", "one line 5", "Once upon a time\nthere was a fox.\n", "on 2026-03-01\non 2026-03-02\n",
     "at 10:30\nat 11:45\n", "from 3 to 5\nfrom 6 to 9\n", "v1.2.3\nv1.2.4\n"],
)  # fmt: skip
def test_what_is_no_list_of_numbers_is_not_summed_up(text: str) -> None:
    assert "sum" not in sums(text)


@given(st.text(max_size=300))
def test_no_text_is_too_strange(text: str) -> None:
    assert isinstance(sums(text), str)


def test_one_is_one() -> None:
    assert (counted_noun(1, "line"), counted_noun(0, "line")) == ("1 line", "0 lines")
