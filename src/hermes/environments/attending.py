"""A command on a terminal, until it ends or waits for somebody to type."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.environments.local.foreground import DOUBT_SECONDS, SILENCE_SECONDS
from hermes.environments.output.collector import OUT, Collector
from hermes.environments.prompts import last_line, looks_like_prompt
from hermes.environments.results import CommandResult

if TYPE_CHECKING:
    from hermes.environments.beside import Background
    from hermes.environments.order import Order
    from hermes.environments.results import Ended

_WHOLE = 1 << 20


def attend(background: Background, order: Order) -> CommandResult:
    """Wait for a command that may ask; one that does goes on beside, to be answered."""
    begun = time.monotonic()
    why: Ended = "exited"
    prompt = ""
    while background.state == "running":
        left = 0.5 if order.timeout is None else min(0.5, begun + order.timeout - time.monotonic())
        if background.wait(max(0.01, left), cancellation=order.cancellation):
            break
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


def _asks(background: Background) -> bool:
    recent = background.recent(400)
    silence = time.time() - background.last_output_at
    if silence < SILENCE_SECONDS or not recent.strip() or recent.endswith("\n"):
        return False
    return silence >= DOUBT_SECONDS or looks_like_prompt(recent)
