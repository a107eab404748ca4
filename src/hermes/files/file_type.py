"""File type by magic number, and the tool that reads it when it is not text.

A signature of printable letters (`BM`, `ID3`) also starts many ordinary texts. It counts only when
the rest is not text, or when the file name has the matching suffix.
"""

from __future__ import annotations

from typing import NamedTuple

from hermes.text.encoding import unicode_of, width_of

HEAD = 8_192  # bytes that are enough to tell

_VISION, _AUDIO, _ARCHIVE = "vision_analyze", "audio_transcribe", "file_compress"
_TABLES, _DATABASE, _DOCUMENT = "spreadsheet", "database_query", "pdf_extract"


class Kind(NamedTuple):
    """Type of a file (`text`, `pdf`, `png`, …; `binary` if unknown), and the tool that reads it."""

    what: str
    tool: str | None = None


_TEXT, _BINARY = Kind("text"), Kind("binary")

# (bytes, what, tool); the first that fits counts.
_SIGNATURES: tuple[tuple[bytes, str, str | None], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png", _VISION),
    (b"\xff\xd8\xff", "jpeg", _VISION),
    (b"GIF87a", "gif", _VISION),
    (b"GIF89a", "gif", _VISION),
    (b"II*\0", "tiff", _VISION),
    (b"MM\0*", "tiff", _VISION),
    (b"BM", "bmp", _VISION),
    (b"\0\0\1\0", "ico", _VISION),
    (b"8BPS", "psd", None),
    (b"PAR1", "parquet", None),
    (b"ARROW1", "arrow", None),
    (b"\x89HDF\r\n\x1a\n", "hdf5", None),
    (b"\x93NUMPY", "numpy", None),
    (b"GGUF", "gguf", None),
    (b"Obj\x01", "avro", None),
    (b"PK\x03\x04", "zip", _ARCHIVE),
    (b"PK\x05\x06", "zip", _ARCHIVE),
    (b"PK\x07\x08", "zip", _ARCHIVE),
    (b"\x1f\x8b", "gzip", _ARCHIVE),
    (b"BZh", "bzip2", _ARCHIVE),
    (b"\xfd7zXZ\0", "xz", _ARCHIVE),
    (b"\x28\xb5\x2f\xfd", "zstd", _ARCHIVE),
    (b"7z\xbc\xaf\x27\x1c", "7z", _ARCHIVE),
    (b"Rar!\x1a\x07", "rar", None),
    (b"\x04\x22\x4d\x18", "lz4", None),
    (b"!<arch>\n", "ar", None),
    (b"\xed\xab\xee\xdb", "rpm", None),
    (b"MSCF", "cab", None),
    (b"SQLite format 3\0", "sqlite", _DATABASE),
    (b"\x7fELF", "elf", None),
    (b"MZ", "exe", None),
    (b"\xfe\xed\xfa\xce", "mach-o", None),
    (b"\xfe\xed\xfa\xcf", "mach-o", None),
    (b"\xce\xfa\xed\xfe", "mach-o", None),
    (b"\xcf\xfa\xed\xfe", "mach-o", None),
    (b"\0asm", "wasm", None),
    (b"\xca\xfe\xba\xbe", "class", None),
    (b"BC\xc0\xde", "bitcode", None),
    (b"\x1bLua", "luac", None),
    (b"ID3", "mp3", _AUDIO),
    (b"fLaC", "flac", _AUDIO),
    (b"OggS", "ogg", _AUDIO),
    (b"#!AMR", "amr", _AUDIO),
    (b"MThd", "midi", None),
    (b"\x1a\x45\xdf\xa3", "matroska", _AUDIO),
    (b"FLV\x01", "flv", None),
    (b"\0\0\1\xba", "mpeg", None),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole", None),
    (b"\0\1\0\0\0", "ttf", None),
    (b"OTTO", "otf", None),
    (b"wOFF", "woff", None),
    (b"wOF2", "woff2", None),
    (b"DIRC\0", "git-index", None),
    (b"PACK\0\0\0", "git-pack", None),
    (b"Salted__", "encrypted", None),
)
# Index by first byte.
_BY_BYTE: dict[int, list[tuple[bytes, str, str | None]]] = {}
for _signature in _SIGNATURES:
    _BY_BYTE.setdefault(_signature[0][0], []).append(_signature)
