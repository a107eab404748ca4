"""Regex line search in file contents, in this process or in a killable subprocess."""

from __future__ import annotations

import re
import sys
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import BinaryIO

    Search = Callable[[str, int], re.Match[str] | None]
    # Number of a line, column of its first match (in bytes, from 1), where the line begins.
    Spot = tuple[int, int, int]

FLAGS = re.MULTILINE
UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF_8 = b"\xef\xbb\xbf"


class StoppedError(Exception):
    """The process that did the matching was stopped."""


def decoded(data: bytes) -> str:
    """A file's text; bytes that are no UTF-8 stay recognisable as such."""
    encoding = UTF_16.get(data[:2])
    if encoding:
        return data[2:].decode(encoding, "replace")
    return data.removeprefix(_UTF_8).decode("utf-8", "surrogateescape")


def is_binary(data: bytes) -> bool:
    """Whether a file holds a zero, which no text does."""
    if data[:2] in UTF_16:
        return "\0" in decoded(data)
    return b"\0" in data


def count(text: str, search: Search) -> int:
    """How many lines match."""
    found = at = 0
    end = len(text) - text.endswith("\n")
    while (match := search(text, at)) is not None:
        at = match.start()
        if at > end or not text:
            break
        found += 1
        at = text.find("\n", max(at, match.end())) + 1
        if not at:
            break
    return found


def spots(text: str, search: Search, most: int) -> list[Spot]:
    """The first lines that match, and where."""
    found: list[Spot] = []
    at = line_start = offset = 0
    number = 1
    end = len(text) - text.endswith("\n")
    while len(found) < most and (match := search(text, at)) is not None:
        if match.start() > end or not text:
            break
        start = text.rfind("\n", 0, match.start()) + 1
        # Where a file ends without a line's end, nothing has no column.
        column = 1 if match.start() == len(text) else _size(text[start : match.start()]) + 1
        passed = text[line_start:start]
        number += passed.count("\n")
        offset += _size(passed)
        line_start = start
        found.append((number, column, offset))
        at = text.find("\n", max(match.start(), match.end())) + 1
        if not at:
            break
    return found


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


class Here:
    """Matches in this process."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._search: Search = re.compile(pattern, FLAGS).search
        self._widely: Search | None = None

    def count(self, data: bytes) -> int:
        """How many lines of a file match."""
        text = decoded(data)
        return count(text, self._fitting(text))

    def spots(self, data: bytes, most: int) -> list[Spot]:
        """The first lines that match, and where."""
        text = decoded(data)
        return spots(text, self._fitting(text), most)

    def _fitting(self, text: str) -> Search:
        if text.isascii() or not _WORDS.search(self._pattern):
            return self._search
        if self._widely is None:
            self._widely = re.compile(_WORDS.sub(_wide, self._pattern), FLAGS).search
        return self._widely


# No literal backslash is spelled so in a pattern: these are what they seem.
_WORDS = re.compile(r"\\[wWbB]")


def _wide(found: re.Match[str]) -> str:
    """A word character as ripgrep has it: marks and joiners belong to words, fractions do not."""
    inside, outside = _word_ranges()
    sign = found[0][1]
    if sign == "w":
        return inside
    if sign == "W":
        return outside
    edge = f"(?<![{inside}])(?=[{inside}])|(?<=[{inside}])(?![{inside}])"
    none = f"(?<![{inside}])(?![{inside}])|(?<=[{inside}])(?=[{inside}])"
    # Beside bytes that are no text there is neither.
    return f"(?:(?<![{_STRAY}])(?![{_STRAY}])(?:{edge if sign == 'b' else none}))"


@lru_cache(maxsize=1)
def _word_ranges() -> tuple[str, str]:
    """The characters of words and all others, as they stand in a set."""
    from unicodedata import category

    inside: list[str] = []
    outside: list[str] = []
    start, before = 0, False
    for code in range(_LAST_LETTER + 2):
        sort = category(chr(code))
        now = sort[0] in "LM" or sort in _IN_WORDS or code in _JOINERS or _lettered(code)
        if now != before:
            if code:
                (inside if before else outside).append(_spelled(start, code - 1))
            start, before = code, now
    inside.append(_spelled(*_SELECTORS))
    outside += [_spelled(start, _SELECTORS[0] - 1), _spelled(_SELECTORS[1] + 1, 0x10FFFF)]
    return "".join(inside), "".join(outside)


_STRAY = "\\udc80-\\udcff"
_IN_WORDS = ("Nd", "Nl", "Pc")
_JOINERS = (0x200C, 0x200D)
_LAST_LETTER = 0x33479
# Marks that stand far behind all others.
_SELECTORS = (0xE0100, 0xE01EF)


def _spelled(first: int, last: int) -> str:
    return f"\\U{first:08x}-\\U{last:08x}"


def _lettered(code: int) -> bool:
    """Letters in circles and squares, which are symbols by category."""
    return (
        0x24B6 <= code <= 0x24E9
        or 0x1F130 <= code <= 0x1F149
        or 0x1F150 <= code <= 0x1F169
        or 0x1F170 <= code <= 0x1F189
    )


class Apart:
    """Matches in a process that was started with `command` and may be killed at any time."""

    def __init__(self, process: subprocess.Popen[bytes], pattern: str, seconds: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._into: BinaryIO = process.stdin  # type: ignore[assignment]
        self._from: BinaryIO = process.stdout  # type: ignore[assignment]
        self._send(f"{int(seconds) + 1}\n".encode(), pattern.encode("utf-8", "surrogatepass"))

    @staticmethod
    def command() -> list[str]:
        """How to start such a process: neither settings nor packages have a say in it."""
        return [sys.executable, "-I", "-S", __file__]

    def count(self, data: bytes) -> int:
        """How many lines of a file match; raises `StoppedError`."""
        return self._ask(0, data)[0][0]

    def spots(self, data: bytes, most: int) -> list[Spot]:
        """The first lines that match, and where; raises `StoppedError`."""
        return [(one[0], one[1], one[2]) for one in self._ask(most, data)] if most else []

    def _ask(self, most: int, data: bytes) -> list[list[int]]:
        self._send(b"%d\n" % most, data)
        answer = self._from.readline()
        if not answer.endswith(b"\n"):
            raise StoppedError
        return [[int(part) for part in one.split(b",")] for one in answer.split()]

    def _send(self, head: bytes, data: bytes) -> None:
        try:
            self._into.write(head + b"%d\n" % len(data))
            self._into.write(data)
            self._into.flush()
        except OSError:
            raise StoppedError from None


def _main() -> None:
    import signal

    source = sys.stdin.buffer
    seconds, size = int(source.readline()), int(source.readline())
    if hasattr(signal, "alarm"):
        # The default action ends the process, even in the middle of a match.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
    matcher = Here(source.read(size).decode("utf-8", "surrogatepass"))
    while head := source.readline():
        data = source.read(int(source.readline()))
        most = int(head)
        answer = (
            " ".join(f"{line},{column},{at}" for line, column, at in matcher.spots(data, most))
            if most
            else str(matcher.count(data))
        )
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
