"""Limits are met while reading, not believed and not regretted."""

from __future__ import annotations

import bz2
import io
import resource
import shutil
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from tests.files.archives.conftest import Place, entry, file

from hermes.files.archives.extraction import extract_archive, list_archive
from hermes.files.archives.limits import ArchiveError, ArchiveLimits

GIB = 2**30


class Watched:
    """How much memory this process has ever had, in bytes."""

    def __init__(self) -> None:
        self._before = self._peak()

    def grown(self) -> int:
        return self._peak() - self._before

    def _peak(self) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def zeros_in_gzip(head: bytes, size: int) -> bytes:
    """A gzip stream of a head and very many zeros, made without packing them one by one."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    made = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same bytes mean the same again.
    return made + piece * (size // 2**20)


def test_ten_gigabytes_of_zeros_are_refused_early(place: Place) -> None:
    info = tarfile.TarInfo("zeros")
    info.size = GIB
    place.archive.write_bytes(zeros_in_gzip(info.tobuf(), 10 * GIB))
    memory = Watched()

    place.refuses("200 to 1")
    with pytest.raises(ArchiveError, match="200 to 1"):
        list_archive(place.archive)

    assert memory.grown() < 64 * 2**20


@pytest.mark.parametrize("method", [8, 12])
@pytest.mark.parametrize("honest", [True, False])
def test_a_zip_of_zeros_is_refused_whatever_size_it_says(
    place: Place, method: int, honest: bool
) -> None:
    size = GIB // 2
    if method == 8:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
        packed = piece * 512
    else:
        packed = bz2.compress(bytes(2**24)) + b""
    said = size if honest else 100
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, method, 0, 33, 0, len(packed), said, 1, 0)
    central = struct.pack(
        "<4s6H3L5H2L",
        b"PK\1\2",
        20,
        20,
        0,
        method,
        0,
        33,
        0,
        len(packed),
        said,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
    )
    start = len(local) + 1 + len(packed)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(central) + 1, start, 0)
    place.archive.write_bytes(local + b"x" + packed + central + b"x" + end)
    memory = Watched()

    place.refuses("200 to 1" if honest else "larger than it says")

    assert memory.grown() < 64 * 2**20


def test_disk_use_stays_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tarfile.TarInfo("zeros")
    info.size = GIB
    place.archive.write_bytes(zeros_in_gzip(info.tobuf(), GIB))
    largest = 0
    rmtree = shutil.rmtree

    def measured(path: str, **options: object) -> None:
        nonlocal largest
        largest = sum(each.stat().st_size for each in Path(path).rglob("*"))
        rmtree(path, **options)

    monkeypatch.setattr("shutil.rmtree", measured)

    place.refuses("200 to 1")

    assert 0 < largest <= 16 * 2**20


def test_small_files_may_be_compressed_as_much_as_they_like(place: Place) -> None:
    place.tar(("zeros", bytes(9 * 2**20)), mode="w:xz")

    assert extract_archive(place.archive, place.target).bytes == 9 * 2**20


def test_zeros_behind_the_end_of_a_tar_are_counted(place: Place) -> None:
    place.archive.write_bytes(zeros_in_gzip(bytes(1024), GIB))

    place.refuses("200 to 1")


@pytest.mark.parametrize(
    "limits",
    [
        ArchiveLimits(max_bytes=2999),
        ArchiveLimits(max_file_bytes=999),
        ArchiveLimits(max_members=2),
        ArchiveLimits(max_depth=1),
        ArchiveLimits(max_ratio=2, ratio_from=500),
    ],
)
def test_each_limit_is_held(place: Place, limits: ArchiveLimits) -> None:
    names = ("d/a", "b", "c")
    place.tar(*((name, bytes(1000)) for name in names), mode="w:gz")
    place.refuses(limits=limits)

    with zipfile.ZipFile(place.archive, "w", 8) as made:
        for name in names:
            made.writestr(name, bytes(1000))
    place.refuses(limits=limits)


def test_limits_that_are_just_met_are_kept(place: Place) -> None:
    place.tar(("d/a", bytes(1000)), ("b", bytes(1000)))
    limits = ArchiveLimits(max_bytes=2000, max_file_bytes=1000, max_members=2, max_depth=2)

    assert extract_archive(place.archive, place.target, limits=limits).bytes == 2000


def test_a_huge_directory_is_refused_before_it_becomes_objects(place: Place) -> None:
    one = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    count = 400_000
    directory = (one + b"x") * count
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 5, 5, len(directory), 0, 0)
    place.archive.write_bytes(directory + end)
    memory = Watched()

    place.refuses()

    assert memory.grown() < 128 * 2**20


def test_folders_that_are_only_implied_are_counted(place: Place) -> None:
    with tarfile.open(place.archive, "w") as made:
        for number in range(20):
            made.addfile(tarfile.TarInfo(f"{number}/" * 30 + "x"))

    place.refuses("too many folders", limits=ArchiveLimits(max_members=50))


def test_members_of_a_zip_that_share_bytes_are_refused(place: Place) -> None:
    with zipfile.ZipFile(place.archive, "w") as made:
        made.writestr("a", b"kernel" * 100)
        made.writestr("b", b"other")
        # The second entry points into the first one.
        made.infolist()[1].header_offset = 0
        made.infolist()[1].filename = "a"
    place.refuses("overlap")


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_header_of_gigabytes_is_refused_unread(place: Place, kind: bytes) -> None:
    info = entry("x", kind)
    info.size = 7 * GIB
    head = info.tobuf(tarfile.GNU_FORMAT)
    place.archive.write_bytes(zeros_in_gzip(head, GIB))
    memory = Watched()

    place.refuses("header of")

    assert memory.grown() < 64 * 2**20


def test_archives_inside_stay_files(place: Place) -> None:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as made:
        made.addfile(file("../x")[0], io.BytesIO(b"data"))
    place.tar(("inner.tar.gz", inner.getvalue()))

    extract_archive(place.archive, place.target)

    assert (place.target / "inner.tar.gz").read_bytes() == inner.getvalue()
