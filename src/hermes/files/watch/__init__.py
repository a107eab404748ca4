"""File system changes: wait for them, or collect them in the background.

    snapshot    paths and metadata of a folder, to compare with later
    watcher     system notifications -> changes, batched and filtered; polling on remote disks
    background  watchers that run between calls, with bounded memory

Start with watcher.py. Notifications come from `watchfiles` and are only hints: a replaced file is
reported as new, a file in a new folder not at all, and some paths are behind links. The comparison
with the last snapshot decides.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.files.watch.background import Watches
    from hermes.files.watch.snapshot import Change
    from hermes.files.watch.watcher import AnyWatcher, FarWatcher, Watcher

__all__ = ["AnyWatcher", "Change", "FarWatcher", "Watcher", "Watches"]

__getattr__ = names_from(
    __name__,
    {
        "AnyWatcher": "watcher",
        "Change": "snapshot",
        "FarWatcher": "watcher",
        "Watcher": "watcher",
        "Watches": "background",
    },
)
