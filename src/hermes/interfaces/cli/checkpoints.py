"""`hermes checkpoints`: list, show, diff, restore and prune the undo history."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED
from hermes.interfaces.cli.terminal import size_text, time_text
from hermes.stores.checkpoints import Author, Checkpoints

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.checkpoints import Change, State, Turn


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, count=20, here=False, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="turns that changed something (the default)")
    listing.add_argument("-n", "--count", type=int, default=20, metavar="N")
    listing.add_argument("--here", action="store_true", help="only what is below this folder")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="every change of a turn or a call")
    show.add_argument("what", metavar="TURN|CALL|CHANGE")
    show.set_defaults(run=_show)
    diff = actions.add_parser("diff", help="what a turn, a call or a change did to each file")
    diff.add_argument("what", metavar="TURN|CALL|CHANGE")
    diff.set_defaults(run=_diff)
    restore = actions.add_parser("restore", help="put one file back to what it held before")
    restore.add_argument("path", metavar="PATH")
    restore.add_argument(
        "--before", type=int, metavar="CHANGE", help="the change (its newest when left out)"
    )
    restore.add_argument("--dry-run", action="store_true", help="say what would be done")
    restore.set_defaults(run=_restore)
    prune = actions.add_parser("prune", help="drop what is past its time or too much")
    prune.add_argument("--days", type=float, metavar="N", help="keep this many days")
    prune.add_argument("--max-bytes", type=int, metavar="N", help="keep this much")
    prune.add_argument("--dry-run", action="store_true", help="say what would be dropped")
    prune.set_defaults(run=_prune)
    for action in (listing, show, diff, restore, prune):
        action.add_argument("--json", action="store_true", help="for programs")


def open_store(app: CliApp) -> Checkpoints:
    """The checkpoint store of this home folder; dropped turns are noted."""
    return Checkpoints(
        max_bytes=app.config.get("checkpoints.max_bytes"),
        keep_days=app.config.get("checkpoints.keep_days"),
        max_file_bytes=app.config.get("checkpoints.max_file_bytes"),
        notice=app.note,
    )


def _list(app: CliApp, options: Namespace) -> int:
    if options.count < 1:
        raise HermesError(f"--count must be at least 1, not {options.count}")
    with open_store(app) as store:
        turns = store.turns(below=os.getcwd() if options.here else None, limit=options.count)
        usage = store.usage()
    if options.json:
        app.emit({"turns": [_plain_turn(turn) for turn in turns], "usage": usage._asdict()})
        return DONE
    app.table([_turn_row(turn) for turn in turns])
    if not turns:
        app.note("nothing was changed yet")
    app.note(f"{usage.turns} turns, {size_text(usage.bytes)} of {size_text(usage.max_bytes)}")
    return DONE


def _show(app: CliApp, options: Namespace) -> int:
    with open_store(app) as store:
        changes = store.show(options.what)
    if options.json:
        app.emit([_plain_change(change) for change in changes])
        return DONE
    app.table(
        [
            (str(c.id), time_text(c.at, seconds=True), c.author.tool, _became(c), c.place)
            for c in changes
        ]
    )  # fmt: skip
    return DONE


def _diff(app: CliApp, options: Namespace) -> int:
    with open_store(app) as store:
        found = store.diff(options.what)
    if options.json:
        app.emit([{"path": place, "difference": text} for place, text in found])
        return DONE
    for _, text in found:
        for line in text.splitlines():
            shown = "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)
            style = {"+": "green", "-": "red"}.get(shown[:1])
            app.out(app.styled(shown, style) if style else shown)
    return DONE


def _restore(app: CliApp, options: Namespace) -> int:
    from hermes.interfaces.cli.undo import show_report

    with open_store(app) as store:
        report = store.restore(
            os.path.abspath(options.path),
            options.before,
            author=Author(tool="restore", front_door="cli"),
            dry_run=options.dry_run,
        )
    which = f"change {options.before}" if options.before else "the newest change"
    show_report(app, report, json=options.json, what=f"{which} of {options.path}")
    return DONE if report.complete else FAILED


def _prune(app: CliApp, options: Namespace) -> int:
    for name in ("days", "max_bytes"):
        if (getattr(options, name) or 0) < 0:
            raise HermesError(f"--{name.replace('_', '-')} must be at least 0")
    with open_store(app) as store:
        report = store.prune(
            max_bytes=options.max_bytes, keep_days=options.days, dry_run=options.dry_run
        )
    if options.json:
        plain = {**report._asdict(), "turns": [_plain_turn(turn) for turn in report.turns]}
        app.emit({**plain, "dry_run": options.dry_run})
        return DONE
    app.table([_turn_row(turn) for turn in report.turns])
    for note in report.notes:
        app.note(note)
    would = "would drop" if options.dry_run else "dropped"
    app.note(f"{would} {len(report.turns)} turns; {size_text(report.kept)} kept")
    return DONE


def plain_state(state: State) -> dict[str, Any]:
    """A state as JSON fields."""
    found: dict[str, Any] = {"kind": state.kind}
    if state.kind == "file":
        found |= {"sha256": state.digest, "size": state.size}
    if state.mode is not None:
        found["mode"] = f"{state.mode:o}"
    if state.kind == "link":
        found["target"] = state.target
    return found


def _plain_turn(turn: Turn) -> dict[str, Any]:
    return {**turn._asdict(), "tools": list(turn.tools)}


def _plain_change(change: Change) -> dict[str, Any]:
    return {
        "id": change.id,
        "at": change.at,
        **change.author._asdict(),
        "disk": change.disk,
        "path": change.place,
        "before": plain_state(change.before),
        "after": plain_state(change.after),
        "certain": change.certain,
    }


def _turn_row(turn: Turn) -> tuple[str, ...]:
    what = f"undoes {turn.undoes}" if turn.undoes else ", ".join(turn.tools)
    more = f" and {turn.places - 1} more" if turn.places > 1 else ""
    return turn.name, time_text(turn.at, seconds=True), what, f"{turn.example}{more}"


def _became(change: Change) -> str:
    if change.before.kind == "absent":
        return "made"
    if change.after.kind == "absent":
        return "removed"
    before, after = change.before, change.after
    same = (before.kind, before.digest, before.target) == (after.kind, after.digest, after.target)
    return "mode" if same else "changed"
