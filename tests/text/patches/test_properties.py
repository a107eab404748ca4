"""What holds for every file and every patch of it."""

from __future__ import annotations

import difflib

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import EditError
from hermes.text.patches.apply import apply_hunks
from hermes.text.patches.parse import parse_patch

words = ["alpha", "beta(1)", "-- c", "++ d", "@@", "*** e", "--- a/x", "}", "\\ f", "{", "g = 2"]
lines = st.builds(
    lambda indent, parts: indent + " ".join(parts),
    st.sampled_from(["", "    ", "\t"]),
    st.lists(st.sampled_from(words), max_size=4),
)
files = st.lists(lines, min_size=1, max_size=20)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str, str]:
    """A file before and after some edits, and the patch between them."""
    before = draw(files)
    after = list(before)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(after)))
        after[place : place + draw(st.integers(0, 2))] = draw(st.lists(lines, max_size=3))
    diff = difflib.unified_diff(
        [line + "\n" for line in before], [line + "\n" for line in after], "a/x", "b/x",
        n=draw(st.sampled_from([1, 3])),
    )  # fmt: skip
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (
        "".join(f"{line}{end}" for line in before),
        "".join(f"{line}{end}" for line in after),
        "".join(diff),
    )


@settings(max_examples=400, deadline=None)
@given(edits())
def test_a_patch_gives_the_other_file_or_is_refused(edit: tuple[str, str, str]) -> None:
    before, after, patch = edit
    if not patch:
        return
    (file,) = parse_patch(patch)
    there = [_has(before, hunk.new) for hunk in file.hunks]
    try:
        result = apply_hunks(before, file.hunks)
    except EditError:
        # A line that is to be doubled and is there twice may have been doubled already.
        assert any(there) or any(not hunk.old for hunk in file.hunks)
        return

    assert result.text == (before if all(there) and result.already else after)


def _has(text: str, new: list[str]) -> bool:
    lines = text.replace("\r\n", "\n").split("\n")[:-1]
    return any(lines[place : place + len(new)] == new for place in range(len(lines)))


@settings(max_examples=300, deadline=None)
@given(edits(), files)
def test_a_patch_for_another_file_changes_only_what_it_names(
    edit: tuple[str, str, str], other: list[str]
) -> None:
    _, _, patch = edit
    if not patch:
        return
    (file,) = parse_patch(patch)
    text = "\n".join(other) + "\n"
    try:
        result = apply_hunks(text, file.hunks)
    except EditError:
        return

    removed = {line.strip() for hunk in file.hunks for mark, line in hunk.lines if mark == "-"}
    kept = [line for line in other if line.strip() not in removed]
    remaining = iter(result.text.split("\n"))
    assert result.already or all(line in remaining for line in kept)
