"""Follows one command at the far end until it is over, one way or another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.environments.far.channel import BrokenChannelError
from hermes.environments.local.foreground import (
    DOUBT_SECONDS,
    LOOK_SECONDS,
    SILENCE_SECONDS,
    STOP_SECONDS,
    End,
    Show,
)
from hermes.environments.prompts import last_line, looks_like_prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.far.channel import Channel
    from hermes.environments.order import Order
    from hermes.environments.output import Collector
    from hermes.environments.results import Ended

# A dead connection is noticed by the program that holds it; this is for a host that stalls.
_PATIENCE = 5.0


class Run:
    """What the worker has told of a command."""

    def __init__(self) -> None:
        self.begun = False
        self.code: int | None = None
        self.pid = 0
        # Whether something of its process group is left; and whether there are processes that
        # have been started since it was, be they its own or not.
        self.left = False
        self.others = False
        self.state = b""
        self.no_folder = False
        self.moved_to = ""
        self._errors_ended = False

    @property
    def over(self) -> bool:
        """Whether it has ended, and all that it printed was read."""
        return self.code is not None and self._errors_ended

    def hear(self, message: bytes) -> None:
        """Take in one message."""
        kind, rest = message[:1], message[1:]
        if kind == b"B":
            self.begun = True
        elif kind == b"S":
            self.state = rest
        elif kind == b"F":
            self.no_folder = True
        elif kind == b"G":
            self.moved_to = rest.decode("utf-8", "surrogateescape")
        elif kind == b"E":
            code, pid, left = rest.split()
            self.code, self.pid = int(code), int(pid)
            self.left, self.others = left == b"2", left != b"0"
        elif kind == b"e":
            self._errors_ended = True


def follow(
    channel: Channel,
    run: Run,
    collector: Collector,
    order: Order,
    text: str,
    *,
    stop: Callable[[], None],
    idle: Callable[[], bool],
) -> End:
    """Send the text of a command, and read what it prints until it has ended.

    `stop` has everything of it ended. Raises `BrokenChannelError` when it did not even begin.
    """
    show = Show(order.on_output, collector.feed) if order.on_output is not None else None
    feed = collector.feed if show is None else show.feed
    channel.printed = lambda stream, data: feed(stream, memoryview(data))
    channel.told = run.hear
    channel.send(text)
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        # One that has ended by itself was not cancelled.
        cancelled = not run.over
        stop()

    forget = order.cancellation.on_cancel(cancel) if order.cancellation is not None else None
    try:
        end = _followed(channel, run, collector, order, show, stop, idle)
        if end.why == "lost" and not run.begun:
            raise BrokenChannelError
        return End("cancelled", notes=end.notes) if cancelled and end.why == "exited" else end
    finally:
        if forget is not None:
            forget()
        if show is not None:
            show.flush(last=True)


def heard(
    channel: Channel,
    run: Run,
    text: str,
    *,
    printed: Callable[[int, bytes], None],
    seconds: float,
) -> bool:
    """Have a script of ours carried out; whether it ended in time."""
    channel.printed = printed
    channel.told = run.hear
    channel.send(text)
    until = time.monotonic() + seconds
    while not run.over and (left := until - time.monotonic()) > 0:
        if channel.gone:
            raise BrokenChannelError
        channel.listen(left)
    return run.over


def _followed(
    channel: Channel,
    run: Run,
    collector: Collector,
    order: Order,
    show: Show | None,
    stop: Callable[[], None],
    idle: Callable[[], bool],
) -> End:
    now = silent_since = time.monotonic()
    deadline = None if order.timeout is None else now + order.timeout
    while not run.over and not channel.gone:
        now = time.monotonic()
        if order.cancelled:
            stop()
            return _stopped(channel, run, "cancelled")
        if deadline is not None and now >= deadline:
            stop()
            return _stopped(channel, run, "timeout")
        silence = now - silent_since
        if silence >= DOUBT_SECONDS:
            recent = collector.recent(400)
            if looks_like_prompt(recent) and idle():
                stop()
                return _stopped(channel, run, "needs input", last_line(recent))
        patience = SILENCE_SECONDS if silence < SILENCE_SECONDS else LOOK_SECONDS
        if silence > 60:
            patience = _PATIENCE
        if deadline is not None:
            patience = min(patience, deadline - now)
        before = collector.total
        channel.listen(patience)
        if show is not None:
            show.flush()
        if collector.total != before:
            silent_since = time.monotonic()
    if run.over:
        return End("exited", alive=run.left)
    channel.process.drain()
    return End("exited" if run.over else "lost", alive=run.left)


def _stopped(channel: Channel, run: Run, why: Ended, prompt: str = "") -> End:
    """Wait until everything is gone; what it printed meanwhile is read."""
    until = time.monotonic() + STOP_SECONDS
    while not run.over and not channel.gone and (left := until - time.monotonic()) > 0:
        channel.listen(left)
    if run.over or channel.gone:
        return End(why, prompt=prompt)
    return End(why, prompt=prompt, notes=("something of it could not be ended yet",))
