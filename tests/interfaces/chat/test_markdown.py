"""Answers in pieces: whatever comes, in whatever pieces, nothing of it is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes.interfaces.chat.markdown import Block, Blocks, rendered
from hermes.interfaces.cli.terminal import columns, only_styles, safe, wrapped, wrapped_styled

LINES = st.sampled_from(
    [
        "",
        "words of a paragraph",
        "- an item",
        "  - nested item",
        "  more of it",
        "1. first",
        "12) twelfth",
        "# Heading",
        "Setext",
        "======",
        "---",
        "```python",
        "```",
        "````",
        "~~~",
        "    indented code",
        "| a | b |",
        "|---|---|",
        "| 1 | 2 | 3 |",
        "> quoted",
        "<div>tag</div> &amp; [ref][1]",
        "[1]: http://example.org/ref",
        '[link](http://example.org "title") ![picture](pic.png)',
        "**bold *italic** `co``de` ~~struck~~ \\* a_b_c",
        "\ttabbed",
        "中文字符混合 words é ß 🎉",
        "x" * 120,
    ]
)
TEXTS = st.one_of(st.lists(LINES, max_size=14).map("\n".join), st.text(max_size=300))


def blocks_of(text: str, size: int) -> list[Block]:
    blocks = Blocks()
    found = [one for at in range(0, len(text), size) for one in blocks.feed(text[at : at + size])]
    return found + blocks.end()


def letters(text: str) -> Counter[str]:
    return Counter(character for character in text if character.isalnum())


@given(TEXTS, st.integers(1, 40))
def test_the_pieces_do_not_matter(text: str, size: int) -> None:
    text = text.replace("\r", "")

    assert blocks_of(text, size) == blocks_of(text, len(text) + 1)


@given(TEXTS)
def test_no_letter_is_lost_on_the_way_to_blocks(text: str) -> None:
    text = text.replace("\r", "")

    found = blocks_of(text, 7)

    # What names the language of code is kept beside it, once for each piece.
    shown = letters("".join(block.text + (block.code or "") for block in found))
    assert not letters(text) - shown


@settings(max_examples=150)
@given(TEXTS, st.sampled_from([20, 40, 80]))
@example("| a | b |\n|---|---|\n| a very long cell | " + "y" * 90 + " |", 40)
@example("# 1. Heading with *stars*", 40)
def test_no_letter_is_lost_on_the_way_to_the_screen(text: str, width: int) -> None:
    for block in blocks_of(text, 9):
        shown = rendered(block, width)

        assert not letters(safe(block.text)) - letters(only_styles(shown))


def test_code_is_not_held_back_until_its_end() -> None:
    blocks = Blocks()

    found = blocks.feed("```sh\n" + "echo\n" * 100)

    assert len(found) == 4
    assert {block.code for block in found} == {"sh"}
    assert [block.close for block in found] == [False, True, True, True]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ("- a\n- b\n\ntext", ["- a", "- b", "text"]),
        ("- a\n\n  more of a\n- b", ["- a\n\n  more of a", "- b"]),
        ("# Title\ntext", ["# Title", "text"]),
        ("say ```x``` inline", ["say ```x``` inline"]),
        ("text\n```\ncode\n\nmore\n```\nafter", ["text", "code\n\nmore", "after"]),
        ("````\n```\nnot the end\n````", ["```\nnot the end"]),
        ("- item\n  ```\n  code\n  ```", ["- item\n  ```\n  code\n  ```"]),
    ],
)
def test_a_block_ends_where_nothing_can_change_it(text: str, blocks: list[str]) -> None:
    assert [block.text for block in blocks_of(text, 3)] == blocks


@given(st.text(max_size=400), st.integers(2, 60))
def test_wrapped_lines_fit_and_lose_nothing_but_blanks(text: str, width: int) -> None:
    text = safe(text)

    lines = wrapped(text, width)

    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(
    st.lists(st.sampled_from(["\x1b[31m", "\x1b[0m", "word ", "longerword", "中文"]), max_size=30)
)
def test_styles_do_not_count_as_width(parts: list[str]) -> None:
    line = "".join(parts)

    lines = wrapped_styled(line, 12)

    bare = [one.replace("\x1b[31m", "").replace("\x1b[0m", "") for one in lines]
    assert all(columns(one) <= 12 for one in bare)
    assert "".join("".join(bare).split()) == "".join(
        line.replace("\x1b[31m", "").replace("\x1b[0m", "").split()
    )


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF), max_size=200))
def test_of_all_controls_only_styles_remain(text: str) -> None:
    shown = only_styles(f"{text}\x1b[1mbold\x1b[0m\x1b]0;x\x07\x1b[2J")

    bare = shown.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "\x1b[1mbold\x1b[0m" in shown
    assert all(
        c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in bare.replace("\x1b[", "")
    )
