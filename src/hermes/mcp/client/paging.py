"""Lists that come in pages, walked to their end, even those that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any


async def pages(ask: Callable[..., Any], most: int) -> AsyncIterator[Any]:
    """Each page of a list, up to `most`; a server that leads back to a page has no more.

    Args:
        ask: Gives the page at a `cursor`; the first one where that is None.
    """
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(most):
        page = await ask(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if not cursor or cursor in seen:
            return
        seen.add(cursor)
