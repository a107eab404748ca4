"""What holds for every text and every edit."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes.core.errors import EditError
from hermes.text.replace.engine import replace_text

pieces = st.text("ab(){}=,.\"'\\ \t\n\r“é", max_size=12)
words = st.sampled_from(
    ["alpha", "beta", "gamma", "x1", "foo(bar)", "y = 2", "if z:", "'a b'", "}"]
)
lines = st.builds(
    lambda indent, parts: "    " * indent + " ".join(parts),
    st.integers(0, 3),
    st.lists(words, max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(st.text("abc d"), st.text("abcd ", min_size=1, max_size=6), st.text("xyz"), st.text("abc d"))
def test_an_exact_edit_is_what_str_replace_does(head: str, old: str, new: str, tail: str) -> None:
    text = head + old + tail

    if text.find(old) == text.rfind(old):
        result = replace_text(text, old, new)
        assert result.text == text.replace(old, new)
        assert result.strategy == "exact"
    every = replace_text(text, old, new, replace_all=True)
    assert every.text == text.replace(old, new)
    assert every.count == text.count(old)


@settings(max_examples=600, deadline=None)
@given(pieces, pieces, pieces, pieces, st.booleans())
def test_what_lies_outside_the_spans_is_never_touched(
    head: str, old: str, new: str, tail: str, every: bool
) -> None:
    text = head + old.replace(" ", "  ") + tail
    try:
        result = replace_text(text, old, new, replace_all=every)
    except EditError:
        return

    assert result.count == len(result.spans) >= 1
    position = 0
    rest = result.text
    for start, end in result.spans:
        assert position <= start <= end
        kept = text[position:start]
        assert kept in rest
        rest = rest[rest.index(kept) + len(kept) :]
        position = end
    assert rest.endswith(text[position:])


@settings(max_examples=300, deadline=None)
@given(st.lists(lines, min_size=1, max_size=8), st.data())
def test_a_drifted_block_is_edited_in_its_place_or_not_at_all(
    block: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(block) - 1))
    last = data.draw(st.integers(first + 1, len(block)))
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = ending.join(block) + ending
    tabs = data.draw(st.booleans())
    file_text = text.replace("    ", "\t") if tabs else text
    shift = data.draw(st.sampled_from(["", "    ", "  "]))
    old = "\n".join(shift + line + "  " for line in block[first:last])
    changed = data.draw(st.integers(first, last - 1))
    assume(block[changed].strip())
    bare = [line.strip() for line in block]
    wanted = bare[first:last]
    assume(sum(bare[k : k + len(wanted)] == wanted for k in range(len(bare))) == 1)
    fresh = [*block[:changed], block[changed] + " # changed", *block[changed + 1 :]]
    new = "\n".join(shift + line + "  " for line in fresh[first:last])

    expected = ending.join(fresh) + ending
    expected = expected.replace("    ", "\t") if tabs else expected
    try:
        result = replace_text(file_text, old, new)
    except EditError:
        return
    assert result.text == expected


@pytest.mark.parametrize("text", ["a" * 20_000, "ab" * 10_000, "a\n" * 20_000, "x = 1\n" * 5_000])
def test_repetitive_texts_are_answered_at_once(text: str) -> None:
    for old in (text[: len(text) // 2], text[1:] + "b", "a" * 50, "x  = 1\nx = 1"):
        with pytest.raises(EditError) as caught:
            replace_text(text, old, "new")
        assert len(str(caught.value)) < 20_000
