"""Terminal editor: a fixed input line at the bottom, output scrolls above it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import io
import os
import sys
from typing import TYPE_CHECKING

from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.layout import (
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from hermes.interfaces.chat.captured_output import Printed
from hermes.interfaces.chat.input_line import Line
from hermes.interfaces.chat.renderer import REST_SECONDS, Drawing, Output, Screenful
from hermes.interfaces.cli.screen_text import colours, only_styles, wrapped
from hermes.interfaces.cli.signals import heeded

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    from prompt_toolkit.layout import AnyContainer

    from hermes.interfaces.chat.controller import Chat
    from hermes.interfaces.cli.approval_prompt import Question

# How often what goes on is drawn anew.
_TICK_SECONDS = 0.12
_MENU_ROWS = 8
_STYLE = {
    "prompt": "bold",
    "completion-menu": "noinherit",
    "completion-menu.completion": "noinherit",
    "completion-menu.completion.current": "noinherit reverse",
    "completion-menu.meta.completion": "noinherit",
    "completion-menu.meta.completion.current": "noinherit reverse",
    "scrollbar.background": "noinherit",
    "scrollbar.button": "noinherit reverse",
}


class Editor:
    """The chat's face on a terminal that can move its cursor."""

    echoes = False

    def __init__(self) -> None:
        # The terminal itself: what `sys.stdout` is may change.
        stdout = sys.stdout
        self._output = Output(stdout, lambda: _size(stdout))
        self._line = Line()
        self._question: Question | None = None
        self._unseen: list[str] = []
        self._context: contextvars.Context | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drawing = False
        self._app = Screenful(
            layout=Layout(self._layout()),
            key_bindings=self._line.keys(),
            style=Style.from_dict(_STYLE),
            output=self._output,
            color_depth=None if colours() else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
        )
        self._drawn = self._app.renderer = Drawing(self._app.renderer.style, self._output)

    # -- the face -----------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """The columns there are."""
        return self._output.get_size().columns

    def show(self, text: str) -> None:
        """Print lines above the input, from any thread."""
        self._unseen.append(only_styles(text))
        if self._loop is None:
            # Before the prompt was there, or after it has gone.
            self._print()
        else:
            self._soon(self._print)

    def refresh(self) -> None:
        """What goes on has changed."""
        self._soon(self._tick)

    @property
    def question(self) -> Question | None:
        """What the person sees being asked."""
        return self._question

    def asked(self, question: Question | None) -> None:
        """What is typed from now on answers this."""
        self._soon(self._ask, question)

    def leave(self) -> None:
        """End the chat."""
        self._soon(self._exit)

    def run(self, chat: Chat, first: Callable[[], None]) -> None:
        """Show the prompt, call `first`, and stay until the person leaves."""
        self._line.chat = chat
        self._print()
        # Whoever prints something meanwhile, a library or a download, must not draw over the chat;
        # and what is typed is the chat's alone.
        stray = Printed(chat.view.note)
        typed, sys.stdin = sys.stdin, io.StringIO()
        try:
            with contextlib.redirect_stdout(stray), contextlib.redirect_stderr(stray):
                asyncio.run(self._run(first))
        finally:
            sys.stdin = typed
        self._print()

    async def _run(self, first: Callable[[], None]) -> None:
        self._loop = loop = asyncio.get_running_loop()

        def begun() -> None:
            self._context = contextvars.copy_context()
            # Only later: the prompt means that the terminal is ours, and it is not yet.
            self._soon(self._print)
            self._soon(first)

        for number in heeded():
            # Told to end, it gives the terminal back as it was.
            loop.add_signal_handler(number, self._exit)
        try:
            await self._app.run_async(pre_run=begun)
        except EOFError:
            # The terminal has gone.
            return
        finally:
            self._context = self._loop = None

    def _exit(self) -> None:
        if self._app.is_running and self._app.future is not None and not self._app.future.done():
            self._app.exit()

    # -- drawing ------------------------------------------------------------------------------

    def _soon(self, work: Callable[..., None], *values: Any) -> None:
        loop, context = self._loop, self._context
        if loop is None or context is None:
            return
        try:
            loop.call_soon_threadsafe(lambda: context.run(work, *values))
        except RuntimeError:
            # The chat has ended.
            return

    def _print(self) -> None:
        if self._loop is not None and self._app.is_running and not self._drawn.resting:
            self._loop.call_later(REST_SECONDS, self._soon, self._print)
            return
        texts, self._unseen = self._unseen, []
        if not texts:
            return
        lines = "\n".join(texts) + "\n"
        app = self._app
        if not app.is_running:
            self._output.write_raw(lines)
            self._output.flush()
            return
        with self._output.in_one_piece():
            app.renderer.erase()
            self._output.write_raw(lines.replace("\n", "\r\n"))
            # What is drawn is remembered by this number.
            app.render_counter += 1
            app.renderer.render(app, app.layout)

    def _tick(self) -> None:
        """Draw now, and again as long as something goes on."""
        chat, loop = self._line.chat, self._loop
        if self._drawing or not self._app.is_running:
            return
        self._app.invalidate()
        if chat is not None and loop is not None and (chat.busy or chat.view.active):
            self._drawing = True
            loop.call_later(_TICK_SECONDS, self._again)

    def _again(self) -> None:
        self._drawing = False
        self._tick()

    def _ask(self, question: Question | None) -> None:
        self._line.ask(question is not None)
        self._question = question
        self._app.invalidate()

    # -- what is drawn ------------------------------------------------------------------------

    def _layout(self) -> FloatContainer:
        search = SearchToolbar()
        control = BufferControl(
            self._line.buffer,
            input_processors=[BeforeInput(self._prompt, style="class:prompt")],
            search_buffer_control=search.control,
            focus_on_click=False,
        )
        typed = Window(
            control,
            wrap_lines=True,
            dont_extend_height=True,
            height=self._height,
            get_line_prefix=_indent,
        )
        going_on = Window(FormattedTextControl(self._now), dont_extend_height=True)
        below: list[AnyContainer] = [
            ConditionalContainer(going_on, Condition(lambda: bool(self._lines()))),
            typed,
            search,
        ]
        menu = Float(CompletionsMenu(max_height=_MENU_ROWS), xcursor=True, ycursor=True)
        return FloatContainer(HSplit(below), floats=[menu])

    def _height(self) -> Dimension:
        rows = self._output.get_size().rows
        completing = self._line.buffer.complete_state is not None
        least = min(_MENU_ROWS + 1, max(rows - 4, 1)) if completing else 1
        return Dimension(min=least, max=max(rows // 2, 3, least))

    def _lines(self) -> list[str]:
        chat = self._line.chat
        lines = chat.view.now(self.width) if chat is not None else []
        if self._question is not None:
            lines = [*lines, *wrapped(self._question.prompt, self.width - 1)]
        return lines[-max(self._output.get_size().rows - 6, 2) :]

    def _now(self) -> ANSI:
        return ANSI(only_styles("\n".join(self._lines())))

    def _prompt(self) -> str:
        return "? " if self._question is not None else "❯ "


def _size(stdout: TextIO) -> Size:
    try:
        columns, rows = os.get_terminal_size(stdout.fileno())
    except OSError:
        # The terminal has gone; the end is near.
        columns = rows = 0
    return Size(rows=rows or 24, columns=columns or 80)


def _indent(line: int, wrap: int) -> str:
    return "" if line == 0 and wrap == 0 else "  "
