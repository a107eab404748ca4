"""Memory: two small Markdown files that are remembered from one conversation to the next.

    store.py      `Memory`: add, replace, remove, restore; one for each file
    blocks.py     how a file is cut into entries, and put together again to the byte
    place.py      the file itself: one writer at a time, swapped as a whole
    versions.py   what the file held before each change, and who changed it
    merging.py    what to make of a file that somebody else has written
    room.py       which entries could go when the file is full
    showing.py    `snapshot`: what a conversation begins with

People may edit the files while they are in use. Start with `store.py`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.stores.memory.memory_prompt import snapshot
    from hermes.stores.memory.memory_store import LIMITS, Change, FullError, Memory, OrdersError

__all__ = ["LIMITS", "Change", "FullError", "Memory", "OrdersError", "snapshot"]

# Every conversation asks for a snapshot; where nothing is remembered, it needs no store.
__getattr__ = names_from(
    __name__,
    {
        "LIMITS": "memory_store",
        "Change": "memory_store",
        "FullError": "memory_store",
        "Memory": "memory_store",
        "OrdersError": "memory_store",
        "snapshot": "memory_prompt",
    },
)
