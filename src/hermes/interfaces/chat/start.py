"""Chat entry point: choose editor or line mode and run the chat on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.interfaces.chat.controller import CapturedOutput, Chat
from hermes.interfaces.cli.commands import DONE, UsageError
from hermes.interfaces.cli.terminal import interruptible, signals_ignored, styled

if TYPE_CHECKING:
    from typing import Any

    from hermes.interfaces.chat.agent_session import AgentOptions
    from hermes.interfaces.cli.main import CliApp


def on_terminal() -> bool:
    """Whether stdin and stdout are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def chat(
    app: CliApp,
    *,
    options: AgentOptions | None = None,
    resume: str | None = None,
    message: str = "",
) -> int:
    """Chat until the person leaves; `resume` names a session, `message` is sent first."""
    if not on_terminal():
        raise UsageError("a chat needs a terminal", hint='hermes run "…" works without one')
    frontend, remark = _frontend()
    session = Chat(app, frontend, options)

    out, err = app.stdout, app.stderr
    app.stdout = app.stderr = CapturedOutput(session.view.output, sys.stdout.fileno())  # type: ignore[assignment]

    def first() -> None:
        if resume is not None:
            session.line(f"/resume {resume}")
        if message.strip():
            session.line(message)

    frontend.show(f"{styled('Hermes', 'bold')} {__version__} · /help · Ctrl-D leaves")
    if remark:
        frontend.show(styled(remark, "dim"))
    with signals_ignored():
        try:
            with interruptible(SystemExit):
                frontend.run(session, first)
        finally:
            app.stdout, app.stderr = out, err
            command = session.close()
            if command:
                app.note(f"to resume this session: {command}")
    return DONE


def _frontend() -> tuple[Any, str]:
    """The frontend for this terminal, and a remark on its limits."""
    from hermes.interfaces.chat.line_mode import LineMode

    if os.environ.get("TERM", "dumb") in ("dumb", "unknown") or os.name == "nt":
        return LineMode(), "line mode: this terminal can't move its cursor"
    try:
        _prompt_toolkit()
        from hermes.interfaces.chat.editor import Editor
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("prompt_toolkit"):
            raise
        return LineMode(), "line mode: pip install 'hermes-tools[chat]' for the full editor"
    return Editor(), ""


def _prompt_toolkit() -> None:
    """Import the package without its `__init__`, which imports dialogs and progress bars.

    The `__init__` runs when something asks the package itself for a name.
    """
    from importlib.util import find_spec, module_from_spec

    spec = find_spec("prompt_toolkit")
    if spec is None or spec.loader is None or "prompt_toolkit" in sys.modules:
        return
    loader, package = spec.loader, module_from_spec(spec)

    def load(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, name)

    package.__dict__["__getattr__"] = load
    sys.modules["prompt_toolkit"] = package
    # First, as in the `__init__`: its modules import each other in this order only.
    import prompt_toolkit.application  # noqa: F401
