"""Ordinary archives unpack completely, whatever made them."""

from __future__ import annotations

import io
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.files.archives.conftest import Place, entry, file, listing

from hermes.files.archives.extraction import extract_archive, list_archive

NAMES = st.text(
    st.characters(codec="utf-8", categories=["L", "N"]) | st.sampled_from("-_ .+@,"),
    min_size=1,
    max_size=12,
).map(lambda text: f"n{text}n")
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=4).map("/".join),
    st.binary(max_size=2000) | st.sampled_from(["folder", "link"]),
    max_size=8,
)


def grow(root: Path, tree: dict[str, bytes | str]) -> None:
    """Make a tree of files, folders and links; what can't be beside the rest is left out."""
    taken: set[str] = set()
    for path, content in tree.items():
        place = root / path
        if path.casefold() in taken or os.path.lexists(place):
            continue
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            continue
        taken.add(path.casefold())
        if content == "folder":
            place.mkdir(mode=0o750)
        elif isinstance(content, str):
            place.symlink_to("nowhere yet")
        else:
            place.write_bytes(content)
            place.chmod(0o755 if len(content) % 2 else 0o640)
    for above, folders, files in os.walk(root):
        for name in folders + files:
            when = 1_500_000_000 + len(name)
            os.utime(os.path.join(above, name), (when, when), follow_symlinks=False)


