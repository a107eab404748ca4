"""Git guard: hooks and settings that run programs are put back after each command.

Git itself has to write `.git/config` (branches, remotes, submodules), so the file stays writable.
After a command it is compared with the version before; a changed key that runs a program or leads
elsewhere is reported, and the file is restored. Hooks are restored in the same way, since a folder
can be moved aside even where it is mounted read-only; so are files and links that make git take its
hooks and settings from another folder.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from typing import TYPE_CHECKING

from hermes.core.paths import find_program, is_below
from hermes.safety.file_guard import FileGuard, Kept, content, is_regular, listed

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
    | lfs\.(customtransfer|extension)\..* | annex\..* | .*\.annex-.* | init\.templatedir
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Keys that are harmless unless their value is a shell command.
RUNS_WITH_MARK = re.compile(r"alias\..*|submodule\..*\.update", re.IGNORECASE)
_CONFIGS = ("config", "config.worktree")
# Repositories below the workspace are looked for two folders deep.
_MOST_FOLDERS = 400
_MOST_REPOSITORIES = 32
_MOST_FILES = 500
_POINTER = 4096


class GitGuard:
    """Remembers the settings and hooks of the repositories that commands can write to.

    Args:
        roots: The workspace, and git folders outside of it.
        protected: Folders of ours in the workspace, which are put back as hooks are.
    """

    def __init__(self, roots: Sequence[str], protected: Sequence[str] = ()) -> None:
        self._roots = tuple(roots)
        self._protected = tuple(protected)
        self._seen: dict[str, dict[str, int]] = {}
        self._repositories = [path for root in roots for path in self._found(root)]
        self._guards = (
            FileGuard(self._pointer_paths, self._pointer_problem, roots=self._roots),
            FileGuard(self._config_paths, self._config_problem, roots=self._roots),
            FileGuard(self._file_paths, self._file_problem, roots=self._roots),
        )

    def restore(self) -> list[str]:
        """Put back what a command changed; one line for each."""
        self._seen = {}
        return [note for guard in self._guards for note in guard.restore()]

    def _listed(self, folder: str) -> dict[str, int]:
        """The entries of a folder, read once until something is put back."""
        if folder not in self._seen:
            self._seen[folder] = listed(folder, self._roots)
        return self._seen[folder]

    def _found(self, root: str) -> list[str]:
        """The git folders below a root, and where the first may come to be."""
        if "HEAD" in self._listed(root):
            return [root]
        found, queue = [f"{root}/.git"], [root]
        for above in queue:
            if len(queue) > _MOST_FOLDERS or len(found) > _MOST_REPOSITORIES:
                break
            for name, kind in self._listed(above).items():
                path = f"{above}/{name}"
                if stat.S_ISDIR(kind) and not name.startswith(".") and name != "node_modules":
                    found += [f"{path}/.git"] if ".git" in self._listed(path) else []
                    queue += [path] if above == root else []
        return found

    def _git_folders(self) -> Iterator[str]:
        """The git folder of each repository, and those of its submodules and worktrees."""
        for path in self._repositories:
            folder = path if self._listed(path) else self._pointed(path)
            if not folder:
                continue
            yield folder
            queue = [f"{folder}/modules", f"{folder}/worktrees"]
            while queue:
                above = queue.pop()
                for name, kind in self._listed(above).items():
                    inner = f"{above}/{name}"
                    if stat.S_ISDIR(kind) and inner.count("/") < folder.count("/") + 6:
                        is_git = "HEAD" in self._listed(inner)
                        queue.append(f"{inner}/modules" if is_git else inner)
                        if is_git:
                            yield inner

    def _pointed(self, path: str) -> str:
        """The git folder that a file or link in place of `.git` leads to, if below a root."""
        text = (content(path, self._roots, limit=_POINTER) or b"").decode("utf-8", "replace")
        target = text.removeprefix("gitdir:").strip()
        real = os.path.realpath(os.path.join(os.path.dirname(path), target)) if target else ""
        return real if any(is_below(real, root) for root in self._roots) else ""

    def _pointer_paths(self) -> list[str]:
        """Files and links that make git take hooks and settings from another folder."""
        found = []
        for path in self._repositories:
            kind = self._listed(os.path.dirname(path)).get(os.path.basename(path))
            found += [path] if kind is not None and not stat.S_ISDIR(kind) else []
        return found + [
            f"{folder}/{name}"
            for folder in self._git_folders()
            for name, kind in self._listed(folder).items()
            if name == "commondir" or (name == "hooks" and stat.S_ISLNK(kind))
        ]

    def _pointer_problem(self, path: str, before: Kept | None) -> str:
        new = content(path, self._roots, limit=_POINTER)
        folder = os.path.dirname(path)
        is_worktree = os.path.basename(os.path.dirname(folder)) == "worktrees"
        if new is None or (before is not None and new == before.content):
            return ""
        if path in self._repositories and self._pointed(path):
            return ""  # watched there
        if os.path.basename(path) == "commondir" and is_worktree and new.strip() == b"../..":
            return ""
        self._seen = {}
        return "it made git take its hooks and settings from elsewhere"

    def _config_paths(self) -> list[str]:
        return [
            f"{folder}/{name}"
            for folder in self._git_folders()
            for name in self._listed(folder)
            if name in _CONFIGS
        ]

    def _config_problem(self, path: str, before: Kept | None) -> str:
        """The keys that run programs and were set or changed."""
        after = content(path, self._roots)
        if is_regular(path, self._roots):
            old = _dangerous((before.content if before is not None else None) or b"")
            keys = sorted({key for key, _ in _dangerous(after or b"") - old})
        else:
            keys = [] if after is None else ["a link in place of the file"]
        if not keys:
            return ""
        self._seen = {}
        shown = ", ".join(keys[:5])
        return f"the command set {shown}, which makes git run programs or go elsewhere"

    def _file_paths(self) -> list[str]:
        """Hooks, and files of ours."""
        found = [
            f"{folder}/hooks/{name}"
            for folder in self._git_folders()
            for name in self._listed(f"{folder}/hooks")
            if not name.endswith(".sample")
        ]
        queue = list(self._protected)
        while queue and len(found) < _MOST_FILES:
            folder = queue.pop()
            for name, kind in self._listed(folder).items():
                (queue if stat.S_ISDIR(kind) else found).append(f"{folder}/{name}")
        return found

    def _file_problem(self, path: str, before: Kept | None) -> str:
        name = os.path.basename(path)
        if before is not None and name not in self._listed(os.path.dirname(path)):
            return ""
        self._seen = {}
        return "a command can't change git hooks and files of Hermes"


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
