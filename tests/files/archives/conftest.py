"""A folder in which nothing may stay behind, and archives made by hand."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hermes.files.archives.extraction import extract_archive
from hermes.files.archives.limits import ArchiveError


def listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below a folder, with its mode and its bytes or its link."""
    found: dict[str, tuple[int, bytes]] = {}
    for above, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(above, name)
            mode = os.lstat(path).st_mode
            data = b""
            if stat.S_ISLNK(mode):
                data = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(mode):
                data = Path(path).read_bytes()
            found[os.path.relpath(path, folder)] = (mode, data)
    return found


class Place:
    """A folder with an archive and a target in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self.target = folder / "target"

    def refuses(self, match: str | None = None, **options: Any) -> None:
        """The archive is refused, and the folder is as it was."""
        before = listing(self.folder)

        with pytest.raises(ArchiveError, match=match):
            extract_archive(self.archive, self.target, **options)

        assert listing(self.folder) == before

    def tar(self, *members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w") -> None:
        with tarfile.open(self.archive, mode) as made:  # type: ignore[call-overload]
            for each in members:
                info, data = (each, b"") if isinstance(each, tarfile.TarInfo) else file(*each)
                made.addfile(info, io.BytesIO(data))


def file(name: str, data: bytes = b"data") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info, data


def entry(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    info.mode = 0o755
    return info


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "place"
    folder.mkdir()
    return Place(folder)
