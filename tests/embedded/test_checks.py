"""Second thoughts before something is written."""

from __future__ import annotations

import pytest

from hermes.embedded.checks import (
    already_calculated,
    numbers,
    ungrounded_expression,
    ungrounded_text,
    wrong_target,
)
from hermes.embedded.tools import TOOLS

BY_NAME = {tool.name: tool for tool in TOOLS}


@pytest.mark.parametrize("spelled", ["1234.5", "1,234.50", "1_234.5", "1.234,50"])
def test_a_number_is_the_same_in_every_spelling(spelled: str) -> None:
    assert numbers(f"about {spelled}.") == {"1234.5"}


def test_a_number_that_is_in_no_result_is_not_written_at_first() -> None:
    write = BY_NAME["write_file"]

    assert "31536000 is in no result" in ungrounded_text(
        write, {"path": "s.txt", "content": "31536000"}, "Seconds in a year to s.txt"
    )
    assert not ungrounded_text(write, {"path": "s.txt", "content": "31,536,000"}, "31536000")


def test_words_small_numbers_and_long_texts_are_not_doubted() -> None:
    write = BY_NAME["write_file"]

    for content in ("milk", "3 eggs", "1984 and all that: " + "words " * 40):
        assert not ungrounded_text(write, {"path": "n.txt", "content": content}, "a note")


def test_looking_is_not_doubted() -> None:
    assert not ungrounded_text(BY_NAME["terminal"], {"command": "seq 1 500"}, "count")


def test_a_file_is_not_edited_in_the_place_of_one_that_is_to_be_made() -> None:
    patch = BY_NAME["patch"]
    asked = "Look up the code in house.txt and make card.txt with it"

    edit = {"path": "house.txt", "old": "alarm: 4711", "new": "4711"}
    assert "There is no card.txt yet" in wrong_target(patch, edit, asked, ["card.txt"])
    assert not wrong_target(patch, edit, asked, [])
    assert not wrong_target(patch, {**edit, "path": "card.txt"}, asked, ["card.txt"])


def test_an_edit_that_the_request_spells_out_is_not_doubted() -> None:
    edit = {"path": "page.html", "old": "exmaple.com", "new": "example.com"}
    asked = "Change exmaple.com to example.com in page.html"

    assert not wrong_target(BY_NAME["patch"], edit, asked, ["exmaple.com", "example.com"])


def test_nothing_is_worked_out_of_numbers_that_were_made_up() -> None:
    wrong = ungrounded_expression("6374 * 2", "Double the number in start.txt\n3187")

    assert "6374 is in no result" in wrong
    assert "3187" in wrong
    assert "1, 2 is in no result" in ungrounded_expression(
        "sum(4, 3, 2, 1) * 100", "4 lines, 3 rows"
    )
    for fine in ("3187 * 2", "3187 * 365 / 1000", "3187 * 1.19"):
        assert not ungrounded_expression(fine, "3187")


def test_sums_and_averages_are_not_added_up() -> None:
    shown = (
        "donor,amount\nKim,120\nLee,80\n\n(In the column amount the sum is 200, the average 100.)"
    )
    wrong = from_results("sum(200, 100)", shown)

    assert wrong.startswith("Not worked out: that is done already.")
    assert "the sum is 200" in wrong
    assert not from_results("120 + 80", shown)
    assert not from_results("200 * 1.19", shown)


def test_a_list_that_was_copied_with_a_mistake_is_not_added_up() -> None:
    shown = "Mon 7.5\nTue 8\nWed 6\nThu 9\n\n(h.txt has 10 words. In its lines the sum is 30.5.)"

    assert "the sum is 30.5" in from_results("sum(10, 8, 6, 9)", shown)
    assert not from_results("sum(7.5, 8, 6, 9)", shown)
    assert not from_results("30.5 * 12", shown)


def from_results(expression: str, *results: str) -> str:
    return already_calculated(BY_NAME["calculate"], {"expression": expression}, results)
