"""Client of the calls from a script to tools; the body of the module `hermes_tools`.

Functions for the tools are appended to this text. Any thread and any forked child may call: each
has its own connection.
"""

from __future__ import annotations

import json
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import Any

# Set by the program that runs the script.
CHANNEL: Mapping[str, str] = globals().get("CHANNEL", {})


class ToolError(Exception):
    """A call that failed or was refused: `reason`, `hint`, `tool` and `data`, if there are any."""

    def __init__(self, tool: str, answer: Mapping[str, Any]) -> None:
        self.tool = tool
        self.reason = answer.get("error", "")
        self.hint = answer.get("hint", "")
        self.data = answer.get("data")
        super().__init__(f"{tool}: {self.reason}" + (f" ({self.hint})" if self.hint else ""))


def call(tool: str, arguments: Mapping[str, Any]) -> Any:
    """Call a tool by name; its result as a Python value. Raises `ToolError`."""
    given = {name: value for name, value in arguments.items() if value is not ...}
    answer = _exchange({"tool": tool, "arguments": given, "line": _line()})
    if "error" in answer:
        raise ToolError(tool, answer["error"])
    return answer.get("result")


def artifact(handle: str) -> str:
    """The whole text of a large result, by its handle."""
    answer = _exchange({"artifact": handle, "line": _line()})
    if "error" in answer:
        raise ToolError("artifact", answer["error"])
    text: str = answer["result"]
    return text


def progress(text: object, fraction: float | None = None) -> None:
    """Show the person a line about the work so far."""
    _exchange({"progress": str(text), "fraction": fraction})


class _Async:
    """The same functions as coroutines: `await hermes_tools.aio.read_file(path)`."""

    def __getattr__(self, name: str) -> Any:
        import asyncio

        function = globals()[name]

        async def run(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(function, *args, **kwargs)

        return run


aio = _Async()


def _line() -> int:
    """The line of the script that makes the call; 0 where another module makes it."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        if frame.f_code.co_filename == "script.py":
            return frame.f_lineno
        frame = frame.f_back
    return 0


_own = threading.local()


def _exchange(request: Mapping[str, Any]) -> dict[str, Any]:
    if "socket" not in CHANNEL:
        return _exchange_files(request)
    if getattr(_own, "pid", 0) != os.getpid():
        # A forked child must not share its parent's connection.
        _own.stream = _connect()
        _own.pid = os.getpid()
    stream: Any = _own.stream
    data = json.dumps(request).encode()
    try:
        stream.write(len(data).to_bytes(4, "big") + data)
        stream.flush()
        size = stream.read(4)
        if len(size) == 4:
            answer: dict[str, Any] = json.loads(stream.read(int.from_bytes(size, "big")))
            return answer
    except OSError as error:
        raise ConnectionError(_OVER) from error
    raise ConnectionError(_OVER)


_OVER = "tools can't be called any more: this script is over for its caller"


def _connect() -> Any:
    import socket

    peer = socket.socket(socket.AF_UNIX)
    peer.connect(CHANNEL["socket"])
    stream = peer.makefile("rwb")
    token = CHANNEL["token"].encode()
    stream.write(len(token).to_bytes(4, "big") + token)
    return stream


_count = 0
_queue: int | None = None
_lock = threading.Lock()


def _exchange_files(request: Mapping[str, Any]) -> dict[str, Any]:
    """One call through files; a FIFO wakes the other side, another one brings the answer."""
    global _count, _queue
    folder = CHANNEL["folder"]
    with _lock:
        _count += 1
        name = f"{os.getpid()}-{_count}"
        if _queue is None:
            # For reading too: what is written stays there until it is read.
            _queue = os.open(os.path.join(folder, "requests"), os.O_RDWR)
    answer = os.path.join(folder, f"answer-{name}")
    os.mkfifo(answer, 0o600)
    with open(os.path.join(folder, f"request-{name}"), "w", encoding="ascii") as file:
        json.dump(request, file)
    os.write(_queue, f"{name} {CHANNEL['token']}\n".encode())
    with open(answer, "rb") as file:
        data = file.read()
    os.unlink(answer)
    result: dict[str, Any] = json.loads(data)
    return result
