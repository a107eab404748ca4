"""Tar files: members with their bytes from ustar, GNU and pax headers; pax output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.files.archives.limits import ArchiveError, Member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from tarfile import TarInfo

    from hermes.files.archives.compression import Source
    from hermes.files.archives.creation import Content, Item
    from hermes.files.archives.limits import Kind, Meter


_BLOCK = 512
# Long names and attributes; whoever needs more is up to something.
_LONGEST_HEADER = 1024 * 1024
_CUT = "the archive is cut short"
_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hardlink",
    b"2": "symlink",
    b"5": "folder",
    b"3": "other",
    b"4": "other",
    b"6": "other",
}
_SPARSE = "the archive holds a sparse file, which can't be unpacked here"


def looks_like_tar(head: bytes) -> bool:
    """Whether a file starts with a tar header, or with the zeros of an empty archive."""
    return len(head) >= _BLOCK and (not any(head[:_BLOCK]) or _info(head[:_BLOCK]) is not None)


def tar_members(source: Source, meter: Meter) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Each member and its bytes, which are to be taken before the next one is asked for."""
    everywhere: dict[str, str] = {}
    own: dict[str, str] = {}
    block = _first(source)
    while any(block):
        info = _info(block)
        if info is None:
            raise ArchiveError("the archive is damaged: a header makes no sense")
        if info.type in b"xXgLK":
            data = _header(source, info.size)
            if info.type == b"g":
                everywhere |= _pax(data)
            elif info.type in b"xX":
                own = _pax(data) | own
            else:
                own["path" if info.type == b"L" else "linkpath"] = _text(data.rstrip(b"\0"))
            block = _exactly(source, _BLOCK)
            continue
        member = _member(info, everywhere | own)
        own = {}
        meter.member(member)
        body = _Body(source, member.size)
        yield member, body.chunks()
        for _ in body.chunks():
            pass
        _exactly(source, -member.size % _BLOCK)
        block = _exactly(source, _BLOCK)
    if own:
        raise ArchiveError(_CUT)
    _drain(source)


class _Body:
    """The bytes of one member, taken once."""

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        self._left = size

    def chunks(self) -> Iterator[bytes]:
        while self._left:
            data = self._source.read(self._left)
            if not data:
                raise ArchiveError(_CUT)
            self._left -= len(data)
            yield data


def _member(info: TarInfo, fields: dict[str, str]) -> Member:
    if info.type == b"S" or any(name.startswith("GNU.sparse.") for name in fields):
        raise ArchiveError(_SPARSE)
    path = fields.get("path", info.name)
    kind = _KINDS.get(info.type)
    if kind is None:
        raise ArchiveError(f"the archive holds a member of unknown type {info.type!r}: {path!r}")
    if kind == "file" and path.endswith("/") and info.type == b"\0":
        kind = "folder"
    size = info.size
    mtime = float(info.mtime)
    try:
        if "size" in fields:
            size = int(fields["size"])
        if "mtime" in fields:
            mtime = float(fields["mtime"])
    except ValueError:
        raise ArchiveError("the archive is damaged: a number makes no sense") from None
    if size < 0:
        raise ArchiveError("the archive is damaged: a size is negative")
    return Member(
        path,
        kind,
        # Only files have bytes; for others the field means something else, or nothing.
        size=size if kind == "file" else 0,
        mode=info.mode & 0o7777,
        mtime=mtime,
        link=fields.get("linkpath", info.linkname) if kind in ("symlink", "hardlink") else "",
    )


def _info(block: bytes) -> TarInfo | None:
    """A header block, read; `None` if it is none."""
    import tarfile

    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return None
    return info


def _pax(data: bytes) -> dict[str, str]:
    """The fields of a pax header that matter here."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(data) and data[at]:
        space = data.find(b" ", at, at + 20)
        digits = data[at:space] if space > 0 else b""
        end = at + int(digits) if digits.isdigit() else 0
        name, equals, value = data[space + 1 : end - 1].partition(b"=")
        if end <= space or end > len(data) or not equals or data[end - 1 : end] != b"\n":
            raise ArchiveError("the archive is damaged: an extended header makes no sense")
        if name in (b"path", b"linkpath", b"size", b"mtime") or name.startswith(b"GNU.sparse."):
            fields[_text(name)] = _text(value)
        at = end
    return fields


def _header(source: Source, size: int) -> bytes:
    if not 0 <= size <= _LONGEST_HEADER:
        raise ArchiveError(f"the archive has a header of {size} bytes")
    data = _exactly(source, size)
    _exactly(source, -size % _BLOCK)
    return data


def _first(source: Source) -> bytes:
    """The first header; a compressed file without one is a single file, not an archive."""
    block = b""
    while len(block) < _BLOCK and (data := source.read(_BLOCK - len(block))):
        block += data
    if not looks_like_tar(block):
        raise ArchiveError(
            "this is no archive but one compressed file, or a damaged archive",
            hint="Extract a single file in `terminal`, with gunzip, bunzip2, unxz or unzstd.",
        )
    return block


def _exactly(source: Source, size: int) -> bytes:
    pieces = []
    while size:
        data = source.read(size)
        if not data:
            # The end is marked with zeros; without them nobody knows whether this is all.
            raise ArchiveError(_CUT)
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


def _drain(source: Source) -> None:
    """Read to the end: the check sum of a compressed file comes last."""
    from hermes.files.archives.compression import CHUNK

    while source.read(CHUNK):
        pass


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


_TAR_BLOCK, _RECORD = 512, 10_240


def tar_pieces(items: Iterable[Item], content: Content) -> Iterator[bytes]:
    """Headers and files in turn; a second name of a file is stored as a hard link."""
    import tarfile

    written = 0
    names: dict[tuple[int, int], str] = {}
    for item in items:
        info = tarfile.TarInfo(item.name)
        info.mode = item.status.mode & 0o777
        info.mtime = max(0, item.status.mtime_ns // 1_000_000_000)
        if item.kind == "folder":
            info.type = tarfile.DIRTYPE
        elif item.kind == "link":
            info.type = tarfile.SYMTYPE
            info.linkname = item.target
        else:
            first = item.name
            if item.status.links > 1:
                first = names.setdefault((item.status.device, item.status.inode), item.name)
            if first != item.name:
                info.type = tarfile.LNKTYPE
                info.linkname = first
            else:
                info.size = item.status.size
        header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        written += len(header) + info.size
        yield header
        if info.size:
            yield from content.of(item)
            padding = -info.size % _TAR_BLOCK
            written += padding
            yield bytes(padding)
    written += 2 * _TAR_BLOCK
    yield bytes(2 * _TAR_BLOCK + -written % _RECORD)
