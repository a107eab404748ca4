"""Every kind of change that a command can make below a folder is undone exactly.

Compared are bytes, types, modes, owners, link targets, extended attributes, modification times of
files, links and folders, which names are one file, and how much room a sparse file takes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent, attributes

_OLD = 1_600_000_000 * 10**9 + 123_456_789


def fill(root: Path) -> None:
    """A folder with one of each: files, links of both sorts, folders, a pipe, a sparse file."""
    for name in ("src/deep", "full/inner", "empty", "kept"):
        (root / name).mkdir(parents=True)
    for name in ("a", "b", "src/c", "src/deep/d", "full/e", "full/inner/f", "noted", "kept/g"):
        (root / name).write_text(f"content of {name}\n" * 40)
    os.setxattr(root / "noted", "user.note", b"old")
    os.setxattr(root / "full", "user.note", b"folder")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("a")
    (root / "to-folder").symlink_to("src")
    (root / "one").write_text("linked\n")
    os.link(root / "one", root / "two")
    os.link(root / "one", root / "src" / "three")
    os.mkfifo(root / "pipe", 0o640)
    os.mknod(root / "socket", stat.S_IFSOCK | 0o600)
    with open(root / "sparse", "wb") as file:
        file.seek(40 << 20)
        file.write(b"end")
    (root / "wi\nth\udcff").write_text("odd name\n")
    for number, path in enumerate(sorted(root.rglob("*"), key=lambda one: -len(one.parts))):
        os.utime(path, ns=(_OLD, _OLD + number), follow_symlinks=False)
    os.utime(root, ns=(_OLD, _OLD))


def exact(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything that can be compared about everything below a folder, and the folder itself."""
    paths = [root, *root.rglob("*")]
    names: dict[tuple[int, int], list[str]] = {}
    for path in paths:
        status = path.lstat()
        names.setdefault((status.st_dev, status.st_ino), []).append(str(path.relative_to(root)))
    found: dict[str, tuple[object, ...]] = {}
    for path in paths:
        status = path.lstat()
        shared = sorted(names[status.st_dev, status.st_ino])
        content: object = None
        extra: object = None
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            content, extra = path.read_bytes(), (attributes(path), status.st_blocks <= 2048)
        elif stat.S_ISDIR(status.st_mode):
            extra = attributes(path)
        found[str(path.relative_to(root))] = (
            status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, shared, content, extra
        )  # fmt: skip
    return found


PYTHON = "python3 -c "
KINDS = {
    "written in place": "printf changed > a",
    "appended": "echo more >> a",
    "shortened": "truncate -s 5 a",
    "emptied": ": > a",
    "same size and time": "m=$(stat -c %y a); sed 's/content/CONTENT/' a > t; cat t > a; rm t; "
    'touch -d "$m" a',
    "one byte in the middle": "printf X | dd of=a bs=1 seek=9 conv=notrunc status=none",
    "replaced by rename": "cp b t && mv t a",
    "written through a map": PYTHON + '\'import mmap;f=open("a","r+b");m=mmap.mmap(f.fileno(),0);'
    'm[0:3]=b"XYZ";m.close()\'',
    "file made": "echo new > made; echo new > src/deep/made",
    "file deleted": "rm a src/c",
    "file renamed": "mv a z",
    "file moved to another folder": "mv a full/inner/z",
    "two files swapped": "mv a t && mv b a && mv t b",
    "mode": "chmod 600 a && chmod 644 run",
    "set-id and sticky bits": "chmod u+s run && chmod +t kept && chmod g+s src",
    "time of a file": "touch -d 2001-02-03 a",
    "owner": "chown 12:34 a 2>/dev/null || chgrp $(id -g) a",
    "attribute set": PYTHON + '\'import os;os.setxattr("a","user.new",b"x")\'',
    "attribute changed and removed": PYTHON + '\'import os;os.setxattr("noted","user.note",b"n")\'',
    "attribute removed": PYTHON + '\'import os;os.removexattr("noted","user.note")\'',
    "attribute of a folder": PYTHON + '\'import os;os.setxattr("full","user.note",b"x")\'',
    "link led elsewhere": "ln -sfn b link",
    "link deleted": "rm link",
    "link made": "ln -s b made",
    "time of a link": "touch -h -d 2001-02-03 link",
    "link becomes a file": "rm link && cp a link",
    "link becomes a folder": "rm to-folder && cp -r src to-folder",
    "file becomes a link": "rm a && ln -s b a",
    "file becomes a folder": "rm a && mkdir a && echo x > a/x",
    "folder becomes a file": "rm -r full && echo x > full",
    "folder becomes a link": "rm -r full && ln -s src full",
    "folders made": "mkdir -p new/deep/er && touch new/deep/er/x",
    "empty folder deleted": "rmdir empty",
    "tree deleted": "rm -rf src full",
    "everything deleted": "find . -mindepth 1 -delete",
    "folder renamed": "mv full renamed",
    "folder moved into another": "mv full src/deep/",
    "folders swapped": "mv src t && mv full src && mv t full",
    "mode of a folder": "chmod 700 src && chmod 555 full",
    "folder closed": "chmod 0 kept",
    "time of a folder": "touch -d 2001-02-03 src . && touch x && rm x",
    "name added to a file": "ln a hard && ln a full/hard",
    "name added, used and removed": "ln a t && echo more >> t && rm t",
    "file of several names written": "echo more >> one",
    "one of several names deleted": "rm two",
    "all names deleted": "rm one two src/three",
    "one of several names replaced": "cp one t && mv t two",
    "a name moved": "mv two full/two",
    "pipe deleted": "rm pipe",
    "pipe made": "mkfifo made-pipe",
    "pipe becomes a file": "rm pipe && echo x > pipe",
    "socket deleted": "rm socket",
    "sparse file deleted": "rm sparse",
    "sparse file written": "printf x | dd of=sparse bs=1 seek=20000000 conv=notrunc status=none",
    "odd name": "rm wi*",
    "repository": "git init -q . && git add a b && git -c user.name=n -c user.email=e commit -qm x",
}


@pytest.mark.parametrize("kind", KINDS)
def test_undo_is_exact(agent: Agent, root: Path, kind: str) -> None:
    fill(root)
    before = exact(root)

    agent.run(KINDS[kind])
    changed = exact(root) != before
    report = agent.store.undo(turn="one")

    assert changed
    assert report.left == []
    assert exact(root) == before
