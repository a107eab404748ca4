"""A chat in a terminal of its own, with a scripted model behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conftest import HERMES, CommandLine
from tests.interfaces.chat.screen import Screen

from hermes.testing import ScriptedModel

Begin = Callable[..., Screen]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def begin(hermes: CommandLine, model: ScriptedModel) -> Iterator[Begin]:
    """Starts `hermes WORDS` in a terminal and waits for its prompt; ended with the test."""
    begun: list[Screen] = []

    def begin(
        *words: str,
        env: dict[str, str | None] | None = None,
        prompt: str = "❯",
        command: list[str] | None = None,
        **size: Any,
    ) -> Screen:
        changes: dict[str, str | None] = {
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-x",
            "HERMES_MODEL": "gpt-4o",
            "TERM": "xterm-256color",
            "LINES": None,
            # The terminal of a test is none of these.
            **dict.fromkeys(("TMUX", "VTE_VERSION", "TERM_PROGRAM", "SSH_CONNECTION")),
            **(env or {}),
        }
        screen = Screen(
            [*(command or [str(HERMES)]), *words],
            env=hermes.environment(**changes),
            cwd=hermes.folder,
            **size,
        )
        begun.append(screen)
        screen.until(prompt)
        return screen

    yield begin
    for screen in begun:
        screen.end()
