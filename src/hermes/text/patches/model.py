"""Patch model: files, hunks and their lines; result of an application."""

from __future__ import annotations

import re

from hermes.core.errors import EditError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Action = Literal["update", "add", "delete"]

CONTEXT, REMOVED, ADDED = " -+"
_RANGE = re.compile(r"@@+ *-(\d+)(?:,(\d+))? +\+(\d+)(?:,(\d+))? *(?:@@+)?(.*)")


class PatchError(EditError):
    """A patch can't be read; `line` is the line of the patch, counted from 1."""

    def __init__(self, line: int, problem: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"line {line} of the patch: {problem}; nothing was changed",
            hint=hint or "Send the whole patch again with that line put right.",
        )
        self.line = line


class Opening:
    """A hunk header, the line that starts with `@@`; each part may be missing.

    `start` and `new_start` are lines of the old and the new file, counted from 1; `counts` is
    how many lines of each the hunk has; `heading` is the text behind.
    """

    __slots__ = ("counts", "heading", "new_start", "start")

    def __init__(self, line: str) -> None:
        match = _RANGE.match(line)
        self.start = int(match[1]) if match else None
        self.new_start = int(match[3]) if match else None
        self.counts = (int(match[2] or 1), int(match[4] or 1)) if match else None
        rest = match[5] if match else line.lstrip("@")
        rest = rest.strip().removesuffix("@@").strip()
        self.heading = rest if rest.strip(".… ") else ""


class Hunk:
    """One change: lines to be found, some of them removed, and lines to be added.

    `lines` are (mark, text) pairs, the mark being one of " -+". `start` and `new_start` are where
    the patch says that it begins before and after, counted from 1; `headings` are lines that
    stand above the place; `at_end` says that it ends with the file. `old_bare` and `new_bare` say
    that the last line has no line end before or after; `line` is where it is in the patch.
    """

    __slots__ = (
        "at_end",
        "headings",
        "line",
        "lines",
        "new_bare",
        "new_start",
        "old_bare",
        "start",
    )

    def __init__(self, line: int) -> None:
        self.line = line
        self.start: int | None = None
        self.new_start: int | None = None
        self.headings: list[str] = []
        self.lines: list[tuple[str, str]] = []
        self.at_end = False
        self.old_bare = False
        self.new_bare = False

    @property
    def old(self) -> list[str]:
        """The lines that the file has to have."""
        return [text for mark, text in self.lines if mark != ADDED]

    @property
    def new(self) -> list[str]:
        """The lines that take their place."""
        return [text for mark, text in self.lines if mark != REMOVED]

    @property
    def changes(self) -> bool:
        """Whether it adds or removes anything."""
        return any(mark != CONTEXT for mark, _ in self.lines)


class FilePatch:
    """The changes of a patch to one file; `mode` is the new mode where the patch sets one.

    The lines of a new file end with carriage returns, too, when it says `returns`.
    """

    __slots__ = ("action", "hunks", "line", "mode", "move_to", "path", "returns")

    def __init__(
        self,
        path: str,
        action: Action,
        *,
        line: int,
        move_to: str | None = None,
        mode: int | None = None,
    ) -> None:
        self.path = path
        self.action = action
        self.line = line
        self.move_to = move_to
        self.mode = mode
        self.returns = False
        self.hunks: list[Hunk] = []


class Applied:
    """A text after its hunks: how each was found, or that all of them were in place already."""

    __slots__ = ("already", "strategies", "text")

    def __init__(self, text: str, strategies: list[str], *, already: bool = False) -> None:
        self.text = text
        self.strategies = strategies
        self.already = already
