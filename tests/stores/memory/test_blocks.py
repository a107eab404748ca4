"""A file cut into entries and put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.stores.memory.blocks import blocks, entries, with_entry, with_replaced, without

_lines = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.sampled_from(" -#§*"),
    max_size=20,
)
_contents = st.lists(_lines, min_size=1, max_size=5).map(
    lambda lines: "\n".join(line.rstrip() for line in lines).strip()
)
_files = st.text(st.sampled_from("ab \t-*#§\n\r\ufeff"), max_size=60)


def said(text: str) -> list[str]:
    return [block.text for block in entries(text)]


@given(_files, st.lists(_contents.filter(bool), max_size=4))
def test_what_is_added_is_found_again_and_the_rest_is_untouched(
    text: str, contents: list[str]
) -> None:
    grown = text
    for content in contents:
        grown = with_entry(grown, content)

    assert grown.startswith(text)
    assert [one.replace("\r", "") for one in said(grown)[len(said(text)) :]] == contents


@given(_files, _contents.filter(bool), st.data())
def test_a_change_leaves_every_other_block_to_the_byte(
    text: str, content: str, data: st.DataObject
) -> None:
    known = entries(text)
    if not known:
        return
    chosen = data.draw(st.sampled_from(known))

    gone = without(text, [chosen])
    changed = with_replaced(text, [chosen], content)

    assert gone == text[: chosen.start] + text[chosen.end :]
    assert changed.startswith(text[: chosen.start])
    assert changed.endswith(text[chosen.end :])


@given(_files)
def test_blocks_do_not_overlap_and_leave_out_only_blanks_and_rules(text: str) -> None:
    place, between = 0, ""
    for block in blocks(text):
        assert place <= block.start < block.end
        between += text[place : block.start]
        place = block.end
    assert not (between + text[place:]).strip(" \t\r\n§\ufeff")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Notes\n\n- one\n- two\n  more\n\n  still two\nprose\nmore prose\n\nlast",
         ["one", "two\nmore\n\nstill two", "prose\nmore prose", "last"]),
        ("first\n§\nsecond\nline\n§\nthird", ["first", "second\nline", "third"]),
        ("- a\r\n  b\r\n- c\r\n", ["a\nb", "c"]),
        ("\ufeff- a\n", ["a"]),
        ("", []),
        ("\n\n#\n", []),
    ],
)  # fmt: skip
def test_people_may_write_as_they_like(text: str, expected: list[str]) -> None:
    assert said(text) == expected
