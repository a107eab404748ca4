"""Git guard: hooks and settings that run programs are put back after each command.

Git itself has to write `.git/config` (branches, remotes, submodules), so the file stays writable.
After a command it is compared with the version before; a changed key that runs a program or leads
elsewhere is reported, and the file is restored. Hooks are restored in the same way, since a folder
can be moved aside even where it is mounted read-only.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Keys whose value git executes, or takes more settings or another address from.
RUNS = re.compile(
    r"""
    core\.(hookspath|fsmonitor|sshcommand|pager|editor|askpass|gitproxy|alternaterefscommand
          |attributesfile|worktree|excludesfile)
    | .*\.(sshcommand|askpass|textconv|insteadof|pushinsteadof|helper|program|vcs|proxy
          |uploadpack|receivepack|cmd|tool|packobjectshook|difffilter)
    | (pager|browser|man|mergetool|difftool|guitool|sendemail|instaweb|imap)\..*
    | (filter|diff|merge)\..*\.(clean|smudge|process|command|driver|external)
    | diff\.external | sequence\.editor | gpg\..* | credential\..* | include.*\.path
    | protocol\..*\.allow | http\..*(proxy|sslcainfo|sslverify|cookiefile|extraheader)
    | trailer\..*\.(command|cmd) | extensions\..* | remote\..*\.promisor
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Keys that are harmless unless their value is a shell command.
RUNS_WITH_MARK = re.compile(r"alias\..*|submodule\..*\.update", re.IGNORECASE)
_LARGEST_HOOK = 1_000_000
_CONFIGS = ("config", "config.worktree")


class _Kept(NamedTuple):
    """A file as it was: what tells a change, its mode, and its content."""

    signature: tuple[int, int, int, int]
    mode: int
    content: bytes


class GitGuard:
    """Remembers the settings and hooks of the repositories that commands can write to."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self._configs: dict[str, _Kept] = {}
        self._hooks: dict[str, _Kept] = {}
        self._keep()

    def restore(self) -> list[str]:
        """Put back what a command changed; one line for each."""
        notes = [*self._restore_configs(), *self._restore_hooks()]
        self._keep()
        return notes

    def _keep(self) -> None:
        configs, hooks = self._configs, self._hooks
        self._configs = {path: _kept(path, configs.get(path)) for path in self._config_paths()}
        self._hooks = {path: _kept(path, hooks.get(path)) for path in self._hook_paths()}

    def _git_folders(self) -> Iterator[str]:
        for folder in self._folders:
            yield folder
            modules = os.path.join(folder, "modules")
            for above, names, _ in os.walk(modules) if os.path.isdir(modules) else ():
                for name in list(names):
                    inner = os.path.join(above, name)
                    if os.path.isfile(os.path.join(inner, "HEAD")):
                        yield inner
                    if (
                        name in ("objects", "refs", "logs", "hooks")
                        or inner.count("/") > modules.count("/") + 4
                    ):
                        names.remove(name)

    def _config_paths(self) -> list[str]:
        paths = [os.path.join(folder, name) for folder in self._git_folders() for name in _CONFIGS]
        return [path for path in paths if os.path.lexists(path)]

    def _hook_paths(self) -> list[str]:
        found = []
        for folder in self._git_folders():
            with suppress(OSError), os.scandir(os.path.join(folder, "hooks")) as entries:
                found += [entry.path for entry in entries if not entry.name.endswith(".sample")]
        return found

    def _restore_configs(self) -> list[str]:
        notes = []
        for path in {*self._configs, *self._config_paths()}:
            before = self._configs.get(path)
            if before is not None and _signature(path) == before.signature:
                continue
            keys = _new_keys(path, before)
            if not keys:
                continue
            _write(path, before)
            shown = ", ".join(sorted(keys)[:5])
            notes.append(
                f"{path} was put back: the command set {shown}, which makes git run programs "
                "or go elsewhere"
            )
        return notes

    def _restore_hooks(self) -> list[str]:
        notes = []
        for path in {*self._hooks, *self._hook_paths()}:
            before = self._hooks.get(path)
            if before is not None and _signature(path) == before.signature:
                continue
            if before is None or os.path.lexists(path):
                _write(path, before)
                notes.append(f"{path} was put back: git hooks can't be changed by a command")
        return notes


def _signature(path: str) -> tuple[int, int, int, int]:
    try:
        found = os.lstat(path)
    except OSError:
        return 0, 0, 0, 0
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def _kept(path: str, before: _Kept | None) -> _Kept:
    signature = _signature(path)
    if before is not None and before.signature == signature:
        return before
    content = b""
    if stat.S_ISREG(signature[1]) and signature[2] <= _LARGEST_HOOK:
        with suppress(OSError), open(path, "rb") as file:
            content = file.read()
    return _Kept(signature, stat.S_IMODE(signature[1]), content)


def _write(path: str, before: _Kept | None) -> None:
    """Restore a file by name; a link or folder that stands in its place goes."""
    draft = f"{path}.hermes-restored"
    with suppress(OSError):
        os.unlink(draft)
    if before is None:
        with suppress(OSError):
            if os.path.isdir(path) and not os.path.islink(path):
                os.rename(path, f"{path}.sample")
            else:
                os.unlink(path)
        return
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(before.content)
        os.fchmod(file.fileno(), before.mode)
    os.replace(draft, path)


def _new_keys(path: str, before: _Kept | None) -> set[str]:
    """Names of keys that run programs and were set or changed."""
    if not stat.S_ISREG(_signature(path)[1]):
        return {"a link in place of the file"} if os.path.lexists(path) else set()
    with open(path, "rb") as file:
        after = _dangerous(file.read())
    old = _dangerous(before.content) if before is not None else set()
    return {key for key, _ in after - old}


def _dangerous(content: bytes) -> set[tuple[str, str]]:
    """Keys that run programs, with their values, as git itself reads the file."""
    try:
        read = subprocess.run(
            ["git", "config", "--file", "-", "--no-includes", "--list", "--null"],
            input=content, capture_output=True, timeout=10, cwd="/", check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_NOSYSTEM": "1"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return set()
    found = set()
    for entry in read.stdout.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        if RUNS.fullmatch(key) or (
            RUNS_WITH_MARK.fullmatch(key) and value.lstrip().startswith("!")
        ):
            found.add((key, value))
    return found
