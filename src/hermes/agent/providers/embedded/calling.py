"""What the small tools really call: arguments of the real tools, from those of the model."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.expressions import program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Arguments = Mapping[str, Any]

# Shorter words are in every text.
_LONG = 3


def append(given: Arguments) -> dict[str, Any]:
    """Add a text as lines of its own."""
    text = shlex.quote(str(given["content"]).rstrip("\n"))
    return {"command": f"printf '%s\\n' {text} >> {shlex.quote(str(given['path']))}"}


def moving(command: str, given: Arguments) -> dict[str, Any]:
    """Copy or move, with the folder made that it goes to."""
    path, to = str(given["path"]), str(given["to"])
    folder = to if into_folder(given) else os.path.dirname(to)
    made = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
    return {"command": f"{made}{command} -- {shlex.quote(path)} {shlex.quote(to)}"}


def into_folder(given: Arguments) -> bool:
    """Whether what is copied or moved goes into a folder of this name, be there one or not."""
    path, to = str(given["path"]), str(given["to"])
    # `backup` is meant as a folder when what goes there has an ending and it has none.
    named = os.path.splitext(path)[1] and not os.path.splitext(to)[1]
    return to.endswith("/") or bool(named)


def calculate(given: Arguments) -> dict[str, Any]:
    """Work out an expression."""
    # The grammar lets only numbers and their functions in.
    return {
        "command": f"python3 -c {shlex.quote(program(str(given['expression'])))}",
        "timeout": 20,
    }


def write(given: Arguments) -> dict[str, Any]:
    """Make a file whose last line has an end."""
    content = str(given["content"])
    return {"path": given["path"], "content": content if content.endswith("\n") else f"{content}\n"}


def patch(given: Arguments) -> dict[str, Any]:
    """Replace a text wherever it stands."""
    old, new = str(given["old"]), str(given["new"])
    if " " in old and re.search(r"\w\.$", new) and old[-1:] != "." and new[:-1] != old:
        # A corrected line tends to get a full stop that nobody asked for.
        new = new[:-1]
    return {
        "path": given["path"], "old_string": old, "new_string": new, "replace_all": True,
    }  # fmt: skip


def count(given: Arguments) -> dict[str, Any]:
    """Lines and words of each file; `looking.edges` knows of a last line without an end."""
    paths = dict.fromkeys(map(str, given["paths"]))
    return {"command": f"wc -lw -- {' '.join(map(shlex.quote, paths))}"}


def search_words(given: Arguments) -> dict[str, Any]:
    """Search for any of the longer words of a text; nothing where it is one word."""
    words = [word for word in re.findall(r"[^\W_]+", str(given["text"])) if len(word) > _LONG]
    if len(str(given["text"]).split()) < 2 or not words:
        return {}
    return {"pattern": "|".join(map(re.escape, words)), "ignore_case": True}
