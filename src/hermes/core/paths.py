"""Path comparison: is one path inside a directory?"""

from __future__ import annotations

import os


def is_below(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies inside it.

    A comparison of text: both are absolute and normalised; pass real paths where links matter.
    An empty `directory` contains nothing.
    """
    base = directory.rstrip("/")
    return (
        bool(directory)
        and path.startswith(base)
        and path[len(base) : len(base) + 1] in ("", "/", os.sep)
    )
