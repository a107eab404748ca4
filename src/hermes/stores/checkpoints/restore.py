"""Restore plan: the steps that undo a set of changes, and their crash-safe execution."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.environments.disk.local_disk import add_name
from hermes.stores.checkpoints.path_state import (
    dress,
    dress_node,
    is_quiet,
    make_special,
    merged,
    present_state,
    same,
    same_content,
    status_of,
    unchanged,
)
from hermes.stores.checkpoints.types import ABSENT, CheckpointError, Left, Restored, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from hermes.environments.disk.protocol import Disk
    from hermes.stores.checkpoints.blobs import Contents
    from hermes.stores.checkpoints.path_state import Traits
    from hermes.stores.checkpoints.types import Author, Change


if TYPE_CHECKING:
    Key = tuple[str, str]
    Writer = Callable[[str, str, str], Author | None]

# What an owner needs to change what is in a folder.
_OPEN = 0o300


class Step(NamedTuple):
    """One path, its current state, and the state to restore."""

    disk: str
    place: str
    present: State
    target: State


class Plan:
    """The steps to take, and the paths to leave alone with their reasons."""

    def __init__(self) -> None:
        self.steps: dict[Key, Step] = {}
        self.left: list[Left] = []
        self.already = 0
        self.notes: list[str] = []

    def leave(self, key: Key, reason: str, *, forcible: bool = False) -> None:
        """Don't touch a place."""
        self.steps.pop(key, None)
        self.left.append(Left(key[1], reason, disk=key[0], forcible=forcible))


def plan_undo(
    changes: Sequence[Change], disks: Mapping[str, Disk], *, force: bool, writer: Writer
) -> Plan:
    """The steps that take changes back; `writer` names who made a state of a place."""
    chains: dict[Key, list[Change]] = {}
    for change in changes:
        chains.setdefault((change.disk, change.place), []).append(change)
    plan = Plan()
    for key, chain in chains.items():
        if key[0] not in disks:
            plan.leave(key, f"it is on {key[0]}, which is not connected")
            continue
        try:
            _plan_place(plan, key, chain, disks[key[0]], force=force, writer=writer)
        except OSError as error:
            plan.leave(key, f"it can't be read: {error.strerror}")
        except ToolError as error:
            plan.leave(key, str(error))
    return fitted(plan, disks)


def fitted(plan: Plan, disks: Mapping[str, Disk]) -> Plan:
    """The plan with the steps that folders require: obstacles removed, other files kept."""
    _keep_filled_folders(plan, disks)
    for key in sorted(plan.steps, key=_depth):
        if plan.steps[key].target != ABSENT:
            _make_way(plan, key, disks[key[0]])
    for key in list(plan.steps):
        _open_folder(plan, key, disks[key[0]])
    return plan


def _plan_place(
    plan: Plan, key: Key, chain: list[Change], disk: Disk, *, force: bool, writer: Writer
) -> None:
    newest = chain[-1]
    first = 0 if force else _unbroken(chain)
    present = present_state(disk, key[1], like=newest.after)
    target = _fitting(chain[first].before, newest, present)
    if unchanged(present, target):
        several = target.traits is not None and target.traits.shared
        # Removed and written again by a tool, which records no times: the time is ours as well.
        again = newest.after.traits is None and any(one.after == ABSENT for one in chain)
        if first == 0 and (several or again or _times_ours(present, newest.after, target)):
            # With several names, this one may be needed to restore the others.
            plan.steps[key] = Step(key[0], key[1], present, target)
            return
        if first == 0:
            plan.already += not newest.quiet
            return
    elif not (force or _ours(present, chain[first:])):
        if all(change.quiet for change in chain):
            # Only times changed, and somebody else works on it now.
            return
        plan.leave(key, _since(present, newest, writer(*key, present.digest)), forcible=True)
        return
    elif not (force or newest.certain or newest.after.kind == "absent"):
        plan.leave(key, "it changed during a long command, or one that was cut off", forcible=True)
        return
    elif present.kind == "file" and not (force or present.readable):
        plan.leave(
            key, "it is too large to be kept, so that undoing could not be undone", forcible=True
        )
        return
    elif target.kind == "special" and not _can_make(target, key[0]):
        plan.leave(key, f"{target.described} can't be made again")
        return
    elif target.kind == "file" and not target.readable:
        plan.leave(
            key, "its content was not kept: too large for the snapshot, or not readable then"
        )
        return
    else:
        plan.steps[key] = Step(key[0], key[1], present, target)
    if first:
        plan.left.append(
            Left(
                key[1],
                "it was also changed by somebody else in between, up to there it goes back",
                disk=key[0],
                forcible=True,
            )
        )


