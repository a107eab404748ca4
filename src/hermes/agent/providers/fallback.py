"""Several models in order: the next is asked when one can't answer."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from hermes.agent.providers.protocol import Discarded, ModelError, WindowError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from hermes.agent.providers.protocol import Event, Provider, Request

# How long one that failed for a passing reason is left alone.
_REST_SECONDS = 60.0


class Fallback:
    """A `Provider` made of several; a model that failed is asked again after a while.

    `name`, `model` and `window` are those of the model that would be asked next.
    """

    def __init__(
        self, providers: Sequence[Provider], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not providers:
            raise ValueError("a Fallback needs at least one model")
        self.providers = list(providers)
        self._clock = clock
        self._until: dict[int, float] = {}

    @property
    def name(self) -> str:
        """The service of the model in use."""
        return self.providers[self._order()[0]].name

    @property
    def model(self) -> str:
        """The model in use."""
        return self.providers[self._order()[0]].model

    @property
    def window(self) -> int:
        """The window of the model in use."""
        return self.providers[self._order()[0]].window

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask the first that can answer."""
        order = self._order()
        for place, number in enumerate(order):
            provider = self.providers[number]
            try:
                # `Provider` promises an iterator only; what closes at once is closed at once.
                events = cast("AsyncGenerator[Event, None]", provider.stream(request))
                async with aclosing(events):
                    async for event in events:
                        yield event
            except WindowError:
                # Another model would lose the conversation just the same; shortening helps.
                raise
            except ModelError as error:
                self._rest(number, error)
                if place + 1 == len(order):
                    raise
                following = self.providers[order[place + 1]]
                yield Discarded(f"{error}; asking {following.model} ({following.name})")
            else:
                self._until.pop(number, None)
                return

    async def close(self) -> None:
        """Close all of them."""
        for provider in self.providers:
            await provider.close()

    def _rest(self, number: int, error: ModelError) -> None:
        # A wrong key or name stays wrong.
        seconds = _REST_SECONDS if error.retryable else float("inf")
        self._until[number] = self._clock() + seconds

    def _order(self) -> list[int]:
        """Those in good health in order, then the others: asking them is better than nothing."""
        now = self._clock()
        numbers = range(len(self.providers))
        return sorted(numbers, key=lambda number: self._until.get(number, 0.0) > now)
