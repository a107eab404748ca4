"""Text encodings of files: decode and encode with the same encoding, byte order mark and line
ends.
"""

from __future__ import annotations

import codecs

from hermes.core.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Newline = Literal["\n", "\r\n", "\r", "mixed"]

# The longer marks come first: one starts with another.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_WIDTHS = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_SPACES = str.maketrans(
    "", "", "\t\n\r\f\v\x1b\b\x85\xa0\u2028\u2029\u3000\ufeff\u200b\u200e\u200f"
)
_SAMPLE = 1 << 16
_ESCAPED = "backslashreplace"


class Text:
    """A text, and how it is written; `tail` has the bytes at the end that are no character."""

    __slots__ = ("bom", "certain", "encoding", "errors", "newline", "tail", "text")

    def __init__(
        self,
        text: str,
        encoding: str = "utf-8",
        *,
        bom: bytes = b"",
        certain: bool = True,
        errors: str = "strict",
        tail: bytes = b"",
    ) -> None:
        self.text = text
        self.encoding = encoding
        self.bom = bom
        self.certain = certain
        self.errors = errors
        self.tail = tail
        self.newline = newline_of(text)

    @property
    def shown(self) -> str:
        """The text as it can be printed: bytes that mean nothing are replaced."""
        if self.errors == "strict":
            return self.text
        return self.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def __repr__(self) -> str:
        doubt = "" if self.certain else ", uncertain"
        return f"Text({len(self.text)} characters, {self.encoding}{doubt}, {self.newline!r})"


def decode(data: bytes) -> Text:
    """The text of a whole file in any encoding; never fails."""
    encoding, bom, certain = detect(data)
    if certain and encoding == "utf-8":
        return Text(data.decode())
    body = data[len(bom) :]
    whole = len(body) - len(body) % width_of(encoding)
    tail = body[whole:]
    for errors in ("strict", "surrogatepass" if encoding in _WIDTHS else "surrogateescape"):
        try:
            text = body[:whole].decode(codec_of(encoding), errors)
            # Some characters have two codes in the encodings of the East; only one comes back.
            if text.encode(codec_of(encoding), errors) == body[:whole]:
                sure = certain and errors == "strict" and not tail
                return Text(text, encoding, bom=bom, certain=sure, errors=errors, tail=tail)
        except UnicodeError:
            continue
    text = data.decode("utf-8", "surrogateescape")
    return Text(text, certain=False, errors="surrogateescape")


def encode(text: str, like: Text) -> bytes:
    """A text as bytes, in the encoding and with the byte order mark of another one.

    Raises:
        ToolError: The encoding lacks a character of the text; or it is not certain, and the
            text has a character that the other one does not show the bytes of.
    """
    if not like.certain and text != like.text:
        known = set(like.text)
        for position, character in enumerate(text):
            if character > "\x7f" and character not in known:
                raise _unwritable(text, position, "an encoding that is not known for certain")
    try:
        return like.bom + text.encode(codec_of(like.encoding), like.errors) + like.tail
    except UnicodeEncodeError as error:
        raise _unwritable(text, error.start, like.encoding) from None


def newline_of(text: str) -> Newline:
    """How the lines of a text end; that of a new line where there is none yet."""
    if "\r" not in text:
        return "\n"
    both = text.count("\r\n")
    returns, feeds = text.count("\r"), text.count("\n")
    if both == returns == feeds:
        return "\r\n"
    if not feeds:
        return "\r"
    return "mixed"


def detect(data: bytes) -> tuple[str, bytes, bool]:
    """The encoding of a file, its byte order mark, and whether that is certain."""
    encoding, bom = unicode_of(data)
    if encoding:
        return encoding, bom, encoding in _WIDTHS or b"\0" not in data
    from hermes.text.charset import guess

    found = guess(data)
    return found.encoding, b"", found.certain and b"\0" not in data


def unicode_of(data: bytes, *, whole: bool = True) -> tuple[str, bytes]:
    """The form of Unicode that bytes are written in, and their mark; "" when it is none.

    Args:
        data: A file, or its start.
        whole: Whether these are all bytes, so that a character cut at the end is a flaw.
    """
    if data.isascii() and b"\0" not in data:
        return "utf-8", b""
    for mark, encoding in _MARKS:
        if data.startswith(mark) and _marked(data, mark, encoding):
            return encoding, mark
    if b"\0" in data and (wide := _wide(data)):
        return wide, b""
    try:
        codecs.utf_8_decode(data, "strict", whole)
    except UnicodeDecodeError:
        return "", b""
    return "utf-8", b""


def codec_of(encoding: str) -> str:
    """The name that Python knows an encoding without byte order mark by."""
    return "utf-8" if encoding == "utf-8-sig" else encoding


def width_of(encoding: str) -> int:
    """The bytes that the characters of an encoding are multiples of."""
    return _WIDTHS.get(encoding, 1)