def _unbroken(chain: list[Change]) -> int:
    """Index from which changes follow each other without changes of others in between."""
    at = len(chain) - 1
    while at > 0:
        before, earlier = chain[at].before, chain[at - 1]
        # The second: a change that was recorded and then not made.
        if not (same_content(before, earlier.after) or same_content(before, earlier.before)):
            break
        at -= 1
    return at


def _ours(present: State, chain: Iterable[Change]) -> bool:
    return any(same_content(present, s) for change in chain for s in (change.after, change.before))


def _times_ours(present: State, after: State, target: State) -> bool:
    """Whether only the time is to be restored, and nobody has changed it since."""
    if present.traits is None or after.traits is None or target.traits is None:
        return False
    return present.traits.mtime_ns == after.traits.mtime_ns != target.traits.mtime_ns


def _can_make(target: State, disk: str) -> bool:
    """Whether a special file can be made again: pipes and sockets by everybody."""
    file_type = int(target.target.partition(":")[0] or "0", 8)
    anyone = stat.S_ISFIFO(file_type) or stat.S_ISSOCK(file_type)
    return disk == "local" and bool(file_type) and (anyone or os.geteuid() == 0)


def _fitting(target: State, newest: Change, present: State) -> State:
    """The target with the mode and traits that are there now, unless the agent changed them."""
    if target.kind != present.kind:
        return target
    after = newest.after
    if target.traits is not None and present.traits is not None:
        left = after.traits or newest.before.traits
        replaced = after.traits is None
        restored = merged(target.traits, left, present.traits, replaced=replaced)
        if target.kind == "folder" and (
            after.traits is None or after.traits.mtime_ns != present.traits.mtime_ns
        ):
            # Others have made or removed something in it since.
            restored = restored._replace(mtime_ns=present.traits.mtime_ns)
        target = target._replace(traits=restored)
    if target.mode is None or (after.kind == target.kind and after.mode == target.mode):
        return target._replace(mode=present.mode)
    return target


def _since(present: State, newest: Change, writer: Author | None) -> str:
    if writer is not None and present.kind == "file":
        return f"it was changed since, by {writer.described}"
    if present.kind == "absent":
        return "it was removed since"
    if newest.after.kind == "absent":
        return "it was made again since"
    if present.kind != newest.after.kind:
        return f"it is {present.described} now"
    return "it was edited since"


def _keep_filled_folders(plan: Plan, disks: Mapping[str, Disk]) -> None:
    """Remove steps that would delete folders with files of others."""
    folders = [k for k, s in plan.steps.items() if s.present.kind == "folder" != s.target.kind]
    for key in sorted(folders, key=_depth, reverse=True):
        label, place = key
        going = True
        for entry in disks[label].scan(place):
            inside = plan.steps.get((label, os.path.join(place, entry.name)))
            going = going and inside is not None and inside.target.kind == "absent"
        if going:
            continue
        if plan.steps[key].target.kind == "absent":
            del plan.steps[key]
            plan.notes.append(f"{place} stays: it holds what the agent did not make")
        else:
            plan.leave(key, "it is a folder now that holds what the agent did not make")


def _make_way(plan: Plan, key: Key, disk: Disk) -> None:
    """Have every folder above a place in the plan, where it is missing."""
    label, place = key
    missing: list[str] = []
    above = os.path.dirname(place)
    while True:
        step = plan.steps.get((label, above))
        if step is not None and step.target.kind == "folder":
            break
        found = None if step is not None else status_of(disk, above)
        if step is not None and step.target.kind != "absent":
            plan.leave(key, f"{above} is no folder")
            return
        if found is not None and found.kind != "folder":
            plan.leave(key, f"{above} is in the way: no folder but a {found.kind}")
            return
        if found is not None or above == os.path.dirname(above):
            break
        missing.append(above)
        above = os.path.dirname(above)
    for one in missing:
        step = plan.steps.get((label, one))
        present = ABSENT if step is None else step.present
        plan.steps[label, one] = Step(label, one, present, State("folder"))


