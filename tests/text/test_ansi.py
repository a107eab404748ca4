"""Text as it would have been seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.text.ansi import clean


@each(
    ("raw", "shown"),
    [
        ("plain\n", "plain\n"),
        ("\x1b[1;31mred\x1b[0m\n", "red\n"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("10%\r20%\r100%\n", "100%\n"),
        ("long line\rab\n", "abng line\n"),
        ("long line\r\x1b[Kab\n", "ab\n"),
        ("\r\x1b[2Kdone\n", "done\n"),
        ("ab\b\bcd\n", "cd\n"),
        ("b\bbo\bol\bld\bd", "bold"),
        ("bell\x07\n", "bell\n"),
        ("tab\there\n", "tab\there\n"),
        ("\x1b(Bx\x1b=y\x1b7z", "xyz"),
        ("日本\r日\n", "日本\n"),
        ("\x1b", ""),
    ],
)
def test_what_moves_the_cursor_is_carried_out(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_colours_stay_when_asked_for() -> None:
    assert clean("\x1b[31mred\x1b[0m\r\n", ansi=True) == "\x1b[31mred\x1b[0m\n"


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=200))
def test_text_without_controls_is_left_alone(text: str) -> None:
    assert clean(text) == text


@given(st.text(st.sampled_from("ab\r\n\b\x1b[K0m]\x07;"), max_size=200))
def test_whatever_comes_no_control_is_left(text: str) -> None:
    shown = clean(text)

    assert not set(shown) & set("\r\b\x1b\x07")


def test_a_long_progress_bar_costs_no_more_than_its_length() -> None:
    assert clean("\r".join(str(n) for n in range(200_000))) == "199999"
