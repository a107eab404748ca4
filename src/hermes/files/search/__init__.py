"""Find files by their content or by their names, and say what was not looked at.

    dialect.py      the one regular-expression dialect, spelled for both engines
      syntax.py     reads it
      pieces.py, sets.py, characters.py   parts of a pattern, sets, what is in them
    globs.py        shell patterns for paths
    ignoring.py     what .gitignore and its kind say
    walking.py      files and folders below a place, less what is hidden or ignored
    values.py       what is asked of an engine, and what it answers
    ripgrep.py      the engine that is fast
    fallback.py     the engine that works on any disk; same answers
      matching.py   matching by Python, in a process of its own when it might take years
    foreign.py      files in other encodings, for patterns beyond ASCII
    lines.py        lines as they are shown
    content.py      `search_content`: page, totals, order, what was left out
    names.py        `search_names`: names by glob, by part, by what was nearly typed
    reports.py      both as short text for a model
    limits.py       the clock, and who may stop a search

Start with content.py.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.files.search.content import Found, search_content
    from hermes.files.search.file_names import Named, search_names
    from hermes.files.search.pattern import Pattern, PatternError, read_pattern
    from hermes.files.search.query import Choice, Watch
    from hermes.text.globs import GlobError, chooser

__all__ = [
    "Choice",
    "Found",
    "GlobError",
    "Named",
    "Pattern",
    "PatternError",
    "Watch",
    "chooser",
    "read_pattern",
    "search_content",
    "search_names",
]

__getattr__ = names_from(
    __name__,
    {
        "Choice": "query",
        "Found": "content",
        "GlobError": "hermes.text.globs",
        "Named": "file_names",
        "Pattern": "pattern",
        "PatternError": "pattern",
        "Watch": "query",
        "chooser": "hermes.text.globs",
        "read_pattern": "pattern",
        "search_content": "content",
        "search_names": "file_names",
    },
)
