"""Providers of cloud sandboxes: their operations; creation, snapshots and expiry of a sandbox."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hermes.core.paths import home_path, write_private
from hermes.environments.command import BackendError
from hermes.environments.host.process_listing import is_stale, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


class ProviderError(BackendError):
    """The service refused or failed; the message has its own text."""


class Provider(Protocol):
    """One sandbox at a time of one service. Failures are `ProviderError`."""

    # For people and for the names of files: `modal`, `daytona`, `vercel_sandbox`.
    name: str

    def create(
        self, *, image: str, snapshot: str, seconds: float, labels: Mapping[str, str]
    ) -> None:
        """Start a sandbox with a lifetime, from a snapshot if one is given."""
        ...

    def run(self, command: str, *, seconds: float) -> str:
        """The output of `sh -c COMMAND` there, which is plain ASCII."""
        ...

    def snapshot(self) -> str:
        """Take a snapshot of its disk; the name to start from."""
        ...

    def destroy(self) -> None:
        """End the sandbox, if there is one."""
        ...

    def sandboxes(self) -> list[ListedSandbox]:
        """All sandboxes at the service, with their labels."""
        ...

    def remove(self, id_: str) -> None:
        """End a listed sandbox."""
        ...


class ListedSandbox(NamedTuple):
    """A sandbox at a service."""

    id: str
    labels: Mapping[str, str]


def prune(provider: Provider) -> list[str]:
    """End orphaned sandboxes; their ids. Raises `ProviderError`."""
    stale = [sandbox.id for sandbox in provider.sandboxes() if is_stale(sandbox.labels)]
    for id_ in stale:
        provider.remove(id_)
    return stale


def provider_of(name: str, setting: Callable[[str, Any], Any]) -> Provider:
    """The provider of a name, with its settings below `terminal.NAME`."""
    if name == "modal":
        from hermes.environments.modal import ModalProvider

        return ModalProvider(app=setting("terminal.modal.app", "hermes"))
    if name == "daytona":
        from hermes.environments.daytona import DaytonaProvider

        return DaytonaProvider(api_url=setting("terminal.daytona.api_url", ""))
    from hermes.environments.vercel import VercelProvider

    return VercelProvider(base_url=setting("terminal.vercel_sandbox.base_url", ""))


@contextmanager
def provider_errors(doing: str, *theirs: type[Exception]) -> Iterator[None]:
    """Raise the errors of a library or of the network as `ProviderError`."""
    expected: tuple[type[Exception], ...] = (*theirs, OSError, ValueError)
    try:
        yield
    except expected as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise ProviderError(
            f"the service could not {doing}: {said}", hint="Check its status page and the token."
        ) from error


# Share of the lifetime after which a warning is given and a snapshot is taken.
WARN_SHARE = 0.8


class Deadline:
    """Expiry of a sandbox that starts now."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self.seconds = seconds

    @property
    def left(self) -> float:
        """The seconds until expiry; 0 afterwards."""
        return max(0.0, self._began + self.seconds - self._clock())

    @property
    def over(self) -> bool:
        """Whether the service has ended the sandbox."""
        return self.left == 0.0

    @property
    def near(self) -> bool:
        """Whether it is time for the warning and the snapshot."""
        return self.left <= self.seconds * (1 - WARN_SHARE)

    @property
    def until_near(self) -> float:
        """The seconds until then."""
        return max(0.0, self.left - self.seconds * (1 - WARN_SHARE))


class SnapshotRecord(NamedTuple):
    """A snapshot, and the image of its sandbox."""

    image: str
    snapshot: str


class SnapshotFile:
    """The last snapshot of a task, kept on disk between runs."""

    def __init__(self, provider: str, task: str) -> None:
        key = sha256(task.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._path = home_path("sandboxes", f"{provider}-{key}.json")

    def last(self) -> SnapshotRecord | None:
        """The last snapshot; None without a readable record."""
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            return SnapshotRecord(str(found["image"]), str(found["snapshot"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, saved: SnapshotRecord) -> None:
        """Replace the record."""
        write_private(self._path, json.dumps(saved._asdict()).encode())


class Lifecycle:
    """The sandboxes of a task, one after the other. `on_end` is called before the end of each."""

    def __init__(
        self,
        provider: Provider,
        *,
        task: str,
        image: str,
        seconds: float,
        persistent: bool,
        clock: Callable[[], float] = time.monotonic,
        on_end: Callable[[], None],
    ) -> None:
        self._provider = provider
        self._task = task
        self._image = image
        self._seconds = seconds
        self._persistent = persistent
        self._clock = clock
        self._on_end = on_end
        self._saved = SnapshotFile(provider.name, task)
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
        """Make a sandbox if there is none; notes for the model."""
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
            self._on_end()
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
            if self._timer is not None:
                self._timer.cancel()
            # For a command that runs past that moment.
            self._timer = threading.Timer(self._deadline.until_near, self._save)
            self._timer.daemon = True
            self._timer.start()
            return notes

    def watch(self) -> list[str]:
        """A warning near the end, after a snapshot was taken."""
        deadline = self._deadline
        if deadline is None or not deadline.near:
            return []
        self._save()
        left = f"the sandbox ends in {deadline.left:.0f} s"
        if self._unsaved:
            loss = "files written since the last one will be lost; that one is kept"
            return [f"NOT SAVED: {left} and its snapshot failed ({self._unsaved}): {loss}"]
        return [f"{left}; a snapshot was taken, and the next one goes on from it"]

    def end(self) -> None:
        """Take a snapshot, and end the sandbox."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._deadline is None:
                return
            self._on_end()
            if self._persistent and not self._deadline.over:
                self._save()
            self._deadline = None
            with suppress(ProviderError):
                self._provider.destroy()

    def _prune(self) -> None:
        """End orphaned sandboxes; once."""
        if not self._pruned:
            self._pruned = True
            with suppress(ProviderError):
                prune(self._provider)

    def _save(self) -> None:
        """Take a snapshot; after a failure the last one stays recorded."""
        with self._lock:
            try:
                name = self._provider.snapshot()
            except ProviderError as error:
                self._unsaved = str(error)
                return
            self._unsaved = ""
            self._saved.keep(SnapshotRecord(self._image, name))
