"""Client of the engine process: starts it on first use and ends it with this program.

One thread starts the process and reads its output until it ends. The thread lives as long as the
process, and the kernel kills the process when the thread ends (PR_SET_PDEATHSIG): even `kill -9` of
this program leaves no engine behind.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import msgspec

from hermes.core.log import Log
from hermes.core.model_protocol import ModelError
from hermes.runtime.child_process import child_environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Any

    from hermes.embedded.download import EngineFiles

log = Log("hermes.embedded")

WINDOW = 8192
# Time for a cancelled request to stop before the process is killed: the engine can't be interrupted
# while it reads a prompt.
_GRACE_SECONDS = 3.0
_PASSED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_HINT = "Connect another model: hermes setup."


class Completion(msgspec.Struct, frozen=True):
    """A whole answer. `read` tokens of the prompt were new, `cached` came from the cache."""

    text: str
    finish: str = "stop"
    read: int = 0
    cached: int = 0
    written: int = 0


class EngineClient:
    """Client of one engine process; the first request starts it."""

    def __init__(
        self, files: EngineFiles, *, threads: int = 0, prefixes: Sequence[str] = ()
    ) -> None:
        """Wire it; nothing is started.

        Args:
            files: Where model and engine are.
            threads: How many the engine may use; as many as there are free cores if 0.
            prefixes: How prompts for slot 0, 1, … begin; read once and kept.
        """
        self._files = files
        self._prefixes = list(prefixes)
        self._threads = threads
        self._child: _Child | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """The pid of the process, or 0."""
        child = self._child
        return child.process.pid if child is not None and child.alive else 0

    async def ask(self, request: dict[str, Any]) -> AsyncIterator[str | Completion]:
        """The answer piece by piece, then as a whole. Can be cancelled.

        Args:
            request: `prompt`, and what the engine takes: `grammar`, `max_tokens`, `id_slot`.
        """
        try:
            child = await asyncio.to_thread(self._running)
        except asyncio.CancelledError:
            # Otherwise the waiting thread keeps the program from exiting.
            self.close()
            raise
        number = next(self._numbers)
        lines = child.listen(number)
        pieces: list[str] = []
        over = False
        try:
            child.send(id=number, ask=request)
            while True:
                line = await lines.get()
                if "text" in line:
                    pieces.append(line["text"])
                    yield line["text"]
                    continue
                over = True
                if "failed" in line:
                    raise ModelError(f"the embedded model: {line['failed']}", hint=_HINT)
                yield Completion("".join(pieces), **line["done"])
                return
        finally:
            if not over:
                self._stop(child, number)
            child.forget(number)

    def close(self) -> None:
        """End the process; the next request starts another."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def _running(self) -> _Child:
        with self._lock:
            if self._child is None or not self._child.alive:
                self._child = _Child(self._settings())
            child = self._child
        child.wait_ready()
        return child

    def _settings(self) -> dict[str, Any]:
        return {
            "model": self._files.model,
            "engine": self._files.engine,
            "window": WINDOW,
            "threads": self._threads or _thread_setting(),
            "prefixes": self._prefixes,
            "keep": self._files.keep,
        }

    def _stop(self, child: _Child, number: int) -> None:
        """Cancel a request; kill the process if it does not stop."""
        if not child.alive:
            return
        child.cancel(number)
        timer = threading.Timer(_GRACE_SECONDS, child.end_unless_over, (number,))
        timer.daemon = True
        timer.start()


class _Child:
    """A running engine process, and a queue for each open request."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.alive = True
        self._ready = threading.Event()
        self._failed = ""
        self._listeners: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Queue[Any]]] = {}
        self._open: set[int] = set()
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes]
        started = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(settings, started), daemon=True)
        keeper.start()
        started.wait()

    def wait_ready(self) -> None:
        """Wait until the model is loaded; raises `ModelError`."""
        self._ready.wait()
        if self._failed:
            raise ModelError(f"the embedded model did not start: {self._failed}", hint=_HINT)

    def listen(self, number: int) -> asyncio.Queue[Any]:
        """The queue for the lines of one request."""
        lines: asyncio.Queue[Any] = asyncio.Queue()
        with self._lock:
            self._listeners[number] = (asyncio.get_running_loop(), lines)
            self._open.add(number)
        return lines

    def forget(self, number: int) -> None:
        """Remove the queue of a request."""
        with self._lock:
            self._listeners.pop(number, None)

    def send(self, **fields: Any) -> None:
        """Write one line to the process; if it has ended, the queues get an error."""
        stream = self.process.stdin
        assert stream is not None
        try:
            stream.write(msgspec.json.encode(fields) + b"\n")
            stream.flush()
        except (OSError, ValueError):
            self._deliver_end()

    def cancel(self, number: int) -> None:
        """Ask the process to cancel a request."""
        self.send(cancel=number)

    def end_unless_over(self, number: int) -> None:
        """End the process if a request still runs."""
        with self._lock:
            still = number in self._open
        if still:
            self.end()

    def end(self) -> None:
        """End the process and wait for it."""
        self.alive = False
        self.process.kill()
        self.process.wait()

    # -- the reader thread ------------------------------------------------------------------------

    def _keep(self, settings: dict[str, Any], started: threading.Event) -> None:
        script = os.path.join(os.path.dirname(__file__), "child.py")
        try:
            self.process = subprocess.Popen(
                # Isolated from our environment and working folder.
                [sys.executable, "-E", "-P", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(_PASSED, {}),
                # Ctrl-C must not reach the engine; we cancel its requests.
                start_new_session=True,
            )
        except OSError as error:
            self._failed, self.alive = str(error), False
            self._ready.set()
            started.set()
            return
        started.set()
        self.send(**settings)
        stream = self.process.stdout
        assert stream is not None
        with stream:
            for line in stream:
                self._take(msgspec.json.decode(line))
        self.alive = False
        code = self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        if not self._ready.is_set():
            self._failed = self._failed or f"its process ended (code {code})"
            self._ready.set()
        log.info("the model's process ended with %s", code)
        self._deliver_end()

    def _take(self, line: dict[str, Any]) -> None:
        if "id" not in line:
            self._failed = line.get("failed", "")
            log.info("the model is loaded: %s", line)
            self._ready.set()
            return
        number = line.pop("id")
        with self._lock:
            if "text" not in line:
                self._open.discard(number)
            listener = self._listeners.get(number)
        if listener is not None:
            _deliver(*listener, line)

    def _deliver_end(self) -> None:
        with self._lock:
            listeners = list(self._listeners.values())
            self._open.clear()
        for listener in listeners:
            _deliver(*listener, {"failed": "its process ended; was there enough memory?"})


def _deliver(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[Any], line: Any) -> None:
    try:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    except RuntimeError:
        # The loop of the caller is closed.
        return


def _thread_setting() -> int:
    value = os.environ.get("HERMES_LOCAL_THREADS", "")
    return int(value) if value.isdecimal() else 0
