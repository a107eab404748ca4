"""A whole new content for a file: whether it may take the old one's place, and its spelling."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.files.seen_files import digest_of
from hermes.text.diff import short_diff
from hermes.text.encoding import decode, encode
from hermes.text.replace.engine import elisions

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.files.seen_files import Version
    from hermes.text.encoding import Text

# A file of some size that would keep less than this share of it was probably written from memory.
_LARGE = 8_000
_SHARE = 0.3
_LINE_END = re.compile(r"\r\n|\r|\n")


class StaleError(ToolError):
    """A file changed since it was last read; nothing was written."""


def check_names_file(path: str) -> None:
    """Raise `ToolError` when a path that is to become a file is spelled as a folder's."""
    if path.replace(os.sep, "/").endswith(("/", "/.", "/..")) or path in (".", ".."):
        raise ToolError(f"{path} names a folder", hint="Name a file in it.")


def check_unchanged(
    path: str, now: bytes | None, seen: Version | None, *, winner: Callable[[], str]
) -> None:
    """Raise `StaleError` with a diff when a file differs from the version that the task saw.

    Args:
        path: As the caller wrote it.
        now: Its present content; None when it is gone.
        seen: The version that the task saw; None when it never read the file.
        winner: The author of the present content; empty when unknown.
    """
    if seen is None or (now is not None and (now == seen.data or digest_of(now) == seen.digest)):
        return
    verb = "wrote" if seen.wrote else "read"
    who = f" by {name}" if (name := winner()) else ""
    if now is None:
        message = (
            f"{path} was removed{who} since you {verb} it (call {seen.call}); nothing was written"
        )
        raise StaleError(message, hint="Check with read_file, then write again.")
    message = f"{path} was changed{who} since you {verb} it (call {seen.call}); nothing was written"
    if seen.data is not None:
        changes = short_diff(_shown(seen.data), _shown(now), path, limit=3_000)
        message = f"{message}. What changed since:\n{changes}"
    raise StaleError(message, hint="Read it again, take over these changes, then write.")


def check_whole(path: str, content: str, old: Text, *, shrink: bool) -> None:
    """Raise `ToolError` when new content looks like a mistake: elided, or much shorter."""
    old_text = old.text
    if not old.certain:
        raise ToolError(
            f"{path} is not text, or in an encoding that can't be told; nothing was written",
            hint="Remove it first if it shall be replaced, or choose another name.",
        )
    lacking = [line for line in elisions(content) if line not in old_text]
    if lacking:
        raise ToolError(
            f"the content stands for more than it says ({lacking[0]!r:.80}); nothing was written",
            hint="Send the whole content. `patch` changes a part of a file.",
        )
    if not shrink and len(old_text) > _LARGE and len(content) < len(old_text) * _SHARE:
        raise ToolError(
            f"{path} would shrink from {len(old_text):,} to {len(content):,} characters; "
            "nothing was written",
            hint="Pass allow_shrink=true if that is meant. `patch` changes a part of a file.",
        )


def spelled_like(content: str, old: Text) -> bytes:
    """New content in the encoding, with the BOM and the line ends, of the file it replaces."""
    if not _LINE_END.search(old.text):
        # It has no line ends that could stay.
        return encode(content, old)
    if old.newline in ("\n", "\r\n", "\r"):
        content = _LINE_END.sub(old.newline, content) if old.newline != "\n" else content
        if old.newline == "\n" and "\r\n" in content and "\n" not in content.replace("\r\n", ""):
            content = content.replace("\r\n", "\n")
    elif old.newline == "mixed":
        content = _ends_kept(content, old.text)
    return encode(content, old)


def _ends_kept(content: str, old_text: str) -> str:
    """Unchanged lines keep their line ends; new ones get the usual."""
    old, new = _lines(old_text), _lines(content)
    ends = [end for _, end in old if end]
    usual = max(set(ends), key=ends.count)
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head][0] == new[head][0]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail][0] == new[-1 - tail][0]:
        tail += 1
    middle = len(new) - head - tail
    kept = (
        [end for _, end in old[:head]] + [""] * middle + [end for _, end in old[len(old) - tail :]]
    )
    # A last line without an end stays without.
    return "".join(
        body + ((was or usual) if end else "") for (body, end), was in zip(new, kept, strict=True)
    )


def _lines(text: str) -> list[tuple[str, str]]:
    """Each line with its line end; text after the last one counts as a line."""
    parts = re.split(r"(\r\n|\r|\n)", text)
    lines = list(zip(parts[::2], [*parts[1::2], ""], strict=True))
    return lines if lines[-1][0] else lines[:-1]


def _shown(data: bytes) -> str:
    return decode(data).text