def _open_folder(plan: Plan, key: Key, disk: Disk) -> None:
    """Have a folder that must be written to but is closed in the plan, so that it is opened."""
    label, above = key[0], os.path.dirname(key[1])
    if (label, above) in plan.steps:
        return
    found = status_of(disk, above)
    if found is not None and found.kind == "folder" and found.mode & _OPEN != _OPEN:
        state = State("folder", mode=found.mode)
        plan.steps[label, above] = Step(label, above, state, state)


def _depth(key: Key) -> int:
    return key[1].count(os.sep)


if TYPE_CHECKING:
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


def _several_names(steps: Iterable[Step]) -> list[list[Step]]:
    """The steps of each file that is to have several names again; one that keeps it first."""
    groups: dict[str, list[Step]] = {}
    for step in steps:
        traits = step.target.traits
        if step.disk == "local" and traits is not None and traits.shared:
            groups.setdefault(traits.shared, []).append(step)
    found = [group for group in groups.values() if len(group) > 1]
    for group in found:
        group.sort(key=lambda step: not same(step.present, step.target))
    return found


def _set_time(place: str, mtime_ns: int) -> None:
    with suppress(OSError):
        status = os.lstat(place)
        if status.st_mtime_ns != mtime_ns:
            os.utime(place, ns=(status.st_atime_ns, mtime_ns), follow_symlinks=False)


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
        # Files whose other names are restored, too.
        self._joined: set[str] = set()

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
        times = self._times_around(steps)
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
        made = [step for step in inwards if step.target.kind in ("file", "link", "special")]
        groups = _several_names(made)
        self._joined = {step.target.traits.shared for step, *_ in groups if step.target.traits}
        others = {step.place for group in groups for step in group[1:]}
        self._put_all([step for step in made if step.place not in others])
        for first, *rest in groups:
            for step in rest:
                self._guarded(step, partial(self._join, first))
        for step in folders[::-1]:
            self._guarded(step, self._close)
        for place, mtime in times.items():
            _set_time(place, mtime)

    def _times_around(self, steps: Iterable[Step]) -> dict[str, int]:
        """The times of folders that are not to be restored themselves, but worked in."""
        restored = {step.place for step in steps if step.disk == "local"}
        above = {os.path.dirname(place) for place in restored} - restored
        found = {}
        for place in above:
            with suppress(OSError):
                found[place] = os.lstat(place).st_mtime_ns
        return found

    def _join(self, first: Step, disk: Disk, step: Step) -> None:
        """Make a file another name of one that was restored before."""
        if (first.disk, first.place) in self._failed:
            self._put(disk, step)
            return
        with self._lock(step.place):
            present = present_state(disk, step.place, like=step.present)
            if not (same(present, step.target) or self._expected(present, step)):
                self._leave(step, "it was changed in this very moment")
                return
            if not os.path.lexists(step.place) or not os.path.samefile(first.place, step.place):
                add_name(first.place, step.place)
        self._done(step)

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
                    if present.kind == target.kind:
                        disk.remove(step.place)
                    if target.kind == "link":
                        disk.make_link(step.place, target.target)
                    else:
                        make_special(step.place, target.target, target.mode or 0)
            if target.traits is not None:
                self._dress(disk, step, target.traits)
        self._done(step)

    def _note_names(self, disk: Disk, step: Step) -> None:
        """Say that a file with other names is one of its own from now on."""
        found = disk.status(step.place)
        if step.target.traits is not None and step.target.traits.shared in self._joined:
            return
        if found is not None and found.kind == "file" and found.links > 1:
            self.notes.append(
                f"{step.place} had other names (hard links), and is apart from them now"
            )

    def _dress(self, disk: Disk, step: Step, traits: Traits) -> None:
        if step.target.kind == "file":
            with disk.open(step.place) as file:
                refused = dress(file, traits)
        else:
            refused = dress_node(step.place, traits) if disk.label == "local" else []
        if refused:
            self.notes.append(f"{step.place}: not given back: {', '.join(refused)}")

    def _close(self, disk: Disk, step: Step) -> None:
        found = status_of(disk, step.place)
        mode = step.target.mode
        if found is not None and mode is not None and found.mode != mode:
            disk.set_mode(step.place, mode)
        if found is not None and step.target.traits is not None:
            self._dress(disk, step, step.target.traits)
        if step.present != step.target:
            self._done(step)

    def _done(self, step: Step) -> None:
        if is_quiet(step.present, step.target):
            return
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
