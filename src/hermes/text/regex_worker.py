"""Regex over lines in a subprocess with a time limit."""

from __future__ import annotations

import json
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

SECONDS = 5
# No more of a line is looked at.
LONGEST = 10_000


class SlowPatternError(Exception):
    """The search was stopped because it took too long."""


class Matcher:
    """Tells matching lines; raises `re.error` for what is no pattern. To be closed."""

    def __init__(self, pattern: str) -> None:
        self._wanted = re.compile(pattern)
        self._apart = bool(set("*+?{|") & set(pattern))
        self._process: subprocess.Popen[bytes] | None = None

    def matching(self, lines: Sequence[str]) -> list[int]:
        """The numbers of the lines that match, from 0; raises `SlowPatternError`."""
        cut = [line[:LONGEST] for line in lines]
        if not self._apart:
            return _matching(self._wanted, cut)
        if self._process is None:
            self._process = _started(self._wanted.pattern)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(cut).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = b""
        if not answer:
            self.close()
            raise SlowPatternError
        found: list[int] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process that did the matching."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _started(pattern: str) -> subprocess.Popen[bytes]:
    import subprocess

    # Neither the user's settings nor installed packages have a say in it.
    command = [sys.executable, "-I", "-S", __file__, json.dumps(pattern)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _matching(wanted: re.Pattern[str], lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if wanted.search(line)]


def _main() -> None:
    import signal

    wanted = re.compile(json.loads(sys.argv[1]))
    for request in sys.stdin.buffer:
        if hasattr(signal, "alarm"):
            # The default action ends the process, even in the middle of a match.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
        sys.stdout.buffer.write(json.dumps(_matching(wanted, json.loads(request))).encode() + b"\n")
        sys.stdout.buffer.flush()
        if hasattr(signal, "alarm"):
            signal.alarm(0)


if __name__ == "__main__":
    _main()
