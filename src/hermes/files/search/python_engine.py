"""Search engine in Python: for disks without ripgrep, and for files in other encodings."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager, nullcontext
from tempfile import TemporaryDirectory

from hermes.environments.disk.protocol import DiskError
from hermes.files.file_type import HEAD, is_text, kind_of_content
from hermes.files.search.query import Choice, Query, Tally
from hermes.text.encoding import decode, width_of
from hermes.text.regex_worker import UTF_16, RegexWorker, SlowPatternError, is_binary

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

    from hermes.files.search.query import Opens, SearchDeadline
    from hermes.files.search.ripgrep import Ripgrep
    from hermes.text.regex_worker import Spot


# Large files are read in pieces of about this size, cut between lines.
_BLOCK = 8 * 1024 * 1024
_LONGEST = 256 * 1024 * 1024
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UTF_8 = b"\xef\xbb\xbf"


class BinaryFileError(Exception):
    """The file holds no text."""


class TooLargeError(Exception):
    """The file has a line that takes more memory than is reasonable."""


class PythonSearch:
    """Searches the files of a disk one after the other."""

    def __init__(self, disk: Opens) -> None:
        self._disk = disk

    def count(self, query: Query, watch: SearchDeadline) -> Tally:
        """How many lines match, file by file, in the files of `asked.among`."""
        tally = Tally()
        required = query.pattern.required
        with _matcher(query, watch) as matcher:
            for path in query.among or ():
                if watch.expired:
                    tally.finished = False
                    break
                try:
                    with self._disk.open(f"{query.root}/{path}") as file:
                        size = file.seek(0, io.SEEK_END)
                        file.seek(0)
                        lines = 0
                        for data, _, _ in _blocks(file, size, text=query.choice.binary):
                            if required in data or data[:2] in _UTF_16:
                                lines += matcher.count(data)
                except BinaryFileError:
                    tally.skipped.binary += 1
                except TooLargeError:
                    tally.skipped.large += 1
                except (OSError, DiskError):
                    tally.skipped.unreadable += 1
                except SlowPatternError:
                    tally.finished = not _stopped(watch)
                    break
                else:
                    tally.scanned += 1
                    if lines:
                        tally.counts[path] = lines
                    watch.tell(f"{tally.scanned} files searched")
        return tally

    def locate(
        self, query: Query, takes: Mapping[str, int], watch: SearchDeadline
    ) -> dict[str, list[Spot]]:
        """Where the first lines of some files match: as many as are wanted of each."""
        located: dict[str, list[Spot]] = {path: [] for path in takes}
        with _matcher(query, watch) as matcher:
            for path, most in takes.items():
                if watch.expired:
                    break
                spots = located[path]
                try:
                    with self._disk.open(f"{query.root}/{path}") as file:
                        size = file.seek(0, io.SEEK_END)
                        file.seek(0)
                        for data, line, start in _blocks(file, size, text=True):
                            more = matcher.spots(data, most - len(spots))
                            spots += [(n + line, column, at + start) for n, column, at in more]
                            if len(spots) >= most:
                                break
                except (OSError, DiskError, TooLargeError):
                    continue
                except SlowPatternError:
                    _stopped(watch)
                    break
        return located


def _stopped(watch: SearchDeadline) -> bool:
    """True; raises `CancelledError` when it was not the time that was up."""
    return watch.expired or True


@contextmanager
def _matcher(query: Query, watch: SearchDeadline) -> Iterator[RegexWorker]:
    source, flags = query.pattern.python()
    risky = False if query.pattern.literal else None
    worker = RegexWorker(source, flags=flags, risky=risky, seconds=watch.left + 1)
    process = worker.start()
    with nullcontext() if process is None else watch.over(process):
        yield worker


def _blocks(file: BinaryIO, size: int, *, text: bool) -> Iterator[tuple[bytes, int, int]]:
    """A file in whole lines, each piece with the lines and bytes before it.

    Raises `BinaryFileError` for a binary file, unless `text` is set.
    """
    if size <= 2 * _BLOCK:
        data = file.read()
        if not text and is_binary(data):
            raise BinaryFileError
        yield data, 0, 0
        return
    held: list[bytes] = []
    lines = start = 0
    whole = False
    while block := file.read(_BLOCK):
        if not start and not held and block[:2] in _UTF_16:
            # Its lines do not end where its bytes say.
            whole = True
        if not text and not whole and b"\0" in block:
            raise BinaryFileError
        end = 0 if whole else block.rfind(b"\n") + 1
        held.append(block[:end] if end else block)
        if not end:
            if len(held) * _BLOCK > _LONGEST:
                raise TooLargeError
            continue
        data = b"".join(held)
        held = [block[end:]]
        yield data, lines, start
        lines += data.count(b"\n")
        start += len(data) if start else len(data.removeprefix(_UTF_8))
    if data := b"".join(held):
        if not text and is_binary(data):
            raise BinaryFileError
        yield data, lines, start


_UTF_32 = b"\xff\xfe\0\0"
# Past this size a file is taken for UTF-8.
_LARGEST = 32 * 1024 * 1024
# So much of a file tells most binary ones from text, in a fraction of the time.
_GLANCE = 1024
_MANY_ZEROS = bytes(6)
# Bytes of copies in UTF-8 that exist at a time.
_BATCH = 64 * 1024 * 1024


class TranscodedFiles:
    """The files of a disk for reading, those in other encodings as UTF-8.

    For an ASCII pattern only files with NUL bytes (UTF-16, UTF-32) are converted: in all other
    encodings ASCII has the same bytes.
    """

    def __init__(self, disk: Opens, *, non_ascii: bool) -> None:
        self._disk = disk
        self._non_ascii = non_ascii
        # Places that were read in another encoding, and those of them that hold zeros.
        self.met: set[str] = set()
        self.zeros: set[str] = set()

    def open(self, real_path: str) -> BinaryIO:
        """A file, positioned at its start."""
        file = self._disk.open(real_path)
        try:
            head = file.read(HEAD)
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            data = file.read() if size <= _LARGEST and self._may_be_foreign(head) else None
            if data is None:
                file.seek(0)
                return file
        except BaseException:
            file.close()
            raise
        file.close()
        return io.BytesIO(self._as_utf_8(real_path, data))

    def seems_wide(self, real_path: str) -> bool:
        """Whether a file with NUL bytes may be UTF-16 or UTF-32, by its first bytes."""
        try:
            with self._disk.open(real_path) as file:
                head = file.read(_GLANCE)
        except (OSError, DiskError):
            return False
        return self._may_be_foreign(head)

    def _may_be_foreign(self, head: bytes) -> bool:
        if head[:2] in UTF_16 and head[:4] != _UTF_32:
            # What has its mark is read by both engines as it is.
            return False
        if not self._non_ascii:
            # No more is seen of what ripgrep left out, and both engines must say the same.
            head = head[:_GLANCE]
        if b"\0" not in head:
            return self._non_ascii
        # Text has some zeros, between its letters: a quick no for most of what is none.
        if head.count(0) * 200 < len(head) or _MANY_ZEROS in head:
            return False
        return is_text(head[:_GLANCE]) and is_text(head)

    def _as_utf_8(self, real_path: str, data: bytes) -> bytes:
        try:
            data.decode()
        except UnicodeDecodeError:
            pass
        else:
            if b"\0" not in data:
                return data
        if kind_of_content(data[:HEAD], real_path).what != "text":
            return data
        text = decode(data)
        wide = width_of(text.encoding) > 1
        if text.encoding in ("utf-8", "utf-8-sig") or (b"\0" in data) != wide:
            return data
        self.met.add(real_path)
        if wide:
            self.zeros.add(real_path)
        return text.text.encode("utf-8", "replace")


class TranscodingRipgrep:
    """ripgrep, also in files of encodings that it does not detect: it searches copies in UTF-8."""

    def __init__(self, ripgrep: Ripgrep, files: TranscodedFiles) -> None:
        self._ripgrep = ripgrep
        self._files = files

    def count(self, query: Query, watch: SearchDeadline) -> Tally:
        """How many lines match, file by file."""
        tally = self._ripgrep.count(query, watch)
        candidates, complete = self._candidates(query, tally, watch)
        for copy_query, copies in self._copies(query, candidates, watch):
            copied = self._ripgrep.count(copy_query, watch)
            complete = complete and copied.finished
            for name, path in copies.items():
                tally.counts.pop(path, None)
                if name in copied.counts:
                    tally.counts[path] = copied.counts[name]
                if f"{query.root}/{path}" in self._files.zeros and not query.choice.binary:
                    # Not a binary file after all.
                    tally.skipped.binary -= 1
                    tally.scanned += 1
        tally.finished = tally.finished and complete and not watch.expired
        return tally

    def locate(
        self, query: Query, takes: Mapping[str, int], watch: SearchDeadline
    ) -> dict[str, list[Spot]]:
        """Where the first lines of some files match: as many as are wanted of each."""
        converted = [path for path in takes if f"{query.root}/{path}" in self._files.met]
        spots: dict[str, list[Spot]] = {path: [] for path in takes}
        others = {path: most for path, most in takes.items() if path not in converted}
        if others:
            spots |= self._ripgrep.locate(query, others, watch)
        for copy_query, copies in self._copies(query, converted, watch):
            wanted = {name: takes[path] for name, path in copies.items()}
            located = self._ripgrep.locate(copy_query, wanted, watch)
            spots |= {path: located[name] for name, path in copies.items()}
        return spots

    def _candidates(
        self, query: Query, tally: Tally, watch: SearchDeadline
    ) -> tuple[list[str], bool]:
        """The files that may have another encoding, and whether the list is complete."""
        # ripgrep does not print a name that is not UTF-8 as it is.
        exact_names = not any("\ufffd" in path for path in tally.binary)
        if not exact_names or query.pattern.non_ascii or query.choice.binary:
            return self._ripgrep.odd(query, watch)
        candidates: list[str] = []
        for path in tally.binary:
            if watch.expired:
                return candidates, False
            if self._files.seems_wide(f"{query.root}/{path}"):
                candidates.append(path)
        return candidates, True

    def _copies(
        self, query: Query, paths: Iterable[str], watch: SearchDeadline
    ) -> Iterator[tuple[Query, dict[str, str]]]:
        """Copies in UTF-8, a batch at a time: the query for a batch, and path by name of copy."""
        waiting = list(paths)
        while waiting and not watch.expired:
            with TemporaryDirectory(prefix="hermes-search-") as folder:
                copies: dict[str, str] = {}
                size = 0
                while waiting and size < _BATCH:
                    path = waiting.pop()
                    data = self._converted(f"{query.root}/{path}")
                    if data is not None:
                        name = str(len(copies))
                        copies[name] = path
                        size += len(data)
                        with open(os.path.join(folder, name), "wb") as copy:
                            copy.write(data)
                if copies:
                    choice = Choice(hidden=True, ignored=True, binary=True)
                    yield Query(folder, query.pattern, choice), copies

    def _converted(self, real_path: str) -> bytes | None:
        try:
            with self._files.open(real_path) as file:
                return file.read() if real_path in self._files.met else None
        except (OSError, DiskError):
            return None
