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

    from hermes.embedded.download import Supplied

log = Log("hermes.embedded")

WINDOW = 8192
# How long a cancelled answer may go on before the process is ended: it can't be stopped while it
# reads a long prompt.
_GRACE_SECONDS = 3.0
_PASSED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_HINT = "Connect another model: hermes setup."


class Answer(msgspec.Struct, frozen=True):
    """A whole answer of the model. `read` tokens of the prompt were new, `cached` were not."""

    text: str
    finish: str = "stop"
    read: int = 0
    cached: int = 0
    written: int = 0


class Server:
    """One model in one process. Making it starts nothing; the first question does."""

    def __init__(
        self, supplied: Supplied, *, threads: int = 0, prefixes: Sequence[str] = ()
    ) -> None:
        """Make one; nothing is started.

        Args:
            supplied: Where model and engine are.
            threads: How many the engine may use; as many as there are free cores if 0.
            prefixes: How prompts for slot 0, 1, … begin; read once and kept.
        """
        self._supplied = supplied
        self._prefixes = list(prefixes)
        self._threads = threads
        self._child: _Child | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """The process, if there is one; else 0."""
        child = self._child
        return child.process.pid if child is not None and child.alive else 0

    async def ask(self, question: dict[str, Any]) -> AsyncIterator[str | Answer]:
        """The answer piece by piece, then as a whole; cancelling stops it.

        Args:
            question: `prompt`, and what the engine takes: `grammar`, `max_tokens`, `id_slot`.
        """
        try:
            child = await asyncio.to_thread(self._running)
        except asyncio.CancelledError:
            # The thread that waits for the model to load would keep the program from ending.
            self.close()
            raise
        number = next(self._numbers)
        heard = child.listen(number)
        said: list[str] = []
        over = False
        try:
            child.send(id=number, ask=question)
            while True:
                line = await heard.get()
                if "text" in line:
                    said.append(line["text"])
                    yield line["text"]
                    continue
                over = True
                if "failed" in line:
                    raise ModelError(f"the embedded model: {line['failed']}", hint=_HINT)
                yield Answer("".join(said), **line["done"])
                return
        finally:
            if not over:
                self._stop(child, number)
            child.forget(number)

    def close(self) -> None:
        """End the process; the next question starts another."""
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
            "model": self._supplied.model,
            "engine": self._supplied.engine,
            "window": WINDOW,
            "threads": self._threads or _said_threads(),
            "prefixes": self._prefixes,
            "keep": self._supplied.keep,
        }

    def _stop(self, child: _Child, number: int) -> None:
        """Stop an answer nobody waits for any more; the process with it if it does not listen."""
        if not child.alive:
            return
        child.cancel(number)
        timer = threading.Timer(_GRACE_SECONDS, child.end_unless_over, (number,))
        timer.daemon = True
        timer.start()


class _Child:
    """A running child, and who waits for which of its lines."""

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
        """Return when the model is loaded; raises `ModelError` when it can't be."""
        self._ready.wait()
        if self._failed:
            raise ModelError(f"the embedded model did not start: {self._failed}", hint=_HINT)

    def listen(self, number: int) -> asyncio.Queue[Any]:
        """Where the lines for one question will come in."""
        heard: asyncio.Queue[Any] = asyncio.Queue()
        with self._lock:
            self._listeners[number] = (asyncio.get_running_loop(), heard)
            self._open.add(number)
        return heard

    def forget(self, number: int) -> None:
        """Nobody listens to that question any more."""
        with self._lock:
            self._listeners.pop(number, None)

    def send(self, **fields: Any) -> None:
        """Write one line to the child; one that has ended is told of by `listen`'s queue."""
        stream = self.process.stdin
        assert stream is not None
        try:
            stream.write(msgspec.json.encode(fields) + b"\n")
            stream.flush()
        except (OSError, ValueError):
            self._deliver_end()

    def cancel(self, number: int) -> None:
        """Ask the child to stop answering one question."""
        self.send(cancel=number)

    def end_unless_over(self, number: int) -> None:
        """End the child if it still works on a question."""
        with self._lock:
            still = number in self._open
        if still:
            self.end()

    def end(self) -> None:
        """End the process and wait for it."""
        self.alive = False
        self.process.kill()
        self.process.wait()

    # -- the thread that starts it and reads ----------------------------------------------------

    def _keep(self, settings: dict[str, Any], started: threading.Event) -> None:
        script = os.path.join(os.path.dirname(__file__), "child.py")
        try:
            self.process = subprocess.Popen(
                # Neither our variables nor our folder say what it imports.
                [sys.executable, "-E", "-P", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(_PASSED, {}),
                # Ctrl-C is for us; what it means for the model is our affair.
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


def _deliver(loop: asyncio.AbstractEventLoop, heard: asyncio.Queue[Any], line: Any) -> None:
    try:
        loop.call_soon_threadsafe(heard.put_nowait, line)
    except RuntimeError:
        # The loop is closed: who asked is gone.
        return


def _said_threads() -> int:
    said = os.environ.get("HERMES_LOCAL_THREADS", "")
    return int(said) if said.isdecimal() else 0
