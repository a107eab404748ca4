"""What only looks at sessions: list, search, show, export, stats."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.messages import Message
from hermes.interfaces.cli.commands import DONE
from hermes.interfaces.cli.sessions.lines import cut, flat, plain, safe, when
from hermes.stores.sessions import Base, Intent, Note, Outcome, Sessions

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from hermes.core.messages import Usage
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import Entry, SessionInfo
    from hermes.stores.sessions.search import Hit


def listed(app: CliApp, options: Namespace) -> int:
    if options.count < 1 or options.skip < 0:
        raise HermesError("--count must be at least 1, --skip at least 0")
    with Sessions() as store:
        _warn(app, store)
        here = os.getcwd() if options.here else None
        found = (
            store.list(here, options.count, options.skip, children=options.all)
            if _exists(store)
            else []
        )
    if options.json:
        app.emit([plain(info) for info in found])
        return DONE
    app.table([(info.id, when(info.touched), str(info.messages), _title(info)) for info in found])
    if not found:
        app.note("no sessions yet" if not options.skip else "no more sessions")
    return DONE


def _title(info: SessionInfo) -> str:
    for_another = f"↳ for {info.parent}: " if info.relation == "child" else ""
    return for_another + (info.title or "—")


def searched(app: CliApp, options: Namespace) -> int:
    if options.count < 1:
        raise HermesError(f"--count must be at least 1, not {options.count}")
    query = options.query[0] if len(options.query) == 1 else " ".join(map(_word, options.query))
    with Sessions() as store:
        found = store.search(
            query,
            limit=options.count,
            session=options.session,
            workspace=os.getcwd() if options.here else None,
            role=options.role,
        )
        total = sum(info.messages for info in store.list(limit=-1))
    if options.json:
        app.emit({"hits": [plain(hit) for hit in found.hits], "complete": found.complete})
        return DONE
    for hit in found.hits:
        app.out(f"{hit.session} {hit.seq} {when(hit.at)} {hit.role}: {_marked(app, hit)}")
    if not found.hits:
        app.note(f"nothing found in {total} messages")
    elif not found.complete:
        app.note(f"the best of the newest; --count shows more than {options.count}")
    return DONE


def _word(word: str) -> str:
    """A word of the command line; one with spaces was quoted, and is a phrase."""
    return '"' + word.replace('"', '""') + '"' if any(c.isspace() for c in word) else word


def _marked(app: CliApp, hit: Hit) -> str:
    shown, position = "", 0
    for start, end in hit.marks:
        shown += hit.snippet[position:start] + app.styled(hit.snippet[start:end], "bold")
        position = end
    return shown + hit.snippet[position:]


def shown(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        session = store.open(options.session)
        info, journal = store.info(session.id), session.journal()
        unknown = {intent.seq for intent in session.unfinished()}
    if options.json:
        app.emit({"session": plain(info), "journal": [plain(entry) for entry in journal]})
        return DONE
    app.out(f"{info.id}  {info.title}")
    app.out(flat(f"{info.model}, {info.workspace}, {when(info.began)}, {info.messages} messages"))
    for entry in journal:
        for line in _lines(entry, full=options.full, unknown=entry.seq in unknown):
            app.out(line)
    return DONE


def _lines(entry: Entry, *, full: bool, unknown: bool) -> list[str]:
    value = entry.value
    head = f"[{entry.seq}] {entry.kind}"
    if isinstance(value, Message):
        text = value.text if full or value.role != "tool" else cut(value.text)
        calls = [f"→ {call.name} {cut(call.arguments)}" for call in value.calls]
        return [f"{head}:", *safe(text), *map(flat, calls)]
    if isinstance(value, Intent):
        if unknown:
            return [f"{head}: {flat(value.tool)} was begun, and nobody knows what came of it"]
        return [f"{head}: {flat(value.tool)} ({value.effect})"] if full else []
    if isinstance(value, Outcome):
        if full or value.status != "ok":
            return [f"{head}: {flat(value.status)} of [{value.call_seq}], {value.seconds:.3g} s"]
        return []
    if isinstance(value, Base):
        return [f"{head}: {len(value.messages)} messages stand for all up to [{value.upto}]"]
    assert isinstance(value, Note)
    return [f"{head}: {flat(value.kind)} {cut(str(value.data))}"]


def exported(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        text = store.export(options.session, options.format, raw=options.raw)
    if options.output:
        from hermes.core.home import write_private

        write_private(os.path.abspath(options.output), text.encode())
        app.note(f"written to {options.output}")
    else:
        sys.stdout.write(text)
    return DONE


def counted(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        totals = store.open(options.session).totals() if options.session else store.totals()
    if options.json:
        app.emit(plain(totals))
        return DONE
    rows = [("", "input", "cached", "output", "reasoning"), _row("all", totals.usage)]
    groups: tuple[tuple[str, Mapping[str, Usage]], ...] = (
        ("model", totals.by_model),
        ("tool", totals.by_tool),
        ("agent", totals.by_agent),
    )
    for kind, sums in groups:
        ordered = sorted(sums.items(), key=lambda item: -item[1].input - item[1].output)
        rows += [_row(f"{kind} {name or '(answers)'}", usage) for name, usage in ordered[:20]]
    app.table(rows)
    app.table(
        [
            (f"{tool}:", f"{work.calls} calls", f"{work.failed} failed", f"{work.seconds:.1f} s")
            for tool, work in sorted(totals.work.items())
        ]
    )
    return DONE


def _row(name: str, usage: Usage) -> tuple[str, ...]:
    numbers = (usage.input, usage.cached, usage.output, usage.reasoning)
    return (name, *(f"{number:,}" for number in numbers))


def _warn(app: CliApp, store: Sessions) -> None:
    if store.read_only:
        app.note(f"the store is damaged ({store.read_only}) and only read; see `sessions doctor`")


def _exists(store: Sessions) -> bool:
    """Whether anything was kept yet; looking must not make a store."""
    return os.path.exists(store.path)
