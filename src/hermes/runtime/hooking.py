"""The stages in which plugins have their say: before a call, on its result, after it.

A hook that fails is reported and passed over; what it was given are copies.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from hermes.core.errors import ArgumentError
from hermes.core.jsontext import to_json
from hermes.runtime import answers, needs
from hermes.runtime.approving import approve
from hermes.runtime.hooks import HookCall, Rewrite, Veto
from hermes.runtime.judging import judge

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from hermes.core.entry import ToolOutcome
    from hermes.runtime.flight import Flight
    from hermes.runtime.pipeline import Runtime


def before_call(
    runtime: Runtime, flight: Flight
) -> Generator[needs.Need, Any, answers.Answer | None]:
    """None when the call may go on, with the arguments that hooks made of it; else the answer."""
    assert flight.entry is not None
    # While hooks take their time, nobody else changes what was judged.
    before = flight.arguments = deepcopy(flight.arguments)
    for hook in runtime.hooks.pre_tool_call:
        said = yield from _hook(runtime, hook, flight)
        if isinstance(said, Veto):
            flight.verdict = "vetoed"
            return answers.refused(said.reason)
        if isinstance(said, Rewrite):
            try:
                flight.arguments = flight.entry.arguments.read(deepcopy(said.arguments))
            except ArgumentError as error:
                runtime.report_trouble(f"hook {_name(hook)} rewrote the arguments: {error}", flight)
                raise
            flight.noted = to_json(flight.arguments)
    # As text, for to Python 1 is True.
    if flight.arguments is before or to_json(flight.arguments) == to_json(before):
        return None
    # What runs is what was judged: other arguments are judged again.
    ruling = judge(runtime, flight.entry, flight.arguments, flight.context)
    flight.places = ruling.places
    return None if ruling.action == "allow" else (yield from approve(runtime, flight, ruling))


def transformed(runtime: Runtime, flight: Flight, value: Any) -> Generator[needs.Need, Any, Any]:
    """What hooks make of a handler's value."""
    for hook in runtime.hooks.transform_tool_result:
        changed = yield from _hook(runtime, hook, flight, value)
        value = value if changed is None else changed
    return value


def after_call(
    runtime: Runtime, flight: Flight, outcome: ToolOutcome
) -> Generator[needs.Need, Any, None]:
    """Show hooks what became of a call."""
    for hook in runtime.hooks.post_tool_call:
        yield from _hook(runtime, hook, flight, outcome.copy())


def _hook(
    runtime: Runtime, hook: Any, flight: Flight, *more: Any
) -> Generator[needs.Need, Any, Any]:
    # A copy: only a `Rewrite` changes what runs, and that is judged again.
    arguments = deepcopy(flight.arguments)
    call = HookCall(flight.tool, arguments, flight.call_id, flight.context)
    try:
        return (yield needs.Hook(hook, (call, *more)))
    except Exception as error:  # noqa: BLE001 - a hook must not break the call
        message = f"hook {_name(hook)}: {type(error).__name__}: {error}"
        runtime.report_trouble(message, flight)
        return None


def _name(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", None) or repr(hook))
