"""Concurrent tool calls: the calls of one turn run in parallel unless they use the same resource.

A tool declares its concurrency: `parallel` (no limit), `exclusive` (no other writer at the same
time), or `resource` (readers-writer lock per path, first come, first served). `claims` lists the
locks of a call, `Turns` queues them.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Protocol

from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolCall, ToolOutcome
    from hermes.runtime.pipeline import Runtime

_EVERYTHING = "*"


class Turns:
    """Readers-writer locks of running calls, first come, first served."""

    __slots__ = ("_resources",)

    def __init__(self) -> None:
        self._resources: dict[str, _Resource] = {}

    def take(self, claims: Iterable[tuple[str, bool]]) -> Turn:
        """Queue for the locks of a call; see `claims`."""
        keys = []
        done = asyncio.Event()
        before: list[asyncio.Event] = []
        for key, shared in claims:
            keys.append(key)
            resource = self._resources.get(key)
            if resource is None:
                resource = self._resources[key] = _Resource()
            before += resource.claim(done, shared=shared)
        return Turn(self._resources, keys, done, before)

    def __len__(self) -> int:
        """How many things are in use or waited for."""
        return len(self._resources)


class Turn:
    """The locks of one call."""

    __slots__ = ("_before", "_done", "_keys", "_resources")

    def __init__(
        self,
        resources: dict[str, _Resource],
        keys: list[str],
        done: asyncio.Event,
        before: list[asyncio.Event],
    ) -> None:
        self._resources = resources
        self._keys = keys
        self._done = done
        self._before = before

    async def come(self) -> None:
        """Wait for the locks."""
        for event in self._before:
            await event.wait()

    def end(self) -> None:
        """Release the locks."""
        self._done.set()
        for key in self._keys:
            resource = self._resources.get(key)
            if resource is not None and resource.leave(self._done):
                del self._resources[key]


class _Resource:
    """The last writer of a resource, and the readers after it."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer: asyncio.Event | None = None
        self.readers: list[asyncio.Event] = []

    def claim(self, done: asyncio.Event, *, shared: bool) -> list[asyncio.Event]:
        """Events to wait for before the resource may be used."""
        if shared:
            self.readers.append(done)
            return [self.writer] if self.writer else []
        before = [*self.readers, *([self.writer] if self.writer else [])]
        self.writer, self.readers = done, []
        return before

    def leave(self, done: asyncio.Event) -> bool:
        """Release the lock; whether the resource is unused now."""
        if self.writer is done:
            self.writer = None
        elif done in self.readers:
            self.readers.remove(done)
        return self.writer is None and not self.readers


class Watcher(Protocol):
    """Observer of the calls of a turn, by number."""

    def begun(self, number: int) -> None: ...

    def ended(self, number: int, outcome: ToolOutcome) -> None: ...


async def run_all(
    runtime: Runtime,
    calls: Sequence[ToolCall],
    context: ToolContext,
    *,
    at_once: int,
    watcher: Watcher | None = None,
) -> list[ToolOutcome]:
    """The outcome of each call, in the order of the calls."""
    room = asyncio.Semaphore(max(1, at_once))
    turns = Turns()

    async def one(number: int, turn: Turn) -> ToolOutcome:
        try:
            await turn.come()
            async with room:
                if watcher is None:
                    return await runtime.call(calls[number], context)
                watcher.begun(number)
                outcome = await runtime.call(calls[number], context)
                watcher.ended(number, outcome)
                return outcome
        finally:
            turn.end()

    tasks: list[asyncio.Task[ToolOutcome]] = []
    for number, call in enumerate(calls):
        turn = turns.take(claims(runtime, call, context))
        tasks.append(asyncio.ensure_future(one(number, turn)))
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def claims(runtime: Runtime, call: ToolCall, context: ToolContext) -> list[tuple[str, bool]]:
    """The resources a call uses, each with whether others may use it at the same time."""
    entry = runtime.registry.get(call.name)
    if entry is None or entry.concurrency == "parallel":
        return []
    try:
        arguments = entry.arguments.read(call.arguments)
    except ArgumentError:
        # It will be refused when its turn comes, and uses nothing.
        return []
    reads = entry.effect_of(arguments) == "read"
    if entry.concurrency == "exclusive":
        return [] if reads else [(_EVERYTHING, False)]
    named = [arguments.get(parameter) for parameter in entry.locks]
    paths = [
        _place(context.workspace, path)
        for value in named
        for path in (value if isinstance(value, list) else [value])
        if isinstance(path, str)
    ]
    # A call that changes a file also waits for those that may change anything.
    return [(_EVERYTHING, True), *((path, reads) for path in dict.fromkeys(paths))]


def _place(workspace: str, path: str) -> str:
    whole = os.path.join(workspace, os.path.expanduser(path))
    try:
        return os.path.realpath(whole)
    except ValueError:
        # No file can have that name; the tool will say so.
        return whole
