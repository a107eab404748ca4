"""What changes the store of sessions: rename, delete, fork, doctor, backup, prune."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED
from hermes.interfaces.cli.sessions.lines import plain, size, when
from hermes.stores.sessions import Sessions

if TYPE_CHECKING:
    from argparse import Namespace

    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import SessionInfo


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
    app.out(", ".join(f"{name} {size(number)}" for name, number in health.sizes.items()))
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
        app.config.get(f"sessions.{setting}") or None if given is None else given
        for given, setting in ((options.max_bytes, "max_bytes"), (options.days, "keep_days"))
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
        app.out(f"due {info.id}  {when(info.touched)}  {info.title}")
    if report.due:
        app.note("sessions are deleted with --delete only")
    app.note(f"{size(report.after)} (before: {size(report.before)})")
    return DONE
