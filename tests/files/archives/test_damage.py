"""Damaged, cut, locked and strange files are refused with a word, and nothing stays."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.files.archives.conftest import Place, listing

from hermes.files.archives.extraction import extract_archive, list_archive
from hermes.files.archives.limits import ArchiveError

MODES = ["w", "w:gz", "w:bz2", "w:xz"]


def fill(place: Place, mode: str) -> bytes:
    """An archive with a few files, and its bytes."""
    files = [("d/a", b"first " * 300), ("b", random.Random(1).randbytes(900)), ("c", b"")]
    if mode == "zip":
        with zipfile.ZipFile(place.archive, "w", 8) as made:
            for name, data in files:
                made.writestr(name, data)
    else:
        place.tar(*files, mode=mode)
    return place.archive.read_bytes()


@pytest.mark.parametrize("mode", [*MODES, "zip"])
def test_an_archive_cut_anywhere_is_refused_or_complete(place: Place, mode: str) -> None:
    whole = fill(place, mode)
    expected = len(list_archive(place.archive))

    for stop in range(0, len(whole), 61 if mode != "w" else 256):
        place.archive.write_bytes(whole[:stop])
        try:
            result = extract_archive(place.archive, place.target)
        except ArchiveError:
            assert not place.target.exists()
        else:
            # Only the zeros behind the end of a plain tar can go missing.
            assert mode == "w"
            assert result.files == expected
            break
        assert os.listdir(place.folder) == ["archive"]


@pytest.mark.parametrize("mode", [*MODES, "zip"])
def test_flipped_bytes_never_do_more_than_damage_one_archive(place: Place, mode: str) -> None:
    whole = fill(place, mode)
    chance = random.Random(mode)

    for number in range(120):
        hurt = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3, 20))):
            hurt[chance.randrange(len(hurt))] = chance.randrange(256)
        place.archive.write_bytes(hurt)
        target = place.folder / f"target{number}"
        try:
            extract_archive(place.archive, target)
        except ArchiveError:
            assert not target.exists()
        names = {"archive"} | {f"target{done}" for done in range(number + 1)}
        assert set(os.listdir(place.folder)) <= names


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz", "zip"])
def test_a_wrong_check_sum_is_noticed(place: Place, mode: str) -> None:
    place.tar(("a", random.Random(2).randbytes(3000)), mode=mode if mode != "zip" else "w")
    if mode == "zip":
        with zipfile.ZipFile(place.archive, "w") as made:
            made.writestr("a", random.Random(2).randbytes(3000))
    data = bytearray(place.archive.read_bytes())
    data[len(data) // 3] ^= 1
    place.archive.write_bytes(data)

    place.refuses()


@pytest.mark.parametrize(
    "data", [b"", b"text\n" * 500, b"\x1f\x8b", b"PK\x03\x04", os.urandom(9999)]
)
def test_a_file_that_is_no_archive_is_refused(place: Place, data: bytes) -> None:
    place.archive.write_bytes(data)

    place.refuses()


def test_an_encrypted_zip_is_named_as_such(place: Place) -> None:
    with zipfile.ZipFile(place.archive, "w") as made:
        made.writestr("a", b"secret")
    data = bytearray(place.archive.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    place.archive.write_bytes(data)

    place.refuses("encrypted")


def test_a_zip_with_two_names_for_one_member_is_refused(place: Place) -> None:
    with zipfile.ZipFile(place.archive, "w") as made:
        made.writestr("shown", b"x")
    data = place.archive.read_bytes()
    place.archive.write_bytes(data.replace(b"shown", b"other", 1))

    place.refuses("two names")


def test_sparse_files_are_refused(place: Place) -> None:
    info = tarfile.TarInfo("a")
    info.pax_headers = {"GNU.sparse.size": "99999999999", "GNU.sparse.map": "0,0"}
    place.tar(info)

    place.refuses("sparse")


@pytest.mark.parametrize("field", ["size=-512", "size=x", "mtime=x", "size=" + "9" * 5000])
def test_numbers_that_make_no_sense_are_refused(place: Place, field: str) -> None:
    name, _, value = field.partition("=")
    info = tarfile.TarInfo("a")
    info.pax_headers = {name: value}
    place.tar(info)

    place.refuses()


def test_a_negative_size_does_not_go_back_in_the_file(place: Place) -> None:
    info = tarfile.TarInfo("a")
    info.size = -1024
    place.archive.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))

    place.refuses("negative")


def test_zstandard_is_read_or_explained(place: Place) -> None:
    place.archive.write_bytes(b"\x28\xb5\x2f\xfd" + b"nothing of the kind")

    place.refuses("Zstandard|damaged|cut short")


@pytest.mark.parametrize("call", [extract_archive, lambda archive, _: list_archive(archive)])
def test_what_is_no_regular_file_is_refused_without_waiting(place: Place, call: object) -> None:
    os.mkfifo(place.archive)
    paths = [place.archive, place.folder, Path("/dev/zero"), place.folder / "missing", "a\0b"]

    for path in paths:
        with pytest.raises(ArchiveError):
            call(path, place.target)  # type: ignore[operator]

    assert os.listdir(place.folder) == ["archive"]


@pytest.mark.parametrize("moment", ["os.chmod", "os.symlink", "os.rename", "os.utime", "os.mkdir"])
@pytest.mark.parametrize("there", [True, False])
def test_an_interruption_at_any_moment_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, moment: str, there: bool
) -> None:
    with tarfile.open(place.archive, "w") as made:
        for number in range(3):
            made.addfile(tarfile.TarInfo(f"d{number}/f"))
            link = tarfile.TarInfo(f"l{number}")
            link.type, link.linkname = tarfile.SYMTYPE, "d0"
            made.addfile(link, io.BytesIO())
    if there:
        (place.target / "d1").mkdir(parents=True)
        (place.target / "d1" / "mine").write_bytes(b"kept")
    before = listing(place.folder)
    real = getattr(os, moment.removeprefix("os."))

    for after in range(12):
        left = after

        def interrupted(*args: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
            return real(*args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(moment, interrupted)
            try:
                extract_archive(place.archive, place.target)
            except KeyboardInterrupt:
                assert listing(place.folder) == before
            else:
                break
    assert after


@pytest.mark.parametrize("text", [b"", b"hello\n", b"lines of a log\n" * 200])
def test_one_compressed_file_is_said_to_be_no_archive(place: Place, text: bytes) -> None:
    place.archive.write_bytes(gzip.compress(text))

    with pytest.raises(ArchiveError, match="one compressed file") as caught:
        extract_archive(place.archive, place.target)

    assert "gunzip" in (caught.value.hint or "")
    assert not place.target.exists()
