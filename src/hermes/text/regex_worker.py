"""Regex worker: regular expressions of a model, matched in a subprocess that can be killed.

A pattern such as `(a+)+$` can backtrack for years, and nothing inside a Python process interrupts
it. A pattern that can branch or repeat is therefore matched by this file, run as a script with the
standard library alone. The script ends itself when a request exceeds its time limit, also when the
parent is gone. Plain patterns are matched in this process.

Requests and answers are `marshal` values on stdin and stdout: (operation, arguments) -> result.
"""

from __future__ import annotations

import marshal
import re
import signal
import sys
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Search = Callable[[str, int], re.Match[str] | None]
    # Number of a line, column of its first match (in bytes, from 1), byte offset of the line.
    Spot = tuple[int, int, int]

SECONDS = 5
FLAGS = re.MULTILINE  # of searches in files
UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF_8 = b"\xef\xbb\xbf"
_LONGEST_LINE = 10_000  # characters of a line that `lines` looks at
_WHOLE_LINE = 400  # excerpts: longer lines are cut around each match
_BEFORE = 100  # characters shown before a match
_FRAME = 50  # characters that the JSON of an excerpt has besides its text


class SlowPatternError(Exception):
    """The match exceeded its time limit, or the worker process was killed."""


class RegexWorker:
    """One pattern, matched here when it is plain and else in a process of its own. Close it.

    Args:
        pattern: Raises `re.error` when it is invalid.
        flags: Those of `re`.
        risky: Whether it can take exponential time; by default, whether it can branch or repeat.
        seconds: Time limit of one request; `SECONDS` when left out.
    """

    def __init__(
        self,
        pattern: str,
        *,
        flags: int = 0,
        risky: bool | None = None,
        seconds: float | None = None,
    ) -> None:
        self._regex = _Regex(pattern, flags)
        self._seconds = seconds
        self._risky = bool(set("*+?{|") & set(pattern)) if risky is None else risky
        self._process: subprocess.Popen[bytes] | None = None

    def lines(self, lines: Sequence[str]) -> list[int]:
        """Indices of the lines that match."""
        cut = [line[:_LONGEST_LINE] for line in lines]
        return list(self._run("lines", cut))

    def excerpts(self, text: str, offset: int, room: int) -> dict[str, Any]:
        """Matching lines from an offset on, as many as `room` characters of JSON hold."""
        return dict(self._run("excerpts", text, offset, room))

    def count(self, data: bytes) -> int:
        """Number of matching lines of a file."""
        return int(self._run("count", data))

    def spots(self, data: bytes, most: int) -> list[Spot]:
        """Positions of the first matching lines of a file."""
        return list(self._run("spots", data, most)) if most else []

    def close(self) -> None:
        """Kill the subprocess, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> RegexWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> subprocess.Popen[bytes] | None:
        """The subprocess, started now if the pattern needs one."""
        if self._risky and self._process is None:
            import subprocess

            # Isolated: neither the user's settings nor installed packages take part.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._send((self._regex.pattern, self._regex.flags))
        return self._process

    def _run(self, operation: str, *arguments: Any) -> Any:
        process = self.start()
        if process is None:
            return _OPERATIONS[operation](self._regex, *arguments)
        seconds = SECONDS if self._seconds is None else self._seconds
        self._send((operation, max(1, int(seconds)), arguments))
        assert process.stdout is not None
        try:
            return marshal.load(process.stdout)
        except (EOFError, ValueError, TypeError, OSError):
            self.close()
            raise SlowPatternError from None

    def _send(self, message: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            marshal.dump(message, self._process.stdin)
            self._process.stdin.flush()
        except OSError:
            self.close()
            raise SlowPatternError from None


def decoded(data: bytes) -> str:
    """Text of a file: UTF-16 by its mark, else UTF-8; other bytes become lone surrogates."""
    encoding = UTF_16.get(data[:2])
    if encoding:
        return data[2:].decode(encoding, "replace")
    return data.removeprefix(_UTF_8).decode("utf-8", "surrogateescape")


def is_binary(data: bytes) -> bool:
    """Whether a file holds a NUL character."""
    if data[:2] in UTF_16:
        return "\0" in decoded(data)
    return b"\0" in data


class _Regex:
    """A compiled pattern; for text beyond ASCII with the word characters of ripgrep."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self.flags = int(flags)  # `marshal` takes no enumeration
        self.compiled = re.compile(pattern, flags)
        self._unicode: Search | None = None

    def search_in(self, text: str) -> Search:
        if text.isascii() or not _WORDS.search(self.pattern):
            return self.compiled.search
        if self._unicode is None:
            self._unicode = re.compile(_WORDS.sub(_unicode_word, self.pattern), self.flags).search
        return self._unicode


# -- operations -----------------------------------------------------------------------------


def _lines(regex: _Regex, lines: Sequence[str]) -> list[int]:
    search = regex.compiled.search
    return [number for number, line in enumerate(lines) if search(line)]


def _count(regex: _Regex, data: bytes) -> int:
    text = decoded(data)
    search = regex.search_in(text)
    total = at = 0
    end = len(text) - text.endswith("\n")
    while (match := search(text, at)) is not None:
        at = match.start()
        if at > end or not text:
            break
        total += 1
        at = text.find("\n", max(at, match.end())) + 1
        if not at:
            break
    return total


