"""Folder synchronisation with a remote: files are compared by hash, so that only changes are sent.

The remote hashes its own files. Local hashes are cached on disk by size and time, so that unchanged
files are read once. The same cache has modes and link targets.
"""

from __future__ import annotations

import io
import json
import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.core.paths import home_path, is_below, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from tarfile import TarFile, TarInfo
    from typing import Any

    from hermes.environments.environment import Environment

_HASHES = """
cd -- "$1" 2>/dev/null || exit 0
command -v sha256sum >/dev/null || exit 3
xargs -0 sha256sum -- 2>/dev/null
exit 0
"""
_UNPACK = 'mkdir -p -- "$1" && tar -xf - -C "$1"'
_PACK = 'cd -- "$(dirname -- "$1")" && tar -cf - -- "$(basename -- "$1")"'


class Synced(NamedTuple):
    """Result of an upload: files and bytes that were sent, and the number of unchanged files."""

    files: int
    bytes: int
    unchanged: int


class _Item(NamedTuple):
    """One local file or link."""

    name: str
    path: str
    size: int
    # The hash with the execute bit, or the target of a link.
    version: str
    hash: str


def upload(environment: Environment, local: str, remote: str) -> Synced:
    """Copy a local folder to the remote; other files there stay."""
    cache_path = home_path("sync", f"{_key(environment.label, remote)}.json")
    cache = _read_cache(cache_path)
    items = list(_items(local, cache))
    hashes = _remote_hashes(environment, remote, [item.name for item in items if item.hash])
    changed = [item for item in items if not _is_unchanged(item, hashes, cache)]
    if changed:
        code, _, err = environment.run_script(_with_arguments(_UNPACK, remote), _packed(changed))
        if code:
            error = err.decode("utf-8", "replace").strip()[-300:]
            raise ToolError(f"{local} can't be sent to {environment.label}: {error}")
    _write_cache(cache_path, items)
    return Synced(len(changed), sum(item.size for item in changed), len(items) - len(changed))


def download(environment: Environment, remote: str, local: str) -> None:
    """Fetch a file or folder from the remote into a local folder."""
    import tarfile

    code, out, err = environment.run_script(_with_arguments(_PACK, remote))
    if code:
        error = err.decode("utf-8", "replace").strip()[-300:]
        raise ToolError(f"{remote} can't be fetched from {environment.label}: {error}")
    os.makedirs(local, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(out)) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(local, filter="data")
        else:
            _extract_safely(archive, local)


def _extract_safely(archive: TarFile, folder: str) -> None:
    """Do the same as the `data` filter, which Python has since 3.11.4."""
    root = os.path.realpath(folder)
    for member in archive:
        if not _stays_inside(member, root):
            raise ToolError(f"not fetched: {member.name!r:.200} leads out of the folder")
        member.mode = member.mode & 0o755 | 0o600
        member.uid, member.gid = os.getuid(), os.getgid()
        member.uname = member.gname = ""
        archive.extract(member, folder)


def _stays_inside(member: TarInfo, root: str) -> bool:
    path = os.path.join(root, member.name)
    if not (member.isreg() or member.isdir() or member.islnk() or member.issym()):
        return False
    paths = [os.path.realpath(path)]
    if member.issym():
        paths.append(os.path.realpath(os.path.join(os.path.dirname(path), member.linkname)))
    elif member.islnk():
        paths.append(os.path.realpath(os.path.join(root, member.linkname)))
    return all(is_below(each, root) for each in paths)


def _items(local: str, cache: dict[str, Any]) -> Iterator[_Item]:
    for path in _walk(local):
        name = os.path.relpath(path, local)
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            yield _Item(name, path, 0, f"-> {os.readlink(path)}", "")
            continue
        if not stat.S_ISREG(status.st_mode):
            continue
        entry = cache.get(name)
        if entry and entry["stamp"] == _stamp(status) and entry["hash"]:
            digest = entry["hash"]
        else:
            digest = _hash(path)
        executable = "x" if status.st_mode & 0o111 else "-"
        yield _Item(name, path, status.st_size, f"{executable}{digest}", digest)


def _walk(local: str) -> Iterator[str]:
    if not os.path.isdir(local):
        raise ToolError(f"{local} is no folder")
    for parent, folders, files in os.walk(local):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        folders.sort()
        for name in sorted([*files, *links]):
            yield os.path.join(parent, name)


def _remote_hashes(
    environment: Environment, remote: str, names: list[str]
) -> dict[str, str] | None:
    """The hashes of the files there, by name; None where the remote has no `sha256sum`."""
    if not names:
        return {}
    data = b"".join(b"./" + os.fsencode(name) + b"\0" for name in names)
    code, out, _ = environment.run_script(_with_arguments(_HASHES, remote), data)
    if code == 3:
        return None
    hashes = {}
    for line in out.splitlines():
        escaped = line.startswith(b"\\")
        digest, _, name = line.lstrip(b"\\").partition(b"  ")
        if escaped:
            name = name.replace(b"\\n", b"\n").replace(b"\\\\", b"\\")
        hashes[os.fsdecode(name.removeprefix(b"./"))] = digest.decode("ascii", "replace")
    return hashes


def _is_unchanged(item: _Item, hashes: dict[str, str] | None, cache: dict[str, Any]) -> bool:
    sent = cache.get(item.name, {}).get("is")
    if not item.hash or hashes is None:
        # Links, or a remote without hashes: only the cache tells.
        return bool(sent == item.version)
    if hashes.get(item.name) != item.hash:
        return False
    return sent == item.version or (sent is None and item.version.startswith("-"))


def _packed(items: list[_Item]) -> bytes:
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for item in items:
            archive.add(item.path, item.name, recursive=False, filter=_without_owner)
    return packed.getvalue()


def _without_owner(member: TarInfo) -> TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _with_arguments(script: str, *words: str) -> str:
    from hermes.environments.remote_shell.scripts import quote

    return f"set -- {' '.join(map(quote, words))}\n{script}"


def _hash(path: str) -> str:
    digest = sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _key(label: str, remote: str) -> str:
    return sha256(f"{label}\0{remote}".encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _read_cache(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            cache = json.load(file)
    except (OSError, ValueError):
        return {}
    return cache if isinstance(cache, dict) else {}


def _write_cache(path: str, items: list[_Item]) -> None:
    cache = {}
    for item in items:
        stamp = _stamp(os.lstat(item.path))
        cache[item.name] = {"stamp": stamp, "hash": item.hash, "is": item.version}
    write_private(path, json.dumps(cache).encode("utf-8"))
