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

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    # Number of a line, column of its first match (in bytes, from 1), byte offset of the line.
    Spot = tuple[int, int, int]

SECONDS = 5
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
        self._regex = re.compile(pattern, flags)
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
            # `marshal` takes no enumeration.
            self._send((self._regex.pattern, int(self._regex.flags & ~re.UNICODE)))
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


# -- operations -----------------------------------------------------------------------------


def _lines(regex: re.Pattern[str], lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if regex.search(line)]


def _count(regex: re.Pattern[str], data: bytes) -> int:
    return sum(regex.search(line.removesuffix("\r")) is not None for line in _file_lines(data))


def _spots(regex: re.Pattern[str], data: bytes, most: int) -> list[Spot]:
    spots: list[Spot] = []
    offset = 0
    for number, line in enumerate(_file_lines(data), 1):
        match = regex.search(line.removesuffix("\r"))
        if match is not None:
            spots.append((number, _size(line[: match.start()]) + 1, offset))
            if len(spots) == most:
                break
        offset += _size(line) + 1
    return spots


def _file_lines(data: bytes) -> list[str]:
    lines = decoded(data).split("\n")
    if not lines[-1]:
        # The last line ends with a line feed.
        lines.pop()
    return lines


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _excerpts(regex: re.Pattern[str], text: str, offset: int, room: int) -> dict[str, Any]:
    """A matching line is one match; of a long line, every piece with a match in it."""
    matches: list[dict[str, Any]] = []
    total = number = start = 0
    following: int | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r")
        for at, end in _pieces(line, regex):
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


def _main() -> None:
    source, target = sys.stdin.buffer, sys.stdout.buffer
    regex = re.compile(*marshal.load(source))
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
