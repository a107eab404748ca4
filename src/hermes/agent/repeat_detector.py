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

# Repeats without a new result until the warning, and until the end of the turn.
WARN, STOP = 3, 5
# Fields that differ from one run of the same call to the next.
_VOLATILE = re.compile(r'"(?:seconds|duration|duration_seconds|elapsed|ms|at|time|pid)": ?[^,}\]]*')


class RepeatDetector:
    """Counts repeated results of one turn."""

    def __init__(self, *, warn: int = WARN, stop: int = STOP) -> None:
        self._warn = warn
        self._stop = stop
        self._seen: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def see(self, outcome: ToolOutcome, arguments: str, *, reads: bool) -> str:
        """Count one call: `""`, `"warn"` or `"stop"`.

        Args:
            outcome: The result of the call.
            arguments: As the model sent them.
            reads: Whether the tool only reads.
        """
        result = _VOLATILE.sub("", outcome.content)
        result_only = reads or outcome.status != "ok"
        parts = (outcome.name, result) if result_only else (outcome.name, arguments, result)
        key = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        if key not in self._seen:
            self._seen.add(key)
            self._repeats.clear()
        self._repeats[key] += 1
        times = self._repeats[key]
        if times >= self._stop:
            return "stop"
        return "warn" if times >= self._warn else ""
