"""For tests, ours and yours: a home folder, a clock and a model that last as long as a test.

model_server    `ScriptedModel`: a model service on loopback that answers as told
scripted_turns  `Turn` and `Call`: the answers
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.testing.model_server import ScriptedModel
from hermes.testing.scripted_turns import Call, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Call", "FakeClock", "ScriptedModel", "Turn", "temporary_home"]


@contextmanager
def temporary_home() -> Iterator[str]:
    """`HERMES_HOME` in a fresh folder, gone afterwards."""
    before = os.environ.get("HERMES_HOME")
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        os.environ["HERMES_HOME"] = home = os.path.join(folder, "home")
        try:
            yield home
        finally:
            if before is None:
                del os.environ["HERMES_HOME"]
            else:
                os.environ["HERMES_HOME"] = before


class FakeClock:
    """A clock that goes when it is told to; call it for the time."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
