"""Repeat detector: ends a turn in which the model gets the same results again and again.

A result is new if this turn has not seen it before. For a call that reads or fails, only the result
counts: ten searches that find nothing are one result. For a call that changes something, the
arguments count too. After several repeats with nothing new between them the model gets a warning;
after some more the turn ends.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.core.entry import ToolOutcome

# At this many of the same without news the model is told, and the turn ends.
TELL, STOP = 3, 5
# What differs from one run of the same thing to the next.
_PASSING = re.compile(r'"(?:seconds|duration|duration_seconds|elapsed|ms|at|time|pid)": ?[^,}\]]*')


class LoopGuard:
    """Watches the calls of one turn."""

    def __init__(self, *, tell: int = TELL, stop: int = STOP) -> None:
        self._tell = tell
        self._stop = stop
        self._known: set[str] = set()
        self._since: Counter[str] = Counter()

    def see(self, outcome: ToolOutcome, arguments: str, *, reads: bool) -> str:
        """Note one call: `""`, `"tell"` (the model should hear of it) or `"stop"`.

        Args:
            outcome: What came back.
            arguments: As the model sent them.
            reads: Whether the tool only reads.
        """
        result = _PASSING.sub("", outcome.content)
        counts_alone = reads or outcome.status != "ok"
        parts = (outcome.name, result) if counts_alone else (outcome.name, arguments, result)
        key = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        if key not in self._known:
            self._known.add(key)
            self._since.clear()
        self._since[key] += 1
        times = self._since[key]
        if times >= self._stop:
            return "stop"
        return "tell" if times >= self._tell else ""
