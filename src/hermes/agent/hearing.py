"""Whose words a conversation had read when it was left: a resumed one is not innocent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.log import Log
from hermes.safety.provenance import declared_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from hermes.core.messages import Message
    from hermes.runtime.pipeline import Runtime

log = Log("hermes.agent")

NOTE = "untrusted"


def hear(runtime: Runtime, session: str, journal: Any, messages: Sequence[Message]) -> None:
    """Go on with what a session had read, and have its journal keep what is new."""

    def keep(source: str) -> None:
        if journal is not None:
            try:
                journal.note(NOTE, source)
            except HermesError as error:
                log.warning("what the session read can't be kept: %s", error)

    known = dict.fromkeys(_known(runtime, journal, messages)) if messages else {}
    runtime.heard.keep(session, known, keep)


def _known(runtime: Runtime, journal: Any, messages: Sequence[Message]) -> Iterator[str]:
    for session in _line(journal):
        for note in session.notes(NOTE):
            yield str(note.data)
    # Messages may come from a session that is no more.
    for name in {message.name for message in messages if message.role == "tool"}:
        entry = runtime.registry.resolve(name)
        if entry is not None and (source := declared_source(entry)):
            yield source


def _line(journal: Any) -> Iterator[Any]:
    """A session and those that it was forked from."""
    seen = set()
    while journal is not None and hasattr(journal, "notes") and journal.id not in seen:
        seen.add(journal.id)
        yield journal
        try:
            journal = journal.store.open(journal.parent) if journal.parent else None
        except HermesError:
            # It was deleted.
            return
