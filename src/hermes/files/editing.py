"""Edits of a piece of a file, and what every edit has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.replace import AlreadyAppliedError, replace_text
from hermes.files.changing import rewrite
from hermes.files.patches import check_syntax_change, short_diff
from hermes.files.text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.files.text import Text

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
        text = editable(path, files[place])
        done = replace_text(text.text, old, new, replace_all=replace_all, names=_NAMES)
        answer.update(replacements=done.count, strategy=done.strategy)
        answer.update(seen(path, text.text, done.text))
        return {place: encode(done.text, text)}

    try:
        rewrite(ctx, [place], edited)
    except AlreadyAppliedError as error:
        return answer | {"already_applied": True, "note": str(error)}
    return answer


def editable(path: str, data: bytes | None) -> Text:
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


def seen(path: str, before: str, after: str) -> dict[str, Any]:
    """The diff of an edit, and a warning when the file can no longer be read as what it is."""
    answer: dict[str, Any] = {"diff": short_diff(before, after, path, limit=_DIFF)}
    wrong = check_syntax_change(path, before, after)
    if wrong:
        answer["warning"] = f"the file no longer parses: {wrong}"
    return answer
