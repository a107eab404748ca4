"""Checkpoints: the state of each path before a tool or a command changed it, for undo.

    types             data types: `Author`, `State`, `Planned`, `Change`, reports, errors
    checkpoint_store  `Checkpoints`: the facade over all below; start here
    checkpoint_db     SQLite file: schema, error texts
    blobs             content-addressed blob store: deduplicated, compressed
    packs             append-only pack files for large blobs, and their compaction
    path_state        state of a path: digest, mode, times, owner, extended attributes
    journal           change records: author, time, state before and after
    path_locks        one writer per path, across threads and processes
    tree_walk         directory walk, of everything or of some names; its saved manifest
    change_watch      change notifications of the kernel, which tell the names to look at
    change_watch      names that changed, told by the kernel (fanotify)
    snapshots         directory snapshots before and after a command
    restore           restore plan and its crash-safe execution
    undo              undo of a turn: select, plan, record, restore; diffs for display
    quota             size limit and expiry

Nothing here is imported at start-up, and `sqlite3` only when the store is first used.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.stores.checkpoints.checkpoint_store import Checkpoints
    from hermes.stores.checkpoints.types import (
        ABSENT,
        Author,
        Change,
        CheckpointError,
        Left,
        Planned,
        PruneReport,
        Restored,
        Snapshot,
        State,
        Turn,
        UndoReport,
        Usage,
        digest_of,
        file_state,
        folder_state,
        link_state,
    )

__all__ = [
    "ABSENT", "Author", "Change", "CheckpointError", "Checkpoints", "Left", "Planned",
    "PruneReport", "Restored", "Snapshot", "State", "Turn", "UndoReport", "Usage", "digest_of",
    "file_state", "folder_state", "link_state",
]  # fmt: skip

__getattr__ = names_from(
    __name__,
    {
        "checkpoint_store": "Checkpoints",
        "types": "ABSENT Author Change CheckpointError Left Planned PruneReport Restored "
        "Snapshot State Turn UndoReport Usage digest_of file_state folder_state "
        "link_state",
    },
)
