"""Suggestions for mistyped names: "Did you mean …?"."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable


def close_matches(
    name: str, known: Iterable[str], *, count: int = 1, cutoff: float = 0.5
) -> list[str]:
    """The known names most similar to `name`, best first; `cutoff` is the least similarity."""
    from difflib import get_close_matches

    return get_close_matches(name, list(known), count, cutoff)


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str = "", *, count: int = 1, cutoff: float = 0.5
) -> str:
    """`Did you mean X or Y?`, or `otherwise` when no known name is similar."""
    near = close_matches(name, known, count=count, cutoff=cutoff)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise
