"""A store, a folder to work in, and the two ways in which an agent changes files."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hermes.environments.disk.local_disk import LocalDisk
from hermes.stores.checkpoints import ABSENT, Author, Change, Checkpoints, Planned, file_state


def picture(root: str | Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder: kinds, modes, bytes, link targets, extended attributes."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            mode = stat.S_IMODE(status.st_mode)
            shown = os.path.relpath(path, root)
            if stat.S_ISLNK(status.st_mode):
                found[shown] = ("link", os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[shown] = ("folder", mode)
            else:
                found[shown] = ("file", mode, Path(path).read_bytes(), attributes(path))
    return found


def attributes(path: str | Path) -> dict[str, bytes]:
    """The extended attributes of a file."""
    if not hasattr(os, "listxattr"):
        return {}
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def times(root: str | Path) -> dict[str, int]:
    """When each file below a folder was modified."""
    return {
        os.path.relpath(path, root): path.lstat().st_mtime_ns
        for path in Path(root).rglob("*")
        if path.is_file() and not path.is_symlink()
    }


class Agent:
    """Changes files as tools and commands do."""

    def __init__(self, store: Checkpoints, root: Path) -> None:
        self.store = store
        self.root = root
        self.disk = LocalDisk()
        self.calls = 0

    def author(self, turn: str, tool: str = "write_file") -> Author:
        """Somebody new for each call."""
        self.calls += 1
        return Author("session", turn, f"call-{self.calls}", tool, "", "test")

    def record(self, turn: str, planned: Sequence[Planned]) -> list[int]:
        """What a tool does before it writes."""
        return self.store.before(self.author(turn), self.disk, planned)

    def write(self, name: str, data: bytes, turn: str = "one", mode: int | None = None) -> None:
        """A tool writes a file."""
        place = str(self.root / name)
        self.record(turn, [Planned(place, file_state(data, mode))])
        self.disk.make_folder(os.path.dirname(place))
        self.disk.write(place, data, mode=mode)

    def remove(self, name: str, turn: str = "one") -> None:
        """A tool removes a file."""
        place = str(self.root / name)
        self.record(turn, [Planned(place, ABSENT)])
        self.disk.remove(place)

    def run(self, command: str, turn: str = "one") -> list[Change]:
        """A command runs, between a snapshot and a second look."""
        before = self.store.snapshot(str(self.root), self.author(turn, "terminal"))
        subprocess.run(["sh", "-c", command], cwd=self.root, check=True)
        return self.store.after_command(before)


@pytest.fixture
def store(home: Path) -> Iterator[Checkpoints]:
    """The store of this test's home."""
    with Checkpoints() as found:
        yield found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder to work in."""
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def agent(store: Checkpoints, root: Path) -> Agent:
    """Somebody who changes files there."""
    return Agent(store, root)
