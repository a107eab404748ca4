"""Usage accounting: tokens and cost by session, agent, model and tool, split exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.core.model_protocol import Usage
from hermes.stores.sessions.records import (
    ASSISTANT,
    BASE,
    INTENT,
    NOTE,
    OUTCOME,
    TOOL,
    Totals,
    Work,
    unpacked,
    unpacked_base,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from sqlite3 import Connection
    from typing import Any

    from hermes.core.model_protocol import Message
    from hermes.stores.sessions.session_db import Database


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
    """Equal parts; the remainder goes to the first ones, a token each."""
    numbers = (usage.input, usage.output, usage.cached, usage.written, usage.reasoning)
    return [
        Usage(*(number // parts + (part < number % parts) for number in numbers))
        for part in range(parts)
    ]


if TYPE_CHECKING:
    # Agent, model, tool, usage.
    _Part = tuple[str, str, str, Usage]

CONVERSATION = ""
ROOT = "root"
# What a note's cost was for, where that is a tool.
_TOOLS = {"delegated": "delegate_task", "mixture": "mixture_of_agents"}

# What was used: one row for each model, but a row for each note, which may be another agent's.
_SUMS = (
    "SELECT e.kind, e.text, e.data, u.model, sum(u.input), sum(u.output), sum(u.cached), "
    "sum(u.written), sum(u.reasoning) FROM usage AS u JOIN entries AS e ON e.seq = u.seq "
    f"WHERE u.session = ? AND e.at >= ? GROUP BY u.model, iif(e.kind = {NOTE}, e.seq, 0) "
    "ORDER BY u.seq"
)
# Every line that is part of what the model is sent, too; texts by their length alone.
_ALL = (
    f"SELECT e.kind, e.at, CASE WHEN e.kind = {NOTE} THEN e.text ELSE '' END, e.data, "
    f"length(CAST(CASE WHEN e.ref IS NOT NULL AND e.kind = {TOOL} THEN o.text ELSE e.text END "
    "AS BLOB)), u.model, u.input, u.output, u.cached, u.written, u.reasoning FROM entries AS e "
    "LEFT JOIN usage AS u ON u.seq = e.seq LEFT JOIN entries AS o ON o.seq = e.ref "
    f"WHERE e.session = ? AND e.kind IN ({ASSISTANT}, {TOOL}, {NOTE}, {BASE}) ORDER BY e.seq"
)


class Share(msgspec.Struct, frozen=True):
    """A part of the usage. `session` is the one that a person began; `tool` may be `""`."""

    session: str
    agent: str
    model: str
    tool: str
    usage: Usage


def spending(
    database: Database,
    *,
    session: str | None = None,
    since: float = 0.0,
    by_tool: bool = True,
) -> Iterator[Share]:
    """Every share of the usage.

    Args:
        database: The store.
        session: Only this session and its children.
        since: Only usage since then, in seconds since 1970.
        by_tool: Split by tool; otherwise all belongs to the conversation.
    """
    with database.reading() as connection:
        for number, root, agent in _spending_family(connection, session):
            shared = _by_tool if by_tool else _summed
            for whose, model, tool, usage in shared(connection, number, agent, since * 1000):
                yield Share(root, whose, model, tool, usage)


def _summed(connection: Connection, number: int, agent: str, since: float) -> Iterator[_Part]:
    """The parts of one session, not parted by tool."""
    for kind, text, data, model, *numbers in connection.execute(_SUMS, (number, since)):
        whose = _whose(text, data, agent)[0] if kind == NOTE else agent
        yield whose, model, CONVERSATION, Usage(*numbers)


def _by_tool(connection: Connection, number: int, agent: str, since: float) -> Iterator[_Part]:
    """The parts of one session, answer by answer and tool by tool."""
    held: dict[str, int] = {}
    for kind, at, text, data, size, model, *numbers in connection.execute(_ALL, (number,)):
        if kind == TOOL:
            name = unpacked(kind, "", data).name
            held[name] = held.get(name, 0) + _tokens(size)
        elif kind == BASE:
            held = _held(unpacked_base(0, data).messages)
        if model is None or at < since:
            continue
        usage = Usage(*numbers)
        if kind == ASSISTANT:
            for tool, part in parts(usage, held, _said(data)).items():
                yield agent, model, tool, part
        elif kind == NOTE:
            whose, tool = _whose(text, data, agent)
            yield whose, model, tool, usage
        else:
            yield agent, model, "(compaction)" if kind == BASE else CONVERSATION, usage


def parts(usage: Usage, held: dict[str, int], calls: Sequence[tuple[str, int]]) -> dict[str, Usage]:
    """The shares of one answer by tool; they add up to its usage.

    Args:
        usage: The usage that the provider reported.
        held: Estimated tokens of each tool's results in the request.
        calls: The tools that the answer calls, with the characters of each call; its text is
            under `""`.
    """
    if usage.cached + usage.written > usage.input or usage.reasoning > usage.output:
        # A provider that counts in another way: nobody can tell what belongs to what.
        return {CONVERSATION: usage}
    results = sum(held.values())
    sent = {**held, CONVERSATION: max(usage.input - results, 0)}
    said: dict[str, int] = {}
    for tool, size in calls:
        said[tool] = said.get(tool, 0) + size
    divided = (
        (usage.input - usage.cached - usage.written, sent),
        (usage.cached, sent),
        (usage.written, sent),
        (usage.output - usage.reasoning, said),
        (usage.reasoning, said),
    )
    shares: dict[str, list[int]] = {}
    for place, (total, weights) in enumerate(divided):
        for tool, amount in _divided(total, weights).items():
            shares.setdefault(tool, [0] * 5)[place] = amount
    found = {
        tool: Usage(new + kept + put, said + thought, kept, put, thought)
        for tool, (new, kept, put, said, thought) in shares.items()
        if any((new, kept, put, said, thought))
    }
    return found or {CONVERSATION: usage}


def _divided(total: int, weights: dict[str, int]) -> dict[str, int]:
    """Whole numbers in proportion to the weights, by the largest remainder."""
    whole = sum(weights.values())
    if not whole:
        return {CONVERSATION: total}
    exact = {name: divmod(total * weight, whole) for name, weight in weights.items()}
    found = {name: quotient for name, (quotient, _) in exact.items()}
    left = total - sum(found.values())
    for name in sorted(exact, key=lambda name: -exact[name][1])[:left]:
        found[name] += 1
    return found


def _said(data: bytes | None) -> list[tuple[str, int]]:
    """The tools that an answer calls, and the characters of each call."""
    calls = unpacked(ASSISTANT, "", data).calls
    # The text of the answer is not read; a call is most of an answer that has one.
    sizes = [(use.name, len(use.name) + len(use.arguments)) for use in calls]
    return sizes or [(CONVERSATION, 1)]


def _whose(text: str, data: bytes, agent: str) -> tuple[str, str]:
    """The agent and the tool that a note's cost is of."""
    about = msgspec.json.decode(data)
    about = about if isinstance(about, dict) else {}
    tool = _TOOLS.get(text) or f"({about.get('for') or text})"
    return str(about.get("agent") or agent), tool


