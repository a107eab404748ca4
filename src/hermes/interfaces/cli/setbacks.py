"""What went wrong inside of a call that was itself carried out: a command failed, or an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.core.entry import ToolOutcome

_LINE = 200


def setback(outcome: ToolOutcome) -> str:
    """What the result of a call says did not work, in one line; empty when it says nothing."""
    if not outcome.ok:
        return ""
    try:
        value = outcome.value
    except ValueError:
        # Cut for a model, and no JSON any more.
        return ""
    return "; ".join(_told(value))[:_LINE]


def _told(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    code = value.get("exit_code")
    if isinstance(code, int) and code:
        last = _last_line(value.get("meaning") or value.get("stderr"))
        yield f"exit code {code}: {last}" if last else f"exit code {code}"
    elif "agent" in value and _went_wrong(value.get("status")):
        why = _last_line(value.get("reason"))
        told = f"{value['status']}: {why}" if why else str(value["status"])
        yield f"{value['agent']} {told}"
    elif isinstance(value.get("results"), list):
        for one in value["results"]:
            yield from _told(one)


def _went_wrong(status: Any) -> bool:
    from hermes.agent.delegating.recalling import ELSEWHERE
    from hermes.agent.delegating.reporting import UNFINISHED

    return isinstance(status, str) and status not in ("completed", ELSEWHERE, *UNFINISHED)


def _last_line(text: Any) -> str:
    lines = str(text or "").strip().splitlines()
    if not lines:
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in lines[-1][:_LINE]).split())
