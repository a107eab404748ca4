"""Values known to be secret go in every spelling, also when they arrive in pieces."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import re
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus import each

from hermes.safety.redaction import Redactor

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

VALUES = [
    "Tr0ub4dor&3",
    "correct horse battery staple",
    'q"uo\\te/d+value',
    "pässwörd-ünïcode",
    "0123456789abcdef",
]


@each("value", VALUES)
@each(
    "spell",
    [
        lambda v: v,
        lambda v: json.dumps(v)[1:-1],
        lambda v: json.dumps(json.dumps(v))[3:-3],
        lambda v: quote(v, safe=""),
        lambda v: quote_plus(v),
        lambda v: re.sub("%..", lambda m: m[0].lower(), quote(v, safe="")),
        lambda v: base64.b64encode(v.encode()).decode(),
        lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
        lambda v: v.encode().hex(),
        lambda v: "\n".join(v),
        lambda v: "\u200b".join(v),
        lambda v: "\x1b[0m".join((v[:5], v[5:])),
        lambda v: v[:4] + "\r\n" + v[4:],
        lambda v: v[::-1],
        lambda v: base64.b32encode(v.encode()).decode().rstrip("="),
        lambda v: v.encode().hex(":"),
        lambda v: v.encode().hex(" "),
        lambda v: "".join(f"\\x{byte:02x}" for byte in v.encode()),
        lambda v: "".join(f"%{byte:02X}" for byte in v.encode()),
        lambda v: " ".join(str(byte) for byte in v.encode()),
        lambda v: base64.b64encode(v.encode()[::-1]).decode(),
        lambda v: base64.b64encode(base64.b64encode(v.encode())).decode().rstrip("=")[:-1],
    ],
)
def test_every_spelling_goes(value: str, spell) -> None:  # type: ignore[no-untyped-def]
    spelled = spell(value)

    shown = Redactor([value]).redact(f"before {spelled} after")

    assert spelled not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert "[REDACTED:known]" in shown


@each("value", VALUES)
@each("shift", [0, 1, 2, 3, 4])
def test_base64_of_a_longer_text_goes_in_every_alignment(value: str, shift: int) -> None:
    raw = b"x" * shift + value.encode() + b" and more"
    encoded = base64.b64encode(raw).decode()

    shown = Redactor([value]).redact(encoded)

    assert "[REDACTED:known]" in shown
    # Not even one whole group of the value is left to decode.
    left = shown.split("[REDACTED:known]")
    assert len(left[0]) <= len(base64.b64encode(b"x" * shift)) + 1


@each("value", VALUES)
@each("shift", range(6))
def test_base32_of_a_longer_text_goes_in_every_alignment(value: str, shift: int) -> None:
    encoded = base64.b32encode(b"x" * shift + value.encode() + b" and more").decode()

    assert "[REDACTED:known]" in Redactor([value]).redact(encoded)
    assert "[REDACTED:known]" in Redactor([value]).redact(encoded.lower())


@each("value", VALUES)
@each("pack", [gzip.compress, zlib.compress, bz2.compress, lzma.compress])
def test_compressed_text_with_a_known_value_in_it_goes(
    value: str, pack: Callable[[bytes], bytes]
) -> None:
    data = pack(f"some lines\nof a file\nkey = {value}\n".encode())
    wrapped = re.sub("(.{76})", r"\1\n", base64.b64encode(data).decode())

    for encoded in (wrapped, data.hex()):
        shown = Redactor([value]).redact(f"before\n{encoded}\nafter")
        assert encoded not in shown
        assert "[REDACTED:known]" in shown
        assert shown.startswith("before")


@pytest.mark.parametrize("value", VALUES)
def test_a_dump_of_its_bytes_goes(value: str) -> None:
    data = f"some text in front of it: {value} and more".encode()
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    dump = "\n".join(f"{16 * n:08x}: {row.hex(' ', 2)}  ......" for n, row in enumerate(rows))

    assert Redactor([value]).redact(f"$ xxd f\n{dump}\n$") == "$ xxd f\n[REDACTED:known]$"


def test_ordinary_dumps_and_compressed_texts_stay() -> None:
    text = base64.b64encode(gzip.compress(b"nothing secret")).decode()
    dump = "00000000: 6e6f 7468 696e 6720 7365 6372 6574 0a  nothing secret."

    assert Redactor(["Tr0ub4dor&3"]).redact(f"{text}\n{dump}") == f"{text}\n{dump}"


def test_json_stays_json_when_a_known_value_is_a_number() -> None:
    shown = Redactor(["12345678"]).redact('{"a": 12345678, "b": "x 12345678"}')

    assert "12345678" not in shown
    assert json.loads(shown)["b"].startswith("x ")


def test_short_values_go_as_whole_words_only() -> None:
    redactor = Redactor(["abcd", "ab", "", "   "])

    assert redactor.redact("abcd abcde ab") == "[REDACTED:known] abcde ab"


def test_values_can_be_added_later() -> None:
    redactor = Redactor()
    redactor.add("swordfish99")

    assert redactor.redact("a swordfish99 b") == "a [REDACTED:known] b"
    assert redactor.redact_value({"x": ["swordfish99"]}) == {"x": ["[REDACTED:known]"]}


LOG = (
    "starting up\n"
    "key is {value} ok\n"
    "password: hunter2\n"
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA75Ow3g0DnWLZhFSXuTGN0123456789abcd\n"
    * 20
    + "-----END RSA PRIVATE KEY-----\n"
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a\n"
    '{{"name": "DB_PASSWORD",\n "value": "hunter3"}}\n'
    "Authorization: Bearer abc123def456ghi789\n"
    "done {value}"
)
GONE = ["Tr0ub4dor&3", "hunter2", "hunter3", "MIIEpAIBAAK", "16C7e42F292c", "abc123def456ghi789"]


@given(st.randoms(use_true_random=False), st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_no_way_of_cutting_a_stream_lets_a_secret_through(
    dice: random.Random, largest: int
) -> None:
    text = LOG.format(value="Tr0ub4dor&3")
    stream = Redactor(["Tr0ub4dor&3"]).stream()
    shown = ""
    at = 0
    while at < len(text):
        size = dice.randint(1, largest)
        shown += stream.feed(text[at : at + size])
        at += size
    shown += stream.close()

    assert not [secret for secret in GONE if secret in shown]
    assert shown.startswith("starting up\nkey is [REDACTED:known] ok\n")
    assert shown.endswith("done [REDACTED:known]")


def test_a_known_value_cut_by_a_line_end_is_caught_in_a_stream() -> None:
    stream = Redactor(["Tr0ub4dor&3-and-more"]).stream()

    shown = (
        stream.feed("a Tr0ub4do\n")
        + stream.feed("r&3-and-\n")
        + stream.feed("more b\n")
        + stream.close()
    )

    assert "Tr0ub" not in shown
    assert "r&3" not in shown
    assert shown.startswith("a ")
    assert shown.endswith(" b\n")


def test_ordinary_lines_pass_a_stream_at_once() -> None:
    stream = Redactor(["Tr0ub4dor&3"]).stream()

    assert stream.feed("one\ntwo\nthr") == "one\ntwo\n"
    assert stream.feed("ee\n") == "three\n"
    assert stream.close() == ""


def test_what_a_stream_holds_back_is_bounded() -> None:
    stream = Redactor(["Tr0ub4dor&3"]).stream()
    fed = shown = 0
    for piece in (
        "x" * 1000,
        "-----BEGIN RSA PRIVATE KEY-----\n",
        *["A1b2C3d4" * 100 + "\n"] * 2000,
    ):
        fed += len(piece)
        shown += len(stream.feed(piece))
        assert len(stream._held) < 400_000

    assert "A1b2C3d4A1b2" not in stream.close()


@given(st.text(min_size=8, max_size=30), st.text(max_size=50), st.text(max_size=50))
def test_a_known_value_is_never_left(value: str, before: str, after: str) -> None:
    shown = Redactor([value]).redact(before + value + after)

    if (
        len(value.strip()) >= 6
        and "REDACTED:" not in value
        and value.strip() not in "[REDACTED:known]"
    ):
        assert value not in shown
