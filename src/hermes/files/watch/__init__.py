"""Notice what changes in a folder: wait for it, or have it collected in the background.

    known.py        which paths there are, so that what happened can be told from what is there now
    watcher.py      the system's notices -> changes, batched and filtered; polling where need be
    far.py          the same for a disk whose system tells nothing: looked at again and again
    background.py   watchers that go on between calls, with bounded memory

Start with watcher.py. The notices come from `watchfiles`; they are hints: a file that was replaced
is announced as new, one in a folder just made not at all, and some lie behind links. What is
reported is decided by comparing with what was known.
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
