"""Long texts made short, with what matters left in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.embedded.result_text import MOST, cut, excerpt, tokens


def test_a_short_text_stays_as_it_is() -> None:
    assert excerpt("one\ntwo\n", "anything") == "one\ntwo\n"


def test_of_a_long_text_its_ends_stay_and_the_lines_that_the_request_is_about() -> None:
    lines = [f"row {n}: nothing of note happens here" for n in range(500)]
    lines[317] = "The ferry leaves the harbour at noon."

    short = excerpt("\n".join(lines), "When is the ferry leaving?")

    assert lines[317] in short
    assert lines[316] in short
    assert lines[0] in short
    assert lines[-1] in short
    assert "more lines …]" in short
    assert tokens(short) < MOST * 1.3


@given(st.text(alphabet="ab1.,\n ü漢", max_size=9_000), st.text(max_size=60))
def test_no_text_is_too_long_or_too_strange(text: str, about: str) -> None:
    short = excerpt(text, about, most=100)

    assert short == text or tokens(short) < 100 + 10 * short.count("…]") + 120


def test_digits_are_a_token_each() -> None:
    assert tokens("20260316") == 8
    assert tokens("harbour") < 4


def test_long_lines_lose_their_middle() -> None:
    short = cut("x" * 10_000, 2_000)

    assert len(short) < 2_100
    assert "8000 characters left out" in short