# Container formats name their content a few bytes further on.
_RIFF = {b"WAVE": ("wav", _AUDIO), b"WEBP": ("webp", _VISION), b"AVI ": ("avi", None)}
_FORM = {b"AIFF": ("aiff", _AUDIO), b"AIFC": ("aiff", _AUDIO)}
_BRANDS = (
    (b"heic", "heic", _VISION),
    (b"heix", "heic", _VISION),
    (b"mif1", "heic", _VISION),
    (b"avif", "avif", _VISION),
    (b"M4A", "m4a", _AUDIO),
    (b"M4B", "m4a", _AUDIO),
    (b"qt", "mov", _AUDIO),
)
# Names by which a zip or an old Office file is known to be a document.
_DOCUMENTS = {
    "xlsx": _TABLES, "xlsm": _TABLES, "ods": _TABLES, "xls": _TABLES, "docx": None, "pptx": None,
    "odt": None, "odp": None, "epub": None, "doc": None, "ppt": None, "msi": None, "msg": None,
}  # fmt: skip
_OFFICE = (
    (b"xl/", "xlsx"),
    (b"word/", "docx"),
    (b"ppt/", "pptx"),
    (b"opendocument.spreadsheet", "ods"),
    (b"opendocument.text", "odt"),
    (b"opendocument.presentation", "odp"),
    (b"application/epub+zip", "epub"),
)
# Names that stand for the same kind as another.
_SAME = {
    "jpg": "jpeg", "jpe": "jpeg", "tif": "tiff", "cur": "ico", "gz": "gzip", "tgz": "gzip",
    "bz2": "bzip2", "zst": "zstd", "so": "elf", "o": "elf", "dll": "exe", "sys": "exe",
    "oga": "ogg", "opus": "ogg", "mkv": "matroska", "webm": "matroska", "m4v": "mp4",
    "npy": "numpy", "a": "ar", "deb": "ar", "mid": "midi", "db": "sqlite", "sqlite3": "sqlite",
    "aif": "aiff", "feather": "arrow", "h5": "hdf5", "dib": "bmp",
}  # fmt: skip
# Control characters that texts have: bell, backspace, tab, line and page ends, escape, end of file.
_ALLOWED = bytes((7, 8, 9, 10, 11, 12, 13, 26, 27))
_CONTROLS = bytes(sorted(set(range(32)) - set(_ALLOWED))) + b"\x7f"
_RARE, _FEW = 100, 10  # one in so many characters of a text may be another one


def kind_of_content(head: bytes, name: str) -> Kind:
    """The type of a file.

    Args:
        head: Its first bytes; 8,192 are enough.
        name: Its name; the suffix decides where the bytes are ambiguous.
    """
    suffix = name.lower().rpartition(".")[2]
    if b"%PDF-" in head[:1024] and (_at_start(head, b"%PDF-") or suffix == "pdf"):
        return Kind("pdf", _DOCUMENT)
    kind, plain = _signed(head, suffix)
    if kind is None:
        return _TEXT if is_text(head) else _BINARY
    if plain and kind.what != _SAME.get(suffix, suffix) and is_text(head):
        return _TEXT
    return kind


def is_text(head: bytes) -> bool:
    """Whether these bytes can be the start of a text, in whichever encoding."""
    encoding, bom = unicode_of(head, whole=False)
    if width_of(encoding) > 1:
        text = head[len(bom) : len(head) & ~3].decode(encoding, "replace")
        strange = sum(letter in "\0\ufffd\uffff" for letter in text)
        return strange * _RARE <= len(text)
    if b"\0" in head:
        return False
    controls = len(head) - len(head.translate(None, _CONTROLS))
    # Some tables are parted by control characters; bytes that are no UTF-8 have no such excuse.
    return controls * _FEW <= len(head) + 20 if encoding else controls * _RARE <= len(head)


def _at_start(head: bytes, signature: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(signature)


def _signed(head: bytes, suffix: str) -> tuple[Kind | None, bool]:
    """The type by magic number, and whether a text could begin with it."""
    for signature, what, tool in _BY_BYTE.get(head[0], ()) if head else ():
        if not head.startswith(signature):
            continue
        if what in ("zip", "ole"):
            return _document(head, suffix) or Kind(what, tool), False
        return Kind(what, tool), signature.isascii() and signature.decode().isprintable()
    if head.startswith(b"ustar", 257):
        return Kind("tar", _ARCHIVE), True
    if head.startswith(b"RIFF"):
        return Kind(*_RIFF.get(head[8:12], ("riff", None))), True
    if head.startswith(b"FORM"):
        return Kind(*_FORM.get(head[8:12], ("iff", None))), True
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        named = (Kind(what, tool) for start, what, tool in _BRANDS if brand.startswith(start))
        return next(named, Kind("mp4", _AUDIO)), True
    if len(head) > 3 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2 and head[2] & 0xF0 != 0xF0:
        return Kind("mp3", _AUDIO), True
    if suffix in ("pyc", "pyo") and head[2:4] == b"\r\n":
        return Kind("pyc"), False
    if suffix in ("pkl", "pickle") and head[:1] == b"\x80":
        return Kind("pickle"), False
    return None, True


def _document(head: bytes, suffix: str) -> Kind | None:
    if suffix in _DOCUMENTS:
        return Kind(suffix, _DOCUMENTS[suffix])
    for part, what in _OFFICE:
        if part in head and (b"[Content_Types]" in head or b"mimetype" in head):
            return Kind(what, _DOCUMENTS[what])
    return None
