"""Chat entry point: choose editor or line mode and run the chat on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.interfaces.chat.controller import Chat
from hermes.interfaces.cli.commands import DONE, UsageError
from hermes.interfaces.cli.screen_text import styled
from hermes.interfaces.cli.signals import interruptible, undisturbed

if TYPE_CHECKING:
    from typing import Any

    from hermes.interfaces.chat.agent_session import Settings
    from hermes.interfaces.cli.main import CliApp


def on_terminal() -> bool:
    """Whether a person sees what is printed and can type."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def chat(
    app: CliApp,
    *,
    settings: Settings | None = None,
    resume: str | None = None,
    message: str = "",
) -> int:
    """Chat until the person leaves; `resume` names a session, `message` is said first."""
    if not on_terminal():
        raise UsageError("a chat needs a terminal", hint='hermes run "…" works without one')
    face, missing = _face()
    here = Chat(app, face, settings)
    from hermes.interfaces.chat.captured_output import Printed

    out, err = app.stdout, app.stderr
    app.stdout = app.stderr = Printed(here.view.printed, sys.stdout.fileno())  # type: ignore[assignment]

    def first() -> None:
        if resume is not None:
            here.line(f"/resume {resume}")
        if message.strip():
            here.line(message)

    face.show(f"{styled('Hermes', 'bold')} {__version__} · /help · Ctrl-D leaves")
    if missing:
        face.show(styled(missing, "dim"))
    with undisturbed():
        try:
            with interruptible(SystemExit):
                face.run(here, first)
        finally:
            app.stdout, app.stderr = out, err
            again = here.close()
            if again:
                app.note(f"to go on with this: {again}")
    return DONE


def _face() -> tuple[Any, str]:
    """The face for this terminal, and what the person should know about it."""
    from hermes.interfaces.chat.line_mode import Plain

    if os.environ.get("TERM", "dumb") in ("dumb", "unknown") or os.name == "nt":
        return Plain(), "this terminal shows plain lines only"
    try:
        from hermes.interfaces.chat.editor import Editor
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("prompt_toolkit"):
            raise
        return Plain(), "plain lines only: pip install 'hermes-tools[chat]' brings the rest"
    return Editor(), ""
