"""Directory listing as a tree, with counts and sizes, and the number of skipped entries.

Folders come first, each with its counts, also at the lowest level shown. Only the entries of the
requested page are kept in memory; the rest is counted.
"""

from __future__ import annotations

import os
from heapq import nsmallest
from itertools import islice

from hermes.core.errors import ToolError
from hermes.environments.disk.protocol import DiskError
from hermes.files.search.query import Choice, SearchDeadline, Skipped
from hermes.files.search.report import quoted, skipped_text
from hermes.files.search.walk import rules_above, sift, with_own_rules
from hermes.text.globs import Ignoring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.environments.disk.protocol import Disk, Kind

# How many files of a folder below the first one are shown: it can be listed by itself.
MOST_BELOW = 50
# What has a content that may be closed to the caller; pipes and sockets have none to show.
_JUDGED = frozenset(("file", "folder", "link"))
_UNITS = ("B", "K", "M", "G", "T")
# How many entries are taken at a time.
_PACE = 4096
# How many names are held, beyond twice those that will be shown, before the others are let go.
_MOST_HELD = 50_000
# How many folders are entered for the sake of the totals, once the page is full.
_MOST_ENTERED = 5000


class Line:
    """One line of the tree."""

    __slots__ = ("counts", "depth", "kind", "name", "place", "size", "target")

    def __init__(self, depth: int, name: str, kind: str, real_path: str) -> None:
        self.depth = depth
        self.name = name
        # A kind of `Disk`'s, or "more": files that are not shown.
        self.kind = kind
        self.place = real_path
        self.size: int | None = None
        # Folders and files in it; None where it can't be read.
        self.counts: tuple[int, int] | None = None
        self.target = ""


class Listing:
    """A page of the tree, and the totals of all of it."""

    __slots__ = ("files", "finished", "folders", "lines", "skipped", "total", "withheld")

    def __init__(self) -> None:
        self.lines: list[Line] = []
        # How many lines all pages have together.
        self.total = 0
        self.folders = 0
        self.files = 0
        self.skipped = Skipped()
        self.finished = True
        self.withheld = 0


def list_folder(
    disk: Disk,
    root: str,
    *,
    depth: int = 2,
    offset: int = 0,
    limit: int = 200,
    choice: Choice | None = None,
    sizes: bool = True,
    readable: Callable[[str], bool] | None = None,
    watch: SearchDeadline | None = None,
) -> Listing:
    """The tree below `root`, `depth` folders deep: the lines of one page, the totals of all."""
    status = disk.status(root)
    if status is None:
        raise ToolError("there is no such folder")
    if status.kind != "folder":
        raise ToolError(f"this is no folder but a {status.kind}")
    watch = watch or SearchDeadline()
    choice = choice or Choice()
    lister = _Lister(disk, choice, readable, offset, limit, watch)
    lister.enter(root, Ignoring() if choice.ignored else rules_above(disk, root)[0], 0, depth)
    listing = lister.listing
    for line in listing.lines:
        lister.complete(line, sizes=sizes)
    return listing


class _Contents:
    """The content of one folder: counts, and the first names of each kind, sorted."""

    __slots__ = ("file_count", "files", "folder_count", "folders")

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.folder_count = 0
        # All that is no folder, with what it is.
        self.files: list[tuple[str, Kind]] = []
        self.file_count = 0

    def trim(self, files: int, folders: int | None) -> None:
        """Let go of all names but the first."""
        # A few of many are picked out sooner than all are sorted.
        self.files = nsmallest(files, self.files)
        if folders is None:
            self.folders.sort()
        else:
            self.folders = nsmallest(folders, self.folders)


