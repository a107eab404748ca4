"""Which stretches of a 7z file hold what: folders of coders, and the parts of their output."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.files.archives.limits import ArchiveError
from hermes.files.archives.seven_zip_reader.fields import damaged

if TYPE_CHECKING:
    from hermes.files.archives.seven_zip_reader.fields import Fields

END, PACK_INFO, UNPACK_INFO, SUBSTREAMS = 0x00, 0x06, 0x07, 0x08
_SIZE, _SUMS, _FOLDER, _UNPACK_SIZE, _STREAM_COUNT = 0x09, 0x0A, 0x0B, 0x0C, 0x0D
_MOST_CODERS = 8
_LONGEST_PROPERTIES = 256


class Coder(NamedTuple):
    """One step from packed to plain bytes; `size` of what comes out of it."""

    method: bytes
    properties: bytes
    size: int


class Part(NamedTuple):
    """A stretch of a folder's plain bytes: the content of one member."""

    size: int
    check_sum: int | None


class Folder(NamedTuple):
    """A stretch of the file, the coders from first to last, and what comes out."""

    start: int
    packed: int
    coders: list[Coder]
    parts: list[Part]

    @property
    def size(self) -> int:
        """How many plain bytes there are."""
        return self.coders[-1].size


NOTHING = Folder(0, 0, [Coder(b"\0", b"", 0)], [])


class _Chain(NamedTuple):
    methods: list[tuple[bytes, bytes]]
    order: list[int]


def read_streams(fields: Fields, most: int) -> list[Folder]:
    """The folders of a header; `most` bounds how many of anything there may be."""
    position, packed = 0, list[int]()
    chains: list[_Chain] = []
    sizes: list[list[int]] = []
    sums: list[int | None] = []
    parts: list[list[Part]] | None = None
    while (kind := fields.byte()) != END:
        if kind == PACK_INFO:
            position, packed = _packed(fields, most)
        elif kind == UNPACK_INFO:
            chains, sizes, sums = _unpacked(fields, most)
        elif kind == SUBSTREAMS:
            wholes = [size[chain.order[-1]] for size, chain in zip(sizes, chains, strict=True)]
            parts = _parts(fields, wholes, sums, most)
        else:
            raise damaged(f"a header has a part {kind:#x}")
    if len(packed) != len(chains):
        raise damaged("streams and folders do not match")
    folders = []
    for index, (chain, size) in enumerate(zip(chains, sizes, strict=True)):
        coders = [Coder(*chain.methods[at], size[at]) for at in chain.order]
        held = [Part(coders[-1].size, sums[index])] if parts is None else parts[index]
        folders.append(Folder(position, packed[index], coders, held))
        position += packed[index]
    return folders


def _packed(fields: Fields, most: int) -> tuple[int, list[int]]:
    position = fields.number()
    count = fields.count(most, "streams")
    sizes: list[int] = []
    while (kind := fields.byte()) != END:
        if kind == _SIZE:
            sizes = [fields.number() for _ in range(count)]
        elif kind == _SUMS:
            fields.check_sums(count)
        else:
            raise damaged(f"a header has a part {kind:#x}")
    if len(sizes) != count:
        raise damaged("the sizes of its streams are missing")
    return position, sizes


def _unpacked(fields: Fields, most: int) -> tuple[list[_Chain], list[list[int]], list[int | None]]:
    if fields.byte() != _FOLDER:
        raise damaged("its folders are missing")
    count = fields.count(most, "folders")
    if fields.byte():
        raise damaged("its folders are somewhere else")
    chains = [_chain(fields) for _ in range(count)]
    if fields.byte() != _UNPACK_SIZE:
        raise damaged("the sizes of its folders are missing")
    sizes = [[fields.number() for _ in chain.methods] for chain in chains]
    sums: list[int | None] = [None] * count
    while (kind := fields.byte()) != END:
        if kind != _SUMS:
            raise damaged(f"a header has a part {kind:#x}")
        sums = fields.check_sums(count)
    return chains, sizes, sums


def _chain(fields: Fields) -> _Chain:
    """The coders of a folder, and the order in which bytes go through them."""
    count = fields.number()
    if not 0 < count <= _MOST_CODERS:
        raise damaged(f"a folder has {count} coders")
    methods = []
    for _ in range(count):
        flags = fields.byte()
        method = fields.take(flags & 0x0F)
        if flags & 0x10 and (fields.number(), fields.number()) != (1, 1):
            raise ArchiveError(
                "the archive is packed with a filter of several streams, which is not known here",
                hint="Ask for one made without BCJ2, such as a zip.",
            )
        properties = b""
        if flags & 0x20:
            size = fields.number()
            if size > _LONGEST_PROPERTIES:
                raise damaged("a coder has too many properties")
            properties = fields.take(size)
        methods.append((method, properties))
    following = {}
    for _ in range(count - 1):
        taker, giver = fields.number(), fields.number()
        following[giver] = taker
    firsts = set(range(count)) - set(following.values())
    if len(firsts) != 1:
        raise damaged("its coders are not in a row")
    order = [firsts.pop()]
    while order[-1] in following and len(order) <= count:
        order.append(following[order[-1]])
    if sorted(order) != list(range(count)):
        raise damaged("its coders are not in a row")
    return _Chain(methods, order)


def _parts(
    fields: Fields, wholes: list[int], sums: list[int | None], most: int
) -> list[list[Part]]:
    """How the plain bytes of each folder are divided among members."""
    kind = fields.byte()
    counts = [1] * len(wholes)
    if kind == _STREAM_COUNT:
        counts = [fields.count(most, "streams") for _ in wholes]
        if sum(counts) > most:
            raise ArchiveError(f"the archive holds more than {most} streams")
        kind = fields.byte()
    sizes: list[list[int]] = []
    for whole, count in zip(wholes, counts, strict=True):
        row = [fields.number() for _ in range(count - 1)] if kind == _SIZE else []
        if count:
            row.append(whole - sum(row))
        if len(row) != count or any(size < 0 for size in row):
            raise damaged("the sizes of its members do not add up")
        sizes.append(row)
    if kind == _SIZE:
        kind = fields.byte()
    known = [count == 1 and total is not None for count, total in zip(counts, sums, strict=True)]
    found: list[int | None] = []
    if kind == _SUMS:
        missing = sum(count for count, there in zip(counts, known, strict=True) if not there)
        found = fields.check_sums(missing)
        kind = fields.byte()
    if kind != END:
        raise damaged(f"a header has a part {kind:#x}")
    rest = iter(found)
    return [
        [Part(size, total if there else next(rest, None)) for size in row]
        for row, there, total in zip(sizes, known, sums, strict=True)
    ]
