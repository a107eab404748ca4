"""The search by Python alone: on any disk, and for patterns that ripgrep does not know."""

from __future__ import annotations

import io
import subprocess
from contextlib import contextmanager

from hermes.core.errors import ToolError
from hermes.files.search.matching import Apart, Here, StoppedError, is_binary
from hermes.files.search.values import Tally
from hermes.runtime.disk import DiskError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from hermes.files.search.limits import Watch
    from hermes.files.search.matching import Spot
    from hermes.files.search.values import Asked, Opens

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
                except StoppedError:
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
                except StoppedError:
                    _stopped(watch)
                    break
        return found


def _stopped(watch: Watch) -> bool:
    """True; raises `CancelledError` when it was not the time that was up."""
    return watch.expired or True


@contextmanager
def _matcher(asked: Asked, watch: Watch) -> Iterator[Here | Apart]:
    import re

    pattern = asked.pattern
    try:
        here = Here(pattern.python)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f"the pattern can't be used: {error}") from None
    if not pattern.risky:
        yield here
        return
    process = subprocess.Popen(
        Apart.command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with watch.over(process):
        yield Apart(process, pattern.python, watch.left)


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
