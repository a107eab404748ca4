"""Search results as short text for a model."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from hermes.files.search.content import ContentMatches
    from hermes.files.search.file_names import NameMatches
    from hermes.files.search.query import SearchDeadline, Skipped

    Output = Literal["content", "files", "count"]

# What the switch to include them is called.
_SWITCHES = {
    "hidden": "hidden=true",
    "ignored": "ignored=true",
    "binary": "binary=true",
}
_WORDS = {"large": "too large to search without ripgrep", "links": "links, not followed"}
_HOW = {
    "letters": "no name holds this text; these have its letters in order",
    "spelling": "no name holds this text; these are spelled alike",
}


def content_report(
    result: ContentMatches,
    output: Output,
    lead: str,
    *,
    offset: int,
    limit: int,
    watch: SearchDeadline,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """The answer to a search in contents; paths begin with `lead`."""
    answer: dict[str, Any] = {}
    if output == "content":
        total = result.total
        answer["matches"] = "\n".join(
            line for path, lines in result.lines.items() for line in _grouped(lead + path, lines)
        )
    else:
        total = len(result.counts)
        page = list(result.counts.items())[offset : offset + limit]
        answer[output if output == "files" else "counts"] = "\n".join(
            f"{quoted(lead + path)}: {lines}" if output == "count" else quoted(lead + path)
            for path, lines in page
        )
    answer["total_matches"] = result.total
    answer["files_matched"] = len(result.counts)
    answer["files_scanned"] = result.scanned
    if offset + limit < total or result.unjudged:
        answer["next_offset"] = offset + limit
    notes = [*notes, *_notes(result, watch)]
    if result.unjudged:
        notes.append(f"{result.unjudged} more files match, which the totals leave out")
    if result.vanished:
        notes.append(f"{result.vanished} files changed during the search and are not shown")
    answer.update(notes_of(result.skipped, notes))
    return answer


def names_report(
    result: NameMatches, lead: str, *, offset: int, limit: int, watch: SearchDeadline
) -> dict[str, Any]:
    """The answer to a search for names; paths begin with `lead`."""
    answer: dict[str, Any] = {
        "paths": "\n".join(quoted(lead + path) for path in result.paths),
        "total_matches": result.total,
        "scanned": result.scanned,
    }
    if offset + limit < result.total:
        answer["next_offset"] = offset + limit
    notes = _notes(result, watch)
    if result.paths and result.how in _HOW:
        notes.insert(0, _HOW[result.how])
    answer.update(notes_of(result.skipped, notes))
    return answer


def nothing_found(
    result: ContentMatches, pattern: str, glob: str | None, *, literal: bool
) -> list[str]:
    """Possible reasons for an empty result."""
    if result.counts or result.withheld or not result.finished:
        return []
    if glob and not result.scanned:
        return [f"no file fits the glob {glob!r}; it is compared with paths below `path`"]
    if not literal and "\\|" in pattern:
        return ["`\\|` is a bar as it is; alternatives are written `a|b`"]
    return []


def notes_of(skipped: Skipped, notes: list[str]) -> dict[str, Any]:
    """Skipped entries and notes as fields of the answer, if there are any."""
    fields: dict[str, Any] = {}
    if text := skipped_text(skipped):
        fields["skipped"] = text
    if notes:
        fields["note"] = "; ".join(notes)
    return fields


def skipped_text(skipped: Skipped) -> str:
    """Skipped entries and the option that includes them: `3 hidden (hidden=true), 1 binary`."""
    parts = []
    for name in ("hidden", "ignored", "binary", "large", "unreadable", "links"):
        number = getattr(skipped, name)
        if number:
            switch = f" ({_SWITCHES[name]})" if name in _SWITCHES else ""
            parts.append(f"{number} {_WORDS.get(name, name)}{switch}")
    return ", ".join(parts)


def _notes(result: ContentMatches | NameMatches, watch: SearchDeadline) -> list[str]:
    notes = []
    if not result.finished:
        notes.append(
            f"stopped after {watch.seconds:g} s, {result.scanned} files scanned: this is a part of"
            " the answer; name a deeper path or a glob"
        )
    if result.withheld:
        notes.append(f"{result.withheld} matching files are withheld: you may not read them")
    return notes


def _grouped(path: str, lines: list[tuple[int, bool, str]]) -> list[str]:
    """`path:12: text`, and the other lines of the file indented; `-` marks those around."""
    shown = []
    last = 0
    lead = f"{quoted(path)}:"
    gaps = any(not matches for _, matches, _ in lines)
    for number, matches, text in lines:
        if gaps and last and number > last + 1:
            shown.append("  --")
        shown.append(f"{lead}{number}{':' if matches else '-'} {text}")
        lead = "  "
        last = number
    return shown


def quoted(path: str) -> str:
    """A path on one line: one with odd characters in quotes, with escapes."""
    if path.isprintable():
        return path
    return '"' + path.encode("unicode_escape").decode().replace('"', '\\"') + '"'
