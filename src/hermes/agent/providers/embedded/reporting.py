"""The last words of a turn: the model's answer, and what was really done.

A small model says that it has done what it was asked to do, done or not. So the facts come from
the tools, and a claim that they do not bear out is answered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.agent.providers.embedded.changes import Changed

_CLAIM = re.compile(
    r"\b(?:created|made|wrote|written|saved|stored|added|appended|changed|fixed|corrected|replaced"
    r"|updated|edited|deleted|removed|renamed|moved|copied|packed|compressed|zipped|unpacked"
    r"|extracted)\b",
    re.IGNORECASE,
)
_SHOWN = 12


def report(answer: str, changed: Sequence[Changed], *, failed: Sequence[str] = ()) -> str:
    """The text for the person.

    Args:
        answer: What the model said.
        changed: What became of which file.
        failed: Calls that did not work and that nothing made up for, in one line each.
    """
    lines = []
    for what in ("made", "changed", "deleted"):
        paths = [one.path for one in changed if one.what == what]
        if paths:
            more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
            lines.append(f"{what.capitalize()}: {', '.join(paths[:_SHOWN])}{more}")
    lines += [f"Not done: {line}" for line in failed]
    if not changed and _CLAIM.search(answer):
        lines.append("No file was changed.")
    return "\n\n".join(part for part in (answer.strip(), "\n".join(lines)) if part)
