"""`hermes memory`: show and edit the memory files, review proposed changes, list versions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.entry import ToolCall
from hermes.core.errors import HermesError
from hermes.core.json_text import to_json
from hermes.interfaces.cli.approval_prompt import can_ask
from hermes.interfaces.cli.commands import DONE, FAILED, actions
from hermes.interfaces.cli.terminal import time_text
from hermes.runtime.reviews import Reviews

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.core.entry import ToolOutcome
    from hermes.interfaces.cli.main import CliApp
    from hermes.runtime.reviews import Review


_MOST = 1024 * 1024


def would_do(review: Review) -> str:
    """The proposed change as diff lines, or the arguments of the call."""
    arguments = review.arguments
    if review.tool == "memory":
        old = arguments.get("old_text") or []
        gone = [old] if isinstance(old, str) else list(old)
        lines = [f"- {text}" for text in gone]
        if arguments.get("action") != "remove":
            lines += [f"+ {line}" for line in str(arguments.get("content") or "").splitlines()]
        return "\n".join(
            [f"{arguments.get('action')} in {arguments.get('target', 'memory')}:", *lines]
        )
    path, content = arguments.get("path"), arguments.get("content")
    if isinstance(path, str) and isinstance(content, str):
        return _difference(os.path.join(review.workspace, os.path.expanduser(path)), content)
    return "\n".join(f"{name}: {_shown(value)}" for name, value in arguments.items())


def approve(app: CliApp, reviews: Reviews, review: Review) -> ToolOutcome:
    """Run a proposed call in its folder, with approval; it stays pending when it fails.

    The gate judges it again: a call that is refused in every mode stays refused.
    """
    reviews.settle(review, "approved", "cli")
    runtime = app.runtime
    name = f"review-{review.id}"
    task = runtime.task(name, workspace=review.workspace)
    context = runtime.context(name, session_id=name, turn=name, front_door="cli", approver=_yes)
    for source in review.sources:
        # Approved or not, that is where the words came from, and what is written says so.
        runtime.heard.note(name, source)
    try:
        outcome = runtime.call_sync(ToolCall(review.tool, review.arguments), context)
    except BaseException:
        reviews.reopen(review)
        raise
    finally:
        runtime.close_task(task.id)
    if not outcome.ok:
        reviews.reopen(review)
    return outcome


def _yes(_: object) -> str:
    # The person has just seen this very call and said yes to it.
    return "once"


def _difference(path: str, content: str) -> str:
    import difflib

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            before = file.read(_MOST)
    except OSError:
        before = ""
    lines = difflib.unified_diff(before.splitlines(), content.splitlines(), path, path, lineterm="")
    return "\n".join(lines)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else to_json(value)


_TARGETS = ("memory", "user")


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    add = actions(parser)
    add("list", _list, "what is remembered (the default)")
    review = add("review", _review, "what waits for you, where it came from; decide")
    review.add_argument("id", nargs="*", metavar="ID", help="only these")
    approve = add("approve", _approve, "have something done that waits for review")
    approve.add_argument("id", nargs="+", metavar="ID")
    approve.add_argument(
        "--anyway", action="store_true", help="also when the file has changed since"
    )
    reject = add("reject", _reject, "drop something that waits for review")
    reject.add_argument("id", nargs="+", metavar="ID")
    history = add("history", _history, "every change, by whom; what was decided")
    history.add_argument("--of", choices=_TARGETS, default="memory", help="MEMORY.md, or USER.md")
    restore = add("restore", _restore, "bring back a file as it was before a change")
    restore.add_argument("number", type=int, metavar="NUMBER", help="as `history` shows it")
    restore.add_argument("--of", choices=_TARGETS, default="memory", help="MEMORY.md, or USER.md")


def _list(app: CliApp, options: Namespace) -> int:
    from hermes.stores.memory import Memory

    waiting = Reviews().pending()
    files = [Memory(target) for target in ("memory", "user")]
    if options.json:
        shown = {
            memory.target: {"path": memory.path, "entries": memory.entries(), "limit": memory.limit}
            for memory in files
        }
        app.emit({**shown, "pending": [review.id for review in waiting]})
        return DONE
    for memory in files:
        entries = memory.entries()
        size = len(memory.text())
        app.out(app.styled(f"{memory.file} ({size:,} of {memory.limit:,} characters)", "bold"))
        for entry in entries:
            for number, line in enumerate(entry.splitlines()):
                app.out(f"{'  ' if number else '- '}{_visible(line)}")
        if not entries:
            app.out("  nothing yet")
    if waiting:
        count = len(waiting)
        app.note(
            f"{count} more wait{'s' if count == 1 else ''} for your review: hermes memory review"
        )
    return DONE


def _review(app: CliApp, options: Namespace) -> int:
    reviews = Reviews()
    chosen = [reviews.find(one) for one in options.id] if options.id else reviews.pending()
    if options.json:
        app.emit([{**one.plain(), "would_do": would_do(one)} for one in chosen])
        return DONE
    for review in chosen:
        _show(app, review)
        if can_ask():
            _ask(app, reviews, review)
        app.out()
    if not chosen:
        app.note("nothing waits for review")
    elif not can_ask():
        app.note("hermes memory approve ID has it done, hermes memory reject ID drops it")
    return DONE


def _show(app: CliApp, review: Review) -> None:
    app.out(app.styled(f"{review.id}  {review.kind}, by {review.tool}", "bold"))
    who = " ".join(filter(None, (review.front_door, review.session, review.agent)))
    app.table(
        [
            ("when", time_text(review.at, seconds=True)),
            ("who", who),
            ("after reading", ", ".join(map(_visible, review.sources))),
            *([("changed since", ", ".join(outdated))] if (outdated := review.outdated()) else []),
        ]
    )
    for line in would_do(review).splitlines():
        style = {"+": "green", "-": "red"}.get(line[:1])
        shown = _visible(line)
        app.out(app.styled(shown, style) if style else shown)


def _ask(app: CliApp, reviews: Reviews, review: Review) -> None:
    from hermes.interfaces.cli.approval_prompt import ask_line

    answer = ask_line(app, "[a]pprove, [r]eject, anything else leaves it").strip().lower()
    if answer in ("a", "approve"):
        _carried_out(app, reviews, review, anyway=True)
    elif answer in ("r", "reject"):
        reviews.settle(review, "rejected", "cli")
        app.out(f"Rejected {review.id}")


def _approve(app: CliApp, options: Namespace) -> int:
    reviews = Reviews()
    done = [
        _carried_out(
            app, reviews, reviews.find(identifier), anyway=options.anyway, json=options.json
        )
        for identifier in options.id
    ]
    return DONE if all(done) else FAILED


def _carried_out(
    app: CliApp, reviews: Reviews, review: Review, *, anyway: bool, json: bool = False
) -> bool:
    if not anyway and (changed := review.outdated()):
        raise HermesError(
            f"{', '.join(changed)} has changed since {review.id} was asked for",
            hint=f"Look again: hermes memory review {review.id}; then approve it with --anyway.",
        )
    outcome = approve(app, reviews, review)
    if json:
        app.emit({"id": review.id, "state": review.state, "error": outcome.error})
    elif outcome.ok:
        app.out(f"Approved {review.id}: {review.tool} was carried out")
    else:
        app.note(f"{review.id} still waits: {outcome.error}")
    return outcome.ok


def _reject(app: CliApp, options: Namespace) -> int:
    reviews = Reviews()
    for identifier in options.id:
        review = reviews.find(identifier)
        reviews.settle(review, "rejected", "cli")
        if options.json:
            app.emit({"id": review.id, "state": review.state})
        else:
            app.out(f"Rejected {review.id}")
    return DONE


def _history(app: CliApp, options: Namespace) -> int:
    from hermes.stores.memory import Memory

    versions = Memory(options.of).versions()
    settled = Reviews().settled()
    if options.json:
        import msgspec

        decided = [one.plain() for one in settled]
        app.emit({"changes": msgspec.to_builtins(versions), "reviews": decided})
        return DONE
    for version in versions:
        at = time_text(version.at, seconds=True)
        app.out(f"{version.number:>5}  {at}  {version.action:<8} {version.by}".rstrip())
        for mark, style, texts in (("-", "red", version.removed), ("+", "green", version.added)):
            for text in texts:
                app.out(app.styled(f"       {mark} {_visible(text)}", style))
    for review in settled:
        at = time_text(review.settled_at, seconds=True)
        decision = f"{review.state} by {review.by}: {review.tool}, {review.kind}"
        app.out(f"{review.id}  {at}  {decision}")
    if not versions and not settled:
        app.note("nothing was changed yet")
    return DONE


def _restore(app: CliApp, options: Namespace) -> int:
    from hermes.stores.memory import Memory

    memory = Memory(options.of)
    change = memory.restore(options.number, by="cli")
    if options.json:
        app.emit({"file": memory.file, **change._asdict()})
        return DONE
    what = f"is as it was before change {options.number}" if change.changed else "was like that"
    app.out(f"{memory.file} {what}: {change.entries} entries")
    return DONE


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
