"""What an answer costs, and the name that it is counted under: one place for both.

Prices of one's own (`model.prices`) come first, then what is known of model families. A model on
one's own machine costs nothing. Where nobody knows the price it is None, and never nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.agent.providers.profiles import Prices, prices_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.agent.providers.protocol import Done, Provider
    from hermes.core.messages import Usage
    from hermes.runtime.pipeline import Runtime

_FREE = Prices(0.0, 0.0, 0.0, 0.0)
_OWN_MACHINE = frozenset({"embedded", "ollama", "lmstudio", "llamacpp", "vllm"})


class Pricing:
    """Prices by a model's name, with one's own before the usual ones."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = tuple(own)

    @classmethod
    def of(cls, runtime: Runtime) -> Pricing:
        """With the prices of the settings that a runtime works with."""
        app = runtime.services.get("app")
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
    from hermes.stores.sessions.spending import spending

    now = time.localtime()
    midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
    with Sessions() as store:
        if not os.path.exists(store.path):
            return 0.0
        shares = spending(store.database, since=midnight, by_tool=False)
        return sum(pricing.cost(share.model, share.usage) or 0.0 for share in shares)
