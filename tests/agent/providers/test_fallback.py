"""Several models in order."""

from __future__ import annotations

import pytest
from tests.agent.providers.requests import answer, ask, remote

from hermes.agent.providers.model_choice import Fallback
from hermes.core.model_protocol import Discarded, Done, ModelError, WindowError
from hermes.testing import FakeClock, ScriptedModel, Turn

REFUSED = Turn(status=401, error="no")


def test_the_next_is_asked_when_one_fails_and_the_failure_is_seen() -> None:
    with ScriptedModel([REFUSED]) as first, ScriptedModel(["from the second"]) as second:
        heard = ask(Fallback([remote(first, "one"), remote(second, "two")]))

    assert any(isinstance(e, Discarded) and "asking two" in e.reason for e in heard)
    assert isinstance(heard[-1], Done)
    assert heard[-1].message.text == "from the second"


def test_when_all_fail_the_last_error_is_raised() -> None:
    with ScriptedModel([REFUSED]) as first, ScriptedModel([Turn(status=403)]) as second:
        with pytest.raises(ModelError, match="403"):
            ask(Fallback([remote(first), remote(second)]))


def test_one_that_failed_for_good_is_not_asked_first_again() -> None:
    with ScriptedModel([REFUSED]) as first, ScriptedModel(then="ok") as second:
        both = Fallback([remote(first, "one"), remote(second, "two")])
        answer(both)
        answer(both)

        assert (len(first.requests), both.model) == (1, "two")


def test_one_that_failed_for_a_while_is_asked_again_later() -> None:
    clock = FakeClock()
    busy = Turn(status=429, retry_after=1000)
    with ScriptedModel([busy, "back"]) as first, ScriptedModel(then="ok") as second:
        both = Fallback([remote(first), remote(second)], clock=clock)
        assert answer(both).message.text == "ok"
        assert answer(both).message.text == "ok"
        clock.advance(100)
        assert answer(both).message.text == "back"


def test_a_conversation_that_is_too_long_is_not_carried_on() -> None:
    too_long = Turn(status=400, error="maximum context length exceeded")
    with ScriptedModel([too_long]) as first, ScriptedModel(["ok"]) as second:
        with pytest.raises(WindowError):
            ask(Fallback([remote(first), remote(second)]))

    assert second.requests == []
