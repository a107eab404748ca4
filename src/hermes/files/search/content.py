"""Search the content of files: which lines match, in what order, and what was left out."""

from __future__ import annotations

import os

from hermes.core.errors import ToolError
from hermes.files.search.foreign import Foreign, WiderSearch
from hermes.files.search.limits import Watch
from hermes.files.search.lines import shown_lines
from hermes.files.search.values import Asked, Choice, Tally
from hermes.files.search.walking import Walk, rules_above
from hermes.runtime.disk import DiskError, LocalDisk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from hermes.files.search.dialect import Pattern
    from hermes.files.search.fallback import PythonSearch
    from hermes.files.search.lines import Shown
    from hermes.files.search.values import Opens, Skipped
    from hermes.runtime.disk import Disk

    Engine = Literal["ripgrep", "python"]
    Searcher = PythonSearch | WiderSearch


# How many files that match are judged, at least: each takes a while.
_MOST_JUDGED = 500


class Found:
    """The answer: a page of it, the totals, and what the totals do not cover."""

    __slots__ = (
        "counts",
        "finished",
        "lines",
        "scanned",
        "skipped",
        "unjudged",
        "vanished",
        "withheld",
    )

    def __init__(self, tally: Tally) -> None:
        # Matching lines of each file, in the order of their paths.
        self.counts = dict(sorted(tally.counts.items(), key=lambda item: order(item[0])))
        self.scanned = tally.scanned
        self.skipped: Skipped = tally.skipped
        self.finished = tally.finished
        # Files that match and are closed to the caller.
        self.withheld = 0
        # Files that match, behind the page, of which nobody knows yet whether they are closed.
        self.unjudged = 0
        # The lines of the page, file by file.
        self.lines: dict[str, list[Shown]] = {}
        # Files of the page that could not be read again.
        self.vanished = 0

    @property
    def total(self) -> int:
        """How many lines match in all."""
        return sum(self.counts.values())


def order(path: str) -> str:
    """What paths are sorted by: folder by folder."""
    return path.replace("/", "\0")


def search_content(
    disk: Disk,
    root: str,
    pattern: Pattern,
    *,
    choice: Choice | None = None,
    chosen: Callable[[str], bool] | None = None,
    readable: Callable[[str], bool] | None = None,
    context: int = 0,
    offset: int = 0,
    limit: int = 50,
    by_file: bool = False,
    watch: Watch | None = None,
    engine: Engine | None = None,
) -> Found:
    """Lines that match `pattern` in the files below `root`, or in that file.

    Args:
        disk: Where the files are.
        root: A resolved place; searched in any case, even when it is hidden or ignored.
        pattern: What `read_pattern` made.
        choice: Which files are searched besides the plain ones.
        chosen: Which paths below the root count; all when left out.
        readable: Whether the caller may see a place; asked for files that match.
        context: Lines to show around each match.
        offset: Matching lines to skip.
        limit: Matching lines to show.
        by_file: Count the page in files, and read no lines.
        watch: The time limit and whoever may cancel.
        engine: Who searches; the best one when left out.
    """
    watch = watch or Watch()
    choice = choice or Choice()
    asked, walked = _asked(disk, root, pattern, choice, chosen, watch, engine)
    files = Foreign(disk, wide=pattern.wide)
    searcher = _searcher(disk, files, pattern, engine)
    try:
        tally = searcher.count(asked, watch)
    except OSError:
        # ripgrep is there and can't be started, or not be asked that.
        asked, walked = _asked(disk, root, pattern, choice, chosen, watch, "python")
        searcher = _searcher(disk, files, pattern, "python")
        tally = searcher.count(asked, watch)
    if walked is not None:
        skipped = tally.skipped
        skipped.hidden, skipped.ignored = walked.skipped.hidden, walked.skipped.ignored
        skipped.unreadable += walked.skipped.unreadable
        tally.finished = tally.finished and walked.finished
    found = Found(tally)
    if readable is not None:
        _judge(found, asked.root, readable, offset + limit, by_file=by_file, watch=watch)
    if not (found.counts or found.withheld or found.unjudged):
        # What nothing was found in may lie behind a link.
        found.skipped.links = walked.skipped.links if walked else _links(disk, asked, watch)
    takes = {} if by_file else _page(found.counts, offset, limit)
    if takes:
        _fill(found, files, asked, searcher, takes, context, watch)
    return found


