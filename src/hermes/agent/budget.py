"""Budget of a run (steps, tokens, money, time), shared by an agent and its children; prices.

Prices come from the settings (`model.prices`) first, then from the table of model families. A local
model is free. An unknown price is None, never 0.
"""

from __future__ import annotations

import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes.agent.providers.model_profiles import Prices, prices_of
from hermes.core.errors import HermesError
from hermes.core.model_protocol import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from hermes.core.model_protocol import Done, Provider
    from hermes.runtime.pipeline import Runtime

STEPS = 90


class BudgetError(HermesError):
    """A limit of the budget is reached; `limit` is its name."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message, hint="Raise the limit, or go on in a new turn.")
        self.limit = limit


class Budget:
    """Limits and their use so far; None is no limit. Thread-safe."""

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
        """A budget; nothing is read or measured before the first turn.

        Args:
            steps: Model calls in one turn.
            tokens: Tokens of the whole conversation.
            usd: Dollars of the whole conversation.
            seconds: Duration of one turn.
            usd_per_day: Dollars of all sessions together since midnight.
            today: Dollars spent today by all sessions, read at the beginning of each turn.
            clock: Seconds, for `seconds`.
        """
        self.steps = steps
        self.tokens = tokens
        self.usd = usd
        self.seconds = seconds
        self.usd_per_day = usd_per_day
        self._today = today
        self._spent_before: float | None = None
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self.used_steps = 0
        self.usage = Usage()
        self.cost = 0.0
        # Whether the price of some answer is unknown.
        self.unpriced = False

    def renew(self) -> None:
        """Begin a turn: steps and time are counted anew, tokens and money are not."""
        with self._lock:
            self.used_steps = 0
            self._began = self._clock()
            if self.usd_per_day is not None:
                # The cost of this conversation so far is part of today's sum.
                self._spent_before = self._today() - self.cost

    def step(self) -> None:
        """Count one model call; raises `BudgetError` when a limit is reached."""
        with self._lock:
            limited = self.usd is not None or self.usd_per_day is not None
            if limited and self.unpriced:
                # A limit in dollars can't be enforced without a price.
                raise BudgetError(
                    "usd",
                    "stopped: the model's price is not known, so that no limit in dollars can be "
                    "kept; say it (model.prices), or limit the tokens",
                )
            for limit, used, most, description in self._limits():
                if most is not None and used >= most:
                    raise BudgetError(limit, f"stopped: {description} ({used:g} of {most:g})")
            self.used_steps += 1

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Time limit for a block; raises `BudgetError` when it is over."""
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
            raise BudgetError("seconds", message) from None

    def spend(self, usage: Usage, cost: float | None = 0.0) -> None:
        """Count the tokens and the cost of an answer; a cost of None is an unknown price."""
        with self._lock:
            self.usage += usage
            self.cost += cost or 0.0
            self.unpriced = self.unpriced or cost is None

    def left(self) -> dict[str, float]:
        """The rest of each limit that is set."""
        limits = self._limits()
        return {limit: max(most - used, 0) for limit, used, most, _ in limits if most is not None}

    def _limits(self) -> list[tuple[str, float, float | None, str]]:
        tokens = self.usage.input + self.usage.output
        today = 0.0
        if self.usd_per_day is not None:
            if self._spent_before is None:
                self._spent_before = self._today()
            today = self._spent_before + self.cost
        return [
            ("steps", self.used_steps, self.steps, "as many steps as it may take"),
            ("tokens", tokens, self.tokens, "as many tokens as it may use"),
            ("usd", self.cost, self.usd, "as much money as it may cost"),
            ("usd_per_day", today, self.usd_per_day, "as much money as a day may cost"),
            ("seconds", self._clock() - self._began, self.seconds, "as long as it may take"),
        ]


class ChildBudget(Budget):
    """Budget of a child agent: counts its use, and charges the parent's budget."""

    def __init__(self, parent: Budget, on_step: Callable[[], None]) -> None:
        super().__init__(steps=None)
        self._parent = parent
        self._on_step = on_step

    def renew(self) -> None:
        """Do nothing: the turn of a child is part of its parent's turn."""

    def step(self) -> None:
        """Count one model call here and in the parent's budget."""
        self._parent.step()
        self.used_steps += 1
        self._on_step()

    def spend(self, usage: Usage, cost: float | None = 0.0) -> None:
        """Count tokens and cost here and in the parent's budget."""
        super().spend(usage, cost)
        self._parent.spend(usage, cost)

    def left(self) -> dict[str, float]:
        """The rest of the parent's limits."""
        return self._parent.left()


# -- prices -----------------------------------------------------------------------------------

_FREE = Prices(0.0, 0.0, 0.0, 0.0)
_LOCAL_SERVICES = frozenset({"embedded", "ollama", "lmstudio", "llamacpp", "vllm"})


class Pricing:
    """Prices by model name; those of the settings come first."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = tuple(own)

    @classmethod
    def of(cls, runtime: Runtime) -> Pricing:
        """With the prices in the settings of a runtime."""
        app = runtime.services.app
        return cls(app.config.get("model.prices") if app is not None else ())

    def prices(self, model: str) -> Prices | None:
        """The prices of a model, by its name from `counted_as`; None if unknown."""
        service, _, rest = model.partition("/")
        if rest and service in _LOCAL_SERVICES:
            return prices_of(rest, self._own, table=False) or _FREE
        return prices_of(model, self._own)

    def cost(self, model: str, usage: Usage) -> float | None:
        """The cost of some tokens in dollars; None if the price is unknown."""
        prices = self.prices(model)
        return None if prices is None else prices.cost(usage)

    def counted_as(self, done: Done, provider: Provider) -> str:
        """The model name that an answer is counted under: the requested one.

        The name in the response is taken where only that one has a price. A local model is
        prefixed with its service.
        """
        requested = done.asked or provider.model
        service = done.provider or provider.name
        if service in _LOCAL_SERVICES:
            return f"{service}/{requested}"
        if done.model and self.prices(requested) is None and self.prices(done.model) is not None:
            return done.model
        return requested


def spent_today(pricing: Pricing) -> float:
    """Dollars that the sessions of this home have cost since midnight, where prices are known."""
    import os

    from hermes.stores.sessions import Sessions
    from hermes.stores.sessions.usage import spending

    now = time.localtime()
    midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
    with Sessions() as store:
        if not os.path.exists(store.path):
            return 0.0
        shares = spending(store.database, since=midnight, by_tool=False)
        return sum(pricing.cost(share.model, share.usage) or 0.0 for share in shares)
