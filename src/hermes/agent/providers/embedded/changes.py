"""What a turn really changed, by the checkpoint store, and putting back what nobody asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from typing import Literal

    from hermes.agent.providers.embedded.naming import Named
    from hermes.core.context import ToolContext
    from hermes.stores.checkpoints.values import Change

    What = Literal["made", "changed", "moved", "deleted"]


class Changed(NamedTuple):
    """One file, relative to the workspace where it is inside, and what became of it.

    `path` is where it is now or was last, `was` where a file was that moved.
    """

    path: str
    what: What
    was: str = ""

    @property
    def told(self) -> str:
        """Its path, and where it came from."""
        return f"{self.was} to {self.path}" if self.was else self.path


def changes(ctx: ToolContext) -> list[Changed]:
    """What this turn has changed so far, each file once."""
    first: dict[str, Change] = {}
    last: dict[str, Change] = {}
    for change in _recorded(ctx):
        first.setdefault(change.place, change)
        last[change.place] = change
    found = []
    digests: dict[str, str] = {}
    for place, change in first.items():
        before, after = change.before, last[place].after
        if (before.kind, before.digest) == (after.kind, after.digest):
            continue
        gone = after.kind == "absent"
        what: What = "deleted" if gone else "made" if before.kind == "absent" else "changed"
        folder = "/" if "folder" in (before.kind, after.kind) else ""
        path = _relative(ctx, place) + folder
        found.append(Changed(path, what))
        digests[path] = "" if folder else (before if gone else after).digest
    found = _with_moves(found, digests)
    # A folder is worth a word only where nothing in it is.
    return [one for one in found if not (one.path.endswith("/") and _inside(one, found))]


def _with_moves(found: list[Changed], digests: dict[str, str]) -> list[Changed]:
    """The same, where what is gone in one place and there in another has moved."""
    gone = [one for one in found if one.what == "deleted" and digests[one.path]]
    told = []
    for one in found:
        origin = next(
            (was for was in gone if one.what == "made" and digests[was.path] == digests[one.path]),
            None,
        )
        if origin is None:
            told.append(one)
            continue
        gone.remove(origin)
        told.append(Changed(one.path, "moved", origin.path))
    taken = {one.was for one in told}
    return [one for one in told if not (one.what == "deleted" and one.path in taken)]


def _inside(folder: Changed, found: list[Changed]) -> bool:
    return any(one.path.startswith(folder.path) and one != folder for one in found)


def put_back_unnamed(ctx: ToolContext, call: str, named: Named) -> list[str]:
    """Undo what a command did to files that were there before and that nobody named."""
    from hermes.files.changing import author_of
    from hermes.stores.checkpoints.shared import checkpoints

    restored = []
    for change in _recorded(ctx):
        path = _relative(ctx, change.place)
        if change.author.call != call or change.before.kind != "file":
            continue
        same = (change.before.kind, change.before.digest) == (
            change.after.kind,
            change.after.digest,
        )
        gone = change.after.kind == "absent"
        if same or named.may_change(path, exists=True, whole=gone):
            continue
        try:
            checkpoints(ctx).restore(change.place, change.id, author=author_of(ctx))
        except ToolError:
            # What can't be put back is still reported as changed.
            continue
        restored.append(path)
    return restored


def _recorded(ctx: ToolContext) -> list[Change]:
    from hermes.stores.checkpoints.shared import checkpoints
    from hermes.stores.checkpoints.values import CheckpointError

    try:
        recorded = checkpoints(ctx).show(f"{ctx.session_id}/{ctx.turn}")
    except CheckpointError:
        # Nothing was changed in this turn.
        return []
    return [one for one in recorded if one.author.agent == ctx.agent_path]


def _relative(ctx: ToolContext, place: str) -> str:
    root = os.path.join(os.path.realpath(ctx.workspace), "")
    return place.removeprefix(root)
