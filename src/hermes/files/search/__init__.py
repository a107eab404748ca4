"""Search files by content or by name, and report the entries that were skipped.

    pattern        regular expression or plain text, for either engine
    query          the request, the counts of an engine, the deadline
    walk           files and folders below a root, without hidden and ignored ones
    ripgrep        the fast engine
    python_engine  the engine for any disk, and for other encodings
    content        `search_content`: matches, totals, order, skipped files
    file_names     `search_names`: names by glob, by part, by similarity
    report         results as short text for a model

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
