"""Two sides are told apart to the byte, and shown as lines where they are lines."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.files.compare import content_diff as contents_module
from hermes.files.compare.content_diff import Side, compare_contents, differing

lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d\r\n"]), max_size=25)
ends = st.sampled_from(["", "x", "e"])


def compare(old: bytes, new: bytes, **options: Any) -> dict[str, Any]:
    return compare_contents(Side.of_bytes("old", old), Side.of_bytes("new", new), **options)


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300))
def test_only_equal_bytes_are_identical(same: bytes, one: bytes, other: bytes) -> None:
    found = compare(same + one + same, same + other + same)

    assert found["identical"] is (one == other)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_the_part_that_differs_is_exact(one: bytes, other: bytes) -> None:
    apart = differing(Side.of_bytes("", one), Side.of_bytes("", other), lambda _: None)

    if apart is None:
        assert one == other
        return
    assert one[: apart.head] == other[: apart.head]
    assert one[apart.head : apart.head + 1] != other[apart.head : apart.head + 1]
    if apart.tail:
        assert one[-apart.tail :] == other[-apart.tail :]
    assert apart.head + apart.tail <= min(len(one), len(other))


@given(lines, ends, lines, ends, st.integers(0, 4))
def test_a_unified_diff_can_be_applied(
    old: list[str], old_end: str, new: list[str], new_end: str, context: int
) -> None:
    one, other = "".join(old) + old_end, "".join(new) + new_end
    found = compare(one.encode(), other.encode(), context=context)
    if found["identical"]:
        return

    assert patched(one, found["diff"]) == other


def patched(text: str, diff: str) -> str:
    """What a diff makes of a text, line numbers and context checked."""
    old = text.split("\n")
    old = [line + "\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    made: list[str] = []
    at = 0
    rows = diff.split("\n")[2:-1]
    for number, row in enumerate(rows):
        bare = number + 1 < len(rows) and rows[number + 1].startswith("\\")
        line = row[1:] if bare else row[1:] + "\n"
        if row.startswith("@@"):
            start, _, size = row.split()[1][1:].partition(",")
            begin = int(start) - (size != "0")
            made += old[at:begin]
            at = begin
        elif row.startswith("+"):
            made.append(line)
        elif not row.startswith("\\"):
            assert old[at] == line
            at += 1
            if row.startswith(" "):
                made.append(line)
    return "".join(made + old[at:])


def test_git_applies_it(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(60))
    new = old.replace("line 7\n", "").replace("line 30\n", "x\ny\n").removesuffix("\n")
    (tmp_path / "file").write_text(old)
    sides = Side.of_bytes("a/file", old.encode()), Side.of_bytes("b/file", new.encode())

    diff = compare_contents(*sides)["diff"]
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=tmp_path, check=True)

    assert (tmp_path / "file").read_text() == new


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "gbk"])
def test_text_of_any_encoding_is_compared_by_lines(encoding: str) -> None:
    old = "été à la plage\nun\n" * 3 if encoding != "gbk" else "今天天气很好\n我们去公园\n" * 3
    new = old.replace(old.split("\n")[1], "changed", 1)

    found = compare(old.encode(encoding), new.encode(encoding))

    assert (found["added"], found["removed"]) == (1, 1)
    assert "+changed\n" in found["diff"]


def test_a_change_of_encoding_alone_is_said() -> None:
    found = compare("é\n".encode(), "é\n".encode("utf-16"))

    assert not found["identical"]
    assert any("encoding" in note for note in found["notes"])


def test_a_change_of_line_ends_alone_is_said() -> None:
    found = compare(b"a\nb\n", b"a\r\nb\r\n")

    assert found["added"] == 2
    assert "line endings changed from LF to CRLF" in found["notes"]
    assert "only line endings or encoding differ" in found["notes"]


def test_what_is_no_text_is_told_apart_by_its_hash() -> None:
    found = compare(b"\0\1\2\3", b"\0\1\2\4")

    assert found["reason"] == "not text"
    assert found["first_difference"]["byte"] == 3
    assert found["old"]["sha256"] != found["new"]["sha256"]


def test_a_small_change_in_a_large_file_is_shown_with_its_line_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contents_module, "MOST_BYTES", 4_000)
    old = b"".join(b"line %d\n" % number for number in range(1, 20_001))
    new = old.replace(b"line 9000\n", b"line nine\n")

    found = compare(old, new, context=1)

    assert found["diff"].splitlines()[2:] == [
        "@@ -8999,3 +8999,3 @@",
        " line 8999",
        "-line 9000",
        "+line nine",
        " line 9001",
    ]


def test_large_files_that_differ_everywhere_are_told_apart_by_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contents_module, "MOST_BYTES", 4_000)
    old = b"".join(b"line %d\n" % number for number in range(2_000))

    found = compare(b"a" + old, b"b" + old[:-1])

    assert "too much" in found["reason"]
    assert found["first_difference"] == {"byte": 0, "line": 1}


@given(st.integers(0, 400), st.integers(0, 400), st.binary(max_size=9), st.integers(0, 5))
def test_a_large_file_gives_the_diff_of_a_small_one(
    start: int, end: int, put: bytes, context: int
) -> None:
    old = b"".join(b"%d\n" % (number % 40) for number in range(130))
    new = old[:start] + put.replace(b"\0", b"") + old[max(start, end) :]
    whole = compare(old, new, context=context)
    before = contents_module.MOST_BYTES
    contents_module.MOST_BYTES = 330

    try:
        cut = compare(old, new, context=context)
    finally:
        contents_module.MOST_BYTES = before

    if "diff" in cut and "diff" in whole and not whole.get("notes") and not cut.get("notes"):
        assert patched(old.decode(), cut["diff"]).encode() == new


def test_side_by_side_shows_both() -> None:
    found = compare(b"a\nb\nc\n", b"a\nB\nc\nd\n", form="side_by_side")

    rows = [row.split() for row in found["diff"].splitlines()]
    assert ["b", "|", "B"] in rows
    assert [">", "d"] in rows


def test_a_summary_names_the_places() -> None:
    found = compare(b"a\nb\nc\n", b"a\nB\nc\nd\n", form="summary")

    assert found["changes"] == ["line 2 changed to line 2", "line 4 added"]
    assert "diff" not in found


def test_very_long_lines_are_cut_and_that_is_said() -> None:
    found = compare(b"x" * 50_000 + b"\n", b"y" * 50_000 + b"\n")

    assert len(found["diff"]) < 10_000
    assert any("characters" in note for note in found["notes"])


@pytest.mark.parametrize("form", ["unified", "side_by_side"])
def test_the_change_in_a_long_line_is_seen(form: str) -> None:
    found = compare(
        b"x" * 5_000 + b"needle" + b"y" * 5_000 + b"\n",
        b"x" * 5_000 + b"pin" + b"y" * 5_000 + b"\n",
        form=form,
    )

    assert "xneedley" in found["diff"]
    assert "xpiny" in found["diff"]
