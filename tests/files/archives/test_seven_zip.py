"""7z archives unpack completely, and hostile ones not at all."""

from __future__ import annotations

import lzma
import os
import random
import stat
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.files.archives.conftest import Place, listing

from hermes.files.archives.extraction import check_archive, extract_archive, list_archive
from hermes.files.archives.limits import ArchiveError, ArchiveLimits

py7zr = pytest.importorskip("py7zr")

CHAINS = {
    "lzma2": [{"id": py7zr.FILTER_LZMA2, "preset": 6}],
    "lzma": [{"id": py7zr.FILTER_LZMA, "preset": 6}],
    "x86 lzma": [{"id": py7zr.FILTER_X86}, {"id": py7zr.FILTER_LZMA}],
    "x86 lzma2": [{"id": py7zr.FILTER_X86}, {"id": py7zr.FILTER_LZMA2, "preset": 1}],
    "x86 bzip2": [{"id": py7zr.FILTER_X86}, {"id": py7zr.FILTER_BZIP2}],
    "arm": [{"id": py7zr.FILTER_ARM}, {"id": py7zr.FILTER_LZMA2, "preset": 1}],
    "delta": [{"id": py7zr.FILTER_DELTA}, {"id": py7zr.FILTER_LZMA2, "preset": 1}],
    "bzip2": [{"id": py7zr.FILTER_BZIP2}],
    "deflate": [{"id": py7zr.FILTER_DEFLATE}],
    "copy": [{"id": py7zr.FILTER_COPY}],
    "zstd": [{"id": py7zr.FILTER_ZSTD, "level": 3}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "sub/empty").mkdir(parents=True)
    chance = random.Random(7)
    # Looks like a program to the filters: calls with addresses.
    (top / "sub/code").write_bytes(
        b"".join(b"\xe8" + chance.randbytes(3) + b"\0\x90" for _ in range(20_000))
    )
    (top / "text").write_text("some words " * 9_000)
    (top / "nothing").write_text("")
    (top / "sub/link").symlink_to("../text")
    (top / "sub/code").chmod(0o755)
    return top


@pytest.mark.parametrize("chain", CHAINS)
def test_every_ordinary_way_of_packing_unpacks(folder: Path, place: Place, chain: str) -> None:
    with py7zr.SevenZipFile(place.archive, "w", filters=CHAINS[chain]) as made:
        made.writeall(folder, "top")

    check_archive(place.archive)
    extract_archive(place.archive, place.target)

    assert listing(place.target / "top") == listing(folder)


def test_a_part_is_unpacked_without_the_rest(folder: Path, place: Place) -> None:
    with py7zr.SevenZipFile(place.archive, "w") as made:
        made.writeall(folder, "top")

    extract_archive(place.archive, place.target, choose=lambda path: path == "top/text")

    assert sorted(listing(place.target)) == ["top", "top/text"]


@pytest.mark.parametrize("headers", [False, True])
def test_an_encrypted_one_is_said_to_be(folder: Path, place: Place, headers: bool) -> None:
    with py7zr.SevenZipFile(
        place.archive, "w", password="secret", header_encryption=headers
    ) as made:
        made.writeall(folder, "top")

    place.refuses("encrypted")


# -- made by hand ---------------------------------------------------------------------------------


def number(value: int) -> bytes:
    """A number in as few bytes as it needs; the first says how many follow."""
    for more in range(8):
        if value < 1 << (7 * (more + 1)):
            first = (0xFF00 >> more) & 0xFF | value >> (8 * more)
            return bytes([first]) + (value & (1 << 8 * more) - 1).to_bytes(more, "little")
    return b"\xff" + value.to_bytes(8, "little")


def archive(header: bytes, packed: bytes = b"") -> bytes:
    start = struct.pack("<QQL", len(packed), len(header), zlib.crc32(header))
    head = b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<L", zlib.crc32(start)) + start
    return head + packed + header


def streams(packed: int, sizes: list[int], coder: bytes = b"\1\1\0", **changed: int) -> bytes:
    """One folder; its coder copies unless said otherwise."""
    whole = changed.get("whole", sum(sizes))
    return b"".join(
        (
            *(b"\x04\x06", number(changed.get("start", 0)), b"\1\x09", number(packed), b"\0"),
            *(b"\x07\x0b\1\0", coder, b"\x0c", number(whole), b"\0"),
            *(b"\x08\x0d", number(len(sizes)), b"\x09"),
            *(number(size) for size in sizes[:-1]),
            b"\0\0",
        )
    )


def files(*entries: tuple[str, int], extra: bytes = b"", count: int | None = None) -> bytes:
    """Names with their modes."""
    names = b"\0" + b"".join(name.encode("utf-16-le") + b"\0\0" for name, _ in entries)
    modes = b"\1\0" + b"".join(struct.pack("<L", mode << 16 | 0x8000) for _, mode in entries)
    return b"".join(
        (
            *(b"\x05", number(len(entries) if count is None else count), extra),
            *(b"\x11", number(len(names)), names, b"\x15", number(len(modes)), modes, b"\0"),
        )
    )


def make(*entries: tuple[str, int, bytes], extra: bytes = b"") -> bytes:
    data = b"".join(content for _, _, content in entries)
    sizes = [len(content) for _, _, content in entries]
    listed = files(*((name, mode) for name, mode, _ in entries), extra=extra)
    return archive(b"\1" + streams(len(data), sizes) + listed + b"\0", data)


FILE, LINK = stat.S_IFREG | 0o644, stat.S_IFLNK | 0o777


def test_one_made_by_hand_unpacks(place: Place) -> None:
    place.archive.write_bytes(make(("a/b", FILE, b"one"), ("link", LINK, b"a/b")))

    extract_archive(place.archive, place.target)

    assert (place.target / "link").read_text() == "one"


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/../../x", "C:\\x", "a\\..\\x", "con", "a/.", "~/x", "\u202ex"]
)
def test_a_name_that_leads_elsewhere_is_refused(place: Place, name: str) -> None:
    place.archive.write_bytes(make((name, FILE, b"one")))

    place.refuses()


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "a/../../x", "", "loop"])
def test_a_link_out_of_the_target_is_refused(place: Place, target: str) -> None:
    place.archive.write_bytes(make(("loop", LINK, target.encode()), ("z", FILE, b"1")))

    place.refuses()


