"""Pages of lines, out of files of any size."""

from __future__ import annotations

import hashlib
import io
import os
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.core import replace_text
from hermes.environments.disk.local_disk import LocalDisk
from hermes.text.line_pages import PIECE, LineReader, numbered, page, page_of

WORDS = {"latin-1": "größe für straße", "gbk": "你好世界，文件", "big5": "這是一個測試檔案"}
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", *WORDS]


def large(encoding: str, ends: list[str], *, final: bool = True) -> tuple[list[str], bytes]:
    """Some ten pieces of text: lines of all lengths, one of them very long."""
    word = WORDS.get(encoding, "naïve 你好 🙂")
    lines = [f"{number} {word * (number * 7 % 8)}" for number in range(6_000)]
    lines[17:20] = ["", "", "x" * (3 * PIECE) + word]
    text = "".join(line + ends[number % len(ends)] for number, line in enumerate(lines))
    if not final:
        text = text[: -len(ends[(len(lines) - 1) % len(ends)])]
    return lines, text.encode(encoding)


@each("ends", [["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"]])
@each("encoding", ENCODINGS)
def test_any_page_of_a_large_file_is_found(encoding: str, ends: list[str]) -> None:
    lines, data = large(encoding, ends, final=encoding != "utf-8")
    reader = LineReader()

    for offset in (1, 2, 18, 20, 21, 4_321, 5_998, 6_000, 6_001, -3):
        got = reader.page(io.BytesIO(data), offset, 10)

        start = offset - 1 if offset > 0 else len(lines) + offset
        assert [line[:2_000] for line in got.lines] == [
            line[:2_000] for line in lines[start : start + 10]
        ]
        assert got.total_lines == 6_000
        assert got.size == len(data)
        assert got.digest == hashlib.sha256(data).hexdigest()
        assert got.newline == (ends[0] if len(ends) == 1 else "mixed")
        assert got == page_of(data, offset, 10)


@given(
    st.lists(st.sampled_from(["a", "\n", "\r", "\r\n", "é", "x" * 40]), max_size=30).map("".join),
    st.integers(-4, 12),
    st.integers(1, 6),
)
def test_lines_are_those_of_the_text(text: str, offset: int, limit: int) -> None:
    got = page(io.BytesIO(text.encode()), offset, limit, max_line=50)

    end = "\n" if "\n" in text else "\r"
    whole = [line.removesuffix("\r") for line in text.split(end)[:-1]]
    lines = whole + [rest for rest in text.split(end)[-1:] if rest]
    start = max(0, offset - 1 if offset >= 0 else len(lines) + offset)
    assert got.lines == [_short(line, 50) for line in lines[start : start + limit]]
    assert got.total_lines == len(lines)
    rest = len(lines) - start - len(got.lines)
    assert got.next_offset == (start + limit + 1 if rest > 0 else None)


def _short(line: str, most: int) -> str:
    lacking = len(line) - most
    return line if lacking <= 0 else f"{line[:most]}… [{lacking:,} more characters]"


def test_following_the_next_offset_shows_every_line_once() -> None:
    lines, data = large("utf-8", ["\n"])
    reader, seen, offset = LineReader(), list[str](), 1

    while offset:
        got = reader.page(io.BytesIO(data), offset, 700, max_chars=20_000)
        assert len(got.text) <= 20_000
        seen += got.lines
        offset = got.next_offset or 0

    assert [line[:2_000] for line in seen] == [line[:2_000] for line in lines]


def test_what_is_cut_off_a_long_line_is_counted() -> None:
    _, data = large("utf-8", ["\r\n"])

    got = page(io.BytesIO(data), 20, 1)

    lacking = 3 * PIECE + len("naïve 你好 🙂") - 2_000
    assert got.cut == {20: lacking}
    assert got.lines[0].endswith(f"x… [{lacking:,} more characters]")


def test_a_line_at_the_limit_is_whole_whatever_it_ends_with() -> None:
    filler = b"y\r\n" * PIECE

    for length in range(1_998, 2_003):
        got = page(io.BytesIO(b"x" * length + b"\r\n" + filler), 1, 1)
        assert got.cut == ({1: length - 2_000} if length > 2_000 else {})


def test_one_line_is_shown_even_if_it_is_more_than_a_page() -> None:
    got = page(io.BytesIO(b"abcdef\nghi\n"), max_chars=3)

    assert (got.lines, got.next_offset) == (["abcdef"], 2)


