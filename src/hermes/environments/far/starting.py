"""One command at the far end that runs beside others, held by a program of its own here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.environments.far.channel import start
from hermes.environments.far.running import hand_over
from hermes.environments.far.scripts import quoted
from hermes.environments.local.process import Process

if TYPE_CHECKING:
    from hermes.environments.far.connection import Connection
    from hermes.environments.far.requests import Request
    from hermes.environments.order import Order


class Started(NamedTuple):
    """The program that holds a command, where its input is written to, the command's process id.

    On each stream a mark comes first: what a login prints is before it.
    """

    process: Process
    input_file: int
    pid: int
    mark: str


def begin(connection: Connection, request: Request, order: Order, folder: str) -> Started:
    """Start a command there; raises `BrokenChannelError` when the connection is gone."""
    link = connection.link
    typed = order.typed if order.pty else b""
    hand_over(connection, request)
    mark = os.urandom(8).hex()
    place = request.place("b")
    answer = connection.ask(
        f"printf %s {quoted(request.alone(folder, mark))} >{place}; "
        f"[ -d {quoted(folder)} ] && echo y"
    )
    if not answer.strip():
        raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
    process = Process(lambda *_: None)
    on_terminal = order.pty and not link.gives_terminal
    argv = link.argv(["/bin/sh", place], tty=order.pty)
    input_file = start(process, argv, task=connection.task, terminal=on_terminal)
    said = connection.ask(
        f"i=0; while ! group {request.number} && [ $i -lt 200 ]; do i=$((i+1)); sleep 0.02; done; "
        'echo "$p"'
    )
    if typed:
        os.write(process.master if on_terminal else input_file, typed)
    elif request.data is not None:
        os.close(input_file)
        input_file = -1
    return Started(process, input_file, int(said.strip() or 0), mark)