def test_a_file_behind_a_link_is_refused(place: Place) -> None:
    place.archive.write_bytes(make(("a", LINK, b"."), ("a/x", FILE, b"1")))

    place.refuses()


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFBLK, stat.S_IFCHR, stat.S_IFSOCK])
def test_devices_and_pipes_are_refused(place: Place, kind: int) -> None:
    place.archive.write_bytes(make(("x", kind | 0o666, b"1")))

    place.refuses("device")


def test_set_user_id_is_dropped(place: Place) -> None:
    place.archive.write_bytes(make(("x", stat.S_IFREG | 0o6755, b"1")))

    extract_archive(place.archive, place.target)

    assert stat.S_IMODE((place.target / "x").stat().st_mode) & 0o7000 == 0


def test_the_same_name_twice_is_refused(place: Place) -> None:
    place.archive.write_bytes(make(("x", FILE, b"1"), ("X", FILE, b"2")))

    place.refuses("taken by")


def test_an_entry_that_deletes_is_refused(place: Place) -> None:
    empty = b"\x0e\1\x80" + b"\x10\1\x80"
    place.archive.write_bytes(archive(b"\1" + files(("x", FILE), extra=empty) + b"\0"))

    place.refuses("invalid type")


@pytest.mark.parametrize("count", [10_001, 2**40, 2**63])
def test_a_great_many_members_are_refused_before_they_cost(place: Place, count: int) -> None:
    place.archive.write_bytes(archive(b"\1" + files(("x", FILE), count=count) + b"\0"))

    place.refuses("numfiles", limits=ArchiveLimits(max_members=10_000))


def test_more_members_than_allowed_are_refused(place: Place) -> None:
    place.archive.write_bytes(make(*((f"f{n}", FILE, b"1") for n in range(20))))

    place.refuses("more than 10 members", limits=ArchiveLimits(max_members=10))


def test_sizes_that_do_not_add_up_are_damage(place: Place) -> None:
    header = b"\1" + streams(3, [9, 1], whole=3) + files(("a", FILE), ("b", FILE)) + b"\0"
    place.archive.write_bytes(archive(header, b"abc"))

    place.refuses("add up")


@pytest.mark.parametrize("start", [1, 2**40, 2**63])
def test_content_outside_of_the_file_is_damage(place: Place, start: int) -> None:
    header = b"\1" + streams(2**20, [3], start=start) + files(("a", FILE)) + b"\0"
    place.archive.write_bytes(archive(header, b"abc"))

    place.refuses("cut short")


def lzma2(data: bytes, window: int = 20) -> tuple[bytes, bytes]:
    """A coder, and what it makes the data of."""
    chain = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    packed = lzma.compress(data, lzma.FORMAT_RAW, filters=chain)
    return b"\1\x21\x21\1" + bytes([window]), packed


def test_a_bomb_is_refused(place: Place) -> None:
    coder, packed = lzma2(bytes(16 * 2**20))
    header = b"\1" + streams(len(packed), [16 * 2**20], coder) + files(("a", FILE)) + b"\0"
    place.archive.write_bytes(archive(header, packed))

    place.refuses("to 1")
    place.refuses("bytes", limits=ArchiveLimits(max_bytes=2**20))
    with pytest.raises(ArchiveError):
        check_archive(place.archive)


def test_a_bomb_in_the_header_is_refused(place: Place) -> None:
    coder, packed = lzma2(bytes(120 * 2**20))
    header = b"\x17" + streams(len(packed), [120 * 2**20], coder)[1:]
    place.archive.write_bytes(archive(header, packed))

    place.refuses()


