"""A part of an archive, over what is there, told beforehand: still all or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.files.archives.conftest import Place, entry, listing

from hermes.files.archives import extraction as placing_module
from hermes.files.archives.extraction import check_archive, extract_archive
from hermes.files.archives.limits import ArchiveError, PlacedPath

SYMLINK, HARDLINK, FIFO = b"2", b"1", b"6"


def test_only_what_is_chosen_is_unpacked(place: Place) -> None:
    place.tar(("a/x", b"1"), ("a/y", b"2"), ("b/z", b"3"))

    found = extract_archive(place.archive, place.target, choose=lambda path: path.endswith("x"))

    assert sorted(listing(place.target)) == ["a", "a/x"]
    assert found.paths == ["a/x"]
    assert found.bytes == 1


def test_what_is_not_chosen_can_not_hurt_but_its_name_is_judged(place: Place) -> None:
    place.tar(("a", b"1"), entry("out", SYMLINK, "/etc"), entry("pipe", FIFO))

    extract_archive(place.archive, place.target, choose=lambda path: path == "a")
    assert sorted(listing(place.target)) == ["a"]

    place.tar(("ok", b"1"), ("../x", b"2"))
    place.refuses(choose=lambda path: path == "ok")


def test_a_hard_link_to_what_is_not_chosen_is_refused(place: Place) -> None:
    place.tar(("a", b"1"), entry("b", HARDLINK, "a"))

    place.refuses("not chosen", choose=lambda path: path == "b")


def test_a_link_through_one_that_is_not_chosen_is_judged_as_if_it_were(place: Place) -> None:
    place.tar(entry("out", SYMLINK, "/etc"), entry("in", SYMLINK, "out/passwd"))

    place.refuses(choose=lambda path: path == "in")


def fill(place: Place) -> None:
    (place.target / "sub").mkdir(parents=True)
    (place.target / "sub/a").write_text("mine")
    (place.target / "other").write_text("other")
    place.tar(("sub/a", b"theirs"), ("sub/b", b"new"))


def test_files_in_the_way_can_stay(place: Place) -> None:
    fill(place)

    found = extract_archive(place.archive, place.target, existing="skip")

    assert (place.target / "sub/a").read_text() == "mine"
    assert (place.target / "sub/b").read_text() == "new"
    assert (found.paths, found.skipped, found.bytes) == (["sub/b"], ["sub/a"], 3)


def test_files_in_the_way_can_be_replaced(place: Place) -> None:
    fill(place)

    found = extract_archive(place.archive, place.target, existing="replace")

    assert (place.target / "sub/a").read_text() == "theirs"
    assert (place.target / "other").read_text() == "other"
    assert found.replaced == ["sub/a"]
    assert sorted(path.name for path in place.folder.iterdir()) == ["archive", "target"]


def test_a_link_in_the_way_is_replaced_and_not_written_through(
    place: Place, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    place.target.mkdir()
    (place.target / "a").symlink_to(outside)
    place.tar(("a", b"theirs"))

    extract_archive(place.archive, place.target, existing="replace")

    assert outside.read_text() == "untouched"
    assert not (place.target / "a").is_symlink()


@pytest.mark.parametrize("existing", ["skip", "replace"])
def test_a_folder_is_never_replaced_nor_taken_for_a_file(place: Place, existing: Any) -> None:
    (place.target / "a").mkdir(parents=True)
    place.tar(("a", b"file"))
    place.refuses("there already", existing=existing)

    (place.target / "b").write_text("file")
    place.tar(("b/x", b"1"))
    place.refuses("there already", existing=existing)


def test_a_link_to_a_folder_is_no_way_into_it(place: Place, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    place.target.mkdir()
    (place.target / "a").symlink_to(tmp_path / "outside")
    place.tar(("a/x", b"1"))

    place.refuses(existing="replace")

    assert not any((tmp_path / "outside").iterdir())


def test_all_that_will_be_there_is_told_before_any_of_it_is(place: Place) -> None:
    fill(place)
    told: list[PlacedPath] = []

    def before(placed: list[PlacedPath]) -> None:
        told.extend(placed)
        assert (place.target / "sub/a").read_text() == "mine"
        assert [Path(one.drafted).read_text() for one in placed] == ["theirs", "new"]

    extract_archive(place.archive, place.target, existing="replace", before=before)

    assert [one.place for one in told] == [str(place.target / "sub" / name) for name in "ab"]


def test_folders_above_are_told_too(place: Place) -> None:
    place.tar(("x/y", b"1"))
    told: list[str] = []
    target = place.folder / "new/deep"

    extract_archive(
        place.archive, target, before=lambda placed: told.extend(one.place for one in placed)
    )

    assert told == [str(path) for path in (target.parent, target, target / "x", target / "x/y")]
    assert (target / "x/y").read_bytes() == b"1"


def test_whoever_is_told_can_stop_it(place: Place) -> None:
    fill(place)

    def before(_: list[PlacedPath]) -> None:
        raise ArchiveError("no")

    place.refuses("no", before=before, existing="replace")


@pytest.mark.parametrize("failing", range(3))
def test_a_failure_between_two_files_takes_everything_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    fill(place)
    real, calls = os.rename, 0

    def rename(source: str, target: str) -> None:
        nonlocal calls
        calls += 1
        if calls == failing + 1:
            raise KeyboardInterrupt
        real(source, target)

    before = listing(place.folder)
    monkeypatch.setattr(placing_module.os, "rename", rename)

    with pytest.raises(KeyboardInterrupt):
        extract_archive(place.archive, place.target, existing="replace")

    assert listing(place.folder) == before


def test_a_file_that_appears_meanwhile_is_not_overwritten(place: Place) -> None:
    fill(place)

    def before(_: list[PlacedPath]) -> None:
        (place.target / "sub/b").write_text("appeared")

    with pytest.raises(ArchiveError, match="appeared meanwhile"):
        extract_archive(place.archive, place.target, existing="replace", before=before)

    assert (place.target / "sub/a").read_text() == "mine"
    assert (place.target / "sub/b").read_text() == "appeared"


def test_checking_finds_what_unpacking_would(place: Place) -> None:
    place.tar(("a", b"1"))
    assert [member.path for member in check_archive(place.archive)] == ["a"]

    for trap in (entry("p", FIFO), entry("l", SYMLINK, "../x"), entry("h", HARDLINK, "none")):
        place.tar(trap)
        with pytest.raises(ArchiveError):
            check_archive(place.archive)


def test_watching_can_stop_it(place: Place) -> None:
    place.tar(("a", bytes(500_000)))

    def watch(read: int) -> None:
        if read > 100_000:
            raise KeyboardInterrupt

    before = listing(place.folder)
    with pytest.raises(KeyboardInterrupt):
        extract_archive(place.archive, place.target, watch=watch)

    assert listing(place.folder) == before
