"""Expressions of numbers, as plain Python."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.embedded.arithmetic import invalid_expression, program, result


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        ("487 * 36", "print(487 * 36)"),
        ("23% * 1840", "print(23 / 100 * 1840)"),
        ("sum(1, 2.5)", "print(sum([1, 2.5]))"),
        ("average(1, 2, 6)", "print(sum([1, 2, 6]) / 3)"),
        ("sqrt(2)^2 + max(1, 2)", "from math import sqrt; print(sqrt(2) ** 2 + max(1, 2))"),
    ],
)
def test_a_call_is_shown_as_people_would_write_it(expression: str, line: str) -> None:
    assert program(expression) == line


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_sums_and_averages_are_right(some: list[int]) -> None:
    listed = ", ".join(map(str, some))

    assert worked_out(f"sum({listed})") == str(sum(some))
    assert float(worked_out(f"average({listed})")) == pytest.approx(sum(some) / len(some))


def test_numbers_are_said_as_people_write_them() -> None:
    assert worked_out("0.1 + 0.2") == "0.3"
    assert worked_out("744 / 2") == "372"
    assert worked_out("007 + 10") == "17"
    assert worked_out("2**200") == str(2**200)
    assert result("inf") == "inf"


def test_a_sum_is_not_added_to_an_average_of_the_same_numbers() -> None:
    assert "Work out the one" in invalid_expression(
        "sum(1, 2, 3) + average(1, 2, 3) + max(1, 2, 3)"
    )
    for fine in ("sum(1, 2) + sum(3, 4)", "max(1, 2) - min(1, 2)", "max(1, 2) / sum(1, 2)"):
        assert not invalid_expression(fine)
    assert "no expression" in invalid_expression("3 +")


def worked_out(expression: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program(expression))
    return result(printed.getvalue())
