"""The last words of a turn: the model's answer, and what was really done.

A small model says that it has done what it was asked to do, done or not. So the facts come from
the tools, and a claim that they do not bear out is answered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.agent.providers.embedded.changes import Changed

# That something was done: `was saved`, `I have moved`, `Created a.txt`; not `the changed file`.
_CLAIM = re.compile(
    r"(?:\b(?:i|we|it|is|are|was|were|has|have|had|been|and)(?:['’][a-z]+)?(?:\s+(?:have|been|now"
    r"|just|also|\w+ly))*\s+|(?:^|[.!?:;\n])\W*)"
    r"(created|made|wrote|written|saved|stored|added|appended|changed|fixed|corrected|replaced"
    r"|updated|edited|deleted|removed|renamed|moved|copied|packed|compressed|zipped|unpacked"
    r"|extracted)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:no|not|nothing|never|cannot|none)\b|n['’]t\b", re.IGNORECASE)
_SHOWN = 12
# As much of what a command printed as is repeated.
_LINES, _WIDE = 12, 200


def report(
    answer: str,
    changed: Sequence[Changed],
    *,
    failed: Sequence[str] = (),
    ran: Sequence[tuple[str, str, int]] = (),
    missing: Sequence[str] = (),
    facts: Sequence[str] = (),
    seen: str = "",
) -> str:
    """The text for the person.

    Args:
        answer: What the model said.
        changed: What became of which file.
        failed: Calls that did not work and that nothing made up for, in one line each.
        ran: Commands, what each printed and the code it ended with.
        missing: Paths that were named and are not there, though no call was about them.
        facts: What tools said that the answer does not say, or not as it is.
        seen: What tools that only look said.
    """
    lines = []
    for what in ("made", "changed", "moved", "deleted"):
        paths = [one.told for one in changed if one.what == what]
        if paths:
            more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
            lines.append(f"{what.capitalize()}: {', '.join(paths[:_SHOWN])}{more}")
    if missing:
        lines.append(f"There is no {' and no '.join(missing[:3])}.")
    if not changed and claims(answer, seen):
        lines.append("No file was changed.")
    quoted = [_quoted(answer, *one) for one in ran[-2:]]
    # What did not work comes first: the answer may speak as if it had.
    trouble = "\n".join(f"Not done: {line.removeprefix('Not done: ')}" for line in failed)
    parts = [trouble, answer.strip(), *quoted, *facts, "\n".join(lines)]
    return "\n\n".join(part for part in parts if part)


def claims(reply: str, seen: str = "") -> bool:
    """Whether a reply says that something was changed; words that were read are no claim."""
    read = seen.casefold()
    return any(
        match[1].casefold() not in read and not _DENIAL.search(_before(reply, match.start(1)))
        for match in _CLAIM.finditer(reply)
    )


def _before(text: str, end: int) -> str:
    """What a sentence says up to there."""
    return re.split(r"[.!?;\n]\s", text[:end])[-1]


def _quoted(answer: str, command: str, printed: str, code: int) -> str:
    """What a command printed and how it ended, as far as the answer does not say it."""
    said = " ".join(answer.split())
    ended = f"`{command}` ended with code {code}." if code and str(code) not in said else ""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if not lines or all(" ".join(line.split()) in said for line in lines):
        return ended
    more = f"\n[… {len(lines) - _LINES} more lines]" if len(lines) > _LINES else ""
    shown = "\n".join(cut(line, _WIDE) for line in lines[:_LINES])
    return f"`{command}` printed:\n{shown}{more}" + (f"\n{ended}" if ended else "")
