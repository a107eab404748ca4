"""Regex search in one text, in a subprocess with a time limit; matches as excerpts."""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SECONDS = 5
# How long a line is shown whole; of a longer one, the surroundings of each match.
LINE = 400
_BEFORE = 100
# What a match takes besides its text: line, offset and the braces around them.
_FRAME = 50


class SlowPatternError(Exception):
    """The search was stopped because it took too long."""


def find(path: str, text: str, pattern: str, offset: int, room: int) -> dict[str, Any]:
    """What `matching` gives; `text` is the content of the file at `path`.

    Raises `re.error` for a bad pattern and `SlowPatternError` for one that takes too long.
    """
    wanted = re.compile(pattern)
    if not set("*+?{|") & set(pattern):
        return matching(text, wanted, offset, room)
    import json
    import subprocess

    request = json.dumps([path, pattern, offset, room, SECONDS])
    # Neither the user's settings nor installed packages have a say in it.
    command = [sys.executable, "-I", "-S", __file__]
    try:
        done = subprocess.run(
            command, input=request.encode(), capture_output=True, timeout=SECONDS + 5, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        raise SlowPatternError from None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def matching(text: str, wanted: re.Pattern[str], offset: int, room: int) -> dict[str, Any]:
    """Matches from an offset on, as many as there is room for, and how many there are in all.

    A line that matches is one match; of a long line, every piece that holds one.
    """
    matches: list[dict[str, Any]] = []
    total = number = 0
    following: int | None = None
    for number, start, line in _lines(text):
        for at, end in _pieces(line, wanted):
            total += 1
            if start + at < offset or following is not None:
                continue
            shown = f"{'…' if at else ''}{line[at:end]}{'…' if end < len(line) else ''}"
            cost = _written(shown) + _FRAME
            if matches and room < cost:
                following = start + at
                continue
            matches.append({"line": number, "offset": start + at, "text": shown})
            room -= cost
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


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Number, offset and content of each line, less its ending."""
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        yield number, start, line.removesuffix("\r")
        start += len(line) + 1


def _pieces(line: str, wanted: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where the matching pieces of a line begin and end; a short line is one piece."""
    if len(line) <= LINE:
        if wanted.search(line):
            yield 0, len(line)
        return
    end = 0
    while (found := wanted.search(line, end)) is not None:
        start = max(end, found.start() - _BEFORE)
        end = min(start + LINE, len(line))
        yield start, end
        if end == len(line):
            return


def _written(text: str) -> int:
    """How many characters a text has once it is written as JSON."""
    import json

    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace").decode())


def _main() -> None:
    import json
    import signal

    path, pattern, offset, room, seconds = json.loads(sys.stdin.buffer.read())
    if hasattr(signal, "alarm"):
        # The default action ends the process, even in the middle of a match.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
    with open(path, "rb") as file:
        text = file.read().decode("utf-8", "surrogatepass")
    found = matching(text, re.compile(pattern), offset, room)
    sys.stdout.buffer.write(json.dumps(found).encode())


if __name__ == "__main__":
    _main()
