"""The life of a task's sandbox: made from the last snapshot, warned of its end, saved before it."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.environments.cloud.deadline import Deadline
from hermes.environments.cloud.provider import ProviderError, prune
from hermes.environments.cloud.saved import Saved, SavedSnapshots
from hermes.environments.owning import labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.cloud.provider import Provider


class Life:
    """One sandbox after the other. `begun` is called with each new one, before anybody uses it."""

    def __init__(
        self,
        provider: Provider,
        *,
        task: str,
        image: str,
        seconds: float,
        persistent: bool,
        clock: Callable[[], float] = time.monotonic,
        begun: Callable[[], None],
    ) -> None:
        self._provider = provider
        self._task = task
        self._image = image
        self._seconds = seconds
        self._persistent = persistent
        self._clock = clock
        self._begun = begun
        self._saved = SavedSnapshots(provider.name, task)
        self._deadline: Deadline | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()
        self._unsaved = ""
        self._pruned = False

    @property
    def left(self) -> float:
        """The seconds until the service ends the sandbox."""
        return 0.0 if self._deadline is None else self._deadline.left

    def open(self) -> list[str]:
        """See to it that there is a sandbox; what there is to say of that."""
        with self._lock:
            if self._deadline is not None and not self._deadline.over:
                return []
            ended = self._deadline is not None
            last = self._saved.last()
            snapshot, notes = "", []
            if last is not None and last.image == self._image:
                snapshot = last.snapshot
            elif last is not None:
                notes.append(
                    f"the image is {self._image} now and was {last.image}: a new sandbox was made; "
                    f"the snapshot {last.snapshot} of the old one is kept by the service"
                )
            if ended:
                notes.append(
                    "the sandbox came to its end; a new one was made from "
                    + (f"the snapshot {snapshot}" if snapshot else "the image: nothing was saved")
                )
            with suppress(ProviderError):
                self._provider.destroy()
            self._prune()
            self._provider.create(
                image=self._image,
                snapshot=snapshot,
                seconds=self._seconds,
                labels=labels(self._task),
            )
            self._deadline = Deadline(self._seconds, clock=self._clock)
            self._begun()
            if self._timer is not None:
                self._timer.cancel()
            # A command may last past the moment; then nobody else would look.
            self._timer = threading.Timer(self._deadline.until_near, self._save)
            self._timer.daemon = True
            self._timer.start()
            return notes

    def watch(self) -> list[str]:
        """The warning near the end, with what became of the snapshot."""
        deadline = self._deadline
        if deadline is None or not deadline.near:
            return []
        self._save()
        left = f"the sandbox ends in {deadline.left:.0f} s"
        if self._unsaved:
            loss = "what was written since the last one will be lost; that one is kept"
            return [f"NOT SAVED: {left} and its snapshot failed ({self._unsaved}): {loss}"]
        return [f"{left}; a snapshot was taken, and the next one goes on from it"]

    def end(self) -> None:
        """Save what is there, and end the sandbox with all that runs in it."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._deadline is None:
                return
            if self._persistent and not self._deadline.over:
                self._save()
            self._deadline = None
            with suppress(ProviderError):
                self._provider.destroy()

    def _prune(self) -> None:
        """End what a Hermes that is gone has left; once, and where the service can tell."""
        if not self._pruned:
            self._pruned = True
            with suppress(ProviderError):
                prune(self._provider)

    def _save(self) -> None:
        """Take a snapshot; a failure leaves the one before as it was, and is said."""
        with self._lock:
            try:
                name = self._provider.snapshot()
            except ProviderError as error:
                self._unsaved = str(error)
                return
            self._unsaved = ""
            self._saved.keep(Saved(self._image, name))
