"""Server log: stderr and log messages of a server, redacted, in a rotating file; rate limit of a
server's messages.
"""

from __future__ import annotations

import time
from collections import deque

from hermes.core.paths import home_path
from hermes.runtime.json_lines import append_lines


class RateLimit:
    """Token bucket: `burst` at once, then `rate` per second."""

    __slots__ = ("_burst", "_rate", "_tokens", "_updated")

    def __init__(self, burst: int, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = float(burst)
        self._updated = time.monotonic()

    def allows(self) -> bool:
        """Take a token; False when there is none."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate)
        self._updated = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


MAX_LINES = 40  # in memory, and of one write
LINE_CHARS = 400
MAX_BYTES = 1 << 20


class ServerLog:
    """The log of one server; `lines` has its last lines without our notes."""

    def __init__(self, name: str) -> None:
        self.path = home_path("logs", "mcp", f"{name}.log")
        self.lines: deque[str] = deque(maxlen=MAX_LINES)
        self._partial_line = b""

    def feed(self, data: bytes) -> None:
        """Append bytes of stderr; no bytes mean its end."""
        if not data:
            lines, self._partial_line = [self._partial_line], b""
        else:
            *lines, self._partial_line = (self._partial_line + data).split(b"\n")
            self._partial_line = self._partial_line[-LINE_CHARS * 4 :]
        if len(lines) > MAX_LINES:
            lines = [f"({len(lines) - MAX_LINES} lines left out)".encode(), *lines[-MAX_LINES:]]
        texts = [_clean(line.decode("utf-8", "replace")) for line in lines]
        texts = [text for text in texts if text]
        self.lines.extend(texts)
        self._write(texts)

    def message(self, text: str) -> None:
        """Append a log message that the server sent."""
        self.feed(text.encode("utf-8", "replace") + b"\n")

    def note(self, text: str) -> None:
        """Append a remark of the client."""
        self._write([f"-- {_clean(text)}"])

    def last(self, count: int = 5) -> list[str]:
        """The server's last lines, oldest first."""
        return list(self.lines)[-count:]

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        text = "".join(f"{stamp} {line}\n" for line in lines)
        try:
            append_lines(
                self.path,
                text.encode("utf-8", "replace"),
                max_bytes=MAX_BYTES,
                rotated=f"{self.path}.1",
            )
        except OSError:
            # A full disk must not end a connection; the last lines are in memory.
            return


def _clean(line: str) -> str:
    from hermes.safety.redaction import redact
    from hermes.safety.sanitise import clean_text

    return redact(clean_text(line[: LINE_CHARS * 2]).strip())[:LINE_CHARS]
