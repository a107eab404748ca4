"""Content search: runs an engine, then orders, counts and pages the matching lines."""

from __future__ import annotations

import io
import os

from hermes.core.errors import ToolError
from hermes.environments.disk.local_disk import LocalDisk
from hermes.environments.disk.protocol import DiskError
from hermes.files.search.python_engine import TranscodedFiles, TranscodingRipgrep
from hermes.files.search.query import Choice, Query, SearchDeadline, Tally
from hermes.files.search.walk import Walk, rules_above
from hermes.text.regex_worker import decoded

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO, Literal

    from hermes.environments.disk.protocol import Disk
    from hermes.files.search.python_engine import PythonSearch
    from hermes.files.search.query import Opens, Pattern, Skipped
    from hermes.text.regex_worker import Spot


# How long a line is shown whole; of a longer one, the surroundings of its first match.
LINE = 300
_BEFORE = 80
# How far lines around a match are looked for.
_REACH = 64 * 1024
_UTF_8 = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Shown = tuple[int, bool, str]


def shown_lines(disk: Opens, real_path: str, spots: Iterable[Spot], context: int) -> list[Shown]:
    """Number, whether it matches, and text of every line to show, in order."""
    shown: dict[int, tuple[bool, str]] = {}
    with disk.open(real_path) as raw:
        file, base = _as_utf_8(raw)
        lines = _Lines(file, base)
        for number, column, offset in spots:
            before, text, after = lines.around(base + offset, column - 1, context)
            for distance, line in enumerate(reversed(before), 1):
                shown.setdefault(number - distance, (False, line))
            shown[number] = (True, text)
            for distance, line in enumerate(after, 1):
                shown.setdefault(number + distance, (False, line))
    return [(number, *shown[number]) for number in sorted(shown)]


def _as_utf_8(file: BinaryIO) -> tuple[BinaryIO, int]:
    """The file with its text as UTF-8, and where that begins."""
    head = file.read(3)
    if head[:2] not in _UTF_16:
        return file, len(_UTF_8) if head == _UTF_8 else 0
    file.seek(0)
    return io.BytesIO(decoded(file.read()).encode("utf-8", "surrogatepass")), 0


class _Lines:
    """The lines of one file, as text."""

    def __init__(self, file: BinaryIO, base: int) -> None:
        self._file = file
        # Where its text begins.
        self._base = base
        self._encoding = ""

    def around(self, at: int, column: int, context: int) -> tuple[list[str], str, list[str]]:
        """The lines before, the line that begins at `at`, and the lines after."""
        self._file.seek(at)
        data = _read(self._file, _REACH)
        end = data.find(b"\n")
        before = self._before(at, context)
        if end < 0 and column + LINE > len(data):
            # The match is far off in a line without end.
            start = max(0, column - 4 * _BEFORE)
            self._file.seek(at + start)
            piece = _read(self._file, 4 * (LINE + _BEFORE)).partition(b"\n")[0]
            return before, self._cut(piece, column - start, whole_start=not start), []
        line = data[:end] if end >= 0 else data
        after = data[end + 1 :].split(b"\n") if end >= 0 else []
        if after and not after[-1] and len(data) < _REACH:
            after.pop()
        return before, self._cut(line, column), [self._cut(one, 0) for one in after[:context]]

    def _before(self, at: int, context: int) -> list[str]:
        start = max(self._base, at - _REACH)
        if not context or at <= self._base:
            return []
        self._file.seek(start)
        lines = _read(self._file, at - start).split(b"\n")
        lines.pop()
        return [self._cut(line, 0) for line in lines[-context:]]

    def _cut(self, line: bytes, column: int, *, whole_start: bool = True) -> str:
        """The text of a line; of a long one the part around a byte, `…` where some is missing."""
        line = line.removesuffix(b"\r")
        text = self._text(line)
        if len(line) <= LINE and whole_start:
            return text
        at = column if len(text) == len(line) else len(self._text(line[:column]))
        start = 0 if whole_start and at < LINE - _BEFORE else max(0, at - _BEFORE)
        kept = text[start : start + LINE]
        if not whole_start and start == 0:
            # It may begin in the middle of a character.
            kept = kept.lstrip("\ufffd")
        head = "…" if start or not whole_start else ""
        return f"{head}{kept}{'…' if start + LINE < len(text) else ''}"

    def _text(self, data: bytes) -> str:
        """Bytes as text: UTF-8, or the encoding of the file; zeros made visible."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            # A cut may go through a character; anything else is another encoding.
            cut = error.start >= len(data) - 3 or (data and data[0] & 0xC0 == 0x80)
            text = data.decode(self._other(cut=bool(cut)), "replace")
        return text.replace("\0", "␀") if "\0" in text else text

    def _other(self, *, cut: bool) -> str:
        """The encoding of bytes that are not UTF-8."""
        if not self._encoding:
            from hermes.text.encoding import codec_of, decode, width_of

            self._file.seek(self._base)
            sample = _read(self._file, _REACH)
            # In whole lines: a character that is cut would say something else.
            whole = sample[: sample.rfind(b"\n") + 1] or sample
            codec = codec_of(decode(whole).encoding)
            self._encoding = "latin-1" if width_of(codec) > 1 else codec
        if self._encoding == "utf-8" and not cut:
            return "latin-1"
        return self._encoding


def _read(file: BinaryIO, size: int) -> bytes:
    """So many bytes, unless the file ends: a raw file may give fewer at once."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


