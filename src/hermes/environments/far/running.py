"""One command at the far end: given to a worker, followed to its end, and what it leaves."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments.far.channel import BrokenChannelError, pour
from hermes.environments.far.following import Run, follow, heard
from hermes.environments.local.process import ERR, OUT, Process

if TYPE_CHECKING:
    from hermes.environments.far.channel import Channel
    from hermes.environments.far.connection import Connection
    from hermes.environments.far.requests import Request
    from hermes.environments.local.foreground import End
    from hermes.environments.order import Order
    from hermes.environments.output.collector import Collector

# What a command left running may still end within this time.
_SETTLE_SECONDS = 0.1
_LOOK_SECONDS = 0.03
_SCRIPT_SECONDS = 120.0
# Likely to leave something running that is out of its process group.
_LEAVES = re.compile(r"(?<![&<>])&(?![&>])|\b(?:setsid|nohup|daemon)")


class Left(NamedTuple):
    """What a command left running: by process id, and the program here that listens to it."""

    process: Process
    pids: list[int]


class Done(NamedTuple):
    """How a command ended, what its worker told of it, and what is left of it."""

    end: End
    run: Run
    seconds: float
    left: Left | None


def run(
    connection: Connection,
    request: Request,
    order: Order,
    collector: Collector,
    *,
    folder: str,
    keep: bool,
) -> Done:
    """Have a command run there; with `keep` the state it leaves is told.

    Raises `BrokenChannelError` when it did not even begin.
    """
    channel = connection.worker()
    request.worker = channel.number
    told = Run()
    left: Left | None = None
    begun = time.monotonic()
    try:
        hand_over(connection, request)
        end = follow(
            channel,
            told,
            collector,
            order,
            request.text(folder, keep=keep, strict=order.cwd is not None),
            stop=lambda: connection.stop(channel.number, request.number),
            idle=lambda: connection.idle(request.number),
        )
        seconds = time.monotonic() - begun
        if end.why == "exited" and told.others and not told.no_folder:
            again = _LEAVES.search(order.command) is not None
            left = _left(connection, channel, told, request.number, again=again)
    except BaseException:
        if not told.over:
            connection.stop(channel.number, request.number)
        collector.discard()
        raise
    finally:
        connection.give_back(channel if left is None else None, again=told.over)
    return Done(end, told, seconds, left)


def script(connection: Connection, request: Request) -> tuple[int | None, bytes, bytes]:
    """Have a script of ours run there: its exit code and what it printed on each stream.

    No exit code is that of one that did not end.
    """
    channel = connection.worker()
    request.worker = channel.number
    told = Run()
    printed: dict[int, list[bytes]] = {OUT: [], ERR: []}
    try:
        hand_over(connection, request)
        whole = heard(
            channel,
            told,
            request.text("/", keep=False, strict=True),
            printed=lambda stream, piece: printed[stream].append(piece),
            seconds=_SCRIPT_SECONDS,
        )
        if not whole:
            connection.stop(channel.number, request.number)
    finally:
        connection.give_back(channel, again=told.over)
    return told.code, b"".join(printed[OUT]), b"".join(printed[ERR])


def hand_over(connection: Connection, request: Request) -> None:
    """Send what a command reads when it is too much for the text; it is in a file there then."""
    if request.data is None or request.inline:
        return
    process = Process(lambda *_: None)
    place = f"{connection.known.folder}/w{connection.number()}"
    connection.ask(f"echo 'exec cat >{request.place('i')}' >{place}")
    argv = connection.link.argv(["/bin/sh", place])
    pour(process, argv, request.data, task=connection.task)
    if process.exit_code != 0:
        raise BrokenChannelError


def _left(
    connection: Connection, channel: Channel, told: Run, number: int, *, again: bool
) -> Left | None:
    """Go on listening to what a command left running."""
    until = time.monotonic() + _SETTLE_SECONDS
    pids = _alive(connection, channel.number, told, number)
    if not pids and again:
        # One that is just becoming another program shows no mark for a moment.
        time.sleep(_LOOK_SECONDS)
        pids = _alive(connection, channel.number, told, number)
    while pids and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        pids = _alive(connection, channel.number, told, number)
    if not pids:
        return None
    channel.send(f"linger {connection.token}.{number} {' '.join(map(str, pids))}\n")
    return Left(channel.release(), pids)


def _alive(connection: Connection, worker: int, told: Run, number: int) -> list[int]:
    """What is left of a command: by its mark, else by its process group."""
    return connection.members(number) or (connection.group(worker, number) if told.left else [])
