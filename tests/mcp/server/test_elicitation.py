"""Approvals and questions reach the person at the client; nobody to ask means no."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, ErrorData, Implementation, InputRequiredResult
from tests.mcp.server.peers import ERAS, Person, accept, app_with, client, run

from hermes.core import ToolContext, ToolRegistry, tool
from hermes.core.config import Config
from hermes.mcp.server import calls
from hermes.runtime.audit import lines

both_eras = pytest.mark.parametrize("mode", ERAS)
ME = Implementation(name="Testing Desk", version="7")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    (work / "build").mkdir(parents=True)
    monkeypatch.chdir(work)
    return work


def _there(workspace: Path) -> bool:
    return (workspace / "build").is_dir()


async def _delete(client_: Any) -> Any:
    return await client_.call_tool("terminal", {"command": "rm -rf build"})


@both_eras
def test_the_person_sees_what_would_run_and_why_and_may_allow_it(
    mode: str, workspace: Path, home: Path
) -> None:
    async def work() -> None:
        person = Person({"decision": "once"})
        app = app_with()
        async with client(app, mode, elicitation_callback=person, client_info=ME) as c:
            result = await _delete(c)
        app.close()

        assert not result.is_error
        assert not _there(workspace)
        (asked,) = person.asked
        assert 'command = "rm -rf build"' in asked.message
        assert "deletes a directory" in asked.message
        choices = asked.requested_schema["properties"]["decision"]["enum"]
        assert choices == ["once", "session", "always", "deny"]
        noted = list(lines(str(home / "audit" / "audit.jsonl")))[-1]
        assert noted["verdict"] == "approved"
        assert noted["approver"] == "mcp client Testing Desk 7"

    run(work)


@both_eras
@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "deny"},
        {"decision": "yes"},
        {"decision": True},
        {"decision": ""},
        {},
        ElicitResult(action="accept"),
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="decline", content={"decision": "once"}),
    ],
)
def test_anything_but_a_clear_yes_is_a_no(mode: str, answer: Any, workspace: Path) -> None:
    async def work() -> None:
        async with client(app_with(), mode, elicitation_callback=Person(answer)) as c:
            result = await _delete(c)

        assert result.is_error
        assert "said no" in result.content[0].text
        assert _there(workspace)

    run(work)


@both_eras
def test_a_client_that_can_ask_nobody_is_refused_with_the_reason(
    mode: str, workspace: Path
) -> None:
    async def work() -> None:
        async with client(app_with(), mode) as c:
            result = await _delete(c)

        assert result.is_error
        assert "nobody can be asked here" in result.content[0].text
        assert "deletes a directory" in result.content[0].text
        assert _there(workspace)

    run(work)


def test_a_client_that_fails_to_ask_has_asked_nobody(workspace: Path) -> None:
    async def fails(context: Any, params: Any) -> ErrorData:
        return ErrorData(code=-32603, message="the window is gone")

    async def work() -> None:
        async with client(app_with(), "legacy", elicitation_callback=fails) as c:
            result = await _delete(c)

        assert "nobody can be asked here" in result.content[0].text
        assert _there(workspace)

    run(work)


def test_an_answer_that_does_not_come_is_a_no(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "ASK_SECONDS", 0.2)

    async def sleeps(context: Any, params: Any) -> ElicitResult:
        await anyio.sleep(20)
        return accept(decision="once")

    async def work() -> None:
        async with client(app_with(), "legacy", elicitation_callback=sleeps) as c:
            result = await _delete(c)
            assert "nobody can be asked here" in result.content[0].text
        async with client(app_with(), elicitation_callback=Person()) as c:
            call = c.session.call_tool
            command = {"command": "rm -rf build"}
            asked = await call("terminal", command, allow_input_required=True)
            await anyio.sleep(0.5)
            late = await call(
                "terminal",
                command,
                input_responses={"approval": accept(decision="once")},
                request_state=asked.request_state,
                allow_input_required=True,
            )
            assert "nobody can be asked here" in late.content[0].text

    run(work)
    assert _there(workspace)


def test_many_open_questions_keep_no_other_call_from_running(workspace: Path) -> None:
    async def work() -> None:
        async with client(app_with(), elicitation_callback=Person()) as c:
            for _ in range(40):
                command = {"command": "rm -rf build"}
                asked = await c.session.call_tool("terminal", command, allow_input_required=True)
                assert isinstance(asked, InputRequiredResult)

            with anyio.fail_after(10):
                done = await c.call_tool("terminal", {"command": "echo done"})
            assert done.structured_content["stdout"] == "done\n"

    run(work)


@both_eras
def test_what_is_refused_in_every_mode_is_not_even_asked(mode: str) -> None:
    async def work() -> None:
        person = Person({"decision": "once"})
        async with client(app_with(), mode, elicitation_callback=person) as c:
            result = await c.call_tool("terminal", {"command": 'rm -rf "$HOME"'})

        assert result.is_error
        assert person.asked == []

    run(work)


@both_eras
def test_a_yes_for_the_session_holds_for_this_client_alone(mode: str, workspace: Path) -> None:
    async def work() -> None:
        app = app_with()
        person = Person({"decision": "session"})
        async with client(app, mode, elicitation_callback=person) as c:
            await _delete(c)
            (workspace / "build").mkdir()
            await _delete(c)

        assert len(person.asked) == 1
        assert not _there(workspace)

        (workspace / "build").mkdir()
        other = Person()
        async with client(app, mode, elicitation_callback=other) as c:
            await _delete(c)

        assert len(other.asked) == 1
        assert _there(workspace)

    run(work)


def test_always_is_written_down(workspace: Path) -> None:
    async def work() -> None:
        async with client(app_with(), elicitation_callback=Person({"decision": "always"})) as c:
            await _delete(c)

        (line,) = Config.load().get("command_allowlist")
        assert "rm -rf build" in line

    run(work)


@both_eras
def test_clarify_asks_and_takes_a_number_for_a_choice(mode: str) -> None:
    async def work() -> None:
        person = Person({"answer": "2"}, ElicitResult(action="cancel"))
        async with client(app_with(), mode, elicitation_callback=person) as c:
            chosen = await c.call_tool(
                "clarify", {"question": "Which?", "choices": ["red", "blue"]}
            )
            unsaid = await c.call_tool("clarify", {"question": "And now?"})

        assert chosen.structured_content == {"answer": "blue"}
        assert person.asked[0].message == "Which?\n1. red\n2. blue"
        assert unsaid.is_error

    run(work)


@both_eras
def test_a_handler_can_show_a_form_whether_it_awaits_or_not(mode: str) -> None:
    fields = {"type": "object", "properties": {"size": {"type": "integer"}}}

    def forms(registry: ToolRegistry) -> None:
        @tool(registry=registry, toolset="trial", effect="read")
        def blocks(ctx: ToolContext) -> Any:
            """Ask, and wait."""
            return ctx.service("show_form")("How large?", fields)

        @tool(registry=registry, toolset="trial", effect="read")
        async def awaits(ctx: ToolContext) -> Any:
            """Ask, and await."""
            return await ctx.service("show_form")("How large?", fields)

    async def work() -> None:
        person = Person({"size": 3}, {"size": 4})
        async with client(app_with(forms), mode, elicitation_callback=person) as c:
            assert (await c.call_tool("blocks")).structured_content == {"size": 3}
            assert (await c.call_tool("awaits")).structured_content == {"size": 4}
            assert (await c.call_tool("awaits")).content[0].text == "null"
        async with client(app_with(forms), mode) as c:
            assert "show_form" in (await c.call_tool("blocks")).content[0].text

    run(work)


def test_a_question_is_answered_by_its_mark_once_and_for_the_same_call_only(
    workspace: Path,
) -> None:
    """The newer era by hand: the call is parked, and goes on when the answer is brought."""
    command = {"command": "rm -rf build"}

    async def work() -> None:
        async with client(app_with(), elicitation_callback=Person()) as c:
            call = c.session.call_tool
            asked = await call("terminal", command, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            (key,) = asked.input_requests or {}
            answer = {
                "input_responses": {key: accept(decision="once")},
                "allow_input_required": True,
            }
            mark = asked.request_state

            for other, wrong in (
                ({"command": "rm -rf /tmp/x"}, mark),
                (command, f"{mark}x"),
                (command, ""),
            ):
                with pytest.raises(MCPError, match="not open"):
                    await call("terminal", other, request_state=wrong, **answer)
            assert _there(workspace)

            result = await call("terminal", command, request_state=mark, **answer)
            assert not result.is_error
            assert not _there(workspace)

            with pytest.raises(MCPError, match="not open"):
                await call("terminal", command, request_state=mark, **answer)

    run(work)


def test_an_answer_to_nothing_that_was_asked_approves_nothing(workspace: Path) -> None:
    async def work() -> None:
        async with client(app_with(), elicitation_callback=Person()) as c:
            said = {key: accept(decision="always") for key in ("question", "approval", "decision")}
            asked = await c.session.call_tool(
                "terminal",
                {"command": "rm -rf build"},
                input_responses=said,
                allow_input_required=True,
            )

        assert isinstance(asked, InputRequiredResult)
        assert _there(workspace)

    run(work)