if TYPE_CHECKING:
    Engine = Literal["ripgrep", "python"]
    Searcher = PythonSearch | TranscodingRipgrep


# How many files that match are judged, at least: each takes a while.
_MOST_JUDGED = 500


class ContentMatches:
    """Search result: a page of lines, the totals, and the numbers of files not covered."""

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
    """Sort key of paths: folder by folder."""
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
    watch: SearchDeadline | None = None,
    engine: Engine | None = None,
) -> ContentMatches:
    """Lines that match `pattern` in the files below `root`, or in that file.

    Args:
        disk: The disk with the files.
        root: A resolved path; always searched, even when it is hidden or ignored.
        pattern: A result of `read_pattern`.
        choice: Whether to include hidden, ignored and binary files.
        chosen: Filter of paths below the root; all by default.
        readable: Permission check for a path; called for files that match.
        context: Lines to show around each match.
        offset: Matching lines to skip.
        limit: Matching lines to show.
        by_file: The page counts files, and no lines are read.
        watch: Deadline and cancellation.
        engine: The engine to use; the best one by default.
    """
    watch = watch or SearchDeadline()
    choice = choice or Choice()
    query, walked = _asked(disk, root, pattern, choice, chosen, watch, engine)
    files = TranscodedFiles(disk, non_ascii=pattern.non_ascii)
    searcher = _searcher(disk, files, engine)
    try:
        tally = searcher.count(query, watch)
    except OSError:
        # ripgrep is there and can't be started, or not be asked that.
        query, walked = _asked(disk, root, pattern, choice, chosen, watch, "python")
        searcher = _searcher(disk, files, "python")
        tally = searcher.count(query, watch)
    if walked is not None:
        skipped = tally.skipped
        skipped.hidden, skipped.ignored = walked.skipped.hidden, walked.skipped.ignored
        skipped.unreadable += walked.skipped.unreadable
        tally.finished = tally.finished and walked.finished
    result = ContentMatches(tally)
    if readable is not None:
        _judge(result, query.root, readable, offset + limit, by_file=by_file, watch=watch)
    if not (result.counts or result.withheld or result.unjudged):
        # What nothing was found in may lie behind a link.
        result.skipped.links = walked.skipped.links if walked else _links(disk, query, watch)
    takes = {} if by_file else _page(result.counts, offset, limit)
    if takes:
        _fill(result, files, query, searcher, takes, context, watch)
    return result


