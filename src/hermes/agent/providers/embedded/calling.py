"""What the small tools really call: arguments of the real tools, from those of the model."""

from __future__ import annotations

import ast
import os
import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Arguments = Mapping[str, Any]

# Sums and averages of numbers one after the other, as people write them; 372.0 is said as 372.
_FUNCTIONS = (
    "from math import *; all_of = sum; sum = lambda *n: all_of(n); "
    "average = lambda *n: all_of(n) / len(n); "
    "plain = lambda n: int(n) if n == int(n) else round(n, 10)"
)
# `15%` with no number after it is a share, `17 % 5` what is left over.
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%(?!\s*[\d(])")

# Shorter words are in every text.
_LONG = 3


def append(given: Arguments) -> dict[str, Any]:
    """Add a text as lines of its own."""
    path = shlex.quote(str(given["path"]))
    text = shlex.quote(str(given["content"]).rstrip("\n"))
    # The last line may lack its end; the new text still begins a line of its own.
    ended = f'[ ! -s {path} ] || [ -z "$(tail -c1 {path})" ] || echo >> {path}'
    return {"command": f"{ended}; printf '%s\\n' {text} >> {path}"}


def moving(command: str, given: Arguments) -> dict[str, Any]:
    """Copy or move, with the folder made that it goes to."""
    path, to = str(given["path"]), str(given["to"])
    # `backup` is meant as a folder when what goes there has an ending and it has none.
    named = os.path.splitext(path)[1] and not os.path.splitext(to)[1]
    folder = to if to.endswith("/") or named else os.path.dirname(to)
    made = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
    return {"command": f"{made}{command} -- {shlex.quote(path)} {shlex.quote(to)}"}


def calculate(given: Arguments) -> dict[str, Any]:
    """Work out an expression."""
    # The grammar lets only numbers and their functions in.
    code = shlex.quote(f"{_FUNCTIONS}; print(plain({_expression(given)}))")
    return {"command": f"python3 -c {code}", "timeout": 20}


def _expression(given: Arguments) -> str:
    return _SHARE.sub(r"(\1/100)", str(given["expression"]).replace("^", "**"))


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
    """Path, lines, words and the first line of each file; a last line without an end counts."""
    paths = " ".join(shlex.quote(str(path)) for path in dict.fromkeys(given["paths"]))
    absent = '[ -f "$f" ] || { echo "there is no file $f" >&2; exit 1; }'
    counts = '"$f" "$(grep -c "" -- "$f")" "$(wc -w < "$f")" "$(head -n 1 -- "$f")"'
    told = f"printf '%s\\t%s\\t%s\\t%s\\n' {counts}"
    return {"command": f"for f in {paths}; do {absent}; {told}; done"}


def search_words(given: Arguments) -> dict[str, Any]:
    """Search for any of the longer words of a text; nothing where it is one word."""
    words = [word for word in re.findall(r"[^\W_]+", str(given["text"])) if len(word) > _LONG]
    if len(str(given["text"]).split()) < 2 or not words:
        return {}
    return {"pattern": "|".join(map(re.escape, words)), "ignore_case": True}


def senseless(given: Arguments) -> str:
    """Why an expression can't be worked out, whatever its numbers are; else nothing."""
    try:
        ast.parse(_expression(given), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"{given['expression']} is no expression of numbers, so nothing was worked out."
    return ""
