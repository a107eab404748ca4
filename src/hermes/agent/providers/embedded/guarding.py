"""No file is changed that the request does not name: asked before a call, looked at after it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.calling import into_folder
from hermes.agent.providers.embedded.changes import changes, put_back_unnamed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.agent.providers.embedded.naming import Named
    from hermes.agent.providers.embedded.toolbox import SmallTool
    from hermes.core.context import ToolContext

# The tools whose text could go to another file.
_WRITING = frozenset({"write_file", "append_file", "terminal"})
# What runs a script that is named after it.
_RUNNERS = frozenset({"sh", "bash", "zsh", "python", "python3", "node", "perl", "ruby"})


def refusal(tool: SmallTool, given: dict[str, Any], named: Named, context: ToolContext) -> str:
    """Why a call may not be made: it would change a file that nobody named; else nothing."""
    root = os.path.join(os.path.realpath(context.workspace), "")
    for path, whole in _written(tool, given, named, root):
        exists = os.path.isfile(os.path.join(root, path))
        if tool.name == "terminal" and not exists and (path[:1] == "/" or named.leads_to(path)):
            # What a command makes elsewhere is nobody's loss, nor is a folder for what is named.
            continue
        if tool.name == "make_folder" and not exists and named.says(os.path.basename(path)):
            continue
        if not named.may_change(path, exists=exists, whole=whole):
            spoken = tool.name in _WRITING and named.targets
            instead = f" Write to {' or '.join(named.targets)}." if spoken else ""
            return f"Not done: the request does not name {path}, so it stays as it is.{instead}"
    return ""


def after_command(command: str, call: str, named: Named, context: ToolContext) -> str:
    """What a command did to files, in words; undone where nobody asked for it."""
    restored = [] if _asked_for(command, named) else put_back_unnamed(context, call, named)
    notes = [f"{path} was put back: the request does not name it." for path in restored]
    now = [f"{one.told} was {one.what}" for one in changes(context)]
    if now:
        notes.append(f"(So far: {', '.join(now[:8])}.)")
    return "".join(f"\n\n{note}" for note in notes)


def _written(
    tool: SmallTool, given: dict[str, Any], named: Named, root: str
) -> Iterator[tuple[str, bool]]:
    """The paths that a call would write to, and whether as a whole."""
    for argument, whole in tool.writes.items():
        path = str(given[argument])
        if argument == "to" and (into_folder(given) or os.path.isdir(os.path.join(root, path))):
            path = os.path.join(path, os.path.basename(str(given["path"])))
        yield path, whole
    if tool.name == "terminal" and not _asked_for(given["command"], named):
        from hermes.safety.shell import detect_dangerous_command

        verdict = detect_dangerous_command(given["command"], cwd=root.rstrip("/"))
        for place in verdict.writes:
            yield place.removeprefix(root), False


def _asked_for(command: str, named: Named) -> bool:
    """Whether the person wanted this very command, or a program of theirs, to be run."""
    if named.says(command):
        return True
    words = command.split()
    if words and os.path.basename(words[0]) in _RUNNERS:
        words = words[1:]
    elif not (words and "/" in words[0]):
        # `rm notes.txt` runs nothing of theirs; `sh notes.sh` and `./notes.sh` do.
        return False
    return bool(words) and named.says_program(words[0])
