"""Undo: select a turn, plan, record, restore; an undo is itself a change. Diffs for display."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import hermes.stores.checkpoints.journal as journal
from hermes.core.errors import ToolError
from hermes.core.paths import flock, open_lock
from hermes.stores.checkpoints.journal import Record
from hermes.stores.checkpoints.path_state import (
    is_quiet,
    kept_state,
    present_state,
    same_content,
    unchanged,
)
from hermes.stores.checkpoints.restore import Plan, Restoration, Step, fitted, plan_undo
from hermes.stores.checkpoints.types import (
    Author,
    CheckpointError,
    Left,
    Restored,
    State,
    UndoReport,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from sqlite3 import Connection

    from hermes.environments.disk.protocol import Disk
    from hermes.stores.checkpoints.blobs import Contents
    from hermes.stores.checkpoints.checkpoint_db import Database
    from hermes.stores.checkpoints.restore import Lock
    from hermes.stores.checkpoints.types import Change, Turn


# Past this, comparing line by line takes longer than anybody reads.
_COMPARED = 1 << 20
_SHOWN_LINES = 400
_CONTEXT = 3
# Letters of a line that are shown, and how many of them in front of what changed.
_LETTERS, _LEAD = 1_000, 100
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Differences:
    """Diffs between stored states and the disk."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def between(
        self, place: str, one: State, other: State, *, disk: Disk | None, names: tuple[str, str]
    ) -> str:
        """A unified diff; a line about both where they are not text that can be compared."""
        if one.kind == other.kind == "file" and one.digest == other.digest:
            return _modes(place, one, other)
        before, after = self._text(one, place, disk), self._text(other, place, disk)
        if before is None or after is None:
            return f"{place}: {names[0]} {one.described}, {names[1]} {other.described}\n"
        lines = [f"--- {place} ({names[0]})", f"+++ {place} ({names[1]})"]
        lines += _unified(_lines(before), _lines(after))
        shown = lines[:_SHOWN_LINES]
        if len(lines) > _SHOWN_LINES:
            shown.append(f"… {len(lines) - _SHOWN_LINES} more lines")
        return "".join(f"{line}\n" for line in shown)

    def _text(self, state: State, place: str, disk: Disk | None) -> str | None:
        """The text of a state; None where it is not a text that we have."""
        if state.kind == "absent":
            return ""
        if state.kind != "file" or not state.readable or state.size > _COMPARED:
            return None
        data = self._bytes(state, place, disk)
        if data is None:
            return None
        try:
            text = data.decode("utf-16" if data[:2] in _UTF_16 else "utf-8")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        return None if "\0" in text else text

    def _bytes(self, state: State, place: str, disk: Disk | None) -> bytes | None:
        if self._contents.has(state.digest):
            return b"".join(self._contents.read(state.digest))
        # What a tool has just written is not in the store, but still at its place.
        from hermes.stores.checkpoints.types import digest_of

        try:
            data = None if disk is None else disk.read(place)
        except (OSError, ToolError):
            return None
        return data if data is not None and digest_of(data) == state.digest else None


def _modes(place: str, one: State, other: State) -> str:
    if None in (one.mode, other.mode) or one.mode == other.mode:
        return ""
    return f"{place}: mode {one.mode:o} becomes {other.mode:o}\n"


def _lines(text: str) -> list[str]:
    """The lines of a text; the last one says so when it has no end."""
    end = "\n" if "\n" in text else "\r"
    *lines, rest = text.split(end)
    return [*lines, f"{rest}\n\\ no newline at the end"] if rest else lines


