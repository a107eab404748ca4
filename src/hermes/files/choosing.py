"""Choosing files by patterns, the same way wherever a tool takes some.

A pattern without a slash fits a name at any depth (`*.py`); one with a slash fits the path from
the top (`src/**/*.py`, `/build`). `**` crosses any number of folders, `{a,b}` is either, and what
fits a folder fits all that is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.paths.globs import compile_parts, expand_braces, matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.safety.paths.globs import Part


class Patterns:
    """Some patterns, ready to be held against paths with slashes, relative to a top folder."""

    __slots__ = ("_patterns",)

    def __init__(self, patterns: Iterable[str] | None) -> None:
        self._patterns: list[tuple[Part, ...]] = []
        for given in patterns or ():
            for pattern in expand_braces(given):
                parts = tuple(part for part in pattern.split("/") if part not in ("", "."))
                if not parts:
                    continue
                if "/" not in pattern.rstrip("/"):
                    parts = ("**", *parts)
                self._patterns.append(compile_parts(parts, folded=False))

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def fit(self, path: str) -> bool:
        """Whether one of the patterns fits a path, or a folder above it."""
        if not self._patterns:
            return False
        parts = path.split("/")
        return any(matches(pattern, parts, below=True) for pattern in self._patterns)
