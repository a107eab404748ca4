"""What a file is, by its bytes."""

from __future__ import annotations

import gzip
import io
import os
import random
import sqlite3
import struct
import sys
import tarfile
import wave
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.files.file_type import HEAD, Kind, kind_of_content


@each(
    ("head", "name", "expected"),
    [
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a", Kind("pdf", "pdf_extract")),
        (b"%PDF-1.4\nall of it is ASCII", "a.txt", Kind("pdf", "pdf_extract")),
        (b"\x89PNG\r\n\x1a\n", "x", Kind("png", "vision_analyze")),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "x.dat", Kind("jpeg", "vision_analyze")),
        (b"GIF89a", "x.gif", Kind("gif", "vision_analyze")),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "x", Kind("webp", "vision_analyze")),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "x", Kind("heic", "vision_analyze")),
        (b"\0\0\0\x18ftypM4A \0\0\0\0", "x", Kind("m4a", "audio_transcribe")),
        (b"ID3\x03\0\0\0\0\0\x21", "x", Kind("mp3", "audio_transcribe")),
        (b"\xff\xfb\x90\x64\0\x0f", "x", Kind("mp3", "audio_transcribe")),
        (b"OggS\0\x02\0\0", "x", Kind("ogg", "audio_transcribe")),
        (b"\xfd7zXZ\0\0\x04", "x", Kind("xz", "file_compress")),
        (b"7z\xbc\xaf\x27\x1c\0\4", "x", Kind("7z", "file_compress")),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "old.xls", Kind("xls", "spreadsheet")),
        (b"\x7fELF\x02\x01\x01\0", "x", Kind("elf", None)),
        (b"MZ\x90\0\x03\0", "x", Kind("exe", None)),
        (b"\0asm\1\0\0\0", "x.wasm", Kind("wasm", None)),
    ],
)
def test_signatures_are_known(head: bytes, name: str, expected: Kind) -> None:
    assert kind_of_content(head, name) == expected


@each(
    "text",
    [
        "", "\n", "BMW builds cars\n", "MZ is a signature", "ID3 tags are old", "GIF89a is a format",
        "RIFF and WAVE", "PK is short\n", "OTTO was here", "BZh9 is bzip2", "# how %PDF- starts\n",
        "a\x1b[31mred\x1b[0m\n", "one\x01two\x1fthree\n", "page\fbreak", "Obj 1", "x,y\n1,2\n",
        "FORM of words", "1234ftyp", "PACKAGE", "naïve 你好 🙂",
    ],
)  # fmt: skip
def test_texts_that_begin_like_something_else_are_texts(text: str) -> None:
    assert kind_of_content(text.encode(), "notes.txt") == Kind("text", None)
    assert kind_of_content(text.encode("utf-16"), "notes.txt").what == "text"


@pytest.mark.parametrize(
    ("encoding", "words"),
    [("latin-1", "Grüße\n"), ("gbk", "你好，世界"), ("cp1251", "Привет"), ("utf-16-le", "hello"),
     ("utf-16-be", "hello\n"), ("cp932", "こんにちは"), ("utf-32", "hi")],
)  # fmt: skip
def test_a_text_is_one_in_every_encoding(encoding: str, words: str) -> None:
    assert kind_of_content(words.encode(encoding), "a").what == "text"


def test_a_character_cut_at_the_end_of_the_head_does_no_harm() -> None:
    data = ("ä你🙂" * HEAD).encode()

    assert all(kind_of_content(data[: HEAD - cut], "a").what == "text" for cut in range(9))


def test_real_files_are_told(tmp_path: Path) -> None:
    database = tmp_path / "db"
    sqlite3.connect(database).executescript("create table t (a); insert into t values (1)").close()
    sheet = io.BytesIO()
    with zipfile.ZipFile(sheet, "w") as made:
        made.writestr("[Content_Types].xml", "<Types/>")
        made.writestr("xl/workbook.xml", "<workbook/>")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as made_tar:
        made_tar.addfile(tarfile.TarInfo("a"))
    sound = io.BytesIO()
    with wave.open(sound, "wb") as made_sound:
        made_sound.setparams((1, 2, 8_000, 0, "NONE", ""))
        made_sound.writeframes(bytes(200))

    assert kind_of_content(database.read_bytes(), "db") == Kind("sqlite", "database_query")
    assert kind_of_content(sheet.getvalue(), "download") == Kind("xlsx", "spreadsheet")
    assert kind_of_content(sheet.getvalue()[:4], "a.zip") == Kind("zip", "file_compress")
    assert kind_of_content(tar.getvalue(), "a") == Kind("tar", "file_compress")
    assert kind_of_content(gzip.compress(b"text"), "a.txt") == Kind("gzip", "file_compress")
    assert kind_of_content(sound.getvalue(), "a") == Kind("wav", "audio_transcribe")
    assert kind_of_content(Path(sys.executable).read_bytes()[:HEAD], "python").tool is None


def test_data_without_signature_is_binary() -> None:
    numbers = random.Random(5)

    assert kind_of_content(os.urandom(HEAD), "a.txt").what == "binary"
    assert kind_of_content(b"text\0with a zero", "a.txt").what == "binary"
    for form in ("<200i", "<200h", ">200i", "<200d"):
        small = (numbers.randrange(-300, 300) for _ in range(200))
        assert kind_of_content(struct.pack(form, *small), "a").what == "binary"


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Co", "Cn"]), max_size=80))
def test_printable_text_is_never_binary(words: str) -> None:
    kind = kind_of_content(words.encode(), "a.txt").what

    assert kind == "text" or words.lstrip("\ufeff").lstrip().startswith("%PDF-")


@given(st.binary(max_size=400), st.text(max_size=9))
def test_any_bytes_have_a_kind(head: bytes, name: str) -> None:
    assert kind_of_content(head, name).what
