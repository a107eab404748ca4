"""Patches: unified diffs and codex patches, parsed, located in a text and applied.

    model           FilePatch, Hunk, Applied
    parse           parse_patch, paths_of; the codex format (`*** Begin Patch`)
    unified_format  the format of `diff -u` and git
    locate          position of each hunk: by content, headings, order and line number
    apply           apply_hunks: all hunks of one file, or none; applied hunks are recognised

Start with `apply`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.text.patches.apply import apply_hunks
    from hermes.text.patches.model import Applied, FilePatch, Hunk
    from hermes.text.patches.parse import parse_patch, paths_of

__all__ = ["Applied", "FilePatch", "Hunk", "apply_hunks", "parse_patch", "paths_of"]

__getattr__ = names_from(
    __name__,
    {
        "Applied": "model",
        "FilePatch": "model",
        "Hunk": "model",
        "apply_hunks": "apply",
        "parse_patch": "parse",
        "paths_of": "parse",
    },
)
