"""Bytes of every console become text, and none is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.encoding import decode_console as decode
from hermes.text.encoding import live_decoder


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("日本語 ünïcode 🙂\n".encode(), "日本語 ünïcode 🙂\n"),
        ("目录不存在\n".encode("gbk"), "目录不存在\n"),
        ("Größe: 5 €\n".encode("cp1252"), "Größe: 5 €\n"),
        ("café déjà vu\n".encode("latin-1"), "café déjà vu\n"),
        ("wide\n".encode("utf-16"), "wide\n"),
        ("wide text\n".encode("utf-16-le"), "wide text\n"),
        ("wide text\n".encode("utf-16-be"), "wide text\n"),
        (b"\xef\xbb\xbfmarked\n", "marked\n"),
        ("größe\n".encode() + "größe\n".encode("cp1252"), "größe\ngröße\n"),
    ],
)
def test_the_code_page_is_found(data: bytes, text: str) -> None:
    assert decode(data) == text


@pytest.mark.parametrize(
    "data", [b"\xff\xfe bad", b"a\xff\xfe\x80b", b"\x80\x81\x82\x83\n", bytes(range(128, 256))]
)
def test_bytes_that_are_no_text_can_still_be_told(data: bytes) -> None:
    shown = decode(data)

    assert "\ufffd" not in shown
    assert shown


@given(st.binary(max_size=400))
def test_nothing_makes_it_fail(data: bytes) -> None:
    assert (
        "\ufffd" not in decode(data)
        or "\ufffd".encode() in data
        or b"\xfd\xff" in data
        or b"\xff\xfd" in data
    )
    decode(data, cut=True)


@given(st.text(max_size=100).filter(lambda t: "\0" not in t and not t.startswith("\ufeff")))
def test_utf8_is_always_read_as_it_was_written(text: str) -> None:
    assert (
        decode(
            text.encode("utf-8", "surrogatepass")
            if text.isascii()
            else text.encode("utf-8", "replace")
        )
        == text.encode("utf-8", "replace").decode()
    )


@given(st.text("aé日🙂", min_size=1, max_size=50), st.data())
def test_a_character_split_between_two_reads_survives(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    at = data.draw(st.integers(0, len(raw)))
    decoder = live_decoder()

    assert decoder.decode(raw[:at]) + decoder.decode(raw[at:], True) == text


@given(st.text("aé日🙂", min_size=4, max_size=50), st.integers(0, 3), st.integers(0, 3))
def test_cut_ends_leave_no_rubbish(text: str, front: int, back: int) -> None:
    raw = text.encode()

    shown = decode(raw[front : len(raw) - back], cut=True)

    assert shown in text
