"""The machine, the task's environment, and waiting."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.runtime.hooks import Event
    from hermes.runtime.pipeline import Runtime

SECTIONS = ["system", "cpu", "memory", "disk", "network", "processes"]


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    app = App(ToolRegistry())
    app.approver = lambda request: True
    yield app.runtime
    app.close()


def call(runtime: Runtime, tool: str, /, **arguments: Any) -> Any:
    outcome = runtime.call_sync(ToolCall(tool, arguments))
    assert outcome.ok, outcome
    return outcome.value


# -- system_info ---------------------------------------------------------------------------------


def test_everything_is_measured_when_nothing_is_chosen(runtime: Runtime) -> None:
    found = call(runtime, "system_info")

    assert list(found) == SECTIONS
    assert not [name for name in SECTIONS if "error" in found[name]]
    assert found["system"]["python"]
    assert found["cpu"]["cores"] == os.cpu_count()
    assert 0 <= found["cpu"]["percent"] <= 100
    assert found["memory"]["total_gb"] >= found["memory"]["available_gb"] > 0
    assert any(place["path"] == os.getcwd() for place in found["disk"])
    assert found["processes"]["count"] >= 1


@pytest.mark.parametrize("section", SECTIONS)
def test_one_section_alone(runtime: Runtime, section: str) -> None:
    assert list(call(runtime, "system_info", sections=[section, section])) == [section]


def test_as_many_processes_as_asked_for(runtime: Runtime) -> None:
    found = call(runtime, "system_info", sections=["processes"], top=1)

    (busiest,) = found["processes"]["busiest"]
    assert busiest["pid"] > 0


def test_a_section_that_the_system_refuses_says_so_and_leaves_the_others(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes.tools import _machine

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setitem(_machine.SECTIONS, "network", refused)

    found = call(runtime, "system_info", sections=["network", "memory"])

    assert "Permission denied" in found["network"]["error"]
    assert found["memory"]["total_gb"] > 0


def test_an_unknown_section_is_refused(runtime: Runtime) -> None:
    outcome = runtime.call_sync(ToolCall("system_info", {"sections": ["weather"]}))

    assert outcome.status == "error"
    assert "weather" in str(outcome.error)


# -- env_manager ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "ACME_API_KEY",
        "DB_PASSWORD",
        "GITHUB_TOKEN",
        "MY_SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "MYSQL_PWD",
    ],
)
def test_values_of_secret_looking_names_are_masked(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "tuesday-afternoon")

    listed = call(runtime, "env_manager", action="list", name=name)
    got = call(runtime, "env_manager", action="get", name=name)
    put = call(runtime, "env_manager", action="set", name=name, value="wednesday-morning")

    assert set(listed.values()) == {"[masked]"}
    assert got["value"] == put["value"] == "[masked]"


def test_secrets_in_the_values_of_plain_names_are_masked_too(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_URL", "postgres://ada:hunter2hunter2@db/acme")

    found = call(runtime, "env_manager", action="get", name="ACME_URL")

    assert "hunter2hunter2" not in found["value"]
    assert "@db/acme" in found["value"]


def test_changes_stay_with_the_task_and_never_reach_this_process(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_PLAIN", "before")
    before = dict(os.environ)

    call(runtime, "env_manager", action="set", name="ACME_NEW", value="x=y")
    call(runtime, "env_manager", action="unset", name="ACME_PLAIN")

    assert dict(os.environ) == before
    assert call(runtime, "env_manager", action="get", name="ACME_NEW")["value"] == "x=y"
    assert call(runtime, "env_manager", action="list", name="ACME_") == {"ACME_NEW": "x=y"}
    gone = runtime.call_sync(ToolCall("env_manager", {"action": "get", "name": "ACME_PLAIN"}))
    assert gone.error == "ACME_PLAIN is not set"
    other = runtime.call_sync(
        ToolCall("env_manager", {"action": "get", "name": "ACME_PLAIN"}), runtime.context("other")
    )
    assert other.value["value"] == "before"


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({"action": "list"}, False),
        ({"action": "get", "name": "PATH"}, False),
        ({"action": "set", "name": "A", "value": "1"}, True),
        ({"action": "unset", "name": "A"}, True),
    ],
)
def test_only_changes_need_approval(
    registry: ToolRegistry, arguments: dict[str, str], asked: bool
) -> None:
    questions: list[str] = []
    app = App(registry)
    app.approver = lambda request: bool(questions.append(request.tool))

    outcome = app.runtime.call_sync(ToolCall("env_manager", arguments))
    app.close()

    assert bool(questions) == asked
    assert outcome.status == ("refused" if asked else "ok")


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "get"},
        {"action": "get", "name": ""},
        {"action": "set", "name": "A"},
        {"action": "set", "name": "A=B", "value": "1"},
        {"action": "set", "name": "A", "value": "nul\0"},
        {"action": "unset"},
        {"action": "rename", "name": "A"},
    ],
)
def test_what_can_t_be_done_is_said(runtime: Runtime, arguments: dict[str, str]) -> None:
    outcome = runtime.call_sync(ToolCall("env_manager", arguments))

    assert outcome.status == "error"
    assert runtime.task("main").env == {}


def test_values_that_are_no_proper_text_can_be_listed(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environb, b"ACME_ODD", b"caf\xe9")

    assert list(call(runtime, "env_manager", action="list", name="ACME_ODD")) == ["ACME_ODD"]


# -- sleep ---------------------------------------------------------------------------------------


def test_it_sleeps_and_says_how_long(runtime: Runtime) -> None:
    found = call(runtime, "sleep", seconds=0.05)

    assert found["cancelled"] is False
    assert found["slept_seconds"] >= 0.05


@pytest.mark.parametrize("seconds", [-1, 3601, 1e9, "soon", None])
def test_no_more_than_an_hour_and_no_less_than_nothing(runtime: Runtime, seconds: Any) -> None:
    outcome = runtime.call_sync(ToolCall("sleep", {"seconds": seconds}))

    assert outcome.status == "error"
    assert "seconds" in str(outcome.error)


def test_it_reports_progress_and_can_be_cancelled(runtime: Runtime) -> None:
    events: list[Event] = []
    started = threading.Event()

    def watch(event: Event) -> None:
        events.append(event)
        if event.kind == "progress":
            started.set()

    runtime.events.subscribe(watch)
    outcomes: list[Any] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(
            runtime.call_sync(ToolCall("sleep", {"seconds": 600}, id="nap"))
        )
    )
    begun = time.monotonic()
    thread.start()
    assert started.wait(20)

    assert runtime.cancel("nap")
    thread.join(20)

    assert not thread.is_alive()
    assert time.monotonic() - begun < 60
    progress = next(event for event in events if event.kind == "progress")
    assert "s left" in progress.data["message"]
    assert 0 <= progress.data["fraction"] <= 1
    (outcome,) = outcomes
    assert outcome.status == "cancelled" or outcome.value["cancelled"] is True
