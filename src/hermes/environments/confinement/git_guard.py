"""Git guard: hooks and settings that run programs are put back after each command.

Git itself has to write `.git/config` (branches, remotes, submodules), so the file stays writable.
After a command it is compared with the version before; a changed key that runs a program or leads
elsewhere is reported, and the file is restored. Hooks are restored in the same way, since a folder
can be moved aside even where it is mounted read-only.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.paths import find_program
from hermes.safety.file_guard import FileGuard, Kept, is_regular

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
_CONFIGS = ("config", "config.worktree")


class GitGuard:
    """Remembers the settings and hooks of the repositories that commands can write to."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self._guards = (
            FileGuard(self._config_paths, _config_problem),
            FileGuard(self._hook_paths, _hook_problem),
        )

    def restore(self) -> list[str]:
        """Put back what a command changed; one line for each."""
        return [note for guard in self._guards for note in guard.restore()]

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


def _config_problem(path: str, before: Kept | None) -> str:
    """The keys that run programs and were set or changed."""
    if is_regular(path):
        with open(path, "rb") as file:
            after = _dangerous(file.read())
        old = _dangerous((before.content if before is not None else None) or b"")
        keys = sorted({key for key, _ in after - old})
    else:
        keys = ["a link in place of the file"] if os.path.lexists(path) else []
    if not keys:
        return ""
    return f"the command set {', '.join(keys[:5])}, which makes git run programs or go elsewhere"


def _hook_problem(path: str, before: Kept | None) -> str:
    changed = before is None or os.path.lexists(path)
    return "git hooks can't be changed by a command" if changed else ""


def _dangerous(content: bytes) -> set[tuple[str, str]]:
    """Keys that run programs, with their values, as git itself reads the file."""
    git = find_program("git")
    if git is None:
        return set()
    try:
        read = subprocess.run(
            [git, "config", "--file", "-", "--no-includes", "--list", "--null"],
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
