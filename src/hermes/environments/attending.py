"""A command on a terminal, until it ends or waits for somebody to type."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.environments.local.foreground import DOUBT_SECONDS, LOOK_SECONDS, SILENCE_SECONDS
from hermes.environments.output.collector import OUT, Collector
from hermes.environments.prompts import last_line, looks_like_prompt
from hermes.environments.results import CommandResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.environments.beside import Background
    from hermes.environments.order import Order
    from hermes.environments.results import Ended

_WHOLE = 1 << 20
_SHOWN = 8000


def attend(background: Background, order: Order) -> CommandResult:
    """Wait for a command that may ask; one that does goes on beside, to be answered."""
    begun = time.monotonic()
    why: Ended = "exited"
    prompt = ""
    shown = 0
    while background.state == "running":
        # Whoever has been silent for long will hardly ask now.
        left = LOOK_SECONDS if _silence(background) < 60 else 5.0
        if order.timeout is not None:
            left = min(left, begun + order.timeout - time.monotonic())
        if background.wait(max(0.01, left), cancellation=order.cancellation):
            break
        if order.on_output is not None:
            shown = _show(background, shown, order.on_output)
        if order.cancelled:
            why = "cancelled"
        elif left <= 0.01:
            why = "timeout"
        elif _asks(background):
            why = "needs input"
            prompt = last_line(background.recent(400))
        if why != "exited":
            break
    if why in ("cancelled", "timeout"):
        background.kill("its time limit" if why == "timeout" else "a cancel")
        background.wait(4.0)
    if order.on_output is not None:
        _show(background, shown, order.on_output)
    collector = Collector()
    text, _, _ = background.log(0, limit=_WHOLE)
    collector.feed(OUT, text.encode("utf-8", "surrogateescape"))
    return CommandResult(
        background.exit_code,
        collector.output(),
        cwd=background.cwd,
        duration=time.monotonic() - begun,
        ended=why,
        background=background if why == "needs input" else None,
        prompt=prompt,
    )


def _show(background: Background, seen: int, on_output: Callable[[str], None]) -> int:
    """Pass on what was printed since; of a flood only the end. How much there is by now."""
    _, _, total = background.log(limit=1)
    if total > seen:
        text, _, total = background.log(max(seen, total - _SHOWN), limit=_SHOWN)
        on_output(text)
    return total


def _asks(background: Background) -> bool:
    silence = _silence(background)
    if silence < SILENCE_SECONDS:
        return False
    if background.waits():
        return True
    recent = background.recent(400)
    if not recent.strip() or recent.endswith("\n"):
        return False
    return silence >= DOUBT_SECONDS or looks_like_prompt(recent)


def _silence(background: Background) -> float:
    return time.time() - background.last_output_at
