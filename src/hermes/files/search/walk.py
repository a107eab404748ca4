"""Directory walk without hidden and ignored entries, which are counted."""

from __future__ import annotations

import os

from hermes.environments.disk.local_disk import LocalDisk
from hermes.environments.disk.protocol import DiskError
from hermes.files.search.query import Skipped
from hermes.text.globs import NAMES, Ignoring, as_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes.environments.disk.protocol import Disk
    from hermes.files.search.query import SearchDeadline

_NAMES = frozenset(NAMES)
_LARGEST_IGNORE_FILE = 1_000_000
GIT = ".git"
# A name that no rule can mean but those for all names.
_ANY_NAME = "\x01\x02"


class Folder:
    """A folder with its files and folders, without skipped ones."""

    __slots__ = ("files", "folders", "path")

    def __init__(self, path: str, folders: list[str], files: list[str]) -> None:
        # Below the place where the walk began; ends in a slash, "" for that place.
        self.path = path
        self.folders = folders
        self.files = files


class Walk:
    """A walk below one root, folder by folder, in no order; links are not followed."""

    def __init__(
        self, disk: Disk, root: str, *, hidden: bool = False, ignored: bool = False
    ) -> None:
        self._disk = disk
        self._root = root
        self._hidden = hidden
        self._ignored = ignored
        self._scan = _scan_local if isinstance(disk, LocalDisk) else self._scan_any
        self.skipped = Skipped()

    def folders(self, watch: SearchDeadline) -> Iterator[Folder]:
        """Each folder once; ends early when the time is up."""
        rules = Ignoring() if self._ignored else rules_above(self._disk, self._root)[0]
        todo = [("", rules)]
        while todo and not watch.expired:
            path, rules = todo.pop()
            try:
                folders, files, links = self._scan(f"{self._root}/{path}" if path else self._root)
            except (OSError, DiskError):
                self.skipped.unreadable += 1
                continue
            if not self._ignored:
                own = _NAMES.intersection(files)
                if own:
                    rules = with_own_rules(self._disk, f"{self._root}/{path}", rules, own)
            if rules or not self._hidden or GIT in folders or GIT in files:
                folders = sift(folders, rules, self.skipped, folder=True, hidden=self._hidden)
                files = sift(files, rules, self.skipped, folder=False, hidden=self._hidden)
            self.skipped.links += links
            todo += [(f"{path}{name}/", rules.below(name)) for name in folders]
            yield Folder(path, folders, files)

    def _scan_any(self, real_path: str) -> tuple[list[str], list[str], int]:
        folders, files, links = [], [], 0
        for name, kind in self._disk.scan(real_path):
            if kind == "file":
                files.append(name)
            elif kind == "folder":
                folders.append(name)
            elif kind == "link":
                links += 1
        return folders, files, links


def sift(
    names: list[str], rules: Ignoring, skipped: Skipped, *, folder: bool, hidden: bool
) -> list[str]:
    """The names that are neither hidden nor ignored, the others counted; `.git` is neither."""
    touched = rules.touched(names) if rules else None
    if not touched:
        if hidden:
            return [name for name in names if name != GIT]
        kept = [name for name in names if name[0] != "."]
        skipped.hidden += len(names) - len(kept) - (GIT in names)
        return kept
    kept = []
    for name in names:
        if name == GIT:
            continue
        ignored = rules.verdict(name, folder=folder) if name in touched else None
        if ignored:
            skipped.ignored += 1
        elif not hidden and ignored is None and name[0] == ".":
            skipped.hidden += 1
        else:
            kept.append(name)
    return kept


def rules_above(disk: Disk, root: str) -> tuple[Ignoring, bool]:
    """The rules that folders above a place set for it, and whether they mean the place itself.

    A place that was named is searched in any case: rules that leave it out are then left aside.
    """
    rules = Ignoring()
    parts = [part for part in root.split("/") if part]
    real_path = ""
    for part in parts:
        rules = with_own_rules(disk, real_path, rules)
        if rules.verdict(part, folder=True):
            return Ignoring(), True
        rules = rules.below(part)
        real_path += f"/{part}"
    # Rules such as `out/**` mean the whole of what is in a folder, whatever it is called.
    return (Ignoring(), True) if rules.verdict(_ANY_NAME, folder=False) else (rules, False)


def with_own_rules(
    disk: Disk, real_path: str, rules: Ignoring, names: Iterable[str] = NAMES
) -> Ignoring:
    """The rules in a folder: those from above, and those of its own ignore files."""
    return rules.having(_texts(disk, real_path, names))


def _texts(disk: Disk, real_path: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """The ignore files of a folder that can be read, nearest rank first."""
    texts = []
    for name in sorted(names, key=NAMES.index):
        try:
            with disk.open(f"{real_path.rstrip('/')}/{name}") as file:
                data = file.read(_LARGEST_IGNORE_FILE)
        except (OSError, DiskError):
            continue
        texts.append((name, as_bytes(data.decode("utf-8", "surrogateescape"))))
    return texts


def _scan_local(real_path: str) -> tuple[list[str], list[str], int]:
    """Folders, files and the number of links: like `Disk.scan`, but faster."""
    folders, files, links = [], [], 0
    with os.scandir(real_path) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_symlink():
                links += 1
    return folders, files, links
