from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from hermes.environments.disk.local_disk import LocalDisk
from hermes.environments.disk.protocol import DiskError, Entry


@pytest.fixture
def disk() -> LocalDisk:
    return LocalDisk()


def test_a_write_replaces_the_file_and_keeps_mode_and_owner(
    tmp_path: Path, disk: LocalDisk
) -> None:
    path = tmp_path / "script.sh"
    path.write_bytes(b"old")
    path.chmod(0o751)
    owner = (1234, 2345) if os.getuid() == 0 else (os.getuid(), os.getgid())
    os.chown(path, *owner)

    disk.write(str(path), b"new")

    found = path.stat()
    assert path.read_bytes() == b"new"
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o751, *owner)
    assert os.listdir(tmp_path) == ["script.sh"]


def test_a_new_file_gets_the_usual_mode(tmp_path: Path, disk: LocalDisk) -> None:
    usual = tmp_path / "usual"
    usual.write_bytes(b"")

    disk.write(str(tmp_path / "new"), [b"a", b"b"])

    assert (tmp_path / "new").read_bytes() == b"ab"
    assert (tmp_path / "new").stat().st_mode == usual.stat().st_mode


def test_a_failed_write_leaves_the_old_bytes_and_no_draft(tmp_path: Path, disk: LocalDisk) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def breaks() -> object:
        yield b"half"
        raise RuntimeError("the source ended early")

    with pytest.raises(RuntimeError):
        disk.write(str(path), breaks())  # type: ignore[arg-type]

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("operation", ["open", "write", "scan", "make_folder"])
def test_a_link_on_the_way_is_not_followed(tmp_path: Path, disk: LocalDisk, operation: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a").write_bytes(b"kept")
    (tmp_path / "link").symlink_to("secret")
    below = {"open": "link/a", "write": "link/a", "scan": "link", "make_folder": "link/new"}
    place = str(tmp_path / below[operation])

    with pytest.raises((DiskError, OSError)):
        {
            "open": lambda: disk.open(place),
            "write": lambda: disk.write(place, b"x"),
            "scan": lambda: list(disk.scan(place)),
            "make_folder": lambda: disk.make_folder(place),
        }[operation]()

    assert os.listdir(tmp_path / "secret") == ["a"]
    assert (tmp_path / "secret" / "a").read_bytes() == b"kept"


def test_a_link_in_the_place_of_the_file_is_neither_read_nor_written(
    tmp_path: Path, disk: LocalDisk
) -> None:
    (tmp_path / "secret").write_bytes(b"kept")
    (tmp_path / "link").symlink_to("secret")

    with pytest.raises(DiskError):
        disk.read(str(tmp_path / "link"))
    with pytest.raises(DiskError):
        disk.write(str(tmp_path / "link"), b"x")

    assert (tmp_path / "secret").read_bytes() == b"kept"
    assert disk.link_target(str(tmp_path / "link")) == "secret"


def test_a_pipe_is_refused_at_once(tmp_path: Path, disk: LocalDisk) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(DiskError, match="pipe"):
        disk.open(str(tmp_path / "pipe"))
    with pytest.raises(DiskError, match="pipe"):
        disk.write(str(tmp_path / "pipe"), b"x")


@pytest.mark.parametrize("place", ["relative", "/a/../b", "/a/./b"])
def test_only_resolved_places_are_taken(disk: LocalDisk, place: str) -> None:
    with pytest.raises(DiskError, match="resolved"):
        disk.open(place)


def test_folders_are_made_from_the_outermost(tmp_path: Path, disk: LocalDisk) -> None:
    made = disk.make_folder(str(tmp_path / "a" / "b"))

    assert made == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert disk.make_folder(str(tmp_path / "a" / "b")) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        disk.make_folder(str(tmp_path / "file" / "below"))


def test_a_folder_says_what_it_holds(tmp_path: Path, disk: LocalDisk) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")

    found = sorted(disk.scan(str(tmp_path)))

    kinds = ["file", "folder", "link", "pipe"]
    assert found == [Entry(kind, kind) for kind in kinds]  # type: ignore[arg-type]


def test_what_is_not_there_has_no_status(tmp_path: Path, disk: LocalDisk) -> None:
    (tmp_path / "file").write_bytes(b"12")

    assert disk.status(str(tmp_path / "none")) is None
    assert disk.status(str(tmp_path / "file" / "below")) is None
    found = disk.status(str(tmp_path / "file"))
    assert found is not None
    assert (found.kind, found.size) == ("file", 2)


def test_removing_takes_a_file_a_link_or_an_empty_folder(tmp_path: Path, disk: LocalDisk) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_bytes(b"")
    disk.make_link(str(tmp_path / "link"), "folder")

    with pytest.raises(OSError, match="not empty"):
        disk.remove(str(tmp_path / "folder"))
    disk.remove(str(tmp_path / "link"))
    disk.remove(str(tmp_path / "folder" / "a"))
    disk.remove(str(tmp_path / "folder"))

    assert os.listdir(tmp_path) == []


def test_a_name_of_the_greatest_length_can_be_written(tmp_path: Path, disk: LocalDisk) -> None:
    path = tmp_path / ("n" * 255)

    disk.write(str(path), b"x")
    disk.write(str(path), b"y")

    assert path.read_bytes() == b"y"


def test_readers_find_the_old_bytes_or_the_new_ones(tmp_path: Path, disk: LocalDisk) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a" * 4096)
    seen: set[bytes] = set()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for byte in (b"b", b"c", b"d") * 20:
        disk.write(str(path), byte * 4096)
    ended.set()
    reader.join()

    assert seen <= {byte * 4096 for byte in (b"a", b"b", b"c", b"d")}


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="this system has no extended attributes")
def test_extended_attributes_stay_with_a_file_that_is_replaced(
    tmp_path: Path, disk: LocalDisk
) -> None:
    place = tmp_path.resolve() / "a"
    place.write_bytes(b"old")
    os.setxattr(place, "user.origin", b"somewhere")

    disk.write(str(place), b"new")

    assert place.read_bytes() == b"new"
    assert os.getxattr(place, "user.origin") == b"somewhere"
