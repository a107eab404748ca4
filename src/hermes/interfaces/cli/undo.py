"""`hermes undo`: revert the file changes of a turn or a call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.interfaces.cli.checkpoints import open_store, plain_state
from hermes.interfaces.cli.commands import DONE, FAILED
from hermes.stores.checkpoints import Author, CheckpointError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.checkpoints import Checkpoints, Restored, UndoReport

_SHOWN = 40


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "what",
        nargs="?",
        metavar="TURN|CALL",
        help="left out: the last turn that changed something below this folder",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    parser.add_argument(
        "--force", action="store_true", help="restore also what somebody else changed since"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=_undo)


def _undo(app: CliApp, options: Namespace) -> int:
    with open_store(app) as store:
        report = _undone(store, options)
    show_report(app, report, json=options.json)
    return DONE if report.complete else FAILED


def _undone(store: Checkpoints, options: Namespace) -> UndoReport:
    author = Author(tool="undo", front_door="cli")
    how: dict[str, Any] = {"force": options.force, "dry_run": options.dry_run, "author": author}
    if options.what is None:
        return store.undo(below=os.getcwd(), **how)
    changes = store.show(options.what)
    first = changes[0].author
    if options.what in (first.turn, f"{first.session}/{first.turn}"):
        return store.undo(turn=options.what, **how)
    if options.what == first.call:
        return store.undo(call=options.what, **how)
    raise CheckpointError(
        f"{options.what} is a single change",
        hint=f"hermes checkpoints restore {changes[0].place} --before {options.what}",
    )


def show_report(app: CliApp, report: UndoReport, *, json: bool, what: str = "") -> None:
    """Print an undo report, as lines or JSON."""
    if json:
        app.emit(_plain(report))
        return
    for one in report.restored[:_SHOWN]:
        app.out(f"{_deed(one, dry_run=report.dry_run)} {_shown(one.place)}")
    if len(report.restored) > _SHOWN:
        app.out(f"… and {len(report.restored) - _SHOWN} more")
    for left in report.left:
        app.out(f"left alone: {_shown(left.place)}: {left.reason}")
        for line in left.difference.splitlines():
            app.out(f"    {_safe(line)}")
    for note in report.notes:
        app.note(note)
    app.note(_summary(report, what or f"turn {report.turn}"))


def _summary(report: UndoReport, what: str) -> str:
    count = len(report.restored)
    what = f"call {report.call}" if report.call else what
    if report.dry_run:
        return f"would undo {what}: {count} to restore, {len(report.left)} left alone"
    if not count and not report.left:
        return f"nothing to undo: everything is as it was before {what}"
    done = f"{'completed the undo of' if report.resumed else 'undid'} {what}: {count} restored"
    if report.left:
        done += f", {len(report.left)} left alone"
    forcible = sum(one.forcible for one in report.left)
    if forcible and not report.resumed:
        which = "them" if forcible == len(report.left) else f"{forcible} of them"
        # By its name: without one, the undo that was just made would be meant.
        done += f" (`hermes undo {_name(report)} --force` restores {which} too)"
    return f"{done}; `hermes undo {report.undo_turn}` takes this back" if count else done


def _name(report: UndoReport) -> str:
    return report.call or (f"{report.session}/{report.turn}" if report.session else report.turn)


def _deed(one: Restored, *, dry_run: bool) -> str:
    if one.now.kind == "absent":
        word = "remove"
    elif one.was.kind == "absent":
        word = "bring back"
    else:
        word = "restore"
    past = {"remove": "removed", "bring back": "brought back", "restore": "restored"}
    return f"would {word}" if dry_run else past[word]


def _shown(place: str) -> str:
    """A place as seen from here, where it is below."""
    here = os.path.join(os.getcwd(), "")
    return _safe(place[len(here) :] if place.startswith(here) else place)


def _safe(line: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)


def _plain(report: UndoReport) -> dict[str, Any]:
    return {
        "session": report.session,
        "turn": report.turn,
        "call": report.call,
        "undo_turn": report.undo_turn,
        "dry_run": report.dry_run,
        "resumed": report.resumed,
        "complete": report.complete,
        "restored": [
            {"path": one.place, "was": plain_state(one.was), "now": plain_state(one.now)}
            for one in report.restored
        ],
        "left": [
            {
                "path": one.place,
                "reason": one.reason,
                "difference": one.difference,
                "forcible": one.forcible,
            }
            for one in report.left
        ],
        "already": report.already,
        "notes": report.notes,
    }