def _spending_family(connection: Connection, session: str | None) -> list[tuple[int, str, str]]:
    """Each session's number, the session that a person began it by, and the agent it is of."""
    rows = connection.execute("SELECT n, id, parent, relation FROM sessions ORDER BY n").fetchall()
    above = {name: parent for _, name, parent, relation in rows if relation == "child" and parent}
    paths = _paths(connection) if above else {}
    found = []
    for number, name, _, _ in rows:
        line = [name]
        while (parent := above.get(line[-1])) and parent not in line:
            line.append(parent)
        if session is None or session in line:
            agent = paths.get(name, f"{ROOT}/{name}") if name in above else ROOT
            found.append((number, line[-1], agent))
    return found


def _paths(connection: Connection) -> dict[str, str]:
    """The agent that each session is of, as the sessions above them noted it."""
    notes = connection.execute(
        "SELECT data FROM entries WHERE kind = ? AND text = 'delegated'", (NOTE,)
    )
    found: dict[str, str] = {}
    for (data,) in notes:
        about: Any = msgspec.json.decode(data)
        if isinstance(about, dict) and about.get("session") and about.get("agent"):
            found[str(about["session"])] = str(about["agent"])
    return found


def _held(messages: Sequence[Message]) -> dict[str, int]:
    found: dict[str, int] = {}
    for message in messages:
        if message.role == "tool":
            size = _tokens(len(message.text.encode("utf-8", "surrogatepass")))
            found[message.name] = found.get(message.name, 0) + size
    return found


def _tokens(size: int) -> int:
    return size * 2 // 7 + 6