@pytest.mark.parametrize(("data", "total"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"\n\na", 3)])
def test_small_files_are_counted(data: bytes, total: int) -> None:
    got = page(io.BytesIO(data))

    assert (got.total_lines, len(got.lines), got.next_offset) == (total, total, None)
    assert got.final_newline == (not data or data.endswith(b"\n"))


def test_the_index_of_a_settled_file_is_used_again(tmp_path: Path) -> None:
    file = settled(tmp_path / "a", b"line\n" * 100_000)
    reader, streamed = LineReader(), list[float]()

    for offset in (1, 50_000, 99_999):
        with LocalDisk().open(str(file)) as opened:
            got = reader.page(opened, offset, 1, watch=streamed.append)
            assert (got.lines, got.total_lines) == (["line"], 100_000)
    assert streamed.count(streamed[0]) == 1


def test_a_changed_file_is_streamed_again(tmp_path: Path) -> None:
    file = settled(tmp_path / "a", b"line\n" * 100_000)
    reader = LineReader()

    with file.open("rb") as opened:
        first = reader.page(opened, 100_000)
    before = file.stat()
    settled(file, b"l\nne\n" * 100_000)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a copy that keeps times does
    with file.open("rb") as opened:
        second = reader.page(opened, 100_000)

    assert first.digest != second.digest
    assert second.total_lines == 200_000


def test_a_file_changed_just_now_is_not_trusted(tmp_path: Path) -> None:
    file = tmp_path / "a"
    reader = LineReader()

    for number in range(5):
        file.write_bytes(b"%d ne\n" % number * 20_000)
        with file.open("rb") as opened:
            assert reader.page(opened, 20_000).lines == [f"{number} ne"]


def test_a_file_that_changes_meanwhile_does_no_harm(tmp_path: Path) -> None:
    file = settled(tmp_path / "a", b"line\n" * 100_000)
    reader = LineReader()

    def shrink(_: float) -> None:
        os.truncate(file, 200_000)

    def grow(_: float) -> None:
        with file.open("ab") as more:
            more.write(b"more\n" * 20_000)

    for change in (shrink, grow):
        with file.open("rb", buffering=0) as opened:
            got = reader.page(opened, 39_000, 10, watch=change)
            assert got.total_lines == got.size // 5
    with file.open("rb", buffering=0) as opened:
        got = reader.page(opened, 90_000, 10, watch=shrink)
    assert got.lines == []


def settled(file: Path, data: bytes) -> Path:
    """Write a file and let the clock of the disk go on."""
    file.write_bytes(data)
    time.sleep(0.05)
    return file


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with file.open("wb") as made:
        for _ in range(24):
            made.write(b"a line of some length, like many others\n" * 26_215)  # 1 MB
        made.write(b"x" * (24 << 20))
    reader = LineReader()

    tracemalloc.start()
    try:
        with file.open("rb", buffering=0) as opened:
            got = reader.page(opened)
            last = reader.page(opened, -1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert got.total_lines == 24 * 26_215 + 1
    assert last.cut == {got.total_lines: (24 << 20) - 2_000}
    assert peak < 4 << 20


def test_watching_can_stop_the_reading(tmp_path: Path) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        page(io.BytesIO(b"line\n" * 100_000), watch=stop)


@pytest.mark.parametrize("tail", ["größe für straße\n".encode("latin-1"), b"\xff\xfe\x80\n"])
def test_the_encoding_is_judged_by_the_whole_file(tail: bytes) -> None:
    plain = io.BytesIO(b"nothing but ASCII\n" * 10_000 + tail)
    mixed = io.BytesIO("naïve 你好\n".encode() * 10_000 + tail)

    assert page(plain).encoding != "utf-8"
    assert not page(mixed).certain


@pytest.mark.parametrize("start", [1, 8, 98, 99_995])
def test_pasted_line_numbers_are_recognised_by_an_edit(start: int) -> None:
    lines = ["def f(x):", "", "\treturn [x, 1]", "  # | 3: odd", "", "    pass"]
    text = "before\n" * (start - 1) + "\n".join(lines) + "\nlast\n"

    shown = numbered(lines, start)
    edited = replace_text(text, shown, shown.replace("pass", "return"))

    assert edited.text == text.replace("    pass", "    return")
    assert shown.split("\n")[0].lstrip() == f"{start}|def f(x):"


def test_numbers_are_right_aligned() -> None:
    assert numbered(["a", "", "b"], 9) == " 9|a\n10|\n11|b"
    assert numbered([], 3) == ""
