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

from hermes.interfaces.chat.controller import CapturedOutput
from hermes.interfaces.chat.input_line import InputLine
from hermes.interfaces.chat.renderer import REST_SECONDS, ChatApplication, Output, ResizeRenderer
from hermes.interfaces.cli.terminal import colours, end_signals, only_styles, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    from prompt_toolkit.layout import AnyContainer

    from hermes.interfaces.chat.controller import Chat
    from hermes.interfaces.cli.approval_prompt import Question

# How often the status area is redrawn.
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
    """Frontend for terminals that can move the cursor."""

    echoes = False

    def __init__(self) -> None:
        # The terminal itself: `sys.stdout` is replaced later.
        stdout = sys.stdout
        self._output = Output(stdout, lambda: _size(stdout))
        self._line = InputLine()
        self._question: Question | None = None
        self._pending: list[str] = []
        self._context: contextvars.Context | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticking = False
        self._app = ChatApplication(
            layout=Layout(self._layout()),
            key_bindings=self._line.keys(),
            style=Style.from_dict(_STYLE),
            output=self._output,
            color_depth=None if colours() else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
        )
        self._renderer = self._app.renderer = ResizeRenderer(self._app.renderer.style, self._output)

    # -- frontend -----------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Width in columns."""
        return self._output.get_size().columns

    def show(self, text: str) -> None:
        """Print lines above the input, from any thread."""
        self._pending.append(only_styles(text))
        if self._loop is None:
            # Before the prompt is shown, or after it.
            self._print()
        else:
            self._soon(self._print)

    def refresh(self) -> None:
        """Redraw the status area."""
        self._soon(self._tick)

    @property
    def question(self) -> Question | None:
        """The question that the person sees."""
        return self._question

    def set_question(self, question: Question | None) -> None:
        """Show a question; the input answers it from now on."""
        self._soon(self._ask, question)

    def leave(self) -> None:
        """End the chat."""
        self._soon(self._exit)

    def run(self, chat: Chat, first: Callable[[], None]) -> None:
        """Show the prompt, call `first`, and run until the person leaves."""
        self._line.chat = chat
        self._print()
        # Output of libraries must not be drawn over the chat, and input belongs to the chat.
        stray = CapturedOutput(chat.view.note)
        stdin, sys.stdin = sys.stdin, io.StringIO()
        try:
            with contextlib.redirect_stdout(stray), contextlib.redirect_stderr(stray):
                asyncio.run(self._run(first))
        finally:
            sys.stdin = stdin
        self._print()

    async def _run(self, first: Callable[[], None]) -> None:
        self._loop = loop = asyncio.get_running_loop()

        def started() -> None:
            self._context = contextvars.copy_context()
            # Only later: the terminal is not in raw mode yet.
            self._soon(self._print)
            self._soon(first)

        for number in end_signals():
            # The terminal is restored before the end.
            loop.add_signal_handler(number, self._exit)
        try:
            await self._app.run_async(pre_run=started)
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
        if self._loop is not None and self._app.is_running and not self._renderer.stable:
            self._loop.call_later(REST_SECONDS, self._soon, self._print)
            return
        texts, self._pending = self._pending, []
        if not texts:
            return
        lines = "\n".join(texts) + "\n"
        app = self._app
        if not app.is_running:
            self._output.write_raw(lines)
            self._output.flush()
            return
        with self._output.batch():
            app.renderer.erase()
            self._output.write_raw(lines.replace("\n", "\r\n"))
            # prompt_toolkit caches by this number.
            app.render_counter += 1
            app.renderer.render(app, app.layout)

    def _tick(self) -> None:
        """Redraw now, and again as long as there is an activity."""
        chat, loop = self._line.chat, self._loop
        if self._ticking or not self._app.is_running:
            return
        self._app.invalidate()
        if chat is not None and loop is not None and (chat.busy or chat.view.active):
            self._ticking = True
            loop.call_later(_TICK_SECONDS, self._next_tick)

    def _next_tick(self) -> None:
        self._ticking = False
        self._tick()

    def _ask(self, question: Question | None) -> None:
        self._line.set_answering(question is not None)
        self._question = question
        self._app.invalidate()

    # -- layout -------------------------------------------------------------------------------

    def _layout(self) -> FloatContainer:
        search = SearchToolbar()
        control = BufferControl(
            self._line.buffer,
            input_processors=[BeforeInput(self._prompt, style="class:prompt")],
            search_buffer_control=search.control,
            focus_on_click=False,
        )
        input_window = Window(
            control,
            wrap_lines=True,
            dont_extend_height=True,
            height=self._height,
            get_line_prefix=_indent,
        )
        status = Window(FormattedTextControl(self._status), dont_extend_height=True)
        rows: list[AnyContainer] = [
            ConditionalContainer(status, Condition(lambda: bool(self._lines()))),
            input_window,
            search,
        ]
        menu = Float(CompletionsMenu(max_height=_MENU_ROWS), xcursor=True, ycursor=True)
        return FloatContainer(HSplit(rows), floats=[menu])

    def _height(self) -> Dimension:
        rows = self._output.get_size().rows
        completing = self._line.buffer.complete_state is not None
        least = min(_MENU_ROWS + 1, max(rows - 4, 1)) if completing else 1
        return Dimension(min=least, max=max(rows // 2, 3, least))

    def _lines(self) -> list[str]:
        chat = self._line.chat
        lines = chat.view.status(self.width) if chat is not None else []
        if self._question is not None:
            lines = [*lines, *wrapped(self._question.prompt, self.width - 1)]
        return lines[-max(self._output.get_size().rows - 6, 2) :]

    def _status(self) -> ANSI:
        return ANSI(only_styles("\n".join(self._lines())))

    def _prompt(self) -> str:
        return "? " if self._question is not None else "❯ "


def _size(stdout: TextIO) -> Size:
    try:
        columns, rows = os.get_terminal_size(stdout.fileno())
    except OSError:
        # The terminal has gone.
        columns = rows = 0
    return Size(rows=rows or 24, columns=columns or 80)


def _indent(line: int, wrap: int) -> str:
    return "" if line == 0 and wrap == 0 else "  "