def test_a_window_of_gigabytes_is_refused(place: Place) -> None:
    coder, packed = lzma2(b"abc", window=40)
    limits = ArchiveLimits(max_bytes=2**40, max_file_bytes=2**40)
    header = b"\1" + streams(len(packed), [2**32], coder) + files(("a", FILE)) + b"\0"
    place.archive.write_bytes(archive(header, packed))

    place.refuses("memory", limits=limits)


def test_more_bytes_than_declared_are_not_taken(place: Place) -> None:
    coder, packed = lzma2(b"abcdef")
    header = b"\1" + streams(len(packed), [3], coder) + files(("a", FILE)) + b"\0"
    place.archive.write_bytes(archive(header, packed))

    extract_archive(place.archive, place.target)

    assert (place.target / "a").read_bytes() == b"abc"


@pytest.mark.parametrize(
    "coder",
    [
        b"\1\x14\x03\x03\x01\x1b\4\1",  # BCJ2, which has four streams
        b"\1\4\x06\xf1\x07\x01",  # encrypted
        b"\1\4\xde\xad\xbe\xef",
        b"\0",
        b"\x20" + b"\1\0" * 32,
        b"\2\1\0\1\0\0\0",  # bound to itself
        b"\1\x23\x03\x01\x01\1\0",
        b"\1\x21\x21\1\xff",
        b"\1\x23\x03\x04\x01\5\6\0\0\0\1",  # PPMd
    ],
)
def test_coders_that_are_not_known_are_refused(place: Place, coder: bytes) -> None:
    header = b"\1" + streams(3, [3], coder) + files(("a", FILE)) + b"\0"
    place.archive.write_bytes(archive(header, b"abc"))

    place.refuses()


def test_no_damage_is_anything_but_an_error(folder: Path, place: Place) -> None:
    with py7zr.SevenZipFile(place.archive, "w") as made:
        made.writeall(folder / "sub", "sub")
    whole = place.archive.read_bytes()
    plain = make(("a/b", FILE, b"one"), ("link", LINK, b"a/b"), ("c", FILE, b"two"))
    chance = random.Random(3)

    for _ in range(40):
        place.archive.write_bytes(_damaged(chance, whole, plain))
        try:
            check_archive(place.archive)
        except ArchiveError:
            continue


def _damaged(chance: random.Random, whole: bytes, plain: bytes) -> bytes:
    if chance.random() < 0.3:
        broken = bytearray(whole)
        broken[chance.randrange(len(broken))] = chance.randrange(256)
        return bytes(broken[: chance.randrange(len(broken)) if chance.random() < 0.3 else None])
    # The header alone, with a check sum that fits: whoever makes a trap makes it well.
    size, header = struct.unpack("<Q", plain[12:20])[0], bytearray()
    header += plain[32 + size :]
    for _ in range(chance.choice([1, 1, 2, 4])):
        header[chance.randrange(len(header))] = chance.choice([0, 1, 255, chance.randrange(256)])
    if chance.random() < 0.2:
        del header[chance.randrange(len(header)) :]
    return archive(bytes(header), plain[32 : 32 + size])


def test_an_archive_of_nothing_is_empty(place: Place) -> None:
    place.archive.write_bytes(archive(b""))

    assert list_archive(place.archive) == []


def test_listing_unpacks_nothing(folder: Path, place: Place) -> None:
    (folder / "sub/link").unlink()
    with py7zr.SevenZipFile(place.archive, "w") as made:
        made.writeall(folder, "top")
    data = bytearray(place.archive.read_bytes())
    data[32:64] = os.urandom(32)
    place.archive.write_bytes(data)

    assert {member.path for member in list_archive(place.archive)} >= {"top/text"}
    with pytest.raises(ArchiveError):
        check_archive(place.archive)


def test_progress_is_told_and_can_stop(folder: Path, place: Place) -> None:
    with py7zr.SevenZipFile(place.archive, "w") as made:
        made.writeall(folder, "top")
    told: list[Any] = []

    extract_archive(place.archive, place.target, watch=told.append)

    assert told
    assert told == sorted(told)
    assert told[-1] <= place.archive.stat().st_size


def test_without_the_extra_the_error_names_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.archive.write_bytes(make(("a", FILE, b"one")))
    monkeypatch.setattr("hermes.files.archives.seven_zip.find_spec", lambda _: None)

    with pytest.raises(ArchiveError, match="7z files need py7zr") as caught:
        list_archive(place.archive)

    assert "`archives`" in (caught.value.hint or "")


def test_a_worker_that_is_killed_is_an_error(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "worker.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    monkeypatch.setattr("hermes.files.archives.seven_zip._WORKER", str(tmp_path / "worker.py"))
    place.archive.write_bytes(make(("a", FILE, b"one")))

    place.refuses("status -9")


def test_cancellation_stops_a_worker_that_computes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "worker.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr("hermes.files.archives.seven_zip._WORKER", str(tmp_path / "worker.py"))
    place.archive.write_bytes(make(("a", FILE, b"one")))

    def cancel(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_archive(place.archive, place.target, watch=cancel)

    assert not place.target.exists()
