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
_NAMED = 5


@contextmanager
def kept_sessions(config: Config, say: Callable[[str], object]) -> Iterator[Sessions]:
    """Every session of this home folder, kept as `sessions.*` of the settings says.

    Args:
        config: The settings.
        say: Told what was deleted, and why, one line each.
    """
    with Sessions(power=config.get("sessions.power")) as store:
        yield store
        try:
            for line in keep_within(
                store,
                keep_days=config.get("sessions.keep_days"),
                max_bytes=config.get("sessions.max_bytes"),
            ):
                log.warning("%s", line)
                say(line)
        except HermesError as error:
            # What was asked for is done; making room can wait for the next time.
            say(f"no room was made among the sessions: {error}")


def keep_within(store: Sessions, *, keep_days: float = 0, max_bytes: int = 0) -> list[str]:
    """Delete what is too old, then the oldest of what is too much; a line on each of the two.

    0 is no limit.
    """
    if (not keep_days and not max_bytes) or store.read_only:
        return []
    return [line for line in (_too_old(store, keep_days), _too_much(store, max_bytes)) if line]


def _too_old(store: Sessions, keep_days: float) -> str:
    if not keep_days:
        return ""
    oldest = time.time() - keep_days * _DAY
    due = [info for info in _free(store) if info.touched < oldest]
    for info in due:
        store.delete(info.id)
    return _told(due, f"nobody touched for {keep_days:g} days (sessions.keep_days)")


def _too_much(store: Sessions, max_bytes: int) -> str:
    from hermes.stores.sessions.maintenance import size_of_session, size_of_store, tidy

    if not max_bytes or (size := size_of_store(store.database)) <= max_bytes:
        return ""
    # Pages that are free already, and the log, may be all that is too much.
    tidy(store.database)
    over = size_of_store(store.database) - max_bytes
    deleted = []
    for info in _free(store):
        if over <= 0:
            break
        over -= size_of_session(store.database, info.id)
        store.delete(info.id)
        deleted.append(info)
    if deleted:
        tidy(store.database)
        return _told(deleted, f"that were the oldest of {size:,} bytes (sessions.max_bytes)")
    if over <= 0:
        return ""
    return (
        f"the sessions take {size:,} bytes, more than sessions.max_bytes ({max_bytes:,}), and all "
        "were in use today; `hermes sessions prune` makes room"
    )


def _free(store: Sessions) -> list[SessionInfo]:
    """The sessions that nobody can be using, oldest first."""
    today = time.time() - _DAY
    return [info for info in store.list(limit=-1)[::-1] if info.touched < today]


def _told(deleted: list[SessionInfo], why: str) -> str:
    if not deleted:
        return ""
    some = ", ".join(info.id for info in deleted[:_NAMED])
    more = f" and {len(deleted) - _NAMED} more" if len(deleted) > _NAMED else ""
    count = f"{len(deleted)} session{'s' if len(deleted) > 1 else ''}"
    return f"deleted {count} {why}: {some}{more}"
