"""Undo for everything: what each path held before a tool or a command changed it.

    values.py       the words: `Author`, `State`, `Planned`, `Change`, reports
    store.py        `Checkpoints`: everything below behind one object; start here
    database.py     the SQLite file: schema, transactions, errors in plain words
    contents.py     bytes by digest: once each, compressed, small ones in the database
    packs.py        the large ones, appended to files
    states.py       what is at a place now, compared with what was recorded
    traits.py       times, owners and extended attributes
    journal.py      who changed what, when, from which state to which
    locks.py        one writer per path, over threads and processes
    tree.py         a walk over a folder that opens only what changed since the last
    manifests.py    what the last walk saw, kept between processes
    snapshots.py    before and after a command
    plan.py         what undoing means for each place
    restoring.py    carrying that out, so that a kill at any instant can be made up for
    undo.py         choosing a turn, planning, recording, restoring
    pruning.py      quota and expiry, said aloud
    compaction.py   room back: dead weight out of packs, and what is fresh compressed
    differences.py  two states as text for people

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
    "ABSENT",
    "Author",
    "Change",
    "CheckpointError",
    "Checkpoints",
    "Left",
    "Planned",
    "PruneReport",
    "Restored",
    "Snapshot",
    "State",
    "Turn",
    "UndoReport",
    "Usage",
    "digest_of",
    "file_state",
    "folder_state",
    "link_state",
]

__getattr__ = names_from(
    __name__,
    {
        "ABSENT": "types",
        "Author": "types",
        "Change": "types",
        "CheckpointError": "types",
        "Checkpoints": "checkpoint_store",
        "Left": "types",
        "Planned": "types",
        "PruneReport": "types",
        "Restored": "types",
        "Snapshot": "types",
        "State": "types",
        "Turn": "types",
        "UndoReport": "types",
        "Usage": "types",
        "digest_of": "types",
        "file_state": "types",
        "folder_state": "types",
        "link_state": "types",
    },
)