def _spots(regex: _Regex, data: bytes, most: int) -> list[Spot]:
    text = decoded(data)
    search = regex.search_in(text)
    spots: list[Spot] = []
    at = line_start = offset = 0
    number = 1
    end = len(text) - text.endswith("\n")
    while len(spots) < most and (match := search(text, at)) is not None:
        if match.start() > end or not text:
            break
        start = text.rfind("\n", 0, match.start()) + 1
        # An empty match behind the last line has no column.
        column = 1 if match.start() == len(text) else _size(text[start : match.start()]) + 1
        passed = text[line_start:start]
        number += passed.count("\n")
        offset += _size(passed)
        line_start = start
        spots.append((number, column, offset))
        at = text.find("\n", max(match.start(), match.end())) + 1
        if not at:
            break
    return spots


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _excerpts(regex: _Regex, text: str, offset: int, room: int) -> dict[str, Any]:
    """A matching line is one match; of a long line, every piece with a match in it."""
    matches: list[dict[str, Any]] = []
    total = number = start = 0
    following: int | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r")
        for at, end in _pieces(line, regex.compiled):
            total += 1
            if start + at < offset or following is not None:
                continue
            shown = f"{'…' if at else ''}{line[at:end]}{'…' if end < len(line) else ''}"
            cost = _json_size(shown) + _FRAME
            if matches and room < cost:
                following = start + at
                continue
            matches.append({"line": number, "offset": start + at, "text": shown})
            room -= cost
        start += len(raw) + 1
    answer: dict[str, Any] = {"matches": matches, "total_matches": total}
    if following is not None:
        answer["next_offset"] = following
    if not matches:
        scanned = f"{number} lines ({len(text)} characters) were searched"
        answer["note"] = (
            f"no match; {scanned}"
            if not total
            else f"no match from offset {offset} on, {total} before it; {scanned}"
        )
    return answer


def _pieces(line: str, compiled: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of a line that holds a match; a short line is one piece."""
    if len(line) <= _WHOLE_LINE:
        if compiled.search(line):
            yield 0, len(line)
        return
    end = 0
    while (match := compiled.search(line, end)) is not None:
        start = max(end, match.start() - _BEFORE)
        end = min(start + _WHOLE_LINE, len(line))
        yield start, end
        if end == len(line):
            return


def _json_size(text: str) -> int:
    import json

    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace").decode())


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "lines": _lines,
    "count": _count,
    "spots": _spots,
    "excerpts": _excerpts,
}


# -- word characters, as ripgrep has them: marks and joiners belong to words, fractions do not --

# A literal backslash is never written like this in a translated pattern.
_WORDS = re.compile(r"\\[wWbB]")
_STRAY = "\\udc80-\\udcff"
_WORD_CATEGORIES = ("Nd", "Nl", "Pc")
_JOINERS = (0x200C, 0x200D)
_LAST_LETTER = 0x33479
_VARIATION_SELECTORS = (0xE0100, 0xE01EF)


def _unicode_word(match: re.Match[str]) -> str:
    inside, outside = _word_ranges()
    sign = match[0][1]
    if sign == "w":
        return inside
    if sign == "W":
        return outside
    edge = f"(?<![{inside}])(?=[{inside}])|(?<=[{inside}])(?![{inside}])"
    none = f"(?<![{inside}])(?![{inside}])|(?<=[{inside}])(?=[{inside}])"
    # Neither beside bytes that are not text.
    return f"(?:(?<![{_STRAY}])(?![{_STRAY}])(?:{edge if sign == 'b' else none}))"


@lru_cache(maxsize=1)
def _word_ranges() -> tuple[str, str]:
    """The word characters and all others, as ranges for a character set."""
    from unicodedata import category

    inside: list[str] = []
    outside: list[str] = []
    start, before = 0, False
    for code in range(_LAST_LETTER + 2):
        kind = category(chr(code))
        now = kind[0] in "LM" or kind in _WORD_CATEGORIES or code in _JOINERS or _enclosed(code)
        if now != before:
            if code:
                (inside if before else outside).append(_range(start, code - 1))
            start, before = code, now
    first, last = _VARIATION_SELECTORS
    inside.append(_range(first, last))
    outside += [_range(start, first - 1), _range(last + 1, 0x10FFFF)]
    return "".join(inside), "".join(outside)


def _range(first: int, last: int) -> str:
    return f"\\U{first:08x}-\\U{last:08x}"


def _enclosed(code: int) -> bool:
    """Letters in circles and squares, which are symbols by category."""
    return (
        0x24B6 <= code <= 0x24E9
        or 0x1F130 <= code <= 0x1F149
        or 0x1F150 <= code <= 0x1F169
        or 0x1F170 <= code <= 0x1F189
    )


def _main() -> None:
    source, target = sys.stdin.buffer, sys.stdout.buffer
    regex = _Regex(*marshal.load(source))
    alarm = getattr(signal, "alarm", None)  # missing on Windows
    if alarm:
        # The default action ends the process, even in the middle of a match.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    while True:
        try:
            operation, seconds, arguments = marshal.load(source)
        except EOFError:
            return
        if alarm:
            alarm(seconds)
        marshal.dump(_OPERATIONS[operation](regex, *arguments), target)
        target.flush()
        if alarm:
            alarm(0)


if __name__ == "__main__":
    _main()
