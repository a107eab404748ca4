"""`hermes sessions`: list, search, show, export and maintain stored sessions."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.model_protocol import Message
from hermes.interfaces.cli.commands import DONE, FAILED, actions
from hermes.interfaces.cli.terminal import size_text, time_text
from hermes.stores.sessions import Base, Intent, Note, Outcome, Sessions

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.model_protocol import Usage
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import Entry, SessionInfo
    from hermes.stores.sessions.search import Hit


def plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def cut(text: str) -> str:
    line = flat(text[:2000])
    return line if len(line) <= 200 else f"{line[:200]}… ({len(text)} characters)"


def flat(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def safe(text: str) -> list[str]:
    """Lines that can't speak to the terminal."""
    return [
        "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line)
        for line in text.splitlines()
    ]


def listed(app: CliApp, options: Namespace) -> int:
    if options.count < 1 or options.skip < 0:
        raise HermesError("--count must be at least 1, --skip at least 0")
    with Sessions() as store:
        _warn(app, store)
        here = os.getcwd() if options.here else None
        sessions = (
            store.list(here, options.count, options.skip, children=options.all)
            if _exists(store)
            else []
        )
    if options.json:
        app.emit([plain(info) for info in sessions])
        return DONE
    app.table(
        [(info.id, time_text(info.touched), str(info.messages), _title(info)) for info in sessions]
    )
    if not sessions:
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
        hits = store.search(
            query,
            limit=options.count,
            session=options.session,
            workspace=os.getcwd() if options.here else None,
            role=options.role,
        )
        total = sum(info.messages for info in store.list(limit=-1))
    if options.json:
        app.emit({"hits": [plain(hit) for hit in hits.hits], "complete": hits.complete})
        return DONE
    for hit in hits.hits:
        app.out(f"{hit.session} {hit.seq} {time_text(hit.at)} {hit.role}: {_marked(app, hit)}")
    if not hits.hits:
        app.note(f"nothing found in {total} messages")
    elif not hits.complete:
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
    app.out(
        flat(f"{info.model}, {info.workspace}, {time_text(info.began)}, {info.messages} messages")
    )
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
        from hermes.core.paths import write_private

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


def renamed(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        session = store.open(options.session)
        session.title = " ".join(options.title)
        return _tell(app, options, store.info(session.id), "is now called")


def deleted(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        # All are found before the first one goes.
        infos = [store.info(name) for name in options.session]
        for info in dict.fromkeys(infos):
            store.delete(info.id)
            if not options.json:
                app.out(f"deleted {info.id}  {info.title}")
    if options.json:
        app.emit([plain(info) for info in infos])
    return DONE


def forked(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        made = store.open(options.session).fork(options.at, title=options.title)
        return _tell(app, options, store.info(made.id), "goes on from there:")


def _tell(app: CliApp, options: Namespace, info: SessionInfo, what: str) -> int:
    if options.json:
        app.emit(plain(info))
    else:
        app.out(f"{info.id} {what} {info.title}")
    return DONE


def examined(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        health = store.doctor(repair=not options.no_repair)
        why = store.read_only
    if options.json:
        app.emit({**plain(health), "ok": health.ok, "read_only": why})
        return DONE if health.ok else FAILED
    app.out(f"{health.path}: {health.sessions} sessions, {health.messages} messages")
    app.out(", ".join(f"{name} {size_text(number)}" for name, number in health.sizes.items()))
    app.out(f"search index: {health.index}")
    for line in health.repaired:
        app.out(f"mended: {line}")
    for line in health.problems:
        app.out(f"problem: {line}")
    if why:
        app.note("the store is only read, not written to, until a sound copy is put in its place")
    return DONE if health.ok else FAILED


def copied(app: CliApp, options: Namespace) -> int:
    with Sessions() as store:
        store.backup(options.target)
    app.note(f"written to {options.target}")
    return DONE


def pruned(app: CliApp, options: Namespace) -> int:
    for name in ("days", "max_bytes"):
        if (getattr(options, name) or 0) < 0:
            raise HermesError(f"--{name.replace('_', '-')} must be at least 0")
    limits = [
        app.config.get(f"sessions.{setting}") or None if option is None else option
        for option, setting in ((options.max_bytes, "max_bytes"), (options.days, "keep_days"))
    ]
    with Sessions() as store:
        report = store.prune(max_bytes=limits[0], keep_days=limits[1], delete=options.delete)
    if options.json:
        app.emit(plain(report))
        return DONE
    for line in report.removed:
        app.out(f"removed {line}")
    for info in report.deleted:
        app.out(f"deleted {info.id}  {info.title}")
    for info in report.due:
        app.out(f"due {info.id}  {time_text(info.touched)}  {info.title}")
    if report.due:
        app.note("sessions are deleted with --delete only")
    app.note(f"{size_text(report.after)} (before: {size_text(report.before)})")
    return DONE


_NAME = "the name of a session, the start of one, or `last`"


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=listed, count=20, skip=0, here=False, all=False, json=False)
    add = actions(parser)
    listing = add("list", listed, "those touched last first (the default)")
    listing.add_argument("-n", "--count", type=int, default=20, metavar="N")
    listing.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N")
    listing.add_argument("--here", action="store_true", help="only those of this folder")
    listing.add_argument(
        "--all", action="store_true", help="also the agents that worked for another session"
    )
    search = add("search", searched, 'find messages: words, "a phrase", start*, OR, NOT')
    search.add_argument("query", nargs="+", metavar="WORD")
    search.add_argument("-n", "--count", type=int, default=20, metavar="N")
    search.add_argument("--in", dest="session", metavar="SESSION", help="only in this session")
    search.add_argument("--here", action="store_true", help="only in sessions of this folder")
    search.add_argument("--role", choices=("user", "assistant", "tool"))
    show = add("show", shown, "what was said and done")
    show.add_argument("session", help=_NAME)
    show.add_argument("--full", action="store_true", help="whole results, and every line")
    export = add("export", exported, "a whole session as json, md or html", json=False)
    export.add_argument("session", help=_NAME)
    export.add_argument("--format", choices=("json", "md", "html"), default="md")
    export.add_argument("-o", "--output", metavar="FILE", help="write it there")
    export.add_argument("--raw", action="store_true", help="with the secrets that it may hold")
    rename = add("rename", renamed, "give it another title")
    rename.add_argument("session", help=_NAME)
    rename.add_argument("title", nargs="+")
    delete = add("delete", deleted, "remove sessions for good")
    delete.add_argument("session", nargs="+", help=_NAME)
    fork = add("fork", forked, "a new session that goes on from there")
    fork.add_argument("session", help=_NAME)
    fork.add_argument("--at", type=int, metavar="LINE", help="right after this line (see `show`)")
    fork.add_argument("--title", default="")
    stats = add("stats", counted, "what was used, by model, tool and agent")
    stats.add_argument("session", nargs="?", help=f"{_NAME}; all of them when left out")
    doctor = add("doctor", examined, "check the store, mend what can be made again")
    doctor.add_argument("--no-repair", action="store_true", help="only say what is wrong")
    backup = add("backup", copied, "copy the store to a file, while it is in use", json=False)
    backup.add_argument("target", metavar="FILE")
    prune = add("prune", pruned, "make room; says which sessions are due")
    prune.add_argument(
        "--days", type=float, metavar="N", help="due after so many days (sessions.keep_days)"
    )
    prune.add_argument(
        "--max-bytes", type=int, metavar="N", help="room for the store (sessions.max_bytes)"
    )
    prune.add_argument("--delete", action="store_true", help="delete the sessions that are due")
