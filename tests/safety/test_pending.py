"""Questions that are answered elsewhere: nobody listening is a no, a reconnect finds them again."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes.core import ApprovalRequest, ToolCall, ToolRegistry
from hermes.runtime import Runtime
from hermes.safety.pending import Pending, PendingApprovals


def _request() -> ApprovalRequest:
    return ApprovalRequest("tell", {"to": "a"}, reason="may reach people", rule="effect:message")


def test_nobody_listening_is_a_no_at_once() -> None:
    approvals = PendingApprovals(seconds=600)

    assert asyncio.run(approvals(_request())) == "deny"
    assert approvals.pending() == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [("once", "once"), ("always", "always"), ("deny", "deny"), ("perhaps", "deny")],
)
def test_the_answer_is_what_was_said_and_nothing_unclear_is_a_yes(said: str, expected: str) -> None:
    approvals = PendingApprovals()
    approvals.listen(lambda pending: approvals.answer(pending.id, said) and None)

    assert asyncio.run(approvals(_request())) == expected


def test_a_front_door_that_comes_back_finds_what_is_pending() -> None:
    approvals = PendingApprovals()
    shown: list[Pending] = []

    async def scene() -> str:
        leave = approvals.listen(shown.append)
        asking = asyncio.ensure_future(approvals(_request()))
        await asyncio.sleep(0)
        leave()
        approvals.listen(shown.append)
        threading.Thread(target=approvals.answer, args=(shown[-1].id, "session")).start()
        return await asking

    assert asyncio.run(scene()) == "session"
    assert [pending.id for pending in shown] == [1, 1]
    assert not approvals.answer(1, "once")


def test_no_answer_within_the_limit_is_a_no() -> None:
    approvals = PendingApprovals(seconds=0.05)
    approvals.listen(lambda pending: None)

    assert asyncio.run(approvals(_request())) == "deny"
    assert approvals.pending() == []


def test_it_is_an_approver_for_a_runtime() -> None:
    registry = ToolRegistry()
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    registry.register("tell", "t", schema, lambda to: f"told {to}", effect="message")
    approvals = PendingApprovals()
    runtime = Runtime(registry, approver=approvals)

    refused = runtime.call_sync(ToolCall("tell", {"to": "a"}))
    approvals.listen(lambda pending: approvals.answer(pending.id, "once") and None)
    told = runtime.call_sync(ToolCall("tell", {"to": "a"}))

    assert refused.status == "refused"
    assert told.value == "told a"