def _judge(
    result: ContentMatches,
    root: str,
    readable: Callable[[str], bool],
    end: int,
    *,
    by_file: bool,
    watch: SearchDeadline,
) -> None:
    """Remove files that the caller may not read, and those behind the page that were not checked.

    All files up to the end of the page are checked, and some more for the totals.
    """
    judged = shown = 0
    for path, lines in list(result.counts.items()):
        if watch.expired:
            result.finished = False
        elif shown >= end and judged >= _MOST_JUDGED:
            result.unjudged += 1
        else:
            judged += 1
            if readable(f"{root}/{path}"):
                shown += 1 if by_file else lines
                continue
            result.withheld += 1
        del result.counts[path]


def _links(disk: Disk, query: Query, watch: SearchDeadline) -> int:
    """The number of symbolic links, which are not followed."""
    if query.among is not None:
        return 0
    walk = Walk(disk, query.root, hidden=query.choice.hidden, ignored=query.choice.ignored)
    for _ in walk.folders(watch):
        pass
    return walk.skipped.links


def _asked(
    disk: Disk,
    root: str,
    pattern: Pattern,
    choice: Choice,
    chosen: Callable[[str], bool] | None,
    watch: SearchDeadline,
    engine: Engine | None,
) -> tuple[Query, _Walked | None]:
    """The query for an engine, and the directory walk if one was needed."""
    status = disk.status(root)
    if status is None:
        raise ToolError("there is no such file or folder")
    if status.kind == "file":
        folder, name = os.path.split(root)
        return Query(folder, pattern, choice, among=[name], above=False), None
    if status.kind != "folder":
        raise ToolError(f"this is neither a file nor a folder but a {status.kind}")
    above = choice.ignored or not rules_above(disk, root)[1]
    if chosen is None and _uses_ripgrep(disk, engine):
        return Query(root, pattern, choice, above=above), None
    walked = _Walked(disk, root, choice, chosen, watch)
    most = 3 * len(walked.paths) > walked.files
    return Query(root, pattern, choice, among=walked.paths, most=most, above=above), walked


class _Walked:
    """The files below a root to search."""

    def __init__(
        self,
        disk: Disk,
        root: str,
        choice: Choice,
        chosen: Callable[[str], bool] | None,
        watch: SearchDeadline,
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


def _uses_ripgrep(disk: Disk, engine: Engine | None) -> bool:
    from hermes.files.search.ripgrep import find_ripgrep

    able = isinstance(disk, LocalDisk) and engine != "python"
    return able and find_ripgrep() is not None


def _searcher(disk: Disk, files: TranscodedFiles, engine: Engine | None) -> Searcher:
    if _uses_ripgrep(disk, engine):
        from hermes.files.search.ripgrep import Ripgrep, find_ripgrep

        return TranscodingRipgrep(Ripgrep(find_ripgrep() or ""), files)
    from hermes.files.search.python_engine import PythonSearch

    return PythonSearch(files)


def _page(counts: dict[str, int], offset: int, limit: int) -> dict[str, tuple[int, int]]:
    """The page by file: lines to skip and lines to take."""
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
    result: ContentMatches,
    files: Opens,
    query: Query,
    searcher: Searcher,
    takes: dict[str, tuple[int, int]],
    context: int,
    watch: SearchDeadline,
) -> None:
    """Read the lines of a page."""
    wanted = {path: skip + taken for path, (skip, taken) in takes.items()}
    spots = searcher.locate(query, wanted, watch)
    for path, (skip, _) in takes.items():
        here = spots[path][skip:]
        try:
            lines = shown_lines(files, f"{query.root}/{path}", here, context) if here else []
        except (OSError, DiskError):
            lines = []
        if lines:
            result.lines[path] = lines
        else:
            result.vanished += 1
