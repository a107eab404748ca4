"""Wait for a command: until it ends, times out, is cancelled or waits for input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments.command import CommandResult
from hermes.environments.command_output import OUT, Collector
from hermes.environments.input_wait import idle, last_line, looks_like_prompt, waits_for_input
from hermes.text.console_output import live_decoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.background import Background
    from hermes.environments.command import Ended, Order
    from hermes.environments.host.process import Process, Ready


# After so long without output we look whether somebody is being asked.
SILENCE_SECONDS = 1.5
# A question that we can't see anybody waiting at must have stood for longer.
DOUBT_SECONDS = 3.5
LOOK_SECONDS = 0.5
# What a command left running may still end, or say something, within this time.
SETTLE_SECONDS = 0.1
# Everything has to be gone so long after it was told to.
STOP_SECONDS = 4.0
SHOW_SECONDS = 0.1


class End(NamedTuple):
    """Why following ended; `alive` when something of the command still runs."""

    why: Ended
    alive: bool = False
    prompt: str = ""
    notes: tuple[str, ...] = ()


def follow(process: Process, collector: Collector, order: Order, *, task: str, ready: Ready) -> End:
    """Read what a command prints until it is over, one way or another."""
    follower = _Follower(process, collector, order, task, ready)
    forget = None
    if order.cancellation is not None:
        forget = order.cancellation.on_cancel(lambda: process.owner.stop(process.id))
    try:
        return follower.run()
    finally:
        if forget is not None:
            forget()


class _Follower:
    def __init__(
        self, process: Process, collector: Collector, order: Order, task: str, ready: Ready
    ) -> None:
        self._task = task
        self._process = process
        self._collector = collector
        self._order = order
        self._ready = ready
        self._show = Show(order.on_output, process.feed) if order.on_output is not None else None
        if self._show is not None:
            process.feed = self._show.feed

    def run(self) -> End:
        process, order = self._process, self._order
        silent_since = time.monotonic()
        deadline = None if order.timeout is None else silent_since + order.timeout
        while process.exit_code is None and not process.gone:
            now = time.monotonic()
            if order.cancelled:
                return self._stopped("cancelled")
            if deadline is not None and now >= deadline:
                process.owner.stop(process.id)
                return self._stopped("timeout")
            silence = now - silent_since
            if silence >= SILENCE_SECONDS:
                asked = self._question(silence)
                if asked is not None:
                    return self._asked(asked)
            patience = LOOK_SECONDS if silence >= SILENCE_SECONDS else SILENCE_SECONDS - silence
            if silence > 60:
                # Whoever has been silent for long will hardly ask now.
                patience = 5.0
            if deadline is not None:
                patience = min(patience, deadline - now)
            before = self._collector.total
            self._listen(patience)
            if self._collector.total != before:
                silent_since = time.monotonic()
        if order.cancelled:
            return self._stopped("cancelled")
        return self._ended()

    def _listen(self, seconds: float) -> bool:
        """Read once from whatever has something; whether anything had."""
        process = self._process
        ready = self._ready.wait(process.watched(), seconds)
        for file in ready:
            process.take(file)
        if not ready:
            # Not listened to, since it is short as a rule; it must not wait for us when it is long.
            process.take_state()
        if self._show is not None:
            self._show.flush()
        return bool(ready)

    def _ended(self) -> End:
        process = self._process
        process.drain()
        until = time.monotonic() + SETTLE_SECONDS
        while process.left and not process.gone and (left := until - time.monotonic()) > 0:
            self._listen(left)
        process.drain()
        if self._show is not None:
            self._show.flush(last=True)
        if process.lost and process.exit_code is None:
            return End("lost", notes=("the process that watches over commands was killed",))
        return End("exited", alive=bool(process.left) and not process.gone)

    def _stopped(self, why: Ended) -> End:
        """Wait until everything is gone; what it printed meanwhile is read."""
        process = self._process
        until = time.monotonic() + STOP_SECONDS
        while not process.gone and (left := until - time.monotonic()) > 0:
            self._listen(left)
        process.drain()
        if self._show is not None:
            self._show.flush(last=True)
        if process.gone:
            return End(why)
        return End(why, alive=True, notes=("something of it could not be ended yet",))

    def _question(self, silence: float) -> str | None:
        """The question that the command waits at; None when it waits for something else."""
        recent = self._collector.recent(2000)
        if self._order.pty:
            pids = self._pids()
            waits = waits_for_input(pids, ("/dev/pts/", "/dev/tty"))
            if waits:
                return last_line(recent)
            unfinished = bool(recent.strip()) and not recent.endswith("\n")
            # Editors and shells with line editing wait in other ways.
            if (
                unfinished
                and idle(pids)
                and (silence >= DOUBT_SECONDS or looks_like_prompt(recent))
            ):
                return last_line(recent)
            return None
        if silence >= DOUBT_SECONDS and looks_like_prompt(recent) and idle(self._pids()):
            return last_line(recent)
        return None

    def _pids(self) -> list[int]:
        return self._process.owner.members(self._task).get(self._process.id, [])

    def _asked(self, prompt: str) -> End:
        if self._order.pty:
            self._process.drain()
            return End("needs input", alive=True, prompt=prompt)
        # Nobody will ever answer it.
        self._process.owner.stop(self._process.id)
        end = self._stopped("needs input")
        return End("needs input", alive=end.alive, prompt=prompt, notes=end.notes)


class Show:
    """Passes on what is printed while it is, a few times a second at most."""

    def __init__(
        self, on_output: Callable[[str], None], feed: Callable[[int, memoryview], None]
    ) -> None:
        self._on_output = on_output
        self._keep = feed
        self._decoders = {1: live_decoder(), 2: live_decoder()}
        self._held = ""
        self._again = 0.0

    def feed(self, stream: int, data: memoryview) -> None:
        """Keep a piece, and remember it for showing; of a flood only the end is shown."""
        self._keep(stream, data)
        shown = bytes(data[-4000:]) if len(data) > 4000 else bytes(data)
        self._held = (self._held + self._decoders[stream].decode(shown))[-8000:]

    def flush(self, *, last: bool = False) -> None:
        """Show what there is, when it is time to."""
        now = time.monotonic()
        if self._held and (last or now >= self._again):
            self._again = now + SHOW_SECONDS
            held, self._held = self._held, ""
            self._on_output(held)


_WHOLE = 1 << 20
_SHOWN = 8000


def attend(background: Background, order: Order) -> CommandResult:
    """Wait for a command that may ask; one that does goes on beside, to be answered."""
    begun = time.monotonic()
    why: Ended = "exited"
    prompt = ""
    shown = 0
    while background.state == "running":
        # Whoever has been silent for long will hardly ask now.
        left = LOOK_SECONDS if _silence(background) < 60 else 5.0
        if order.timeout is not None:
            left = min(left, begun + order.timeout - time.monotonic())
        if background.wait(max(0.01, left), cancellation=order.cancellation):
            break
        if order.on_output is not None:
            shown = _show(background, shown, order.on_output)
        if order.cancelled:
            why = "cancelled"
        elif left <= 0.01:
            why = "timeout"
        elif _asks(background):
            why = "needs input"
            prompt = last_line(background.recent(400))
        if why != "exited":
            break
    if why in ("cancelled", "timeout"):
        background.kill("its time limit" if why == "timeout" else "a cancel")
        background.wait(4.0)
    if order.on_output is not None:
        _show(background, shown, order.on_output)
    collector = Collector()
    text, _, _ = background.log(0, limit=_WHOLE)
    collector.feed(OUT, text.encode("utf-8", "surrogateescape"))
    return CommandResult(
        background.exit_code,
        collector.output(),
        cwd=background.cwd,
        duration=time.monotonic() - begun,
        ended=why,
        background=background if why == "needs input" else None,
        prompt=prompt,
    )


def _show(background: Background, seen: int, on_output: Callable[[str], None]) -> int:
    """Pass on what was printed since; of a flood only the end. How much there is by now."""
    _, _, total = background.log(limit=1)
    if total > seen:
        text, _, total = background.log(max(seen, total - _SHOWN), limit=_SHOWN)
        on_output(text)
    return total


def _asks(background: Background) -> bool:
    silence = _silence(background)
    if silence < SILENCE_SECONDS:
        return False
    if background.waits():
        return True
    recent = background.recent(400)
    if not recent.strip() or recent.endswith("\n"):
        return False
    return silence >= DOUBT_SECONDS or looks_like_prompt(recent)


def _silence(background: Background) -> float:
    return time.time() - background.last_output_at
