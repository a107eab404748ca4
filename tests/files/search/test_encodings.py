"""A pattern is found in whatever encoding a file is written, by both engines."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.files.search.conftest import ENGINES, make, search, seen

from hermes.files.search.query import Choice

GERMAN = "Die Größe der Tür wird gemessen.\nDanach fährt er über die Brücke.\nEnde\n" * 3
CHINESE = "这是一个用来测试的文件。\n第二行有中文内容，还有标点。\n最后一行没有。\n" * 3
RUSSIAN = "Это простой текстовый файл.\nВторая строка с важным словом: ёлка.\nКонец\n" * 3
JAPANESE = "これは日本語のテキストです。\n二行目には単語があります。\n終わり\n" * 3

CASES = [
    (GERMAN, "latin-1", "Größe", 3),
    (GERMAN, "cp1252", "fährt.*über", 3),
    (GERMAN, "utf-16-le", "Brücke", 3),
    (GERMAN, "utf-16-be", "Brücke", 3),
    (GERMAN, "utf-16", "Brücke", 3),
    (GERMAN, "utf-32", "Brücke", 3),
    (GERMAN, "utf-8", "Brücke", 3),
    (GERMAN, "utf-8-sig", "Die Größe", 3),
    (GERMAN.replace("\n", "\r\n"), "latin-1", "Brücke\\.$", 3),
    (CHINESE, "gbk", "中文", 3),
    (CHINESE, "gb18030", "第二行.*标点", 3),
    (CHINESE, "utf-16-le", "中文", 3),
    (CHINESE, "utf-16-be", r"\p{Lo}{4}内容", 3),
    (CHINESE, "gbk", "^最后", 3),
    (RUSSIAN, "cp1251", "ёлка", 3),
    (RUSSIAN, "cp1251", r"\u0401|\u0451", 3),
    (JAPANESE, "shift_jis", "単語", 3),
    (JAPANESE, "euc_jp", "日本語", 3),
]


@pytest.mark.parametrize(("text", "encoding", "pattern", "lines"), CASES)
def test_it_is_found_in_every_encoding(
    tmp_path: Path, engine: str, text: str, encoding: str, pattern: str, lines: int
) -> None:
    if engine == "python" and "\\p" in pattern:
        pytest.skip("Python's `re` has no Unicode properties")
    make(tmp_path, {"a/file.txt": text.encode(encoding), "b.txt": "nothing of it\n"})

    found = search(tmp_path, pattern, engine=engine)

    assert found.counts == {"a/file.txt": lines}
    assert (found.scanned, found.skipped.binary) == (2, 0)
    known = text.split("\n")
    for number, _, shown in found.lines["a/file.txt"]:
        assert shown == known[number - 1].removesuffix("\r")


def test_the_lines_around_are_shown_in_the_encoding_too(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {"a.txt": CHINESE.encode("gbk")})

    found = search(tmp_path / "a.txt", "中文", engine=engine, context=1, limit=1)

    assert [text for _, _, text in found.lines["a.txt"]] == CHINESE.split("\n")[:3]


@pytest.mark.parametrize("repeated", [1, 3_000])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [(GERMAN, "latin-1"), (CHINESE, "gbk"), (RUSSIAN, "cp1251"), (JAPANESE, "shift_jis")],
)
def test_what_a_plain_pattern_finds_is_shown_in_the_encoding(
    tmp_path: Path, engine: str, text: str, encoding: str, repeated: int
) -> None:
    data = text.encode(encoding) * repeated + b"needle: " + text.encode(encoding)
    make(tmp_path, {"a.txt": data})

    found = search(tmp_path, "needle", engine=engine)

    assert [line for _, _, line in found.lines["a.txt"]] == ["needle: " + text.split("\n")[0]]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("binary", [False, True])
def test_a_plain_pattern_is_found_in_wide_text_too(
    tmp_path: Path, engine: str, encoding: str, binary: bool
) -> None:
    noise = bytes(range(256)) * 40
    text = "first\nthe needle of it\nlast\n" * 3
    make(tmp_path, {"a/file.txt": text.encode(encoding), "b.txt": "a needle\n", "c.bin": noise})

    found = search(tmp_path, "ne+dle", engine=engine, choice=Choice(binary=binary))

    assert found.counts == {"a/file.txt": 3, "b.txt": 1}
    assert (found.scanned, found.skipped.binary) == ((3, 0) if binary else (2, 1))
    assert found.lines["a/file.txt"][0] == (2, True, "the needle of it")


def test_one_file_of_wide_text_is_searched(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {"file.txt": "the needle of it\nlast\n".encode("utf-16-be")})

    found = search(tmp_path / "file.txt", "needle", engine=engine)

    assert found.counts == {"file.txt": 1}
    assert (found.scanned, found.skipped.binary) == (1, 0)


def test_what_is_no_text_stays_binary(tmp_path: Path, engine: str) -> None:
    noise = bytes(range(256)) * 40
    make(tmp_path, {"a.bin": noise, "b.png": b"\x89PNG\r\n\x1a\n\0\0" + noise, "c": "größer\n"})

    found = search(tmp_path, "ß", engine=engine)

    assert found.counts == {"c": 1}
    assert (found.scanned, found.skipped.binary) == (1, 2)


def test_a_pattern_that_only_python_knows_is_found_too(tmp_path: Path) -> None:
    make(tmp_path, {"a.txt": GERMAN.encode("latin-1")})

    assert search(tmp_path, "(?<=er )über", engine="ripgrep").counts == {"a.txt": 3}


def test_hidden_ignored_and_unchosen_files_stay_out(tmp_path: Path, engine: str) -> None:
    data = GERMAN.encode("latin-1")
    make(
        tmp_path, {".h": data, "x.log": data, "a.txt": data, ".gitignore": "*.log\n", "b.md": data}
    )

    found = search(tmp_path, "Größe", engine=engine, chosen=lambda path: path.endswith(".txt"))

    assert found.counts == {"a.txt": 3}
    assert (found.skipped.hidden, found.skipped.ignored) == (2, 1)


def test_a_large_file_in_another_encoding_is_found(tmp_path: Path, engine: str) -> None:
    make(tmp_path, {"a.txt": ("x" * 99 + "\n").encode() * 100_000 + "Größe\n".encode("latin-1")})

    assert search(tmp_path, "Größe", engine=engine).counts == {"a.txt": 1}


texts = st.text(st.sampled_from("aäöéñ中文字ёя \n"), min_size=1, max_size=40)
encodings = st.sampled_from(
    ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "gb18030", "cp1251", "shift_jis")
)
patterns = st.sampled_from(
    ("ä", "é|a", "中文", "[äя]", r"\bё", "字$", "^é", r"\wö", "ñ a", "ÄÖ", "a")
)


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, encodings, st.binary(max_size=3)), max_size=4), patterns)
def test_both_engines_give_the_same_answer(
    files: list[tuple[str, str, bytes]], pattern: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, (text, encoding, tail) in enumerate(files):
            data = text.encode(encoding, "replace") + tail
            Path(folder, f"f{number}").write_bytes(data)
        root = os.path.realpath(folder)

        for choice in (Choice(), Choice(binary=True)):
            one, other = (
                seen(search(root, pattern, engine=engine, choice=choice, context=1))
                for engine in ENGINES
            )
            assert one == other
