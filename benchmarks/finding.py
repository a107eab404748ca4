"""How often the right tool is among the first five, beside plain BM25 on the same needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Row
from benchmarks.search.run import documents, needs, plain_bm25, recall, searcher, share

if TYPE_CHECKING:
    from collections.abc import Iterator


def rows() -> Iterator[Row]:
    """The share of needs that are missed, lower is better."""
    docs = documents()
    for title, search in (("plain BM25", plain_bm25(docs)), ("tool_search", searcher(docs, None))):
        for half, some in needs().items():
            missed = 100 * (1 - share(recall(some, search)["all"], 5))
            limit = 10 if title == "tool_search" else None
            yield Row(f"{title}: needs missed in five, {half}", missed, "%", limit)
