"""One thread that listens to all commands that run in the background."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.environments.local.background import LocalBackground

IDLE_SECONDS = 5.0


class Pump:
    """Reads what background commands print, and notices how they end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = (-1, -1)
        self._new: list[LocalBackground] = []

    def add(self, background: LocalBackground) -> None:
        """Listen to one more, until nothing of it is left."""
        with self._lock:
            self._new.append(background)
            if self._thread is None or not self._thread.is_alive():
                self._wake = os.pipe()
                self._thread = threading.Thread(
                    target=self._listen, args=(self._wake,), name="hermes-output", daemon=True
                )
                self._thread.start()
            else:
                os.write(self._wake[1], b".")

    def _listen(self, wake: tuple[int, int]) -> None:
        known: list[LocalBackground] = []
        while True:
            with self._lock:
                known += self._new
                self._new = []
            poll = select.poll()
            poll.register(wake[0], select.POLLIN)
            owners: dict[int, LocalBackground] = {}
            for background in known:
                for file in background.watched():
                    poll.register(file, select.POLLIN)
                    owners[file] = background
            ready = poll.poll(None if known else IDLE_SECONDS * 1000)
            for file, _ in ready:
                if file == wake[0]:
                    os.read(file, 4096)
                else:
                    owners[file].take(file)
            known = [background for background in known if not background.settle()]
            with self._lock:
                if not ready and not known and not self._new:
                    self._thread = None
                    os.close(wake[0])
                    os.close(wake[1])
                    return


pump = Pump()
