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
    from hermes.files.patches.applying import apply_hunks
    from hermes.files.patches.difference import short_diff
    from hermes.files.patches.parsing import parse_patch, paths_of
    from hermes.files.patches.syntax import check_syntax, check_syntax_change
    from hermes.files.patches.values import Applied, FilePatch, Hunk

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
        "Applied": "values",
        "FilePatch": "values",
        "Hunk": "values",
        "apply_hunks": "applying",
        "check_syntax": "syntax",
        "check_syntax_change": "syntax",
        "parse_patch": "parsing",
        "paths_of": "parsing",
        "short_diff": "difference",
    },
)
