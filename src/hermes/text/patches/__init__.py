"""Patches: from the text a model sends to changed files, or to the reason why not.

    values       FilePatch, Hunk, Applied: what a patch says and what became of it
    parsing      parse_patch, paths_of: which of the two styles a text is written in
    unified      the style of `diff -u` and git
    names        the file names of unified diffs: quotes, prefixes, time stamps
    envelope     the style of `*** Begin Patch`
    applying     apply_hunks: all hunks of one file, or none
    locating     where each hunk belongs: by its lines, its headings, its order, its number
    repeating    hunks that are in place already
    syntax       check_syntax: whether a file that could be read still can
    difference   short_diff: what changed, for a result

Nothing here reads or writes files. Start with `applying`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.text.patches.apply import apply_hunks
    from hermes.text.patches.model import Applied, FilePatch, Hunk
    from hermes.text.patches.parse import parse_patch, paths_of
    from hermes.text.short_diff import short_diff
    from hermes.text.syntax_check import check_syntax, check_syntax_change

__all__ = [
    "Applied",
    "FilePatch",
    "Hunk",
    "apply_hunks",
    "check_syntax",
    "check_syntax_change",
    "parse_patch",
    "paths_of",
    "short_diff",
]

__getattr__ = names_from(
    __name__,
    {
        "Applied": "model",
        "FilePatch": "model",
        "Hunk": "model",
        "apply_hunks": "apply",
        "check_syntax": "hermes.text.syntax_check",
        "check_syntax_change": "hermes.text.syntax_check",
        "parse_patch": "parse",
        "paths_of": "parse",
        "short_diff": "hermes.text.short_diff",
    },
)
