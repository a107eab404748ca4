"""How costs grow with the number of tools: calls flat, listings linear, search bounded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.calls import registry_of
from benchmarks.measure import Row, each_us
from hermes.core import ToolCall
from hermes.core.toolsets import Toolsets
from hermes.runtime import Runtime
from hermes.runtime.definitions import Definitions
from hermes.runtime.tool_offer import ToolIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (10, 100, 1_000, 10_000)
QUERIES = ("do a thing to my file", "thing 42", "quelque chose avec un fichier", "fiel thnig")


def rows() -> Iterator[Row]:
    """One set of rows for each size."""
    for size in SIZES:
        yield from _of_size(size)


def _of_size(size: int) -> Iterator[Row]:
    registry = registry_of(size)
    runtime = Runtime(registry)
    call = ToolCall("add", {"a": 1, "b": 2})
    yield Row(f"call among {size} tools", each_us(lambda: runtime.call_sync(call)), "µs")
    definitions = Definitions(registry, Toolsets(registry))
    begun = time.process_time()
    definitions.get()
    yield Row(f"definitions of {size} tools, first", _ms(begun), "ms")
    limit = 20 if size == 100 else None
    yield Row(f"definitions of {size} tools, again", each_us(definitions.get), "µs", limit)
    index = ToolIndex(registry)
    among = frozenset(registry.names())
    begun = time.process_time()
    index.search("warm up", limit=5, among=among)
    yield Row(f"index of {size} tools", _ms(begun), "ms")

    def search(query: str) -> float:
        return each_us(lambda: index.search(query, limit=5, among=among), runs=3, times=10)

    yield Row(f"tool_search among {size} tools", max(map(search, QUERIES)) / 1000, "ms", 5)


def _ms(begun: float) -> float:
    return (time.process_time() - begun) * 1000
