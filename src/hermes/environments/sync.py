"""Folders sent to the far end by hash, so that only what changed travels.

What is there is asked of the other end itself; our own hashes are kept on disk by size and time, so
that neither side's unchanged files are read twice. The same state remembers modes and links.
"""

from __future__ import annotations

import io
import json
import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.core.home import home_path, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.environments.environment import Environment

_HASHES = """
cd -- "$1" 2>/dev/null || exit 0
command -v sha256sum >/dev/null || exit 3
xargs -0 sha256sum -- 2>/dev/null
exit 0
"""
_UNPACK = 'mkdir -p -- "$1" && tar -xf - -C "$1"'


class Synced(NamedTuple):
    """What an upload came to: files and bytes of theirs that travelled, and files that need not."""

    files: int
    bytes: int
    unchanged: int


class _Item(NamedTuple):
    """One local file or link."""

    name: str
    path: str
    size: int
    # What it is: the hash of its bytes and whether it can be run, or where it points.
    is_: str
    hash: str


def upload(environment: Environment, local: str, far: str) -> Synced:
    """Make a folder at the far end hold what a local one does; what else is there stays."""
    state_path = home_path("sync", f"{_key(environment.label, far)}.json")
    state = _state(state_path)
    items = list(_items(local, state))
    there = _hashes(environment, far, [item.name for item in items if item.hash])
    changed = [item for item in items if not _same(item, there, state)]
    if changed:
        archive = _packed(changed)
        code, _, err = environment.run_script(_with(_UNPACK, far), archive)
        if code:
            said = err.decode("utf-8", "replace").strip()[-300:]
            raise ToolError(f"{local} can't be sent to {environment.label}: {said}")
    _keep(state_path, items)
    return Synced(len(changed), sum(item.size for item in changed), len(items) - len(changed))


def download(environment: Environment, far: str, local: str) -> None:
    """Fetch a file or folder from the far end into a local folder."""
    import tarfile

    script = _with('cd -- "$(dirname -- "$1")" && tar -cf - -- "$(basename -- "$1")"', far)
    code, out, err = environment.run_script(script)
    if code:
        said = err.decode("utf-8", "replace").strip()[-300:]
        raise ToolError(f"{far} can't be fetched from {environment.label}: {said}")
    os.makedirs(local, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(out)) as archive:
        archive.extractall(local, filter="data")


def _items(local: str, state: dict[str, Any]) -> Iterator[_Item]:
    for path in _walk(local):
        name = os.path.relpath(path, local)
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            yield _Item(name, path, 0, f"-> {os.readlink(path)}", "")
            continue
        if not stat.S_ISREG(found.st_mode):
            continue
        stamp = [found.st_size, found.st_mtime_ns, found.st_ino]
        known = state.get(name)
        if known and known["stamp"] == stamp and known["hash"]:
            digest = known["hash"]
        else:
            digest = _hash(path)
        run = "x" if found.st_mode & 0o111 else "-"
        yield _Item(name, path, found.st_size, f"{run}{digest}", digest)


def _walk(local: str) -> Iterator[str]:
    if not os.path.isdir(local):
        raise ToolError(f"{local} is no folder")
    for above, folders, files in os.walk(local):
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]
        folders.sort()
        for name in sorted([*files, *links]):
            yield os.path.join(above, name)


def _hashes(environment: Environment, far: str, names: list[str]) -> dict[str, str] | None:
    """The hashes of what is there, by name; None where the other end can't say."""
    if not names:
        return {}
    listed = b"".join(b"./" + os.fsencode(name) + b"\0" for name in names)
    code, out, _ = environment.run_script(_with(_HASHES, far), listed)
    if code == 3:
        return None
    found = {}
    for line in out.splitlines():
        escaped = line.startswith(b"\\")
        digest, _, name = line.lstrip(b"\\").partition(b"  ")
        if escaped:
            name = name.replace(b"\\n", b"\n").replace(b"\\\\", b"\\")
        found[os.fsdecode(name.removeprefix(b"./"))] = digest.decode("ascii", "replace")
    return found


def _same(item: _Item, there: dict[str, str] | None, state: dict[str, Any]) -> bool:
    known = state.get(item.name, {}).get("is")
    if not item.hash or there is None:
        # Only our own word can be taken for it.
        return bool(known == item.is_)
    if there.get(item.name) != item.hash:
        return False
    return known == item.is_ or (known is None and item.is_.startswith("-"))


def _packed(items: list[_Item]) -> bytes:
    import tarfile

    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for item in items:
            archive.add(item.path, item.name, recursive=False, filter=_nobody)
    return whole.getvalue()


def _nobody(member: Any) -> Any:
    """Owned by whoever unpacks it."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _with(script: str, *words: str) -> str:
    from hermes.environments.remote_shell.scripts import quote

    return f"set -- {' '.join(map(quote, words))}\n{script}"


def _hash(path: str) -> str:
    digest = sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _key(label: str, far: str) -> str:
    return sha256(f"{label}\0{far}".encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _state(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _keep(path: str, items: list[_Item]) -> None:
    kept = {}
    for item in items:
        found = os.lstat(item.path)
        stamp = [found.st_size, found.st_mtime_ns, found.st_ino]
        kept[item.name] = {"stamp": stamp, "hash": item.hash, "is": item.is_}
    write_private(path, json.dumps(kept).encode("utf-8"))
