"""Hermes inside another program: a tool, a policy of one's own, a model's calls carried out.

Run it: `python examples/embed.py`. The "model" here is a list of calls as models send them:
numbers as text, JSON in a fence, one cut-off argument.
"""

from collections.abc import Mapping
from typing import Any

from hermes import (
    ApprovalRequest,
    EffectPolicy,
    Ruling,
    Runtime,
    ToolCall,
    ToolContext,
    ToolEntry,
    ToolError,
    ToolRegistry,
    tool,
)
from hermes.runtime.hooks import Event

registry = ToolRegistry()
stock = {"lamp": 4, "chair": 0}


@tool(toolset="shop", effect="read", tags=["availability"], registry=registry)
def count_stock(name: str) -> dict[str, int]:
    """How many of a product there are.

    Args:
        name: The product.
    """
    if name not in stock:
        raise ToolError(f"there is no product {name!r}", hint=f"Known: {', '.join(stock)}.")
    return {"count": stock[name]}


@tool(toolset="shop", effect="write", registry=registry)
def order(ctx: ToolContext, name: str, count: int = 1) -> str:
    """Order more of a product.

    Args:
        name: The product.
        count: How many.
    """
    ctx.progress(f"ordering {count} × {name}")
    stock[name] = stock.get(name, 0) + count
    return f"{count} × {name} ordered"


class ShopPolicy(EffectPolicy):
    """The program's own tools run without a question; an order is the exception here."""

    def judge(self, entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext) -> Ruling:
        """Ask before an order."""
        if entry.name == "order":
            return Ruling("ask", reason="it costs money", rule="shop:order")
        return super().judge(entry, arguments, context)


def ask(request: ApprovalRequest) -> bool:
    """The person who approves: small orders are fine."""
    return int(request.arguments["count"]) <= 10


def watch(event: Event) -> None:
    """What a user interface would show."""
    if event.kind == "progress":
        print(f"  … {event.data['message']}")


def main() -> None:
    """Carry out what a model asked for."""
    calls = [
        ToolCall("count_stock", '{"name": "lamp"}', id="1"),
        ToolCall("order", '```json\n{"name": "chair", "count": "3"}\n```', id="2"),
        ToolCall("order", {"name": "chair", "count": 500}, id="3"),
        ToolCall("order", '{"name": "cha', id="4"),
    ]
    with Runtime(registry, policy=ShopPolicy(), approver=ask) as runtime:
        runtime.events.subscribe(watch)
        for outcome in runtime.call_many_sync(calls):
            print(f"{outcome.call_id} {outcome.status}: {outcome.content}")


if __name__ == "__main__":
    main()
