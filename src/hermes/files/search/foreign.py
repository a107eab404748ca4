"""Files in other encodings, for patterns that ask for more than ASCII.

What is written in Latin-1, GBK or UTF-16 without a mark holds the characters of such a pattern in
other bytes. ripgrep says which files are no plain UTF-8; those are read as `read_file` reads them
and searched by Python, so that both engines find the same.
"""

from __future__ import annotations

import io

from hermes.files.kinds import HEAD, is_text, kind_of_content
from hermes.files.search.fallback import PythonSearch
from hermes.files.search.matching import UTF_16
from hermes.files.search.values import Asked
from hermes.files.text import decode, width_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from hermes.files.search.limits import Watch
    from hermes.files.search.matching import Spot
    from hermes.files.search.ripgrep import Ripgrep
    from hermes.files.search.values import Opens, Tally

_UTF_32 = b"\xff\xfe\0\0"
# Past this size a file is taken for UTF-8.
_LARGEST = 32 * 1024 * 1024


class Foreign:
    """The files of a disk for reading, those in other encodings as UTF-8."""

    def __init__(self, disk: Opens) -> None:
        self._disk = disk
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
            data = file.read() if size <= _LARGEST and _may_be_foreign(head) else None
            if data is None:
                file.seek(0)
                return file
        except BaseException:
            file.close()
            raise
        file.close()
        return io.BytesIO(self._as_utf_8(place, data))

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


def _may_be_foreign(head: bytes) -> bool:
    # What has its mark is read by both engines as it is; that of four bytes begins like another.
    marked = head[:2] in UTF_16 and head[:4] != _UTF_32
    return not marked and (b"\0" not in head or is_text(head))


class WiderSearch:
    """ripgrep, and Python for the files that it can't read."""

    def __init__(self, ripgrep: Ripgrep, files: Foreign) -> None:
        self._ripgrep = ripgrep
        self._files = files
        self._python = PythonSearch(files)

    def count(self, asked: Asked, watch: Watch) -> Tally:
        """How many lines match, file by file."""
        tally = self._ripgrep.count(asked, watch)
        odd, finished = self._ripgrep.odd(asked, watch)
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

    def locate(self, asked: Asked, takes: Mapping[str, int], watch: Watch) -> dict[str, list[Spot]]:
        """Where the first lines of some files match: as many as are wanted of each."""
        met = {path for path in takes if f"{asked.root}/{path}" in self._files.met}
        found: dict[str, list[Spot]] = {path: [] for path in takes}
        for searcher, paths in ((self._python, met), (self._ripgrep, takes.keys() - met)):
            wanted = {path: takes[path] for path in takes if path in paths}
            if wanted:
                found |= searcher.locate(asked, wanted, watch)
        return found
