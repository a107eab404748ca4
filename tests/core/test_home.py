"""The home folder, and files written as a whole."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from hermes.core.paths import (
    flock,
    hermes_home,
    home_path,
    is_current,
    locked,
    make_private,
    open_lock,
    write_private,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CommandLine


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "h"))
    assert hermes_home() == str(tmp_path / "h")
    assert home_path("a", "b") == str(tmp_path / "h" / "a" / "b")
    assert not (tmp_path / "h").exists()

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HERMES_HOME", "~/x/../y")
    assert hermes_home() == str(tmp_path / "y")
    monkeypatch.setenv("HERMES_HOME", "")
    assert hermes_home() == str(tmp_path / ".hermes")


def test_folders_are_the_owners_only(tmp_path: Path) -> None:
    made = make_private(str(tmp_path / "a" / "b"))

    assert made == str(tmp_path / "a" / "b")
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700
    assert make_private(made) == made


def test_a_file_in_the_way_of_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")

    with pytest.raises(OSError, match="a"):
        make_private(str(tmp_path / "a"))


def test_files_are_the_owners_only_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"

    write_private(str(path), b"one")
    write_private(str(path), b"two")

    assert path.read_bytes() == b"two"
    assert mode(path) == 0o600
    assert os.listdir(path.parent) == ["file"]


def test_a_name_without_a_folder_is_in_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    write_private("file", b"x")

    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_private(str(path), b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(str(path), b"new")

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [bytes([65 + n]) * 100_000 for n in range(4)]
    write_private(str(path), texts[0])

    def write(text: bytes) -> None:
        for _ in range(10):
            write_private(str(path), text)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert path.read_bytes() in texts
    for writer in writers:
        writer.join()

    assert os.listdir(tmp_path) == ["file"]


def test_a_lock_excludes_others_until_it_is_released(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "lock")

    with locked(path):
        with pytest.raises(TimeoutError), locked(path, timeout=0.05):
            pass
        handle = open_lock(path)
        assert not flock(handle, wait=False)
        assert is_current(handle, path)
        os.unlink(path)
        assert not is_current(handle, path)
        os.close(handle)

    with locked(path, timeout=0.05), locked(str(tmp_path), directory=True):
        assert os.stat(path).st_mode & 0o777 == 0o600


# -- a home that others could write --------------------------------------------------------------


def test_a_home_of_another_owner_is_refused_with_the_command_that_mends_it(
    hermes: CommandLine, home: Path
) -> None:
    place = str(home)
    if os.geteuid() == 0:
        home.mkdir(parents=True)
        os.chown(home, 12345, -1)
    else:
        place = "/usr"

    done = hermes("config", env={"HERMES_HOME": place})

    assert done.returncode == 1
    assert f"{place} belongs to another user" in done.stderr
    assert f"sudo chown -R {os.geteuid()} {place}" in done.stderr


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o720, 0o702])
def test_a_home_that_others_can_write_is_refused(
    hermes: CommandLine, home: Path, bits: int
) -> None:
    home.mkdir(parents=True)
    home.chmod(bits)

    done = hermes("config", "set", "tools.parallel", "3")
    home.chmod(bits & ~0o022)

    assert done.returncode == 1
    assert f"chmod -R go-w {home}" in done.stderr
    assert not (home / "config.yaml").exists()
    assert hermes("config").returncode == 0


@pytest.mark.parametrize(("folder", "refused"), [(0o755, True), (0o700, False)])
def test_settings_that_others_can_write_are_refused_where_they_can_get_there(
    hermes: CommandLine, home: Path, folder: int, refused: bool
) -> None:
    home.mkdir(parents=True)
    (home / "config.yaml").write_text("")
    (home / "config.yaml").chmod(0o664)
    home.chmod(folder)

    done = hermes("tools")

    assert ("config.yaml can be written by others" in done.stderr) == refused
    assert done.returncode == (1 if refused else 0)
