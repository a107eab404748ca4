"""How a run ended, for programs: one JSON object, whatever happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from hermes.agent.agent import Agent

# What asks for it.
_OPTIONS = ("--json", "--stream-json")
_USAGE = ("input", "output", "cached", "reasoning")


def result(agent: Agent | None, *, ended: str, **known: Any) -> dict[str, Any]:
    """The object: what is `known` of the end, and for the rest what the agent has used so far."""
    from hermes.core.messages import Usage

    budget = agent.budget if agent is not None else None
    fields = {
        "type": "result",
        "session": agent.id if agent is not None else None,
        "text": "",
        "ended": ended,
        "reason": "",
        "steps": budget.used_steps if budget is not None else 0,
        "usage": budget.usage if budget is not None else Usage(),
        # Null where nobody knows the price.
        "usd": round(budget.cost, 9) if budget is not None and not budget.unpriced else None,
        "refused": [],
        **known,
    }
    return fields | {"usage": {name: getattr(fields["usage"], name) for name in _USAGE}}


def misread(words: Sequence[str], why: str) -> None:
    """Print the object for a command line that is wrong, if its words ask for one."""
    options = words[: words.index("--")] if "--" in words else words
    # The start of an option's name will do, as everywhere.
    if any(len(word) > 2 and name.startswith(word) for word in options for name in _OPTIONS):
        from hermes.core.jsontext import to_json
        from hermes.interfaces.cli.terminal import Terminal

        terminal = Terminal()
        terminal.out(to_json(result(None, ended="failed", reason=why)))
        terminal.finish()
