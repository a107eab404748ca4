"""The labelled needs of the benchmark: the right tool stays among the first five."""

from __future__ import annotations

import json
from pathlib import Path

from hermes.runtime.tool_search.index import Document, SearchIndex

DATA = Path(__file__).parents[3] / "benchmarks" / "search"
FLOOR = 0.95


def test_the_right_tool_is_among_the_first_five() -> None:
    index = SearchIndex()
    for row in json.loads((DATA / "catalogue.json").read_text(encoding="utf-8")):
        index.add(
            Document(
                row["name"],
                row["toolset"],
                row["description"],
                tuple(row["tags"]),
                tuple(row["parameters"]),
            )
        )
    lines = (DATA / "needs.jsonl").read_text(encoding="utf-8").splitlines()
    needs = [json.loads(line) for line in lines]

    missed = [
        need["need"]
        for need in needs
        if not {hit.name for hit in index.search(need["need"])} & set(need["tools"])
    ]

    assert len(needs) >= 400
    assert 1 - len(missed) / len(needs) >= FLOOR, missed
