"""The store of the person who runs Hermes: one for all that goes on in a program."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hermes.core.config import Config
from hermes.core.home import home_path
from hermes.stores.checkpoints.store import Checkpoints

if TYPE_CHECKING:
    from hermes.core.context import ToolContext

_lock = threading.Lock()
_stores: dict[str, Checkpoints] = {}


def checkpoints(ctx: ToolContext | None = None) -> Checkpoints:
    """The store below the home folder, or the one that a front door brought along."""
    given = ctx.services.get("checkpoints") if ctx is not None else None
    if given is not None:
        found: Checkpoints = given
        return found
    folder = home_path("checkpoints")
    with _lock:
        if folder not in _stores:
            app = ctx.services.get("app") if ctx is not None else None
            config = Config.load() if app is None else app.config
            import atexit

            store = _stores[folder] = Checkpoints(
                folder,
                max_bytes=config.get("checkpoints.max_bytes"),
                keep_days=config.get("checkpoints.keep_days"),
                max_file_bytes=config.get("checkpoints.max_file_bytes"),
            )
            atexit.register(store.close)
        return _stores[folder]
