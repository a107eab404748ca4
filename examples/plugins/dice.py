"""A plugin: put it into `~/.hermes/plugins/`, run `hermes plugins approve`, call `roll`.

It also adds a command, `hermes lucky`, and a hook that looks at every call.
"""

import random
from typing import Annotated

from hermes.core.schema import Field
from hermes.tools import tool


@tool(toolset="games", effect="read", emoji="🎲", tags=["random number", "chance", "coin flip"])
def roll(sides: Annotated[int, Field(ge=2, le=1000)] = 6) -> dict[str, int]:
    """Roll a die.

    Args:
        sides: How many sides it has.
    """
    return {"rolled": random.randint(1, sides)}


def register(api):
    """What is not a tool: a toolset, a hook, a command."""
    api.create_toolset("table", "What one needs for a game night", tools=["roll"])
    api.add_hook("post_tool_call", lambda call, outcome: None)
    api.add_command("lucky", lambda app, options: app.out("7"), help="print a lucky number")