def _judge(
    found: Found,
    root: str,
    readable: Callable[[str], bool],
    end: int,
    *,
    by_file: bool,
    watch: Watch,
) -> None:
    """Take out what the caller may not see, and what it would take too long to ask about.

    All files up to the end of the page are judged, and some more for the sake of the totals.
    """
    judged = shown = 0
    for path, lines in list(found.counts.items()):
        if watch.expired:
            found.finished = False
        elif shown >= end and judged >= _MOST_JUDGED:
            found.unjudged += 1
        else:
            judged += 1
            if readable(f"{root}/{path}"):
                shown += 1 if by_file else lines
                continue
            found.withheld += 1
        del found.counts[path]


def _links(disk: Disk, asked: Asked, watch: Watch) -> int:
    """How many links there are, which no search follows."""
    if asked.among is not None:
        return 0
    walk = Walk(disk, asked.root, hidden=asked.choice.hidden, ignored=asked.choice.ignored)
    for _ in walk.folders(watch):
        pass
    return walk.skipped.links


def _asked(
    disk: Disk,
    root: str,
    pattern: Pattern,
    choice: Choice,
    chosen: Callable[[str], bool] | None,
    watch: Watch,
    engine: Engine | None,
) -> tuple[Asked, _Walked | None]:
    """What an engine is to do, and the walk that was needed to say so."""
    status = disk.status(root)
    if status is None:
        raise ToolError("there is no such file or folder")
    if status.kind == "file":
        folder, name = os.path.split(root)
        return Asked(folder, pattern, choice, among=[name], above=False), None
    if status.kind != "folder":
        raise ToolError(f"this is neither a file nor a folder but a {status.kind}")
    above = choice.ignored or not rules_above(disk, root)[1]
    if chosen is None and _uses_ripgrep(disk, pattern, engine):
        return Asked(root, pattern, choice, above=above), None
    walked = _Walked(disk, root, choice, chosen, watch)
    most = 3 * len(walked.paths) > walked.files
    return Asked(root, pattern, choice, among=walked.paths, most=most, above=above), walked


class _Walked:
    """The files below a root that may be searched."""

    def __init__(
        self,
        disk: Disk,
        root: str,
        choice: Choice,
        chosen: Callable[[str], bool] | None,
        watch: Watch,
    ) -> None:
        walk = Walk(disk, root, hidden=choice.hidden, ignored=choice.ignored)
        self.paths: list[str] = []
        self.files = 0
        for folder in walk.folders(watch):
            paths = [folder.path + name for name in folder.files]
            self.files += len(paths)
            self.paths += paths if chosen is None else filter(chosen, paths)
        self.skipped = walk.skipped
        self.finished = not watch.expired


def _uses_ripgrep(disk: Disk, pattern: Pattern, engine: Engine | None) -> bool:
    from hermes.files.search.ripgrep import find_ripgrep

    able = isinstance(disk, LocalDisk) and pattern.rust is not None
    return able and engine != "python" and find_ripgrep() is not None


def _searcher(disk: Disk, files: Foreign, pattern: Pattern, engine: Engine | None) -> Searcher:
    if _uses_ripgrep(disk, pattern, engine):
        from hermes.files.search.ripgrep import Ripgrep, find_ripgrep

        return WiderSearch(Ripgrep(find_ripgrep() or ""), files)
    from hermes.files.search.fallback import PythonSearch

    return PythonSearch(files)


def _page(counts: dict[str, int], offset: int, limit: int) -> dict[str, tuple[int, int]]:
    """Which lines of which files are shown: how many to skip and how many to take."""
    takes = {}
    for path, lines in counts.items():
        if limit <= 0:
            break
        if offset >= lines:
            offset -= lines
            continue
        taken = min(lines - offset, limit)
        takes[path] = (offset, taken)
        offset = 0
        limit -= taken
    return takes


def _fill(
    found: Found,
    files: Opens,
    asked: Asked,
    searcher: Searcher,
    takes: dict[str, tuple[int, int]],
    context: int,
    watch: Watch,
) -> None:
    """Read the lines of a page."""
    wanted = {path: skip + taken for path, (skip, taken) in takes.items()}
    spots = searcher.locate(asked, wanted, watch)
    for path, (skip, _) in takes.items():
        here = spots[path][skip:]
        try:
            lines = shown_lines(files, f"{asked.root}/{path}", here, context) if here else []
        except (OSError, DiskError):
            lines = []
        if lines:
            found.lines[path] = lines
        else:
            found.vanished += 1
