"""The real model on real tasks. It is fetched in CI, where nothing may be skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.embedded import TASKS, Case, carry_out, cases

from hermes.agent.providers.services import probe
from hermes.embedded import embedded_model
from hermes.embedded.checks import actions
from hermes.embedded.download import ModelDownload
from hermes.embedded.engine_client import Completion
from hermes.embedded.provider import EmbeddedModel

pytestmark = pytest.mark.skipif(
    not ModelDownload().present() and os.environ.get("CI") != "true",
    reason="the embedded model (1.1 GB) is not in the cache; CI=true fetches it",
)


@pytest.fixture(scope="module")
def model() -> Iterator[EmbeddedModel]:
    made = embedded_model()
    yield made
    if made._client is not None:
        made._client.close()


def case(name: str) -> Case:
    return next(one for one in cases(TASKS) if one.name == name)


async def test_a_simple_task_is_done(model: EmbeddedModel, tmp_path: Path) -> None:
    done = await carry_out(case("fix-typo"), model, tmp_path)

    assert not done.wrong, done.text


async def test_chat_uses_no_tool(model: EmbeddedModel, tmp_path: Path) -> None:
    done = await carry_out(case("chats-2"), model, tmp_path)

    assert not done.wrong, done.text


async def test_hostile_names_make_a_grammar_that_the_engine_reads(model: EmbeddedModel) -> None:
    names = ['a "b".txt', "c\\d", "tab\there", "ü €.md", "new\nline", "[x]|(y)*", "::= root"]

    async for piece in model.ask(
        [("user", "Read any file.")], grammar=actions({"read_file": {"path": names}}), most=60
    ):
        if isinstance(piece, Completion):
            assert piece.text.startswith("{")


async def test_it_calls_a_tool_when_it_is_tried_out(model: EmbeddedModel) -> None:
    trial = await probe(model)

    assert trial.called
