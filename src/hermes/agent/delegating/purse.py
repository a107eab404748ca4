"""A child's view of its parent's budget: what it spends is the parent's, and counted here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.agent.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.core.messages import Usage


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
