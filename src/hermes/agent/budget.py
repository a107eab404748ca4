"""What a run may cost: steps, tokens, money, time; one purse for an agent and its children."""

from __future__ import annotations

import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.messages import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

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
        usd_per_day: float | None = None,
        today: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps = steps
        self.tokens = tokens
        self.usd = usd
        self.seconds = seconds
        self.usd_per_day = usd_per_day
        # What was spent today by everybody, asked for at the beginning of each turn.
        self._today = today
        self._before = today() if usd_per_day is not None else 0.0
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self.used_steps = 0
        self.usage = Usage()
        self.cost = 0.0
        # Whether something was used whose price nobody knows.
        self.unpriced = False

    def renew(self) -> None:
        """A new turn: the steps and the time are counted from here, tokens and money go on."""
        with self._lock:
            self.used_steps = 0
            self._began = self._clock()
            if self.usd_per_day is not None:
                # What this one has spent so far is part of it.
                self._before = self._today() - self.cost

    def step(self) -> None:
        """Count one question to a model; raises `SpentError` when it may not be asked."""
        with self._lock:
            limited = self.usd is not None or self.usd_per_day is not None
            if limited and self.unpriced:
                # A limit that can't be kept must not be taken for one that is.
                raise SpentError(
                    "usd",
                    "stopped: the model's price is not known, so that no limit in dollars can be "
                    "kept; say it (model.prices), or limit the tokens",
                )
            for limit, used, most, said in self._limits():
                if most is not None and used >= most:
                    raise SpentError(limit, f"stopped: {said} ({used:g} of {most:g})")
            self.used_steps += 1

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """What the block waits for ends with the time; raises `SpentError` then."""
        import asyncio

        left = self.left().get("seconds") if self.seconds is not None else None
        try:
            async with asyncio.timeout(left) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            used = self._clock() - self._began
            message = f"stopped: as long as it may take ({used:g} of {self.seconds:g})"
            raise SpentError("seconds", message) from None

    def spend(self, usage: Usage, cost: float | None = 0.0) -> None:
        """Count what an answer cost; None where nobody knows its price."""
        with self._lock:
            self.usage += usage
            self.cost += cost or 0.0
            self.unpriced = self.unpriced or cost is None

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
            (
                "usd_per_day",
                self._before + self.cost,
                self.usd_per_day,
                "as much money as a day may cost",
            ),
            ("seconds", self._clock() - self._began, self.seconds, "as long as it may take"),
        ]
