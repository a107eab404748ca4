"""prompt_toolkit renderer that redraws correctly after the window got narrower.

Some terminals re-wrap the lines on their screen then, so that the output has more rows than were
drawn. The renderer waits until the window keeps its size, and moves up by the additional rows."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.layout import Layout
    from prompt_toolkit.layout.screen import Screen

# How long a window must keep its size before it is drawn again. Some terminals report it up to a
# quarter of a second late.
REST_SECONDS = 0.35
# Environment variables and names of terminals that re-wrap.
_VARIABLES = (
    "TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID",
    "KONSOLE_VERSION", "WT_SESSION", "TERM_PROGRAM", "LC_TERMINAL", "GHOSTTY_RESOURCES_DIR",
)  # fmt: skip
_NAMES = ("tmux", "foot", "alacritty", "xterm-kitty", "xterm-ghostty", "wezterm", "vte", "konsole")
# Over ssh only the name is known. Most re-wrap, and call themselves xterm; xterm itself does not.
_OTHERS = ("rxvt", "linux", "vt")


def rewraps(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this terminal re-wraps its screen when the window gets narrower.

    Unknown terminals are assumed not to: a line too many is better than one too few.
    """
    if environ.get("XTERM_VERSION") or environ.get("STY"):
        # Set by xterm and by GNU screen; a terminal around them does not matter.
        return False
    name = environ.get("TERM", "")
    if any(map(environ.get, _VARIABLES)) or name.startswith(_NAMES):
        return True
    return bool(environ.get("SSH_CONNECTION")) and not name.startswith(_OTHERS)


class Output(Vt100_Output):
    """Terminal output with batched writes and without cursor position requests."""

    _batches = 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write everything in the block at once, at its end."""
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
            self.flush()

    def flush(self) -> None:
        """Write, unless a batch is open."""
        if not self._batches:
            try:
                super().flush()
            except OSError:
                # The terminal has gone; running work still ends in order.
                return

    @property
    def responds_to_cpr(self) -> bool:
        """No: a late response would be taken for input."""
        return False


class ChatApplication(Application[None]):
    """Application that redraws after a resize only when the window keeps its size."""

    def _on_resize(self) -> None:
        # Not at once: the renderer waits until the size is stable.
        self.invalidate()


class ResizeRenderer(Renderer):
    """Renderer that finds its first line after the terminal has re-wrapped the screen."""

    def __init__(self, style: Any, output: Output) -> None:
        # Before the base class, whose constructor calls `reset`.
        self._out = output
        self._rewraps = rewraps()
        self._columns = 0
        self._size: Size | None = None
        self._resized = 0.0
        super().__init__(style, output)

    @property
    def stable(self) -> bool:
        """Whether the window has kept its size for a while; nothing is drawn before."""
        size, now = self.output.get_size(), time.monotonic()
        if size != self._size:
            self._resized = now if self._size is not None else 0.0
            self._size = size
        return now - self._resized >= REST_SECONDS

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        """Draw the changes; later, while the window is being resized."""
        if not self.stable and not is_done:
            app.create_background_task(_later(app))
            return
        with self._out.batch():
            self._move_to_start()
            before = _widths(self.last_rendered_screen)
            super().render(app, layout, is_done)
            after = _widths(self.last_rendered_screen)
            if any(new < old for old, new in zip(before, after, strict=False)):
                # A line that became shorter ends with blanks, which some terminals re-wrap as
                # text. A line drawn from scratch has none.
                super().erase()
                super().render(app, layout, is_done)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Erase everything that is drawn."""
        with self._out.batch():
            self._move_to_start()
            super().erase(leave_alternate_screen)

    def _move_to_start(self) -> None:
        """Move up by the rows that re-wrapping has added above the cursor."""
        drawn, self._columns = self._columns, self.output.get_size().columns
        screen = self.last_rendered_screen
        if screen is None or self._columns >= drawn or not self._rewraps:
            return
        x, y = self._cursor_pos
        rows = [_rows(screen, row, self._columns) for row in range(y)]
        # A cursor after the end of its line stays in the last row of it.
        rows.append(_rows(screen, y, self._columns, x + 1))
        self.output.cursor_up(sum(rows) - len(rows))


async def _later(app: Application[Any]) -> None:
    import asyncio

    await asyncio.sleep(REST_SECONDS)
    app.invalidate()


def _widths(screen: Screen | None) -> list[int]:
    """The number of columns used in each row of a screen."""
    if screen is None:
        return []
    return [_width(screen.data_buffer[y]) for y in range(screen.height)]


def _width(line: Mapping[int, Any]) -> int:
    return max((x + 1 for x, char in line.items() if char.char.strip()), default=0)


def _rows(screen: Screen, y: int, columns: int, end: int | None = None) -> int:
    """The number of rows that a line, up to column `end`, takes in so many columns."""
    line = screen.data_buffer[y]
    end = min(_width(line), end or sys.maxsize)
    rows, used, x = 1, 0, 0
    while x < end:
        size = line[x].width or 1
        if used + size > columns:
            rows, used = rows + 1, 0
        used += size
        x += size
    return rows
