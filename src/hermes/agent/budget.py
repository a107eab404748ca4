"""Budget of a run: limits on steps, tokens, money and time, shared by an agent and its children;
prices.
"""

from __future__ import annotations

import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes.agent.providers.model_profiles import Prices, prices_of
from hermes.core.errors import HermesError
from hermes.core.messages import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from hermes.core.model_protocol import Done, Provider
    from hermes.runtime.pipeline import Runtime


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


class Purse(Budget):
    """Counts what one child uses; the limits are those of the whole."""

    def __init__(self, whole: Budget, on_step: Callable[[], None]) -> None:
        super().__init__(steps=None)
        self._whole = whole
        self._on_step = on_step

    def renew(self) -> None:
        """Nothing: a child's turn is part of its parent's."""

    def step(self) -> None:
        """Count one question to a model, here and there."""
        self._whole.step()
        self.used_steps += 1
        self._on_step()

    def spend(self, usage: Usage, cost: float | None = 0.0) -> None:
        """Count what an answer cost, here and there."""
        super().spend(usage, cost)
        self._whole.spend(usage, cost)

    def left(self) -> dict[str, float]:
        """What remains of the whole."""
        return self._whole.left()


_FREE = Prices(0.0, 0.0, 0.0, 0.0)
_OWN_MACHINE = frozenset({"embedded", "ollama", "lmstudio", "llamacpp", "vllm"})


class Pricing:
    """Prices by a model's name, with one's own before the usual ones."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = tuple(own)

    @classmethod
    def of(cls, runtime: Runtime) -> Pricing:
        """With the prices of the settings that a runtime works with."""
        app = runtime.services.app
        return cls(app.config.get("model.prices") if app is not None else ())

    def prices(self, model: str) -> Prices | None:
        """What a model costs, by the name that `counted_as` gave it; None when nobody knows."""
        service, _, rest = model.partition("/")
        if rest and service in _OWN_MACHINE:
            return prices_of(rest, self._own, table=False) or _FREE
        return prices_of(model, self._own)

    def cost(self, model: str, usage: Usage) -> float | None:
        """What some tokens cost in dollars; None when nobody knows."""
        prices = self.prices(model)
        return None if prices is None else prices.cost(usage)

    def counted_as(self, done: Done, provider: Provider) -> str:
        """The name that an answer is counted under: the one asked for.

        The name that the server gives instead counts where only that one has a price. A model on
        one's own machine has the service before it.
        """
        asked = done.asked or provider.model
        service = done.provider or provider.name
        if service in _OWN_MACHINE:
            return f"{service}/{asked}"
        if done.model and self.prices(asked) is None and self.prices(done.model) is not None:
            return done.model
        return asked


def spent_today(pricing: Pricing) -> float:
    """The dollars that the sessions of this home have cost since midnight, as far as known."""
    import os
    import time

    from hermes.stores.sessions import Sessions
    from hermes.stores.sessions.usage import spending

    now = time.localtime()
    midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
    with Sessions() as store:
        if not os.path.exists(store.path):
            return 0.0
        shares = spending(store.database, since=midnight, by_tool=False)
        return sum(pricing.cost(share.model, share.usage) or 0.0 for share in shares)
