"""What a run may cost: steps, tokens, money, time; one purse for an agent and its children."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 90


class SpentError(HermesError):
    """The run may cost no more; `limit` names what ran out."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message, hint="Raise the limit, or go on in a new turn.")
        self.limit = limit


class Budget:
    """Limits and what was used of them; None is no limit. Safe to share between threads."""

    def __init__(
        self,
        *,
        steps: int | None = STEPS,
        tokens: int | None = None,
        usd: float | None = None,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps = steps
        self.tokens = tokens
        self.usd = usd
        self.seconds = seconds
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self.used_steps = 0
        self.usage = Usage()
        self.cost = 0.0

    def renew(self) -> None:
        """A new turn: the steps and the time are counted from here, tokens and money go on."""
        with self._lock:
            self.used_steps = 0
            self._began = self._clock()

    def step(self) -> None:
        """Count one question to a model; raises `SpentError` when it may not be asked."""
        with self._lock:
            for limit, used, most, said in self._limits():
                if most is not None and used >= most:
                    raise SpentError(limit, f"stopped: {said} ({used:g} of {most:g})")
            self.used_steps += 1

    def spend(self, usage: Usage, cost: float = 0.0) -> None:
        """Count what an answer cost."""
        with self._lock:
            self.usage += usage
            self.cost += cost

    def left(self) -> dict[str, float]:
        """What remains of each limit that there is."""
        limits = self._limits()
        return {limit: max(most - used, 0) for limit, used, most, _ in limits if most is not None}

    def _limits(self) -> list[tuple[str, float, float | None, str]]:
        tokens = self.usage.input + self.usage.output
        return [
            ("steps", self.used_steps, self.steps, "as many steps as it may take"),
            ("tokens", tokens, self.tokens, "as many tokens as it may use"),
            ("usd", self.cost, self.usd, "as much money as it may cost"),
            ("seconds", self._clock() - self._began, self.seconds, "as long as it may take"),
        ]
