"""Memory: two small Markdown files that are part of every system prompt.

    memory_store    `Memory`: add, replace, remove, restore; merge of concurrent edits; size limit
    blocks          Markdown blocks of a file; edits keep all other bytes
    versioned_file  the file on disk: lock, atomic exchange, earlier versions and their authors
    memory_prompt   `snapshot`: both files as prompt text

People may edit the files while they are in use. Start with `memory_store`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.stores.memory.memory_prompt import snapshot
    from hermes.stores.memory.memory_store import LIMITS, Change, FullError, InjectionError, Memory

__all__ = ["LIMITS", "Change", "FullError", "InjectionError", "Memory", "snapshot"]

# Every conversation needs a snapshot; without memory files it does not import the store.
__getattr__ = names_from(
    __name__,
    {
        "memory_prompt": "snapshot",
        "memory_store": "Change FullError InjectionError LIMITS Memory",
    },
)
