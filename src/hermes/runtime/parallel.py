"""The calls of one turn, side by side where that is safe.

Each tool says how it may run: `parallel` with anything, `exclusive` of other calls that change
things, or by `resource`: calls that name the same path wait for each other, in the order they were
asked for, unless all of them only read it.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Protocol

from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolCall, ToolOutcome
    from hermes.runtime.pipeline import Runtime

_EVERYTHING = "*"


class _Resource:
    """Who changed a resource last, and who has read it since."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer: asyncio.Event | None = None
        self.readers: list[asyncio.Event] = []

    def claim(self, done: asyncio.Event, *, shared: bool) -> list[asyncio.Event]:
        """What has to be waited for before `done`'s call may use the resource."""
        if shared:
            self.readers.append(done)
            return [self.writer] if self.writer else []
        before = [*self.readers, *([self.writer] if self.writer else [])]
        self.writer, self.readers = done, []
        return before


class Watcher(Protocol):
    """Told of each call of a turn by its number: just before it begins, and how it ended."""

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
    resources: dict[str, _Resource] = {}

    async def one(number: int, done: asyncio.Event, before: list[asyncio.Event]) -> ToolOutcome:
        try:
            for event in before:
                await event.wait()
            async with room:
                if watcher is None:
                    return await runtime.call(calls[number], context)
                watcher.begun(number)
                outcome = await runtime.call(calls[number], context)
                watcher.ended(number, outcome)
                return outcome
        finally:
            done.set()

    tasks: list[asyncio.Task[ToolOutcome]] = []
    for number, call in enumerate(calls):
        done = asyncio.Event()
        before = [
            event
            for key, shared in _claims(runtime, call, context)
            for event in resources.setdefault(key, _Resource()).claim(done, shared=shared)
        ]
        tasks.append(asyncio.ensure_future(one(number, done, before)))
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def _claims(runtime: Runtime, call: ToolCall, context: ToolContext) -> list[tuple[str, bool]]:
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