@settings(max_examples=40, deadline=None)
@given(TREES, st.sampled_from(["w", "w:gz", "w:bz2", "w:xz"]), st.sampled_from([1, 2]))
def test_any_tree_comes_back_byte_for_byte(
    tree: dict[str, bytes | str], mode: str, form: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, target, archive = (Path(folder, name) for name in ("root", "target", "archive"))
        root.mkdir()
        grow(root, tree)
        before = listing(root)
        # Names that some systems take for the same are refused, and tested elsewhere.
        if len({name.casefold() for name in before}) < len(before):
            return
        with tarfile.open(archive, mode, format=form) as made:  # type: ignore[call-overload]
            made.add(root, arcname=".")

        result = extract_archive(archive, target)

        assert listing(target) == before
        kept = [name for name, (kind, _) in before.items() if not stat.S_ISDIR(kind)]
        assert sorted(result.paths) == sorted(kept)
        assert result.files == len(kept)
        for name in before:
            assert os.lstat(target / name).st_mtime == os.lstat(root / name).st_mtime


@pytest.mark.parametrize("method", [0, 8, 12, 14])
def test_a_zip_comes_back_with_modes_folders_and_links(place: Place, method: int) -> None:
    data = os.urandom(70_000) + b"again and again " * 9000
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    script = zipfile.ZipInfo("tools/run.sh", (2020, 2, 2, 10, 20, 30))
    script.external_attr = (stat.S_IFREG | 0o6755) << 16
    with zipfile.ZipFile(place.archive, "w", method) as made:
        made.writestr("größe/データ.bin", data)
        made.writestr("empty/", b"")
        made.writestr("nothing", b"")
        made.writestr(link, "tools/run.sh")
        made.writestr(script, b"#!/bin/sh\n", method)

    result = extract_archive(str(place.archive), str(place.target))

    assert (place.target / "größe/データ.bin").read_bytes() == data
    assert (place.target / "empty").is_dir()
    assert (place.target / "nothing").read_bytes() == b""
    assert os.readlink(place.target / "link") == "tools/run.sh"
    assert stat.S_IMODE((place.target / "tools/run.sh").stat().st_mode) == 0o755
    assert result.bytes == len(data) + 10
    assert result.files == 4


def test_a_zip_written_to_a_pipe_and_a_zip64_are_read(place: Place) -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:  # type: ignore[override]
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", 8) as made, made.open("a", "w", force_zip64=True) as member:
        member.write(b"streamed")
    place.archive.write_bytes(b"#!/bin/sh\nexit\n" + pipe.data)

    extract_archive(place.archive, place.target)

    assert (place.target / "a").read_bytes() == b"streamed"


def test_hard_links_stay_one_file(place: Place) -> None:
    place.tar(("d/a", b"shared"), entry("b", tarfile.LNKTYPE, "d/a"))

    result = extract_archive(place.archive, place.target)

    assert (place.target / "b").samefile(place.target / "d/a")
    assert result.bytes == 6


def test_links_that_stay_inside_are_kept_even_through_each_other(place: Place) -> None:
    place.tar(
        entry("lib", tarfile.SYMTYPE, "usr/lib"),
        ("usr/lib/x.so.1", b"x"),
        entry("usr/lib/x.so", tarfile.SYMTYPE, "x.so.1"),
        entry("usr/up", tarfile.SYMTYPE, ".."),
        entry("usr/deep", tarfile.SYMTYPE, "up/lib/../lib/x.so"),
        entry("usr/X11", tarfile.SYMTYPE, "."),
    )

    extract_archive(place.archive, place.target)

    assert (place.target / "lib/x.so").read_bytes() == b"x"


def test_very_long_names_and_global_headers_are_read(place: Place) -> None:
    name = "/".join(["long" * 50] * 3)
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        extra = {"comment": "0" * 40} if form == tarfile.PAX_FORMAT else None
        with tarfile.open(place.archive, "w", format=form, pax_headers=extra) as made:
            info, data = file(name)
            made.addfile(info, io.BytesIO(data))
            made.addfile(entry("l", tarfile.SYMTYPE, name))

        result = extract_archive(place.archive, place.folder / str(form))

        assert result.paths == [name, "l"]
        assert (place.folder / str(form) / "l").read_bytes() == b"data"


def test_streams_one_after_another_and_bytes_behind_the_end_are_fine(place: Place) -> None:
    import bz2
    import gzip
    import lzma

    place.tar(("a", b"x" * 5000), ("b", b"y" * 5000))
    plain = place.archive.read_bytes()
    for number, pack in enumerate((gzip.compress, bz2.compress, lzma.compress, bytes)):
        place.archive.write_bytes(pack(plain[:3000]) + pack(plain[3000:]) + b"trailing")

        assert extract_archive(place.archive, place.folder / str(number)).paths == ["a", "b"]


def test_a_listing_says_what_is_inside_without_judging(place: Place) -> None:
    place.tar(("../a", b"12345"), entry("null", tarfile.CHRTYPE), entry("l", b"2", "/etc"))

    found = list_archive(place.archive)

    assert [(member.path, member.kind, member.size, member.link) for member in found] == [
        ("../a", "file", 5, ""),
        ("null", "other", 0, ""),
        ("l", "symlink", 0, "/etc"),
    ]


def test_special_bits_are_dropped(place: Place) -> None:
    info = entry("d", tarfile.DIRTYPE)
    info.mode = 0o7777
    script = tarfile.TarInfo("d/s")
    script.mode = 0o7711
    place.tar(info, script)

    extract_archive(place.archive, place.target)

    for name in ("d", "d/s"):
        assert (place.target / name).stat().st_mode & 0o7000 == 0
    assert (place.target / "d/s").stat().st_mode & 0o111 == 0o111


def test_times_that_cannot_be_are_left_out(place: Place) -> None:
    info, _ = file("a", b"")
    info.mtime = 2**60
    with tarfile.open(place.archive, "w", format=tarfile.GNU_FORMAT) as made:
        made.addfile(info)

    assert extract_archive(place.archive, place.target).files == 1


def test_an_empty_archive_makes_an_empty_folder(place: Place) -> None:
    place.archive.write_bytes(b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 0, 0, 0, 0, 0))

    assert extract_archive(place.archive, place.target / "deep" / "down").files == 0
    assert list((place.target / "deep" / "down").iterdir()) == []
