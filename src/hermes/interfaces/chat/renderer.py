"""prompt_toolkit renderer that redraws correctly after the window got narrower."""

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

# How long a window keeps its size before it is drawn in again. Some terminals tell theirs up to a
# quarter of a second late.
REST_SECONDS = 0.35
# What terminals that break lines anew leave in the environment, or call themselves.
_SIGNS = (
    "TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID",
    "KONSOLE_VERSION", "WT_SESSION", "TERM_PROGRAM", "LC_TERMINAL", "GHOSTTY_RESOURCES_DIR",
)  # fmt: skip
_NAMES = ("tmux", "foot", "alacritty", "xterm-kitty", "xterm-ghostty", "wezterm", "vte", "konsole")
# From afar only the name is known, and most are called after xterm, which does not do it.
_UNLIKE = ("rxvt", "linux", "vt")


def breaks_anew(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this terminal breaks the lines on its screen anew when its window gets narrower.

    One that nobody knows is taken not to: a line too many is better than one too few.
    """
    if environ.get("XTERM_VERSION") or environ.get("STY"):
        # Set by xterm and by GNU screen; what is outside of them does not matter.
        return False
    name = environ.get("TERM", "")
    if any(environ.get(sign) for sign in _SIGNS) or name.startswith(_NAMES):
        return True
    return bool(environ.get("SSH_CONNECTION")) and not name.startswith(_UNLIKE)


class Output(Vt100_Output):
    """Writes what was drawn in one piece, and asks the terminal nothing."""

    _held = 0

    @contextmanager
    def in_one_piece(self) -> Iterator[None]:
        """Write only at the end what is drawn in between."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.flush()

    def flush(self) -> None:
        """Write, unless more is to come."""
        if not self._held:
            try:
                super().flush()
            except OSError:
                # The window has gone; what is under way ends in order all the same.
                return

    @property
    def responds_to_cpr(self) -> bool:
        """No: an answer that comes late would be taken for typing."""
        return False


class Screenful(Application[None]):
    """An application whose window may be resized at any time."""

    def _on_resize(self) -> None:
        # Not at once: whoever draws finds out about the size, and waits until the window rests.
        self.invalidate()


class Drawing(Renderer):
    """A renderer that knows where its lines are after the terminal has broken them anew."""

    def __init__(self, style: Any, output: Output) -> None:
        # First of all: the base class resets itself while it is made.
        self._out = output
        self._breaks = breaks_anew()
        self._columns = 0
        self._size: Size | None = None
        self._resized = 0.0
        super().__init__(style, output)

    @property
    def resting(self) -> bool:
        """Whether the window has had its size for a while; nothing can be drawn until it has."""
        size, now = self.output.get_size(), time.monotonic()
        if size != self._size:
            self._resized = now if self._size is not None else 0.0
            self._size = size
        return now - self._resized >= REST_SECONDS

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        """Draw what has changed; later, where the window is just being resized."""
        if not self.resting and not is_done:
            app.create_background_task(_later(app))
            return
        with self._out.in_one_piece():
            self._find_beginning()
            before = _widths(self.last_rendered_screen)
            super().render(app, layout, is_done)
            after = _widths(self.last_rendered_screen)
            if any(new < old for old, new in zip(before, after, strict=False)):
                # The end of a line that became shorter is blank, and some terminals take blanks
                # for part of a line when they break it. In a fresh line there are none.
                super().erase()
                super().render(app, layout, is_done)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Take everything away that is drawn."""
        with self._out.in_one_piece():
            self._find_beginning()
            super().erase(leave_alternate_screen)

    def _find_beginning(self) -> None:
        """Go up by as many rows as there are more of now, above the cursor."""
        drawn, self._columns = self._columns, self.output.get_size().columns
        screen = self.last_rendered_screen
        if screen is None or self._columns >= drawn or not self._breaks:
            return
        x, y = self._cursor_pos
        rows = [_rows(screen, row, self._columns) for row in range(y)]
        # A cursor behind the end of its line stays in the last row of it.
        rows.append(_rows(screen, y, self._columns, x + 1))
        self.output.cursor_up(sum(rows) - len(rows))


async def _later(app: Application[Any]) -> None:
    import asyncio

    await asyncio.sleep(REST_SECONDS)
    app.invalidate()


def _widths(screen: Screen | None) -> list[int]:
    """How many columns each row of a screen has something in."""
    if screen is None:
        return []
    return [_width(screen.data_buffer[y]) for y in range(screen.height)]


def _width(line: Mapping[int, Any]) -> int:
    return max((x + 1 for x, char in line.items() if char.char.strip()), default=0)


def _rows(screen: Screen, y: int, columns: int, end: int | None = None) -> int:
    """The rows that a line takes in a window of so many columns; `end` is up to where at most."""
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
