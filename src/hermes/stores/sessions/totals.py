"""What sessions cost: sums of what the providers reported, shared out without a remainder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.core.messages import Usage
from hermes.stores.sessions.entries import ASSISTANT, INTENT, OUTCOME, unpacked
from hermes.stores.sessions.values import Totals, Work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

    from hermes.stores.sessions.database import Database


def totals(database: Database, session: str | None = None) -> Totals:
    """The sums over a session and those that work for it, or over all there are."""
    by_model: dict[str, Usage] = {}
    by_tool: dict[str, Usage] = {}
    by_agent: dict[str, Usage] = {}
    work: dict[str, Work] = {}
    whole = Usage()
    with database.reading() as connection:
        for number, name in _family(connection, session):
            rows = connection.execute(
                "SELECT u.model, u.input, u.output, u.cached, u.written, u.reasoning, e.kind, "
                "e.data FROM usage AS u JOIN entries AS e ON e.seq = u.seq WHERE u.session = ?",
                (number,),
            )
            for model, *numbers, kind, data in rows:
                usage = Usage(*numbers)
                whole += usage
                _add(by_model, model, usage)
                _add(by_agent, name, usage)
                calls = unpacked(kind, "", data).calls if kind == ASSISTANT else ()
                tools = [call.name for call in calls] or [""]
                for tool, part in zip(tools, _shares(usage, len(tools)), strict=True):
                    _add(by_tool, tool, part)
            _add_work(connection, number, work)
    return Totals(whole, by_model, by_tool, by_agent, work)


def _family(connection: Connection, session: str | None) -> Sequence[tuple[int, str]]:
    if session is None:
        return connection.execute("SELECT n, id FROM sessions ORDER BY n").fetchall()
    return connection.execute(
        "WITH RECURSIVE family (n, id) AS ("
        "SELECT n, id FROM sessions WHERE id = ? UNION SELECT s.n, s.id FROM sessions AS s "
        "JOIN family AS f ON s.parent = f.id WHERE s.parent <> '' AND s.relation = 'child') "
        "SELECT n, id FROM family",
        (session,),
    ).fetchall()


def _add_work(connection: Connection, number: int, work: dict[str, Work]) -> None:
    rows = connection.execute(
        "SELECT i.data, o.data FROM entries AS o JOIN entries AS i ON i.seq = o.ref "
        "WHERE o.session = ? AND o.kind = ? AND i.kind = ?",
        (number, OUTCOME, INTENT),
    )
    for intent, outcome in rows:
        tool = msgspec.json.decode(intent)[1]
        status, seconds = msgspec.json.decode(outcome)
        old = work.get(tool, Work(0, 0, 0.0))
        work[tool] = Work(old.calls + 1, old.failed + (status != "ok"), old.seconds + seconds)


def _add(sums: dict[str, Usage], name: str, usage: Usage) -> None:
    sums[name] = sums.get(name, Usage()) + usage


def _shares(usage: Usage, parts: int) -> list[Usage]:
    """Equal parts; what can't be divided goes to the first ones, a token each."""
    numbers = (usage.input, usage.output, usage.cached, usage.written, usage.reasoning)
    return [
        Usage(*(number // parts + (part < number % parts) for number in numbers))
        for part in range(parts)
    ]
