"""Edits of text files: replace a piece of text in one file, apply a patch to several, all or
nothing.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from hermes.core.errors import EditError, ToolError
from hermes.environments.for_task import disk_of
from hermes.files.edit_transaction import Content, rewrite
from hermes.files.seen_files import digest_of, versions_of
from hermes.files.write import check_names_file
from hermes.stores.checkpoints import CheckpointError
from hermes.stores.checkpoints.checkpoint_store import checkpoints
from hermes.text.diff import short_diff
from hermes.text.encoding import codec_of, decode, encode
from hermes.text.patches.apply import apply_hunks
from hermes.text.patches.parse import parse_patch
from hermes.text.replace.engine import replace_text
from hermes.text.replace.errors import AlreadyAppliedError
from hermes.text.syntax_check import check_syntax_change

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.stores.checkpoints import Change
    from hermes.text.encoding import Text
    from hermes.text.patches.model import Applied, FilePatch
# How much of a diff a result shows.
_DIFF = 4_000
# What the tool calls the two texts of an edit.
_NAMES = ("old_string", "new_string")


def replace_in_file(
    ctx: ToolContext, path: str, old: str, new: str, *, replace_all: bool
) -> dict[str, Any]:
    """Replace text in one file; the answer has the match strategy and the diff."""
    real_path = ctx.resolve_path(path, "write")
    answer: dict[str, Any] = {"path": path}

    def edited(files: Mapping[str, bytes | None]) -> dict[str, bytes]:
        text = editable(path, files[real_path])
        done = replace_text(text.text, old, new, replace_all=replace_all, names=_NAMES)
        answer.update(replacements=done.count, strategy=done.strategy)
        answer.update(seen(path, text.text, done.text))
        return {real_path: encode(done.text, text)}

    try:
        rewrite(ctx, [real_path], edited)
    except AlreadyAppliedError as error:
        return answer | {"already_applied": True, "note": str(error)}
    return answer


def editable(path: str, data: bytes | None) -> Text:
    """The text of a file to edit; refused if writing it back could damage it."""
    if data is None:
        raise ToolError(f"{path} is not there", hint="Use write_file to make it.")
    text = decode(data)
    if not text.certain:
        raise ToolError(
            f"the encoding of {path} can't be told, so it was not edited",
            hint="Convert it to UTF-8 first. Or edit it with `terminal`.",
        )
    return text


def seen(path: str, before: str, after: str) -> dict[str, Any]:
    """The diff of an edit, and a warning about new syntax errors."""
    answer: dict[str, Any] = {"diff": short_diff(before, after, path, limit=_DIFF)}
    wrong = check_syntax_change(path, before, after)
    if wrong:
        answer["warning"] = f"the file no longer parses: {wrong}"
    return answer


_ALREADY = {"already_applied": True}


def apply_patch(ctx: ToolContext, patch: str) -> dict[str, Any]:
    """Apply a patch to all files that it names, or to none."""
    parts = parse_patch(patch)
    real_paths: dict[str, str] = {}
    for part in parts:
        check_names_file(part.move_to or part.path)
        goes = part.action == "delete" or part.move_to
        real_paths[part.path] = ctx.resolve_path(part.path, "delete" if goes else "write")
        if part.move_to:
            real_paths[part.move_to] = ctx.resolve_path(part.move_to, "write")
    answers: list[dict[str, Any]] = []

    def patched(files: Mapping[str, bytes | None]) -> dict[str, Content | bytes | None]:
        work = _Patching(ctx, real_paths, files)
        answers.extend(work.apply(part) for part in parts)
        return work.now

    rewrite(ctx, real_paths.values(), patched)
    return {"files": answers}


class _Patching:
    """The state of all files while a patch is applied.

    A patch may change one file twice: the second part sees the result of the first one.
    """

    def __init__(
        self, ctx: ToolContext, real_paths: Mapping[str, str], files: Mapping[str, bytes | None]
    ) -> None:
        self._ctx = ctx
        self._places = real_paths
        self.now: dict[str, Content | bytes | None] = dict(files)

    def apply(self, part: FilePatch) -> dict[str, Any]:
        """Apply one part of the patch; returns its part of the answer."""
        real_path = self._places[part.path]
        data = self._data(real_path)
        act = {"delete": self._delete, "add": self._add, "update": self._update}[part.action]
        return {"path": part.path, **act(part, real_path, data)}

    def _data(self, real_path: str) -> bytes | None:
        held = self.now[real_path]
        return held.data if isinstance(held, Content) else held

    def _delete(self, part: FilePatch, real_path: str, data: bytes | None) -> dict[str, Any]:
        was = removed_content(self._ctx, real_path) if data is None else data
        if was is None:
            raise EditError(f"{part.path} is not there; nothing was changed")
        if part.hunks and _applied(part, decode(was).text).text:
            raise EditError(
                f"{part.path} holds more than the lines that the patch removes; "
                "nothing was changed",
                hint="Read it again. `*** Delete File: path` deletes a file whatever it holds.",
            )
        self.now[real_path] = None
        return _ALREADY if data is None else {"deleted": True}

    def _add(self, part: FilePatch, real_path: str, data: bytes | None) -> dict[str, Any]:
        text = apply_hunks("", part.hunks).text
        if part.returns:
            text = text.replace("\n", "\r\n")
        if data is not None and decode(data).text != text:
            raise EditError(
                f"{part.path} is there already; nothing was changed",
                hint="Update it instead, or delete it first.",
            )
        executable = _executable(part)
        if data is None:
            # The umask decides about other bits of a new file.
            self.now[real_path] = Content(text.encode(), 0o755 if executable else None)
            return {"mode": "755", "created": True} if executable else {"created": True}
        mode = self._mode(part, real_path)
        self.now[real_path] = Content(data, mode)
        return _ALREADY if mode is None else {"mode": f"{mode:o}"}

    def _update(self, part: FilePatch, real_path: str, data: bytes | None) -> dict[str, Any]:
        if data is None and part.move_to and self._is_moved(part, real_path):
            return {"moved_to": part.move_to, **_ALREADY}
        before = editable(part.path, data)
        if (
            data is not None
            and not part.move_to
            and is_resent(self._ctx, real_path, data, before, part)
        ):
            mode = self._mode(part, real_path)
            if mode is None:
                return _ALREADY
            self.now[real_path] = Content(data, mode)
            return {"mode": f"{mode:o}"}
        applied = _applied(part, before.text)
        mode = self._mode(part, real_path)
        self.now[real_path] = Content(encode(applied.text, before), mode)
        answer: dict[str, Any] = {} if mode is None else {"mode": f"{mode:o}"}
        if part.move_to:
            self._move(part, real_path)
            answer["moved_to"] = part.move_to
        if applied.already or (not part.hunks and not answer):
            return answer | _ALREADY
        if part.hunks:
            answer["strategy"] = ", ".join(sorted(set(applied.strategies)))
            answer |= seen(part.path, before.text, applied.text)
        return answer

    def _move(self, part: FilePatch, real_path: str) -> None:
        target = self._places[part.move_to or ""]
        if target == real_path:
            return
        if self.now[target] is not None:
            raise EditError(f"{part.move_to} is there already; nothing was changed")
        held = self.now[real_path]
        if isinstance(held, Content) and held.mode is None:
            status = disk_of(self._ctx).status(real_path)
            held = held._replace(mode=None if status is None else status.mode)
        self.now[target], self.now[real_path] = held, None

    def _is_moved(self, part: FilePatch, real_path: str) -> bool:
        """Whether this patch moved the missing file before."""
        was = removed_content(self._ctx, real_path)
        if was is None:
            return False
        old = decode(was)
        made = encode(_applied(part, old.text).text, old)
        if made != self._data(self._places[part.move_to or ""]):
            raise EditError(f"{part.path} is not there any more; nothing was changed")
        return True

    def _mode(self, part: FilePatch, real_path: str) -> int | None:
        """The new mode of a file, executable or not; None if unchanged.

        A patch never changes read permissions.
        """
        if part.mode is None:
            return None
        status = disk_of(self._ctx).status(real_path)
        old = 0o644 if status is None else status.mode
        new = old | (old & 0o444) >> 2 if _executable(part) else old & ~0o111
        return None if new == old else new


def _executable(part: FilePatch) -> bool:
    """Whether a patch makes a file executable."""
    mode = 0o644 if part.mode is None else stat.S_IMODE(part.mode)
    if mode not in (0o644, 0o755):
        raise EditError(
            f"{part.path}: the patch sets the mode {mode:o}; nothing was changed",
            hint="A patch can make a file executable (755) or not (644), no more.",
        )
    return mode == 0o755


def _applied(part: FilePatch, text: str) -> Applied:
    try:
        return apply_hunks(text, part.hunks)
    except EditError as error:
        raise EditError(f"{part.path}: {error}", hint=error.hint) from None


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
