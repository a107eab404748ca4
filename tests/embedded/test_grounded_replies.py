"""Whether what is said is borne out by what the tools said."""

from __future__ import annotations

import pytest

from hermes.embedded.checks import correction, mentions_result, ungrounded_numbers, without_numbers

DISK = "Disk: 37.4 % used, 68.22 GB free of 270.55 GB"


@pytest.mark.parametrize(
    "reply",
    [
        "68.22 GB are free.",
        "About 68 GB of 271 GB are free, 37% is used.",
        "It is 37,4 % full.",
        "Two disks, 3 folders.",
        "10. notes.txt\n11. plan.txt",
    ],
)
def test_numbers_that_were_told_may_be_said_less_precisely(reply: str) -> None:
    assert ungrounded_numbers(reply, DISK) == []


def test_numbers_that_were_made_up_are_found() -> None:
    assert ungrounded_numbers("There are 192.33 GB free of 270.55 GB.", DISK) == ["192.33"]
    assert ungrounded_numbers("68.3 GB", DISK) == ["68.3"]


def test_the_model_hears_which_number_is_wrong_and_what_the_result_was() -> None:
    told = correction("192.33 GB", DISK, DISK)

    assert "192.33 is in no result" in told
    assert DISK in told
    assert not correction("68.22 GB", DISK, DISK)


def test_only_the_sentences_with_wrong_numbers_are_left_out() -> None:
    reply = "The disk is fine. 192.33 GB are free! Have fun.\n\n- v1.5 stays\n- 192.33 goes"

    assert without_numbers(reply, ["192.33"]) == "The disk is fine. Have fun.\n\n- v1.5 stays"
    assert without_numbers("一共有 4711 行。很好。", ["4711"]) == "很好。"
    assert without_numbers(reply, []) == reply


def test_an_answer_with_a_figure_of_the_result_needs_no_other() -> None:
    assert mentions_result("68 GB", DISK)
    assert not mentions_result("Yes, plenty.", DISK)
