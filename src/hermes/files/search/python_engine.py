"""Search engine in Python: for disks without ripgrep, and for files in other encodings."""

from __future__ import annotations

import io
from contextlib import contextmanager, nullcontext

from hermes.core.errors import ToolError
from hermes.environments.disk import DiskError
from hermes.files.file_type import HEAD, is_text, kind_of_content
from hermes.files.search.query import Asked, Tally
from hermes.text.encoding import decode, width_of
from hermes.text.regex_worker import FLAGS, UTF_16, RegexWorker, SlowPatternError, is_binary

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from hermes.files.search.query import Opens, Watch
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

    def count(self, asked: Asked, watch: Watch) -> Tally:
        """How many lines match, file by file, in the files of `asked.among`."""
        tally = Tally()
        required = asked.pattern.required.encode("utf-8", "surrogateescape")
        with _matcher(asked, watch) as matcher:
            for path in asked.among or ():
                if watch.expired:
                    tally.finished = False
                    break
                try:
                    with self._disk.open(f"{asked.root}/{path}") as file:
                        size = file.seek(0, io.SEEK_END)
                        file.seek(0)
                        lines = 0
                        for data, _, _ in _blocks(file, size, text=asked.choice.binary):
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

    def locate(self, asked: Asked, takes: Mapping[str, int], watch: Watch) -> dict[str, list[Spot]]:
        """Where the first lines of some files match: as many as are wanted of each."""
        found: dict[str, list[Spot]] = {path: [] for path in takes}
        with _matcher(asked, watch) as matcher:
            for path, most in takes.items():
                if watch.expired:
                    break
                spots = found[path]
                try:
                    with self._disk.open(f"{asked.root}/{path}") as file:
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
        return found


def _stopped(watch: Watch) -> bool:
    """True; raises `CancelledError` when it was not the time that was up."""
    return watch.expired or True


@contextmanager
def _matcher(asked: Asked, watch: Watch) -> Iterator[RegexWorker]:
    import re

    pattern = asked.pattern
    try:
        worker = RegexWorker(
            pattern.python, flags=FLAGS, risky=pattern.risky, seconds=watch.left + 1
        )
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f"the pattern can't be used: {error}") from None
    process = worker.start()
    with nullcontext() if process is None else watch.over(process):
        yield worker


def _blocks(file: BinaryIO, size: int, *, text: bool) -> Iterator[tuple[bytes, int, int]]:
    """A file in whole lines, each piece with the lines and bytes before it.

    Raises `BinaryFileError` unless it is to be taken as `text` in any case.
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


class Foreign:
    """The files of a disk for reading, those in other encodings as UTF-8.

    Unless they are to be read for a `wide` pattern, only those that hold zeros are: in all others
    ASCII is spelled alike.
    """

    def __init__(self, disk: Opens, *, wide: bool) -> None:
        self._disk = disk
        self._wide = wide
        # Places that were read in another encoding, and those of them that hold zeros.
        self.met: set[str] = set()
        self.zeros: set[str] = set()

    def open(self, place: str) -> BinaryIO:
        """A file, positioned at its start."""
        file = self._disk.open(place)
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
        return io.BytesIO(self._as_utf_8(place, data))

    def seems_wide(self, place: str) -> bool:
        """Whether a file that is taken for binary may be text all the same, at a glance."""
        try:
            with self._disk.open(place) as file:
                head = file.read(_GLANCE)
        except (OSError, DiskError):
            return False
        return self._may_be_foreign(head)

    def _may_be_foreign(self, head: bytes) -> bool:
        if head[:2] in UTF_16 and head[:4] != _UTF_32:
            # What has its mark is read by both engines as it is.
            return False
        if not self._wide:
            # No more is seen of what ripgrep left out, and both engines must say the same.
            head = head[:_GLANCE]
        if b"\0" not in head:
            return self._wide
        # Text has some zeros, between its letters: a quick no for most of what is none.
        if head.count(0) * 200 < len(head) or _MANY_ZEROS in head:
            return False
        return is_text(head[:_GLANCE]) and is_text(head)

    def _as_utf_8(self, place: str, data: bytes) -> bytes:
        try:
            data.decode()
        except UnicodeDecodeError:
            pass
        else:
            if b"\0" not in data:
                return data
        if kind_of_content(data[:HEAD], place).what != "text":
            return data
        text = decode(data)
        wide = width_of(text.encoding) > 1
        if text.encoding in ("utf-8", "utf-8-sig") or (b"\0" in data) != wide:
            return data
        self.met.add(place)
        if wide:
            self.zeros.add(place)
        return text.text.encode("utf-8", "replace")


class WiderSearch:
    """ripgrep, and Python for the files that it can't read."""

    def __init__(self, ripgrep: Ripgrep, files: Foreign) -> None:
        self._ripgrep = ripgrep
        self._files = files
        self._python = PythonSearch(files)

    def count(self, asked: Asked, watch: Watch) -> Tally:
        """How many lines match, file by file."""
        tally = self._ripgrep.count(asked, watch)
        odd, finished = self._odd(asked, tally, watch)
        if not odd:
            tally.finished = tally.finished and finished
            return tally
        again = Asked(asked.root, asked.pattern, asked.choice, among=odd)
        seen = self._python.count(again, watch)
        tally.finished = tally.finished and finished and seen.finished
        for path in odd:
            place = f"{asked.root}/{path}"
            if place in self._files.met:
                tally.counts.pop(path, None)
                if path in seen.counts:
                    tally.counts[path] = seen.counts[path]
            if place in self._files.zeros and not asked.choice.binary:
                # Not a binary file after all.
                tally.skipped.binary -= 1
                tally.scanned += 1
        return tally

    def _odd(self, asked: Asked, tally: Tally, watch: Watch) -> tuple[list[str], bool]:
        """The files that may have to be read in another way, and whether those are all."""
        # A name that is no UTF-8 is not told as it is.
        named = not any("\ufffd" in path for path in tally.binary)
        if named and not (asked.pattern.wide or asked.choice.binary):
            odd: list[str] = []
            for path in tally.binary:
                if watch.expired:
                    return odd, False
                if self._files.seems_wide(f"{asked.root}/{path}"):
                    odd.append(path)
            return odd, True
        return self._ripgrep.odd(asked, watch)

    def locate(self, asked: Asked, takes: Mapping[str, int], watch: Watch) -> dict[str, list[Spot]]:
        """Where the first lines of some files match: as many as are wanted of each."""
        met = {path for path in takes if f"{asked.root}/{path}" in self._files.met}
        found: dict[str, list[Spot]] = {path: [] for path in takes}
        for searcher, paths in ((self._python, met), (self._ripgrep, takes.keys() - met)):
            wanted = {path: takes[path] for path in takes if path in paths}
            if wanted:
                found |= searcher.locate(asked, wanted, watch)
        return found
