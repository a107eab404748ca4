"""A terminal of a test's own: a real pty with the real program in it, its screen read as text."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pexpect
import pyte

_SECONDS = 20.0


class Screen:
    """Runs a program in a pty and keeps what a person would see."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        columns: int = 80,
        rows: int = 30,
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=5_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.process = pexpect.spawn(
            command[0],
            list(command[1:]),
            env=dict(env),
            cwd=str(cwd),
            dimensions=(rows, columns),
            timeout=_SECONDS,
        )
        # A person waits for nothing before typing; neither does this.
        self.process.delaybeforesend = None

    def type(self, text: str) -> None:
        """Press keys."""
        self.process.send(text)

    def enter(self, text: str) -> None:
        """Type a line and press Enter."""
        self.type(f"{text}\r")

    def paste(self, text: str) -> None:
        """Paste, as a terminal does that marks what is pasted."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller."""
        self._screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    @property
    def text(self) -> str:
        """Everything that was and is on the screen, without styles and padding."""
        past = ["".join(line[x].data for x in sorted(line)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*past, *self._screen.display]).rstrip()

    @property
    def visible(self) -> list[str]:
        """The lines of the window now."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def styles(self) -> set[str]:
        """The colours that can be seen."""
        cells = [cell for row in self._screen.buffer.values() for cell in row.values()]
        return {cell.fg for cell in cells} | {cell.bg for cell in cells}

    def until(self, found: str | Callable[[str], bool], seconds: float = _SECONDS) -> str:
        """Read until a text, or a state of the screen, is there; the screen then."""
        there = found if callable(found) else lambda text: found in text
        end = time.monotonic() + seconds
        while True:
            text = self.text
            if there(text):
                return text
            left = end - time.monotonic()
            assert left > 0, f"waited for {found!r}, and the screen is:\n{text}"
            self._read(min(left, 0.5))

    def closed(self, seconds: float = _SECONDS) -> int:
        """Read until the program has ended; its exit code."""
        end = time.monotonic() + seconds
        # It closes the terminal a moment before it ends; `close` would hang up on it.
        while self._read(0.5) or self.process.isalive():
            assert time.monotonic() < end, f"it does not end; the screen is:\n{self.text}"
        self.process.close()
        return int(self.process.exitstatus if self.process.exitstatus is not None else -1)

    def end(self) -> None:
        """End the program, whatever it does."""
        self.process.close(force=True)

    def _read(self, seconds: float) -> bool:
        try:
            data = self.process.read_nonblocking(65_536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True
