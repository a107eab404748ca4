"""What it costs until somebody can type: the chat, started in a terminal and left at once."""

from __future__ import annotations

import os
import pty
import sys
import sysconfig
import tempfile
from typing import TYPE_CHECKING

from benchmarks.measure import Row, python_ms, usual_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROMPT = "❯".encode()


def rows() -> Iterator[Row]:
    """CPU of the whole program, from its start over the prompt to its end."""
    program = os.path.join(sysconfig.get_path("scripts"), "hermes")
    launcher = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hermes")
    base = python_ms("pass")
    with tempfile.TemporaryDirectory() as home:
        env = usual_environment({"HERMES_HOME": home, "TERM": "xterm-256color"})
        left_ms([program], env)
        ours = min(left_ms([program], env) for _ in range(7))
        yield Row("hermes to its first prompt / python -c pass", ours / base, "× CPU", 25)
        if os.path.exists(os.path.join(os.path.dirname(launcher), ".venv", ".ready")):
            through = min(left_ms([launcher], env) for _ in range(7))
            yield Row("./hermes to its first prompt / python -c pass", through / base, "× CPU", 25)


def left_ms(command: list[str], env: dict[str, str]) -> float:
    """CPU milliseconds of a chat that is left as soon as its prompt is there."""
    process, terminal = pty.fork()
    if process == 0:
        os.execve(command[0], command, env)
    seen = b""
    try:
        while _PROMPT not in seen:
            seen += os.read(terminal, 65_536)
        os.write(terminal, b"\x04")
        while os.read(terminal, 65_536):
            pass
    except OSError:
        # The other end was closed: it has ended.
        pass
    _, status, used = os.wait4(process, 0)
    os.close(terminal)
    if status or _PROMPT not in seen:
        sys.exit(f"the chat ended with {status}: {seen.decode(errors='replace')}")
    return (used.ru_utime + used.ru_stime) * 1000
