"""Wait for a command: until it ends, times out, is cancelled or waits for input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments.command import CommandResult
from hermes.environments.command_output import OUT, Collector
from hermes.environments.input_wait import all_sleep, blocked_on_input, last_line, looks_like_prompt
from hermes.text.encoding import live_decoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.background import Background
    from hermes.environments.command import CommandRequest, EndReason
    from hermes.environments.host.process import Poller, Process

# After so long without output, look for a prompt.
SILENCE_SECONDS = 1.5
# The same for a prompt where no process is seen to be blocked on a read.
DOUBT_SECONDS = 3.5
LOOK_SECONDS = 0.5
# After so long a silence a prompt is unlikely.
LONG_SILENCE, LONG_LOOK_SECONDS = 60.0, 5.0
# Processes left running may end, or print something, within this time.
SETTLE_SECONDS = 0.1
# Limit for the end of a stopped command.
STOP_SECONDS = 4.0
SHOW_SECONDS = 0.1
_WHOLE_LOG = 1 << 20
_SHOWN_CHARS = 8000


class WaitOutcome(NamedTuple):
    """Why waiting ended; `alive` when processes of the command still run."""

    reason: EndReason
    alive: bool = False
    prompt: str = ""
    notes: tuple[str, ...] = ()


class LiveOutput:
    """Forwards output to a callback while it is printed, a few times a second at most."""

    def __init__(
        self, on_output: Callable[[str], None], collect: Callable[[int, memoryview], None]
    ) -> None:
        self._on_output = on_output
        self._collect = collect
        self._decoders = {1: live_decoder(), 2: live_decoder()}
        self._pending = ""
        self._next_show = 0.0

    def feed(self, stream: int, data: memoryview) -> None:
        """Collect a piece, and queue its end for the callback."""
        self._collect(stream, data)
        end = bytes(data[-4000:]) if len(data) > 4000 else bytes(data)
        self._pending = (self._pending + self._decoders[stream].decode(end))[-_SHOWN_CHARS:]

    def flush(self, *, last: bool = False) -> None:
        """Call back with the queued text, if it is time to."""
        now = time.monotonic()
        if self._pending and (last or now >= self._next_show):
            self._next_show = now + SHOW_SECONDS
            text, self._pending = self._pending, ""
            self._on_output(text)


def poll_seconds(silence: float, deadline: float | None) -> float:
    """How long to wait for output before the next look for a prompt."""
    if silence > LONG_SILENCE:
        seconds = LONG_LOOK_SECONDS
    elif silence >= SILENCE_SECONDS:
        seconds = LOOK_SECONDS
    else:
        seconds = SILENCE_SECONDS - silence
    return seconds if deadline is None else min(seconds, deadline - time.monotonic())


def follow(
    process: Process, collector: Collector, request: CommandRequest, *, task: str, poller: Poller
) -> WaitOutcome:
    """Read the output of a command on a host until it is over."""
    forget = None
    if request.cancellation is not None:
        forget = request.cancellation.on_cancel(lambda: process.guardian.stop(process.id))
    try:
        return _Follower(process, collector, request, task, poller).run()
    finally:
        if forget is not None:
            forget()


class _Follower:
    def __init__(
        self,
        process: Process,
        collector: Collector,
        request: CommandRequest,
        task: str,
        poller: Poller,
    ) -> None:
        self._task = task
        self._process = process
        self._collector = collector
        self._request = request
        self._poller = poller
        self._live: LiveOutput | None = None
        if request.on_output is not None:
            self._live = LiveOutput(request.on_output, process.on_output)
            process.on_output = self._live.feed

    def run(self) -> WaitOutcome:
        process, request = self._process, self._request
        silent_since = time.monotonic()
        deadline = None if request.timeout is None else silent_since + request.timeout
        while process.exit_code is None and not process.gone:
            now = time.monotonic()
            if request.cancelled:
                return self._stopped("cancelled")
            if deadline is not None and now >= deadline:
                process.guardian.stop(process.id)
                return self._stopped("timeout")
            silence = now - silent_since
            if silence >= SILENCE_SECONDS:
                prompt = self._prompt(silence)
                if prompt is not None:
                    return self._needs_input(prompt)
            before = self._collector.total
            self._read(poll_seconds(silence, deadline))
            if self._collector.total != before:
                silent_since = time.monotonic()
        if request.cancelled:
            return self._stopped("cancelled")
        return self._ended()

    def _read(self, seconds: float) -> None:
        if not self._process.read_once(self._poller, seconds):
            # Not polled, since it is short as a rule; but a full pipe would block the shell.
            self._process.read_state()
        if self._live is not None:
            self._live.flush()

    def _finish(self) -> None:
        self._process.drain()
        if self._live is not None:
            self._live.flush(last=True)

    def _ended(self) -> WaitOutcome:
        process = self._process
        process.drain()
        deadline = time.monotonic() + SETTLE_SECONDS
        while process.left and not process.gone and (left := deadline - time.monotonic()) > 0:
            self._read(left)
        self._finish()
        if process.lost and process.exit_code is None:
            return WaitOutcome("lost", notes=("the guardian process was killed",))
        return WaitOutcome("exited", alive=bool(process.left) and not process.gone)

    def _stopped(self, reason: EndReason, prompt: str = "") -> WaitOutcome:
        """Read until all processes are gone."""
        process = self._process
        deadline = time.monotonic() + STOP_SECONDS
        while not process.gone and (left := deadline - time.monotonic()) > 0:
            self._read(left)
        self._finish()
        if process.gone:
            return WaitOutcome(reason, prompt=prompt)
        notes = ("some of its processes could not be ended yet",)
        return WaitOutcome(reason, alive=True, prompt=prompt, notes=notes)

    def _prompt(self, silence: float) -> str | None:
        """The prompt at which the command waits for input; None if it waits for something else."""
        recent = self._collector.recent(2000)
        if self._request.pty:
            pids = self._pids()
            if blocked_on_input(pids, ("/dev/pts/", "/dev/tty")):
                return last_line(recent)
            unfinished = bool(recent.strip()) and not recent.endswith("\n")
            # Editors and shells with line editing wait in other system calls.
            likely = silence >= DOUBT_SECONDS or looks_like_prompt(recent)
            return last_line(recent) if unfinished and likely and all_sleep(pids) else None
        if silence >= DOUBT_SECONDS and looks_like_prompt(recent) and all_sleep(self._pids()):
            return last_line(recent)
        return None

    def _pids(self) -> list[int]:
        return self._process.guardian.pids(self._task).get(self._process.id, [])

    def _needs_input(self, prompt: str) -> WaitOutcome:
        if self._request.pty:
            self._process.drain()
            return WaitOutcome("needs input", alive=True, prompt=prompt)
        # Without a terminal it can't be answered.
        self._process.guardian.stop(self._process.id)
        return self._stopped("needs input", prompt)


def wait_on_terminal(background: Background, request: CommandRequest) -> CommandResult:
    """Wait for a command on a remote terminal; one that waits for input stays in the background."""
    start = time.monotonic()
    deadline = None if request.timeout is None else start + request.timeout
    reason: EndReason = "exited"
    prompt = ""
    shown = 0
    while background.state == "running":
        silence = _silence(background)
        seconds = LOOK_SECONDS if silence < LONG_SILENCE else LONG_LOOK_SECONDS
        if deadline is not None:
            seconds = min(seconds, deadline - time.monotonic())
        if background.wait(max(0.01, seconds), cancellation=request.cancellation):
            break
        if request.on_output is not None:
            shown = _show(background, shown, request.on_output)
        if request.cancelled:
            reason = "cancelled"
        elif seconds <= 0.01:
            reason = "timeout"
        elif _waits_for_input(background):
            reason = "needs input"
            prompt = last_line(background.recent(400))
        if reason != "exited":
            break
    if reason in ("cancelled", "timeout"):
        background.kill("its time limit" if reason == "timeout" else "a cancel")
        background.wait(4.0)
    if request.on_output is not None:
        _show(background, shown, request.on_output)
    collector = Collector()
    text, _, _ = background.log(0, limit=_WHOLE_LOG)
    collector.feed(OUT, text.encode("utf-8", "surrogateescape"))
    return CommandResult(
        background.exit_code,
        collector.output(),
        cwd=background.cwd,
        duration=time.monotonic() - start,
        notes=[],
        ended=reason,
        background=background if reason == "needs input" else None,
        prompt=prompt,
    )


def _show(background: Background, seen: int, on_output: Callable[[str], None]) -> int:
    """Call back with the output since `seen`, or its end; the new total."""
    _, _, total = background.log(limit=1)
    if total > seen:
        text, _, total = background.log(max(seen, total - _SHOWN_CHARS), limit=_SHOWN_CHARS)
        on_output(text)
    return total


def _waits_for_input(background: Background) -> bool:
    silence = _silence(background)
    if silence < SILENCE_SECONDS:
        return False
    if background.waits_for_input():
        return True
    recent = background.recent(400)
    if not recent.strip() or recent.endswith("\n"):
        return False
    return silence >= DOUBT_SECONDS or looks_like_prompt(recent)


def _silence(background: Background) -> float:
    return time.time() - background.last_output_at
