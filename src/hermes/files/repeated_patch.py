"""Repeated patch: was this patch the last change of the file? Answered from checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import EditError
from hermes.environments.for_task import disk_of
from hermes.files.seen_files import digest_of, versions_of
from hermes.stores.checkpoints import CheckpointError
from hermes.stores.checkpoints.checkpoint_store import checkpoints
from hermes.text.encoding import codec_of, decode, encode
from hermes.text.patches.apply import apply_hunks

if TYPE_CHECKING:
    from hermes.core.context import ToolContext
    from hermes.stores.checkpoints import Change
    from hermes.text.encoding import Text
    from hermes.text.patches.model import FilePatch

# A line end at the end of a file more or less, of four bytes at most.
_SLACK = 8


def removed_content(ctx: ToolContext, path: str) -> bytes | None:
    """The last content of a file that Hermes removed; None if unknown."""
    last = _last(ctx, path)
    return None if last is None or last.after.kind != "absent" else _content(ctx, last)


def is_resent(ctx: ToolContext, path: str, data: bytes, text: Text, part: FilePatch) -> bool:
    """Whether this patch was the last change of a file with content `data`."""
    last = _last(ctx, path)
    if not part.hunks or last is None or last.after.kind != "file" or last.before.kind != "file":
        return False
    version = versions_of(ctx).last(path)
    if version is not None and not version.wrote and version.digest == last.after.digest:
        # The model has read the result and sends the patch again: it wants it twice.
        return False
    # Cheap checks first: most patches are different ones.
    grown = last.after.size - last.before.size
    if abs(grown - _growth(part, text)) > _SLACK or not _holds(text, part):
        return False
    if last.after.digest != digest_of(data):
        return False
    was = _content(ctx, last)
    if was is None:
        return False
    old = decode(was)
    try:
        return encode(apply_hunks(old.text, part.hunks).text, old) == data
    except EditError:
        return False


def _last(ctx: ToolContext, path: str) -> Change | None:
    return checkpoints(ctx).newest(path, disk=disk_of(ctx).label)


def _content(ctx: ToolContext, change: Change) -> bytes | None:
    """The content before a change; None if it was not stored."""
    try:
        return checkpoints(ctx).content(change.before)
    except CheckpointError:
        return None


def _holds(text: Text, part: FilePatch) -> bool:
    """Whether a text contains all lines that a patch adds."""
    added = (line.strip() for hunk in part.hunks for mark, line in hunk.lines if mark == "+")
    return all(line in text.text for line in added)


def _growth(part: FilePatch, text: Text) -> int:
    """The size change of a patch in bytes."""
    end = "\r\n" if text.newline == "\r\n" else "\n"
    grown = 0
    for hunk in part.hunks:
        for mark, line in hunk.lines:
            if mark != " ":
                size = len((line + end).encode(codec_of(text.encoding), "replace"))
                grown += size if mark == "+" else -size
    return grown
