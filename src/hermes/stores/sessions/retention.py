"""Retention: the session store opened with the durability, age and size limits of the settings."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.stores.sessions.session_store import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.core.config import Config
    from hermes.stores.sessions.records import SessionInfo

log = Log("hermes.sessions")

_DAY = 86_400.0
_LISTED = 5


@contextmanager
def open_sessions(config: Config, note: Callable[[str], object]) -> Iterator[Sessions]:
    """The session store of this home folder, with the limits of `sessions.*`.

    Args:
        config: The settings.
        note: Called with a line for each kind of deletion.
    """
    with Sessions(power=config.get("sessions.power")) as store:
        yield store
        try:
            for line in apply_limits(
                store,
                keep_days=config.get("sessions.keep_days"),
                max_bytes=config.get("sessions.max_bytes"),
            ):
                log.warning("%s", line)
                note(line)
        except HermesError as error:
            # The command itself is done; the limits are applied next time.
            note(f"the limits of the sessions were not applied: {error}")


def apply_limits(store: Sessions, *, keep_days: float = 0, max_bytes: int = 0) -> list[str]:
    """Delete expired sessions, then the oldest until the store fits; a line for each of the two.

    0 is no limit.
    """
    if (not keep_days and not max_bytes) or store.read_only:
        return []
    return [line for line in (_apply_age(store, keep_days), _apply_size(store, max_bytes)) if line]


def _apply_age(store: Sessions, keep_days: float) -> str:
    if not keep_days:
        return ""
    oldest = time.time() - keep_days * _DAY
    due = [info for info in _deletable(store) if info.touched < oldest]
    for info in due:
        store.delete(info.id)
    return _summary(due, f"not used for {keep_days:g} days (sessions.keep_days)")


def _apply_size(store: Sessions, max_bytes: int) -> str:
    from hermes.stores.sessions.maintenance import size_of_session, size_of_store, tidy

    if not max_bytes or (size := size_of_store(store.database)) <= max_bytes:
        return ""
    # Free pages and the write-ahead log may be all of the excess.
    tidy(store.database)
    over = size_of_store(store.database) - max_bytes
    deleted = []
    for info in _deletable(store):
        if over <= 0:
            break
        over -= size_of_session(store.database, info.id)
        store.delete(info.id)
        deleted.append(info)
    if deleted:
        tidy(store.database)
        return _summary(deleted, f"that were the oldest of {size:,} bytes (sessions.max_bytes)")
    if over <= 0:
        return ""
    return (
        f"the sessions take {size:,} bytes, more than sessions.max_bytes ({max_bytes:,}), and all "
        "were in use today; `hermes sessions prune` frees space"
    )


def _deletable(store: Sessions) -> list[SessionInfo]:
    """Sessions not used since yesterday, oldest first."""
    today = time.time() - _DAY
    return [info for info in store.list(limit=-1)[::-1] if info.touched < today]


def _summary(deleted: list[SessionInfo], reason: str) -> str:
    if not deleted:
        return ""
    some = ", ".join(info.id for info in deleted[:_LISTED])
    more = f" and {len(deleted) - _LISTED} more" if len(deleted) > _LISTED else ""
    count = f"{len(deleted)} session{'s' if len(deleted) > 1 else ''}"
    return f"deleted {count} {reason}: {some}{more}"
