"""Refusals: what was not done, and all that is needed to do it at the next try."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.core.replace.describing import Comparison, visible
from hermes.core.replace.naming import NEW, OLD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes.core.replace.source import Source

_MOST_LINES = 40  # of a region that are shown
_LONGEST = 2_000  # letters of a line that are shown
_MOST_DIFFERENCES = 12
_NEAR = 2  # lines around a difference that are shown with it


class AlreadyAppliedError(EditError):
    """The new text is in place already; `line` is where, counted from 1."""

    already_applied = True

    def __init__(self, line: int) -> None:
        super().__init__(
            f"already applied: the new text is in the file at line {line}; nothing was changed",
            hint="Go on with the next step; read the file first if you expected something else.",
        )
        self.line = line


def not_found(source: Source, old: Sequence[str], start: int | None) -> EditError:
    """The nearest region, which starts about at a line, and each difference by character."""
    lines = list(old)
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    if start is None:
        return EditError(
            f"{OLD} was not found, and nothing in the file resembles it; nothing was changed",
            hint=f"Read the file again, and copy {OLD} from it.",
        )
    found = Comparison(source.contents, lines, start)
    first, last = found.first, found.last
    where = f"line {first + 1}" if first == last else f"lines {first + 1}-{last + 1}"
    summary = found.details[0].split("\n", 1)[0] if found.details else "only in blank lines"
    return EditError(
        f"{OLD} was not found; nothing was changed. Nearest text: {where}. Difference: {summary}",
        hint="The nearest text in the file:\n"
        + "\n".join(_region(source.contents, found))
        + "\nDifferences (→ is a tab, · a space):\n"
        + "\n".join(found.details[:_MOST_DIFFERENCES])
        + "\nIf that is the place, send its lines as they are, without the numbers.",
    )


def _region(contents: Sequence[str], found: Comparison) -> list[str]:
    """The lines of a region with their numbers; of a long one, those around each difference."""
    lines: Iterable[int] = range(found.first, found.last + 1)
    if found.last - found.first >= _MOST_LINES:
        near = {place + step for place in found.places for step in range(-_NEAR, _NEAR + 1)}
        lines = [line for line in lines if line in near][:_MOST_LINES]
    shown: list[str] = []
    reached = found.first - 1
    for line in lines:
        if line != reached + 1:
            shown.append("…")
        shown.append(numbered(contents, line))
        reached = line
    return shown if reached == found.last else [*shown, "…"]


def numbered(contents: Sequence[str], line: int) -> str:
    """A line to copy from, with its number in front."""
    text = contents[line]
    rest = f"… ({len(text)} letters)" if len(text) > _LONGEST else ""
    return f"{line + 1}|{text[:_LONGEST]}{rest}"


def elided(lines: Sequence[str], name: str) -> EditError:
    """A line that stands for text left out is not expanded."""
    return EditError(
        f"{name} leaves text out: `{visible(lines[0])}`; nothing was changed",
        hint=f"Write every line in full: in {OLD} the lines as the file has them, "
        f"in {NEW} all that is to stand there. To change two places, make two edits.",
    )