def _marked(data: bytes, mark: bytes, encoding: str) -> bool:
    """Whether a mark is one: two of them may be the start of an older or shorter encoding."""
    if encoding == "utf-8-sig":
        return True
    body = data[len(mark) : _SAMPLE]
    body = body[: len(body) - len(body) % width_of(encoding)]
    if width_of(encoding) == 4:
        try:
            return "\0" not in body.decode(encoding)
        except UnicodeDecodeError:
            return False
    return True


def _wide(data: bytes) -> str | None:
    """The encoding of two or four bytes that a text without mark is written in."""
    sample = data[: _SAMPLE & ~3]
    best: tuple[float, str] | None = None
    for encoding, width in _WIDTHS.items():
        if len(data) % width and len(data) <= _SAMPLE:
            continue
        try:
            text = sample[: len(sample) - len(sample) % width].decode(encoding)
        except UnicodeDecodeError as error:
            if error.start < len(sample) - width:
                continue
            text = sample[: error.start].decode(encoding)
        plain = text.translate(_SPACES)
        if not plain.isprintable() or not text or _pairs(text):
            continue
        # ASCII, or at least the spaces and line ends between other letters.
        share = sum(character < "\x80" for character in text) / len(text)
        if share >= (0.4 if len(text) < 8 else 0.02) and (best is None or share > best[0]):
            best = share, encoding
    return best[1] if best else None


def _pairs(text: str) -> bool:
    """Whether characters of two bytes are rather two letters each, with a zero here and there."""
    beyond = [divmod(ord(character), 256) for character in text if character > "\xff"]
    letters = sum(32 <= high < 127 and 32 <= low < 127 for high, low in beyond)
    return letters * 5 > len(beyond) * 3 and letters > len(text) - len(beyond)


def _unwritable(text: str, position: int, encoding: str) -> ToolError:
    import unicodedata

    character = text[position]
    name = unicodedata.name(character, "half of a character" if _half(character) else "no name")
    shown = "" if _half(character) else f"{character!r}, "
    line = text.count("\n", 0, position) + 1
    return ToolError(
        f"line {line} has {shown}U+{ord(character):04X} ({name}), which can't be written in "
        f"{encoding}, the encoding of the file",
        hint="Use characters that the file has already or plain ASCII, or convert it to UTF-8.",
    )


def _half(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


# -- console output -----------------------------------------------------------------------------


def decode_console(data: bytes, *, cut: bool = False) -> str:
    """Output of a command as text: UTF-8, else by a guess; undecodable bytes become `\\xNN`.

    With `cut`, the data may begin or end in the middle of a character.
    """
    if data.isascii() and b"\0" not in data:
        return data.decode("ascii")
    encoding, bom = unicode_of(data, whole=not cut)
    wide = encoding in _WIDTHS
    if wide and not cut and len(data) % width_of(encoding):
        encoding = ""
    # Text of two or four bytes a character has a zero byte somewhere; other data hardly.
    if encoding and (not wide or b"\0" in data):
        body = data[len(bom) :]
        if wide:
            body = body[: len(body) - len(body) % width_of(encoding)]
        elif cut:
            body = _trimmed(body)
        return body.decode(codec_of(encoding), _ESCAPED)
    return _decode_lines(_trimmed(data) if cut else data)


def live_decoder() -> codecs.IncrementalDecoder:
    """UTF-8 decoder for output as it arrives: a character split between two reads survives."""
    return codecs.getincrementaldecoder("utf-8")(_ESCAPED)


def _decode_lines(data: bytes) -> str:
    """Each line by itself: the programs of one pipeline may write different encodings."""
    lines: list[bytes | str] = []
    foreign: list[bytes] = []
    for line in data.splitlines(keepends=True):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            lines.append(line)
            foreign.append(line)
    encoding = _console_encoding(b"".join(foreign)) if foreign else ""
    return "".join(
        line if isinstance(line, str) else _decode_line(line, encoding) for line in lines
    )


def _decode_line(line: bytes, encoding: str) -> str:
    try:
        return line.decode(encoding or "ascii")
    except UnicodeDecodeError:
        return line.decode("utf-8", _ESCAPED)


def _console_encoding(data: bytes) -> str:
    """The charset of lines that are not UTF-8: this machine's own, or a certain guess."""
    import locale

    from hermes.text.charset import guess

    try:
        name = codecs.lookup(locale.getencoding()).name
        if name not in ("utf-8", "ascii"):
            data.decode(name)
            return name
    except (LookupError, UnicodeDecodeError):
        pass  # unknown, or not that one
    best = guess(data)
    # 255 is the last letter of the western page, in hardly any word, and common in other data.
    western = best.encoding in ("latin-1", "cp1252")
    return best.encoding if best.certain and not (western and b"\xff" in data) else ""


def _trimmed(data: bytes) -> bytes:
    """UTF-8 without the incomplete characters at both ends."""
    start = 0
    while start < 3 and start < len(data) and 0x80 <= data[start] < 0xC0:
        start += 1
    end = len(data)
    for back in range(1, 4):
        if back > len(data) - start:
            break
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            end = end - back if length > back else end
            break
        if byte < 0x80:
            break
    return data[start:end]
