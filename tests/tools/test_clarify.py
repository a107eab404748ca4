"""Questions to the person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.tools.bench import Bench


@pytest.fixture
def asked(bench: Bench) -> Callable[..., Bench]:
    """A bench with somebody who answers."""

    def make(answer: Callable[[str, list[str]], Any]) -> Bench:
        bench.context.services = bench.context.services.replace(ask_person=answer)
        return bench

    return make


def test_the_answer_comes_back(asked: Any) -> None:
    bench = asked(lambda question, choices: f"{question} {choices}")

    assert bench("clarify", question="Which?", choices=["a", "b"]) == {
        "answer": "Which? ['a', 'b']"
    }
    assert bench("clarify", question="Why?") == {"answer": "Why? []"}


def test_an_answer_may_be_awaited(asked: Any) -> None:
    async def later(question: str, choices: list[str]) -> str:
        return choices[0]

    assert asked(later)("clarify", question="Which?", choices=["a", "b"]) == {"answer": "a"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2", "blue"),
        ("2.", "blue"),
        ("(1)", "red"),
        (" blue ", "blue"),
        ("3", "3"),
        ("0", "0"),
        ("9" * 5000, "9" * 5000),
        ("neither", "neither"),
    ],
)
def test_a_number_stands_for_its_choice(asked: Any, said: str, meant: str) -> None:
    bench = asked(lambda *_: said)

    assert bench("clarify", question="Colour?", choices=["red", "blue"]) == {"answer": meant}


def test_where_nobody_can_answer_it_says_so_at_once(bench: Bench) -> None:
    answer = bench("clarify", question="Which?")

    assert answer["error"] == "nobody can answer here"
    assert "assumption" in answer["hint"]


@pytest.mark.parametrize("said", [None, "", "  "])
def test_no_answer_is_no_answer(asked: Any, said: str | None) -> None:
    assert "no answer" in asked(lambda *_: said)("clarify", question="Which?")["error"]