class _Lister:
    def __init__(
        self,
        disk: Disk,
        choice: Choice,
        readable: Callable[[str], bool] | None,
        offset: int,
        limit: int,
        watch: SearchDeadline,
    ) -> None:
        self._disk = disk
        self._choice = choice
        self._readable = readable
        self._first = offset
        self._end = offset + limit
        self._watch = watch
        # Of folders on the page that are not entered.
        self._rules: dict[str, Ignoring] = {}
        self._entered = 0
        self.listing = Listing()

    def enter(
        self, real_path: str, rules: Ignoring, level: int, depth: int
    ) -> tuple[int, int] | None:
        """Add the content of a folder; returns its counts, None if it is unreadable."""
        listing = self.listing
        room = max(0, self._end - listing.total)
        most = room if level == 0 else min(room, MOST_BELOW)
        deeper = level + 1 < depth
        try:
            contents, rules = self._read(
                real_path, rules, listing.skipped, files=most, folders=None if deeper else room
            )
        except (OSError, DiskError):
            listing.skipped.unreadable += 1
            if level == 0:
                raise ToolError("this folder can't be read") from None
            return None
        listing.folders += contents.folder_count
        listing.files += contents.file_count
        for name in contents.folders:
            self._folder(real_path, name, rules, level, depth)
        listing.total += contents.folder_count - len(contents.folders)
        count = contents.file_count if level == 0 else min(contents.file_count, MOST_BELOW)
        for name, kind in contents.files:
            self._add(Line(level, name, kind, _join(real_path, name)))
        listing.total += count - len(contents.files)
        if contents.file_count > count:
            self._add(Line(level, f"{contents.file_count - count} more files", "more", real_path))
        return contents.folder_count, contents.file_count

    def _folder(self, real_path: str, name: str, rules: Ignoring, level: int, depth: int) -> None:
        """Add a folder, and its content if that is shown or counted."""
        line = Line(level, name, "folder", _join(real_path, name))
        shown = self._add(line)
        if level + 1 == depth:
            if shown:
                self._rules[line.place] = rules.below(name)
            return
        self._entered += 1
        far = self._entered > _MOST_ENTERED and self.listing.total >= self._end
        if far or self._watch.expired:
            self.listing.finished = False
            return
        line.counts = self.enter(line.place, rules.below(name), level + 1, depth)
        line.kind = "folder" if line.counts else "closed"

    def complete(self, line: Line, *, sizes: bool) -> None:
        """Add the sizes of the lines on the page."""
        if line.kind == "folder" and line.place in self._rules:
            rules = self._rules[line.place]
            try:
                contents, _ = self._read(line.place, rules, Skipped(), files=0, folders=0)
                line.counts = contents.folder_count, contents.file_count
            except (OSError, DiskError):
                line.kind = "closed"
                self.listing.skipped.unreadable += 1
        elif line.kind == "link":
            try:
                line.target = self._disk.link_target(line.place)
            except (OSError, DiskError):
                line.target = "?"
        elif line.kind == "file" and sizes:
            try:
                status = self._disk.status(line.place)
            except (OSError, DiskError):
                status = None
            line.size = status.size if status else None

    def _add(self, line: Line) -> bool:
        """Count a line, and keep it when it is on the page; whether it is shown."""
        listing = self.listing
        at = listing.total
        listing.total += 1
        if not self._first <= at < self._end:
            return False
        if line.kind in _JUDGED and self._readable is not None and not self._readable(line.place):
            listing.withheld += 1
            return False
        listing.lines.append(line)
        return True

    def _read(
        self, real_path: str, rules: Ignoring, skipped: Skipped, *, files: int, folders: int | None
    ) -> tuple[_Contents, Ignoring]:
        """The entries of a folder without skipped ones, and its ignore rules.

        Of the names only the first `files` and `folders` (None: all) are kept.
        """
        hidden = self._choice.hidden
        if not self._choice.ignored:
            rules = with_own_rules(self._disk, real_path, rules)
        contents = _Contents()
        entries = self._disk.scan(real_path)
        while some := list(islice(entries, _PACE)):
            names = [name for name, kind in some if kind == "folder"]
            kinds = {name: kind for name, kind in some if kind != "folder"}
            kept = sift(names, rules, skipped, folder=True, hidden=hidden)
            contents.folder_count += len(kept)
            contents.folders += kept
            kept = sift(list(kinds), rules, skipped, folder=False, hidden=hidden)
            contents.file_count += len(kept)
            contents.files += [(name, kinds[name]) for name in kept]
            if len(contents.files) + len(contents.folders) > 2 * files + _MOST_HELD:
                contents.trim(files, folders)
            if self._watch.expired:
                self.listing.finished = False
                break
        contents.trim(files, folders)
        return contents, rules


def _join(real_path: str, name: str) -> str:
    return f"{real_path.rstrip('/')}/{name}" if os.sep == "/" else os.path.join(real_path, name)


def size_text(size: int) -> str:
    """A size in at most four digits: `812B`, `4.2K`, `17M`."""
    amount = float(size)
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return (
        f"{size}B"
        if unit == "B"
        else f"{amount:.1f}{unit}"
        if amount < 10
        else f"{amount:.0f}{unit}"
    )


def listing_report(
    listing: Listing, *, offset: int, limit: int, watch: SearchDeadline
) -> dict[str, Any]:
    """The listing as a model reads it: one line for each entry, indented by depth."""
    answer: dict[str, Any] = {
        "tree": "\n".join(map(_shown, listing.lines)),
        "folders": listing.folders,
        "files": listing.files,
    }
    if offset + limit < listing.total:
        answer["next_offset"] = offset + limit
    if text := skipped_text(listing.skipped):
        answer["skipped"] = text
    notes = []
    if not listing.finished:
        notes.append(
            f"stopped after {watch.seconds:g} s: the totals are of what was seen till then"
        )
    if listing.withheld:
        some = "1 entry is" if listing.withheld == 1 else f"{listing.withheld} entries are"
        notes.append(f"{some} withheld: you may not read them")
    if not listing.lines and not listing.total:
        notes.append(
            "the folder is empty" if not answer.get("skipped") else "nothing else is in it"
        )
    if notes:
        answer["note"] = "; ".join(notes)
    return answer


def _shown(line: Line) -> str:
    lead = "  " * line.depth
    name = quoted(line.name)
    if line.kind == "more":
        return f"{lead}… {name}; list this folder by itself"
    if line.kind == "closed":
        return f"{lead}{name}/  unreadable"
    if line.kind == "folder":
        folders, files = line.counts or (0, 0)
        parts = [f"{folders} folder{'s' * (folders != 1)}"] * bool(folders)
        parts += [f"{files} file{'s' * (files != 1)}"] * bool(files)
        return f"{lead}{name}/  {', '.join(parts) or 'empty'}"
    if line.kind == "link":
        return f"{lead}{name} -> {quoted(line.target)}"
    if line.kind != "file":
        return f"{lead}{name}  {line.kind}"
    return f"{lead}{name}  {size_text(line.size)}" if line.size is not None else f"{lead}{name}"
