"""`hermes model` and `hermes setup`, against a real server on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from hermes.core.config import DEFAULTS
from hermes.interfaces.cli import main
from hermes.interfaces.cli.commands import FAILED
from hermes.testing import Call, ScriptedModel, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLED = Turn(calls=[Call("report", {"word": "ready"})])


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests has keys of their own."""
    from hermes.agent.providers.services import SERVICES

    for service in SERVICES:
        for name in (*service.keys, *service.addresses):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("HERMES_MODEL", raising=False)
    for name in ("name", "provider", "base_url", "api", "key_env"):
        monkeypatch.setitem(DEFAULTS, f"model.{name}", ("", "…"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        yield model


def settings(home: Path) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load((home / "config.yaml").read_text())["model"]
    return found


def test_the_chosen_model_and_the_services_are_listed(
    server: ScriptedModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")

    assert main.run(["model"]) == 0

    out = capsys.readouterr().out
    assert "at openai (by OPENAI_BASE_URL)" in out
    assert "ANTHROPIC_API_KEY is not set" in out
    assert server.paths == []


def test_the_list_for_programs_is_json(
    server: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["model", "list", "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["chosen"]["service"] == "openai"


def test_the_models_of_a_service_are_asked_for(
    server: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["model", "list", "openai"]) == 0

    assert capsys.readouterr().out == "scripted\n"


def test_a_service_without_a_key_is_said_to_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["model", "list", "mistral"]) == FAILED

    assert "MISTRAL_API_KEY" in capsys.readouterr().err


def test_a_model_is_remembered(server: ScriptedModel, home: Path) -> None:
    assert main.run(["model", "use", "openai/my-model"]) == 0
    assert settings(home) == {"provider": "openai", "name": "my-model"}

    assert main.run(["model", "use", "ollama/qwen3:8b"]) == 0
    assert settings(home) == {"provider": "ollama", "name": "qwen3:8b"}

    assert main.run(["model", "use", "embedded"]) == 0
    assert settings(home)["provider"] == "embedded"


def test_a_model_that_can_not_be_asked_is_not_remembered(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["model", "use", "gpt-5"]) == FAILED

    assert "OPENAI_API_KEY" in capsys.readouterr().err
    assert not (home / "config.yaml").exists()


def test_a_model_is_tried_with_one_real_request(
    server: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    server.add(CALLED)

    assert main.run(["model", "test", "openai/m"]) == 0

    assert "called the tool as asked" in capsys.readouterr().out
    assert len(server.requests) == 1


def test_a_model_that_only_talks_is_said_to(
    server: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    server.add("ready")

    assert main.run(["model", "test"]) == 0

    assert "text instead of a tool call" in capsys.readouterr().out


def test_setup_takes_the_first_that_works_and_writes_no_key(
    server: ScriptedModel,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789abcdef")
    # A busy machine takes its time.
    monkeypatch.setattr("hermes.agent.providers.services._PROBE_SECONDS", 60.0)
    server.add(CALLED)

    assert main.run(["setup", "--yes"]) == 0

    # The usual model of the service is not there; the server's own is.
    assert settings(home) == {"provider": "openai", "name": "scripted"}
    shown = capsys.readouterr()
    assert "secret" not in f"{shown.out}{shown.err}{(home / 'config.yaml').read_text()}"


def test_setup_goes_on_when_one_does_not_work(
    server: ScriptedModel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedModel([CALLED]) as other:
        monkeypatch.setenv("DEEPSEEK_BASE_URL", other.url)
        server.add(Turn(status=401, error="no"))

        assert main.run(["setup", "--yes"]) == 0

    assert settings(home)["provider"] == "deepseek"


def test_setup_with_nobody_to_ask_changes_nothing(
    server: ScriptedModel, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["setup"]) == FAILED

    assert "--yes" in capsys.readouterr().err
    assert not (home / "config.yaml").exists()


def test_setup_with_nothing_to_find_says_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hermes.agent.providers import services

    monkeypatch.setattr(services, "SERVICES", ())

    assert main.run(["setup", "--yes"]) == 0

    assert "export OPENROUTER_API_KEY" in capsys.readouterr().out
    assert not (home / "config.yaml").exists()
