"""The disk of a task: what is there, what a call has to be for it, what a look at it adds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.looking import lacks_end
from hermes.agent.providers.embedded.surroundings import files_below, runnable, there

if TYPE_CHECKING:
    from typing import Any

    from hermes.agent.providers.embedded.toolbox import SmallTool
    from hermes.core.context import ToolContext


def files_of(context: ToolContext) -> list[str]:
    """The files of the workspace."""
    from hermes.environments import disk_of

    return files_below(disk_of(context), os.path.realpath(context.workspace))


def is_there(context: ToolContext, path: str) -> bool:
    """Whether there is anything at a path."""
    from hermes.environments import disk_of

    return there(disk_of(context), os.path.realpath(context.workspace), path)


def fitted(context: ToolContext, tool: SmallTool, given: dict[str, Any]) -> dict[str, Any]:
    """What is given, as it has to be for the files there are."""
    from hermes.environments import disk_of

    disk, root = disk_of(context), os.path.realpath(context.workspace)
    if tool.name == "terminal":
        return {**given, "command": runnable(str(given["command"]), disk, root)}
    if tool.name == "append_file" and lacks_end(disk, root, str(given["path"])):
        # The new text begins a line of its own.
        return {**given, "content": f"\n{given['content']}"}
    return given


def looked(
    context: ToolContext, tool: SmallTool, given: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """A result with what a look at the disk adds to it."""
    from hermes.environments import disk_of

    if tool.look is None or data.get("exit_code"):
        return data
    return data | tool.look(disk_of(context), os.path.realpath(context.workspace), given, data)
