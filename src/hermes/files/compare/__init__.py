"""What is different between two files, or between two folders.

    sides.py      one side of a comparison: a file, a text; and where two of them differ
    showing.py    changes as a unified diff, side by side, or as a summary
    contents.py   two sides -> what to tell: equal, lines, bytes
    folders.py    two folders -> added, removed, changed
    head.py       a file as the last commit has it

Start with contents.py. Nothing here is ever held in memory beyond a few megabytes a side.
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
