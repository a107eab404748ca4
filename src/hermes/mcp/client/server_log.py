"""Server log: stderr and log messages of a server, redacted, in a rotating file."""

from __future__ import annotations

import os
import time
from collections import deque

from hermes.core.home import home_path, make_private

LINES = 40
LINE_LENGTH = 400
MOST_BYTES = 1 << 20


class Journal:
    """The log of one server."""

    def __init__(self, name: str) -> None:
        self.path = home_path("logs", "mcp", f"{name}.log")
        self.lines: deque[str] = deque(maxlen=LINES)
        self._part = b""

    def feed(self, data: bytes) -> None:
        """Take in what the server wrote to stderr; nothing means that it ended."""
        if not data:
            lines, self._part = [self._part], b""
        else:
            *lines, self._part = (self._part + data).split(b"\n")
            self._part = self._part[-LINE_LENGTH * 4 :]
        if len(lines) > LINES:
            # Whoever floods is not read to the end.
            lines = [f"({len(lines) - LINES} lines left out)".encode(), *lines[-LINES:]]
        said = [_plain(line.decode("utf-8", "replace")) for line in lines]
        said = [line for line in said if line]
        self.lines.extend(said)
        self._write(said)

    def said(self, text: str) -> None:
        """Something that the server said in a message."""
        self.feed(text.encode("utf-8", "replace") + b"\n")

    def note(self, text: str) -> None:
        """Something that we have to say about the server; none of its last words."""
        self._write([f"-- {_plain(text)}"])

    def last(self, count: int = 5) -> list[str]:
        """The server's last lines, oldest first."""
        return list(self.lines)[-count:]

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        text = "".join(f"{stamp} {line}\n" for line in lines)
        try:
            make_private(os.path.dirname(self.path))
            if os.path.exists(self.path) and os.path.getsize(self.path) > MOST_BYTES:
                os.replace(self.path, f"{self.path}.1")
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, text.encode("utf-8", "replace"))
            finally:
                os.close(handle)
        except OSError:
            # A full disk must not end a connection; the last lines are in memory.
            return


def _plain(line: str) -> str:
    from hermes.safety.redaction import redact
    from hermes.safety.sanitise import clean_text

    return redact(clean_text(line[: LINE_LENGTH * 2]).strip())[:LINE_LENGTH]
