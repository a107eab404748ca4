"""A command on a terminal, until it ends or waits for somebody to type."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.environments.local.foreground import DOUBT_SECONDS, SILENCE_SECONDS
from hermes.environments.output.collector import OUT, Collector
from hermes.environments.prompts import last_line, looks_like_prompt
from hermes.environments.protocol import CommandResult

if TYPE_CHECKING:
    from hermes.core.context import Cancellation
    from hermes.environments.far.background import FarBackground
    from hermes.environments.protocol import Ended

_WHOLE = 1 << 20


def attend(
    background: FarBackground,
    *,
    timeout: float | None,
    cancellation: Cancellation | None,
    notes: list[str],
) -> CommandResult:
    """Wait for a command that may ask; one that does goes on beside, to be answered."""
    begun = time.monotonic()
    why: Ended = "exited"
    prompt = ""
    while background.state == "running":
        left = 0.5 if timeout is None else min(0.5, begun + timeout - time.monotonic())
        if background.wait(max(0.01, left), cancellation=cancellation):
            break
        if cancellation is not None and cancellation.cancelled:
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
    code = background.exit_code
    return CommandResult(
        124 if why == "timeout" else -1 if code is None else code,
        collector.output(),
        cwd=background.cwd,
        duration=time.monotonic() - begun,
        ended=why,
        background=background if why == "needs input" else None,
        prompt=prompt,
        notes=notes,
    )


def _asks(background: FarBackground) -> bool:
    recent = background.recent(400)
    silence = time.time() - background.last_output_at
    if silence < SILENCE_SECONDS or not recent.strip() or recent.endswith("\n"):
        return False
    return silence >= DOUBT_SECONDS or looks_like_prompt(recent)
