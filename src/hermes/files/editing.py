"""Edits of parts of files: one piece of text, or a patch over several files."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from hermes.core.errors import EditError, ToolError
from hermes.core.replace import AlreadyAppliedError, replace_text
from hermes.environments import disk_of
from hermes.files.changing import Content, rewrite
from hermes.files.patches import apply_hunks, check_syntax_change, parse_patch, short_diff
from hermes.files.text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.files.patches import FilePatch
    from hermes.files.text import Text
    from hermes.runtime.disk import Disk

# How much of a diff a result shows.
_DIFF = 4_000
# What the tool calls the two texts of an edit.
_NAMES = ("old_string", "new_string")


def replace_in_file(
    ctx: ToolContext, path: str, old: str, new: str, *, replace_all: bool
) -> dict[str, Any]:
    """Replace a piece of text in one file; the answer says how it was found and what changed."""
    place = ctx.place(path, "write")
    answer: dict[str, Any] = {"path": path}

    def edited(files: Mapping[str, bytes | None]) -> dict[str, bytes]:
        text = _editable(path, files[place])
        done = replace_text(text.text, old, new, replace_all=replace_all, names=_NAMES)
        answer.update(replacements=done.count, strategy=done.strategy)
        answer.update(_seen(path, text.text, done.text))
        return {place: encode(done.text, text)}

    try:
        rewrite(ctx, [place], edited)
    except AlreadyAppliedError as error:
        return answer | {"already_applied": True, "note": str(error)}
    return answer


def apply_patch(ctx: ToolContext, patch: str) -> dict[str, Any]:
    """Apply a patch to every file it names, or to none."""
    parts, disk = parse_patch(patch), disk_of(ctx)
    places: dict[str, str] = {}
    for part in parts:
        goes = part.action == "delete" or part.move_to
        places[part.path] = ctx.place(part.path, "delete" if goes else "write")
        if part.move_to:
            places[part.move_to] = ctx.place(part.move_to, "write")
    answers: list[dict[str, Any]] = []

    def patched(files: Mapping[str, bytes | None]) -> dict[str, Content | bytes | None]:
        # A patch may speak of one file twice: the second part sees what the first one made.
        now: dict[str, Content | bytes | None] = dict(files)
        answers.extend(_apply(part, places, now, disk) for part in parts)
        return now

    rewrite(ctx, places.values(), patched)
    return {"files": answers}


def _apply(
    part: FilePatch,
    places: Mapping[str, str],
    now: dict[str, Content | bytes | None],
    disk: Disk,
) -> dict[str, Any]:
    """Put the new content of one file of a patch among `now`; what to say of it."""
    place = places[part.path]
    held = now[place]
    data = held.data if isinstance(held, Content) else held
    answer: dict[str, Any] = {"path": part.path}
    if part.action == "delete":
        if data is None:
            raise EditError(f"{part.path} is not there; nothing was changed")
        now[place] = None
        return answer | {"deleted": True}
    mode = None if part.mode is None else stat.S_IMODE(part.mode)
    if mode is not None:
        if mode not in (0o644, 0o755):
            raise EditError(
                f"{part.path}: the patch sets the mode {mode:o}; nothing was changed",
                hint="A patch can make a file executable (755) or not (644), no more.",
            )
        answer["mode"] = f"{mode:o}"
    if part.action == "add":
        text = apply_hunks("", part.hunks).text
        if data is not None and decode(data).text != text:
            raise EditError(
                f"{part.path} is there already; nothing was changed",
                hint="Update it instead, or delete it first.",
            )
        now[place] = Content(text.encode(), mode)
        return answer | ({"created": True} if data is None else {"already_applied": True})
    before = _editable(part.path, data)
    try:
        applied = apply_hunks(before.text, part.hunks)
    except EditError as error:
        raise EditError(f"{part.path}: {error}", hint=error.hint) from None
    now[place] = Content(encode(applied.text, before), mode)
    if part.move_to:
        target = places[part.move_to]
        if target != place:
            if now[target] is not None:
                raise EditError(f"{part.move_to} is there already; nothing was changed")
            found = disk.status(place)
            if mode is None and found is not None:
                mode = found.mode
            now[target], now[place] = Content(encode(applied.text, before), mode), None
        answer["moved_to"] = part.move_to
    if applied.already:
        return answer | {"already_applied": True}
    answer["strategy"] = ", ".join(sorted(set(applied.strategies)))
    return answer | _seen(part.path, before.text, applied.text)


def _editable(path: str, data: bytes | None) -> Text:
    """The text of a file that is to be edited; refused where writing it back could harm it."""
    if data is None:
        raise ToolError(f"{path} is not there", hint="Use write_file to make it.")
    text = decode(data)
    if not text.certain:
        raise ToolError(
            f"the encoding of {path} can't be told, so it was not edited",
            hint="Convert it to UTF-8 first, or edit it with terminal.",
        )
    return text


def _seen(path: str, before: str, after: str) -> dict[str, Any]:
    """The diff of an edit, and a warning when the file can no longer be read as what it is."""
    seen: dict[str, Any] = {"diff": short_diff(before, after, path, limit=_DIFF)}
    wrong = check_syntax_change(path, before, after)
    if wrong:
        seen["warning"] = f"the file no longer parses: {wrong}"
    return seen
