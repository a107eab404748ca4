"""Known secrets, found in every common encoding, split over lines, or inside compressed data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.redaction.prefilter import bare_text, join_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes.safety.redaction.prefilter import Span

# A shorter value would occur in ordinary words and numbers.
MIN_LENGTH = 4
# From this length on a value is searched inside words and in encodings.
ENCODED_LENGTH = 6
# Needles from this length on are ruled out by samples of `_GRAM` characters.
_LONG = 16
_GRAM = 5
_PREFIX = 3
# The first bytes of compressed data in base64 and hexadecimal: gzip, zlib, bzip2, xz.
_COMPRESSED = (
    "H4sI", "eJw", "eAE", "eNo", "QlpoO", "/Td6WFoA", "_Td6WFoA",
    "1f8b08", "789c", "7801", "78da", "425a68", "fd377a585a",
)  # fmt: skip
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}(?:\s+[A-Za-z0-9+/_-]{8,})*={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){8,}(?:\s+(?:[0-9a-fA-F]{2}){4,})*")
# Lines of `xxd`, `hexdump` and `od -x`: an offset, then bytes.
_DUMP = re.compile(r"(?m)(?:^[0-9a-fA-F]{6,8}:?[ \t]+(?:[0-9a-fA-F]{2,4}[ \t]*)+.*\n?)+")
_DUMP_LINE = re.compile(
    r"(?m)^[0-9a-fA-F]{6,8}:?[ \t]+((?:[0-9a-fA-F]{2}(?:[0-9a-fA-F]{2})? {0,2})+)"
)
_MAX_INFLATED = 1 << 20


class KnownValues:
    """The known values with all spellings of each."""

    __slots__ = ("_index", "_values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: dict[str, None] = {}
        self._index: _Index | None = None
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def longest(self) -> int:
        """The length of the longest spelling."""
        return self._ready().longest

    def add(self, value: str) -> None:
        """Add a value; blank and very short ones are ignored."""
        for spelling in (value, value.strip()):
            if len(spelling) >= MIN_LENGTH and spelling not in self._values:
                self._values[spelling] = None
                self._index = None

    def find(self, text: str) -> Iterator[Span]:
        """Each occurrence of each known value."""
        index = self._ready()
        yield from index.plain.find(text)
        for value in index.words:
            if value in text:
                for start, end, kind in _occurrences(text, value):
                    if not _in_word(text, start, end):
                        yield start, end, kind
        if any(mark in text for mark in _COMPRESSED):
            yield from self._find_compressed(text, index.raw)
        if "0000" in text:
            yield from self._find_dumped(text, index.raw)

    def find_joined(self, text: str) -> Iterator[Span]:
        """Each known value with line ends, blanks or invisible characters in it."""
        bare = self._ready().bare
        ordinary = text.isascii() and "\\" not in text and "\x1b" not in text
        if bare.may_occur("".join(text.split()) if ordinary else bare_text(text)):
            joined = join_lines(text)
            if joined:
                yield from map(joined.original, bare.find(joined.text))

    def begins_at_end(self, text: str) -> int:
        """How many characters at the end of `text`, without blanks, may start a known value."""
        index = self._ready()
        tail = text[-index.longest :] if index.longest else ""
        for size in range(len(tail), 0, -1):
            piece = tail[-size:]
            if any(value.startswith(piece) for value in index.prefixes.get(piece[:_PREFIX], ())):
                return size
        return 0

    def _find_compressed(self, text: str, raw: list[bytes]) -> Iterator[Span]:
        """Base64 or hexadecimal text of compressed data with a known value in it."""
        for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex)):
            for match in pattern.finditer(text):
                data = _inflate(decode(match.group()))
                if data and any(value in data for value in raw):
                    yield match.start(), match.end(), "known"

    def _find_dumped(self, text: str, raw: list[bytes]) -> Iterator[Span]:
        """Hexadecimal dumps of bytes with a known value in them; `od -x` swaps bytes."""
        for match in _DUMP.finditer(text):
            data = _from_hex("".join(_DUMP_LINE.findall(match.group())))
            swapped = bytearray(data[: len(data) & ~1])
            swapped[::2], swapped[1::2] = swapped[1::2], swapped[::2]
            if any(value in data or value in swapped for value in raw):
                yield match.start(), match.end(), "known"

    def _ready(self) -> _Index:
        if self._index is None:
            self._index = _Index(list(self._values))
        return self._index


class _Index:
    """The needles, prepared once."""

    __slots__ = ("bare", "longest", "plain", "prefixes", "raw", "words")

    def __init__(self, values: list[str]) -> None:
        long = [value for value in values if len(value) >= ENCODED_LENGTH]
        encoded = [spelling for value in long for spelling in _spellings(value)]
        bare = _bare_spellings(encoded)
        encoded += [text for value in long for text in _byte_spellings(value)]
        self.words = [value for value in values if len(value) < ENCODED_LENGTH]
        self.raw = [value.encode("utf-8", "surrogatepass") for value in long]
        self.plain = _Needles(encoded)
        self.bare = _Needles(bare)
        everything = dict.fromkeys((*encoded, *bare, *self.words))
        self.longest = max(map(len, everything), default=0)
        # By their first characters, and by the parts of these, for the end of a text.
        self.prefixes: dict[str, list[str]] = {}
        for spelling in everything:
            for size in range(1, _PREFIX + 1):
                self.prefixes.setdefault(spelling[:size], []).append(spelling)


class _Needles:
    """Many texts to search for at once.

    A long needle covers a position that is a multiple of `_step`: samples of a few characters there
    rule out all long needles at once.
    """

    __slots__ = ("_grams", "_long", "_short", "_step")

    def __init__(self, texts: list[str]) -> None:
        # Longest first: a value that contains another is masked as a whole.
        ordered = sorted(dict.fromkeys(texts), key=len, reverse=True)
        self._long = [text for text in ordered if len(text) >= _LONG]
        self._short = [text for text in ordered if len(text) < _LONG]
        self._step = min(map(len, self._long), default=_LONG) - _GRAM + 1
        # A sampled position is among the first `_step` of each needle.
        self._grams = {text[at : at + _GRAM] for text in self._long for at in range(self._step)}

    def may_occur(self, text: str) -> bool:
        """False only when no needle is in `text`."""
        return self._may_have_long(text) or any(needle in text for needle in self._short)

    def find(self, text: str) -> Iterator[Span]:
        """Each occurrence of each needle."""
        needles = self._long + self._short if self._may_have_long(text) else self._short
        for needle in needles:
            if needle in text:
                yield from _occurrences(text, needle)

    def _may_have_long(self, text: str) -> bool:
        if not self._grams:
            return False
        samples = {text[at : at + _GRAM] for at in range(0, len(text), self._step)}
        return not self._grams.isdisjoint(samples)


def _occurrences(text: str, value: str) -> Iterator[Span]:
    at = text.find(value)
    while at >= 0:
        yield at, at + len(value), "known"
        at = text.find(value, at + 1)


def _in_word(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()


def _spellings(value: str) -> list[str]:
    """The value as it is, reversed, escaped, quoted, and in the usual encodings of its bytes."""
    import codecs
    import json
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    spellings = [value, value[::-1], codecs.encode(value, "rot13")]
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        spellings += [once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]]
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        spellings += [quoted, quoted.replace("%", "%25"), _lower_escapes(quoted)]
    spellings.append(value.replace("'", "'\\''"))
    spellings.append(value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    spellings += [raw.hex(), raw.hex().upper()]
    if len(raw) >= ENCODED_LENGTH:
        spellings += [*_base64_spellings(raw), *_base32_spellings(raw)]
        spellings += [*_base64_spellings(raw[::-1]), raw[::-1].hex()]
    # JSON may write a slash as `\/`.
    spellings += [spelling.replace("/", "\\/") for spelling in spellings if "/" in spelling]
    return [text for text in dict.fromkeys(spellings) if len(text) >= ENCODED_LENGTH]


def _byte_spellings(value: str) -> list[str]:
    """Every byte as a number or an escape: hexadecimal, octal, decimal."""
    raw = value.encode("utf-8", "surrogatepass")
    spellings = []
    for separator, prefix in (
        (":", ""),
        ("-", ""),
        (",", ""),
        ("", "\\x"),
        ("", "%"),
        (", ", "0x"),
    ):
        spellings.append(separator.join(f"{prefix}{byte:02x}" for byte in raw))
        if separator in ":-" or prefix == "%":
            spellings.append(separator.join(f"{prefix}{byte:02X}" for byte in raw))
    spellings.append("".join(f"\\u{byte:04x}" for byte in raw))
    spellings.append("".join(f"\\{byte:03o}" for byte in raw))
    spellings.append("".join(f"&#{byte};" for byte in raw))
    spellings += [separator.join(map(str, raw)) for separator in (" ", ",", ", ", "\n")]
    return spellings


def _base64_spellings(raw: bytes) -> Iterator[str]:
    import base64

    for skip in range(3):
        # A character carries six bits; those that share bits with neighbours are left out.
        text = base64.b64encode(b"\0" * skip + raw).decode()
        core = text[(skip * 8 + 5) // 6 : (skip + len(raw)) * 8 // 6]
        if skip == 0:
            yield text
            # Encoded twice.
            yield base64.b64encode(text.encode()).decode().rstrip("=")[:-1]
        yield core
        yield core.replace("+", "-").replace("/", "_")


def _base32_spellings(raw: bytes) -> Iterator[str]:
    import base64

    for skip in range(5):
        text = base64.b32encode(b"\0" * skip + raw).decode()
        core = text[(skip * 8 + 4) // 5 : (skip + len(raw)) * 8 // 5]
        if skip == 0:
            yield text.rstrip("=")
        yield core
        yield core.lower()


def _bare_spellings(spellings: list[str]) -> list[str]:
    """The spellings without blanks, and without escaped ones."""
    bare = {form for text in spellings for form in ("".join(text.split()), bare_text(text))}
    return sorted((text for text in bare if len(text) > ENCODED_LENGTH + 1), key=len, reverse=True)


def _lower_escapes(quoted: str) -> str:
    pieces = quoted.split("%")
    return pieces[0] + "".join(f"%{piece[:2].lower()}{piece[2:]}" for piece in pieces[1:])


def _from_base64(text: str) -> bytes:
    import base64

    text = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text[: len(text) - (len(text) % 4 == 1)] + "==", validate=False)
    except ValueError:
        return b""


def _from_hex(text: str) -> bytes:
    digits = "".join(text.split())
    return bytes.fromhex(digits[: len(digits) & ~1])


def _inflate(data: bytes) -> bytes:
    """Compressed data, decompressed up to a limit; empty for anything else."""
    import bz2
    import lzma
    import zlib

    try:
        if data[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(data, _MAX_INFLATED)
        if data[:6] == b"\xfd7zXZ\0":
            return lzma.LZMADecompressor().decompress(data, _MAX_INFLATED)
        if data[:2] == b"\x1f\x8b" or data[:1] == b"\x78":
            return zlib.decompressobj(47).decompress(data, _MAX_INFLATED)
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError):
        return b""
    return b""