def _unified(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Unified diff with a few lines of context."""
    from hermes.text.diff import excerpt, hunk_lines, line_changes

    for mark, line, start in hunk_lines(
        old, new, line_changes(old, new), context=_CONTEXT, most=_LETTERS, lead=_LEAD
    ):
        yield mark + excerpt(line, start, _LETTERS)


class Undoing:
    """Takes back changes of a store."""

    def __init__(
        self,
        database: Database,
        contents: Contents,
        disks: Mapping[str, Disk],
        lock: Lock,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._contents = contents
        self._disks = disks
        self._lock = lock
        self._clock = clock
        self._differences = Differences(contents)

    def undo(
        self,
        *,
        below: str | None,
        turn: str | None,
        call: str | None,
        force: bool,
        dry_run: bool,
        author: Author,
    ) -> UndoReport:
        """Take back a turn or a call; see `Checkpoints.undo`."""
        with self._alone(wait=not dry_run) as alone:
            interrupted = self._interrupted() if alone else None
            if interrupted is not None:
                report = self._resume(*interrupted, dry_run=dry_run)
                if call is None and turn in (None, report.turn, f"{report.session}/{report.turn}"):
                    return report
            chosen, of_call = self._chosen(below, turn, call)
            with self._database.reading() as connection:
                changes = journal.changes_of(connection, chosen.id, of_call)
            plan = self._plan(changes, force=force)
            # The name is new each time: one turn may be undone, redone and undone again.
            name = f"undo-{os.urandom(3).hex()}"
            by = author._replace(turn=name, call=name, tool=author.tool or "undo")
            blank = UndoReport(
                chosen.session, chosen.name, of_call or "", [], plan.left, plan.already, plan.notes
            )
            return self._carry_out(plan, by, blank, undoes=chosen.id, dry_run=dry_run)

    def restore(self, change: Change, *, author: Author, dry_run: bool) -> UndoReport:
        """Restore one path to its state before a change, regardless of its current state."""
        with self._alone(wait=not dry_run):
            disk = self._disks.get(change.disk)
            if disk is None:
                raise CheckpointError(f"{change.place} is on {change.disk}, which is not connected")
            if change.before.kind == "file" and not change.before.readable:
                raise CheckpointError(f"the content of {change.place} was not kept")
            plan = Plan()
            present = present_state(disk, change.place, like=change.before)
            if unchanged(present, change.before):
                plan.already = 1
            else:
                key = (change.disk, change.place)
                plan.steps[key] = Step(*key, present, change.before)
                fitted(plan, self._disks)
            name = f"restore-{os.urandom(3).hex()}"
            by = author._replace(turn=name, call=name, tool=author.tool or "restore")
            blank = UndoReport(
                change.author.session, change.author.turn, "", [], plan.left, plan.already,
                plan.notes,
            )  # fmt: skip
            return self._carry_out(plan, by, blank, undoes=0, dry_run=dry_run)

    def _chosen(
        self, below: str | None, turn: str | None, call: str | None
    ) -> tuple[Turn, str | None]:
        with self._database.reading() as connection:
            if turn is not None:
                found = journal.find_turn(connection, turn)
                if found is None:
                    raise CheckpointError(
                        f"no turn {turn!r:.80} changed anything", hint="hermes checkpoints list"
                    )
                return found, call
            if call is not None:
                called = journal.find_call(connection, call)
                if called is None:
                    raise CheckpointError(
                        f"no call {call!r:.80} changed anything", hint="hermes checkpoints list"
                    )
                return called
            folder = os.path.realpath(below or os.getcwd())
            newest = journal.turns(connection, below=folder, limit=1)
            if not newest:
                raise CheckpointError(
                    f"nothing to undo: no recorded change below {folder}",
                    hint="hermes checkpoints list",
                )
            return newest[0], None

    def _plan(self, changes: Sequence[Change], *, force: bool) -> Plan:
        def writer(disk: str, place: str, digest: str) -> Author | None:
            with self._database.reading() as connection:
                return journal.last_writer(connection, place, digest, disk) if digest else None

        plan = plan_undo(changes, self._disks, force=force, writer=writer)
        first = {(change.disk, change.place): change.before for change in reversed(changes)}
        plan.left = [self._with_difference(one, first.get((one.disk, one.place)))
                     for one in plan.left]  # fmt: skip
        return plan

    def _with_difference(self, left: Left, target: State | None) -> Left:
        disk = self._disks.get(left.disk)
        if target is None or disk is None:
            return left
        try:
            present = present_state(disk, left.place, like=target)
            text = self._differences.between(
                left.place, present, target, disk=disk, names=("now", "before the turn")
            )
        except (OSError, CheckpointError):
            return left
        return left._replace(difference=text)

    def _carry_out(
        self, plan: Plan, author: Author, blank: UndoReport, *, undoes: int, dry_run: bool
    ) -> UndoReport:
        run = Restoration(self._disks, self._contents, self._lock)
        steps = list(plan.steps.values())
        run.check(steps)
        if dry_run:
            would = [Restored(s.place, s.present, s.target, s.disk) for s in steps
                     if not is_quiet(s.present, s.target)]  # fmt: skip
            return blank._replace(restored=_sorted(would), dry_run=True)
        if not steps:
            return blank
        steps = self._record(plan, author, blank, undoes)
        run.run(steps)
        self._finish(author)
        return blank._replace(
            restored=_sorted(run.restored),
            left=[*plan.left, *run.left],
            notes=[*plan.notes, *run.notes],
            undo_turn=author.turn,
        )

    def _record(self, plan: Plan, author: Author, blank: UndoReport, undoes: int) -> list[Step]:
        """Record the steps and the current state of each path; the steps that can be taken."""
        steps = []
        with self._contents.draft() as draft:
            for key, step in plan.steps.items():
                if step.present.readable:
                    kept = kept_state(self._disks[step.disk], step.place, draft, limit=1 << 62)
                    if not same_content(kept, step.present):
                        plan.left.append(Left(key[1], "it was changed in this very moment"))
                        continue
                steps.append(step)
            records = [Record(s.disk, s.place, s.present, s.target) for s in steps]
            with draft.storing() as connection:
                journal.record(connection, author, self._clock(), records)
                _begin(connection, author, blank, undoes)
        return steps

    def _finish(self, author: Author) -> None:
        with self._database.writing() as connection:
            turn = _turn_id(connection, author)
            connection.execute("UPDATE undos SET finished = 1 WHERE turn = ?", (turn,))

    def _interrupted(self) -> tuple[int, str, str] | None:
        """An undo that a kill or a crash cut off."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT turn, call, remarks FROM undos WHERE NOT finished ORDER BY turn"
            ).fetchone()
        return None if found is None else (found[0], found[1], found[2])

    def _resume(self, turn: int, call: str, remarks: str, *, dry_run: bool) -> UndoReport:
        import json

        said = json.loads(remarks)
        with self._database.reading() as connection:
            changes = journal.changes_of(connection, turn)
        author = changes[0].author
        left = [Left(**one) for one in said["left"]]
        blank = UndoReport(
            said["session"], said["turn"], call, [], left, said["already"], said["notes"],
            undo_turn=author.turn, dry_run=dry_run, resumed=True,
        )  # fmt: skip
        steps = [Step(c.disk, c.place, c.before, c.after) for c in changes if c.disk in self._disks]
        run = Restoration(self._disks, self._contents, self._lock, resumed=True)
        run.check(steps)
        if dry_run:
            return blank._replace(
                restored=[Restored(s.place, s.present, s.target, s.disk) for s in steps]
            )
        run.sweep(steps)
        run.run(steps)
        # A folder that was made meanwhile may only now be looked into.
        run.sweep(steps)
        self._finish(author)
        return blank._replace(
            restored=_sorted(run.restored),
            left=[*left, *run.left],
            notes=[*blank.notes, *run.notes],
        )

    @contextmanager
    def _alone(self, *, wait: bool) -> Iterator[bool]:
        """Lock for undo: an unfinished undo found under it was interrupted."""
        handle = open_lock(os.path.join(self._database.folder, "undo.lock"))
        try:
            yield flock(handle, exclusive=True, wait=wait)
        finally:
            os.close(handle)


def _sorted(restored: list[Restored]) -> list[Restored]:
    return sorted(restored, key=lambda one: (one.place, one.disk))


def _begin(connection: Connection, author: Author, blank: UndoReport, undoes: int) -> None:
    import json

    remarks = {
        "session": blank.session,
        "turn": blank.turn,
        "already": blank.already,
        "notes": blank.notes,
        "left": [one._asdict() for one in blank.left],
    }
    connection.execute(
        "INSERT INTO undos VALUES (?, ?, ?, 0, ?)",
        (_turn_id(connection, author), undoes, blank.call, json.dumps(remarks)),
    )


def _turn_id(connection: Connection, author: Author) -> int:
    found = connection.execute(
        "SELECT id FROM turns WHERE session = ? AND name = ?",
        (journal.clean(author.session), author.turn),
    )
    return int(found.fetchone()[0])
