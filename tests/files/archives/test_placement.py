"""Into a folder that holds something already: beside it, never over it."""

from __future__ import annotations

import os
import stat
import tarfile

import pytest
from tests.files.archives.conftest import Place, entry

from hermes.files.archives.extraction import extract_archive


def test_files_go_beside_those_that_are_there(place: Place) -> None:
    (place.target / "d").mkdir(parents=True)
    (place.target / "d" / "old").write_bytes(b"old")
    place.tar(("d/new", b"new"), ("e/f/g", b"g"), entry("l", tarfile.SYMTYPE, "d/old"))

    extract_archive(place.archive, place.target)

    assert (place.target / "d/old").read_bytes() == b"old"
    assert (place.target / "d/new").read_bytes() == b"new"
    assert (place.target / "l").read_bytes() == b"old"
    assert sorted(os.listdir(place.folder)) == ["archive", "target"]


@pytest.mark.parametrize(
    "name", ["d/old", "d", "d/old/x", "link", "link/x", "d/link/x", "dangling"]
)
def test_nothing_that_is_there_is_overwritten_or_followed(place: Place, name: str) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    (place.target / "d").mkdir(parents=True)
    (place.target / "d" / "old").write_bytes(b"old")
    (place.target / "link").symlink_to(outside)
    (place.target / "d" / "link").symlink_to("../../outside")
    (place.target / "dangling").symlink_to(outside / "made")
    place.tar(("a", b"1"), (name, b"2"), ("z", b"3"))

    place.refuses("already")


def test_a_link_through_a_link_that_was_there_is_refused(place: Place) -> None:
    place.target.mkdir()
    (place.target / "way").symlink_to("/")
    place.tar(entry("l", tarfile.SYMTYPE, "way/etc"))

    place.refuses("was there before")


def test_a_target_that_is_a_file_is_refused(place: Place) -> None:
    place.target.write_bytes(b"mine")
    place.tar(("a", b"1"))

    place.refuses("no folder")


def test_missing_folders_above_the_target_are_made_or_not_left(place: Place) -> None:
    deep = place.target / "x" / "y"
    place.tar(("../a", b"1"))
    place.target = deep
    place.refuses("name")
    place.tar(("a", b"1"))

    result = extract_archive(place.archive, deep)

    assert (deep / "a").read_bytes() == b"1"
    assert result.target == os.path.realpath(deep)


def test_an_archive_inside_its_target_is_fine(place: Place) -> None:
    place.target.mkdir()
    place.archive = place.target / "archive.tar"
    place.tar(("a", b"1"))

    assert extract_archive(place.archive, place.target).paths == ["a"]
    place.tar(("archive.tar", b"1"))
    place.refuses("already")


def test_the_draft_is_private_while_it_grows(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = os.utime

    def looking(*args: object, **options: object) -> None:
        drafts = [name for name in os.listdir(place.folder) if name.endswith(".unpacking")]
        seen.extend(stat.S_IMODE((place.folder / name).stat().st_mode) for name in drafts)
        real(*args, **options)  # type: ignore[arg-type,call-overload]

    monkeypatch.setattr("os.utime", looking)
    place.tar(("a", b"1"), ("b", b"2"))

    extract_archive(place.archive, place.target)

    assert set(seen) == {0o700}
    assert stat.S_IMODE(place.target.stat().st_mode) & 0o700 == 0o700


def test_the_umask_is_respected(place: Place) -> None:
    info = tarfile.TarInfo("a")
    info.mode = 0o777
    place.tar(info, entry("d", tarfile.DIRTYPE))
    before = os.umask(0o077)
    try:
        extract_archive(place.archive, place.target)
    finally:
        os.umask(before)

    for path in (place.target, place.target / "a", place.target / "d"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
