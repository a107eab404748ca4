"""Carrying out steps, each whole or not at all, in an order that can be taken up again.

What a killed run did not reach is in the state that was recorded, or gone because it was to be
replaced; both are recognised, so that running the same steps again completes them.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.stores.checkpoints.plan import Step
from hermes.stores.checkpoints.states import present_state, same, same_content, status_of
from hermes.stores.checkpoints.traits import dress
from hermes.stores.checkpoints.values import CheckpointError, Left, Restored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from hermes.runtime.disk import Disk
    from hermes.stores.checkpoints.contents import Contents
    from hermes.stores.checkpoints.traits import Traits
    from hermes.stores.checkpoints.values import Change, State

    Lock = Callable[[str], AbstractContextManager[None]]

_OWNER = 0o700
_FEW, _AT_ONCE = 4, 8
# How the disk names a file that it is still writing.
_DRAFT = re.compile(r"\.hermes-[0-9a-f]{16}")


def put_back(disk: Disk, contents: Contents, changes: Iterable[Change]) -> list[Left]:
    """Take changes back that were made in part or not at all, in places that are locked already."""
    from contextlib import nullcontext

    run = Restoration({disk.label: disk}, contents, lambda _: nullcontext(), resumed=True)
    run.run([Step(disk.label, one.place, one.after, one.before) for one in changes])
    return run.left


class Restoration:
    """One run over a list of steps."""

    def __init__(
        self, disks: Mapping[str, Disk], contents: Contents, lock: Lock, *, resumed: bool = False
    ) -> None:
        self._disks = disks
        self._contents = contents
        self._lock = lock
        self._resumed = resumed
        self.restored: list[Restored] = []
        self.left: list[Left] = []
        self.notes: list[str] = []
        self._failed: set[tuple[str, str]] = set()

    def check(self, steps: Iterable[Step]) -> None:
        """Raise `CheckpointError` unless the store has every byte that the steps need."""
        for step in steps:
            if step.target.kind == "file":
                try:
                    self._contents.verify(step.target.digest)
                except CheckpointError as error:
                    raise CheckpointError(
                        f"nothing was restored: {step.place} can't be given back: {error}",
                        hint="`hermes checkpoints restore PATH` restores other files one by one.",
                    ) from None

    def run(self, steps: Sequence[Step]) -> None:
        """Do it: open folders, remove from the inside out, make from the outside in."""
        inwards = sorted(steps, key=lambda step: step.place.count(os.sep))
        outwards = inwards[::-1]
        folders = [step for step in inwards if step.target.kind == "folder"]
        for step in folders:
            self._guarded(step, self._open)
        for step in outwards:
            if step.target.kind == "absent" or step.present.kind not in (
                step.target.kind,
                "absent",
            ):
                self._guarded(step, self._remove)
        for step in folders:
            self._guarded(step, self._make_folder)
        self._put_all([step for step in inwards if step.target.kind in ("file", "link")])
        for step in folders[::-1]:
            self._guarded(step, self._close)

    def _put_all(self, steps: Sequence[Step]) -> None:
        """Write files and links; several at once, since most of it is waiting for the disk."""
        if len(steps) < _FEW:
            for step in steps:
                self._guarded(step, self._put)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(lambda step: self._guarded(step, self._put), steps):
                pass

    def _guarded(self, step: Step, act: Callable[[Disk, Step], None]) -> None:
        if (step.disk, step.place) in self._failed:
            return
        try:
            act(self._disks[step.disk], step)
        except OSError as error:
            self._leave(step, f"{error.strerror or error}")
        except ToolError as error:
            self._leave(step, str(error))

    def _leave(self, step: Step, reason: str) -> None:
        self._failed.add((step.disk, step.place))
        self.left.append(Left(step.place, reason, disk=step.disk))

    def _open(self, disk: Disk, step: Step) -> None:
        found = status_of(disk, step.place)
        if found is not None and found.kind == "folder" and found.mode & _OWNER != _OWNER:
            disk.set_mode(step.place, found.mode | _OWNER)

    def _remove(self, disk: Disk, step: Step) -> None:
        with self._lock(step.place):
            present = present_state(disk, step.place, like=step.present)
            if present.kind in ("absent", step.target.kind):
                pass
            elif not self._expected(present, step):
                self._leave(step, "it was changed in this very moment")
                return
            else:
                disk.remove(step.place)
        if step.target.kind == "absent":
            self._done(step)

    def _make_folder(self, disk: Disk, step: Step) -> None:
        disk.make_folder(step.place)

    def _put(self, disk: Disk, step: Step) -> None:
        target = step.target
        with self._lock(step.place):
            present = present_state(disk, step.place, like=step.present)
            if not same(present, target):
                if not self._expected(present, step):
                    self._leave(step, "it was changed in this very moment")
                    return
                if target.kind == "file":
                    self._note_names(disk, step)
                    disk.write(step.place, self._contents.read(target.digest), mode=target.mode)
                else:
                    if present.kind == "link":
                        disk.remove(step.place)
                    disk.make_link(step.place, target.target)
            if target.kind == "file" and target.traits is not None:
                self._dress(disk, step, target.traits)
        self._done(step)

    def _note_names(self, disk: Disk, step: Step) -> None:
        """Say that a file with other names is one of its own from now on."""
        found = disk.status(step.place)
        if found is not None and found.kind == "file" and found.links > 1:
            self.notes.append(
                f"{step.place} had other names (hard links), and is apart from them now"
            )

    def _dress(self, disk: Disk, step: Step, traits: Traits) -> None:
        with disk.open(step.place) as file:
            refused = dress(file, traits)
        if refused:
            self.notes.append(f"{step.place}: not given back: {', '.join(refused)}")

    def _close(self, disk: Disk, step: Step) -> None:
        found = status_of(disk, step.place)
        mode = step.target.mode
        if found is not None and mode is not None and found.mode != mode:
            disk.set_mode(step.place, mode)
        if step.present != step.target:
            self._done(step)

    def _done(self, step: Step) -> None:
        self.restored.append(Restored(step.place, step.present, step.target, step.disk))

    def _expected(self, present: State, step: Step) -> bool:
        """Whether a place is as planned, or as this run or one that was cut off left it."""
        if present.kind == "absent":
            return self._resumed or step.present.kind != step.target.kind
        return same_content(present, step.present)

    def sweep(self, steps: Iterable[Step]) -> None:
        """Remove files that a killed run was still writing: they hold a beginning of a target."""
        wanted: dict[tuple[str, str], list[Step]] = {}
        for step in steps:
            if step.target.kind == "file":
                wanted.setdefault((step.disk, os.path.dirname(step.place)), []).append(step)
        for (label, folder), inside in wanted.items():
            disk = self._disks[label]
            try:
                names = [entry.name for entry in disk.scan(folder) if _DRAFT.fullmatch(entry.name)]
            except OSError:
                # The folder itself is still to be made, or opened.
                continue
            for name in names:
                place = os.path.join(folder, name)
                if any(self._begins(disk, place, step) for step in inside):
                    disk.remove(place)

    def _begins(self, disk: Disk, place: str, step: Step) -> bool:
        rest = disk.read(place)
        for piece in self._contents.read(step.target.digest):
            if not rest:
                break
            if not piece.startswith(rest[: len(piece)]):
                return False
            rest = rest[len(piece) :]
        return not rest
