"""Desktop tools: clipboard and notifications."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, ToolResult, tool
from hermes.core.paths import find_program
from hermes.core.schema import Field

if TYPE_CHECKING:
    from typing import Any

_SECONDS = 5
# (how to read, how to write, the variable without which it has no screen to talk to)
_CLIPBOARDS = (
    (["pbpaste"], ["pbcopy"], ""),
    (["wl-paste", "--no-newline"], ["wl-copy"], "WAYLAND_DISPLAY"),
    (["xclip", "-selection", "clipboard", "-o"], ["xclip", "-selection", "clipboard"], "DISPLAY"),
    (["xsel", "--clipboard", "--output"], ["xsel", "--clipboard", "--input"], "DISPLAY"),
    (["powershell", "-NoProfile", "-Command", "Get-Clipboard"], ["clip"], ""),
)


@tool(
    toolset="system",
    permissions=["clipboard:access"],
    effect="write",
    reads_when={"action": ["read"]},
    emoji="📋",
    tags=["copy", "paste", "copied text", "pasteboard", "ctrl+c", "ctrl+v"],
)
def clipboard(
    ctx: ToolContext, action: Literal["read", "write", "clear"], text: str | None = None
) -> ToolResult:
    """Read or write the clipboard; where the system has none, one that lives with the task.

    Args:
        action: What to do.
        text: What to put there, for write.
    """
    if action == "write" and text is None:
        raise ToolError("write needs text")
    wanted = text if action == "write" and text is not None else ""
    programs = _system_clipboard()
    if programs is None:
        notes = ["this machine has no clipboard; kept for this task only"]
        if action == "read":
            return ToolResult({"text": ctx.task.clipboard}, notes=notes)
        ctx.task.clipboard = wanted
        return ToolResult({"written_chars": len(wanted)}, notes=notes)
    read, write = programs
    if action == "read":
        return ToolResult({"text": _run(read)})
    _run(write, wanted)
    return ToolResult({"written_chars": len(wanted)})


@tool(
    toolset="system",
    permissions=["notification:send"],
    effect="message",
    emoji="🔔",
    tags=["alert", "notify", "pop up", "ping me", "tell me when done", "desktop message", "beep"],
)
def notification(
    message: str,
    title: str = "Hermes",
    urgency: Literal["low", "normal", "critical"] = "normal",
    urls: Annotated[list[str] | None, Field(description="Apprise service URLs to notify.")] = None,
) -> dict[str, Any]:
    """Show the person a notification: on the desktop, else in the terminal, or through services.

    Args:
        message: What to say.
        title: A short heading.
        urgency: How much it may disturb.
    """
    if urls:
        return _through_services(message, title, urls)
    command = _desktop_command(message, title, urgency)
    if command is not None:
        _run(command)
        return {"shown": "desktop"}
    return {"shown": _in_terminal(message, title)}


def _system_clipboard() -> tuple[list[str], list[str]] | None:
    for read, write, variable in _CLIPBOARDS:
        if not variable or os.environ.get(variable):
            programs = find_program(read[0]), find_program(write[0])
            if programs[0] and programs[1]:
                return [programs[0], *read[1:]], [programs[1], *write[1:]]
    return None


def _desktop_command(message: str, title: str, urgency: str) -> list[str] | None:
    if sys.platform == "darwin":
        # The texts are arguments of the script, not part of it: nothing in them is run.
        script = (
            "on run argv",
            "display notification (item 1 of argv) with title (item 2 of argv)",
            "end run",
        )
        flags = [part for line in script for part in ("-e", line)]
        return ["/usr/bin/osascript", *flags, message, title]
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    program = find_program("notify-send") if screen else None
    if program:
        return [program, "--app-name=Hermes", f"--urgency={urgency}", "--", title, message]
    return None


def _in_terminal(message: str, title: str) -> str:
    """OSC 9 for terminals that show it, and the bell; both to the terminal, never into a pipe."""
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal:
            line = " ".join(f"{title}: {message}".split())
            shown = "".join(character for character in line if character.isprintable())
            terminal.write(f"\033]9;{shown}\007\a")
    except OSError:
        raise ToolError(
            "there is neither a desktop nor a terminal to show it on",
            hint="Give Apprise service URLs to reach the person elsewhere.",
        ) from None
    return "terminal"


def _through_services(message: str, title: str, urls: list[str]) -> dict[str, Any]:
    from hermes.core import require

    apprise = require("apprise", extra="notify").Apprise()
    refused = [number for number, url in enumerate(urls, 1) if not apprise.add(url)]
    if refused:
        # Such URLs hold tokens: they are named by their place, never repeated.
        raise ToolError(f"not a service URL: number {', '.join(map(str, refused))}")
    if not apprise.notify(body=message, title=title):
        raise ToolError("at least one service did not take the message")
    return {"shown": "services", "count": len(urls)}


def _run(command: list[str], text: str | None = None) -> str:
    import tempfile

    name = os.path.basename(command[0])

    # Files, not pipes: a program that stays to hold the clipboard holds its pipes open as well.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaint:
        try:
            done = subprocess.run(
                command,
                input=None if text is None else text.encode("utf-8", "replace"),
                stdin=subprocess.DEVNULL if text is None else None,
                stdout=output,
                stderr=complaint,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"{name} did not answer within {_SECONDS} s") from None
        except OSError as error:
            raise ToolError(f"{name} can't be started: {error.strerror}") from None
        output.seek(0)
        complaint.seek(0)
        if done.returncode:
            why = complaint.read(2_000).decode("utf-8", "replace").strip()
            raise ToolError(f"{name} failed: {why[:200] or f'exit code {done.returncode}'}")
        return output.read().decode("utf-8", "replace")
