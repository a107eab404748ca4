"""Differences between two files or two folders.

    content_diff  two inputs -> equal, changed lines, or changed bytes
    render        changed lines as unified diff, side by side, or summary
    folder_diff   two folders -> added, removed, changed
    git_head      a file as in the last commit

Start with content_diff.py. At most a few megabytes per input are held in memory.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.files.compare.content_diff import Side, compare_contents
    from hermes.files.compare.folder_diff import compare_folders
    from hermes.files.compare.git_head import committed

__all__ = ["Side", "committed", "compare_contents", "compare_folders"]

__getattr__ = names_from(
    __name__,
    {
        "Side": "content_diff",
        "committed": "git_head",
        "compare_contents": "content_diff",
        "compare_folders": "folder_diff",
    },
)
