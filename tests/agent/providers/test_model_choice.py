"""Which model is asked: option over environment over settings."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.agent.providers.model_choice import (
    Fallback,
    choice,
    chosen_provider,
    chosen_providers,
    idle_timeout,
)
from hermes.core.config import Config
from hermes.core.errors import ConfigError, HermesError
from hermes.core.model_protocol import ModelError


def at(
    environ: dict[str, str] | None = None, option: str | None = None, **model: Any
) -> tuple[str, str, str] | None:
    found = choice(Config({"model": model}), environ or {}, option)
    return found and (found.service, found.model, found.base_url)


def test_with_nothing_at_all_it_is_the_embedded_model() -> None:
    assert at() is None
    assert at({"OPENAI_API_KEY": " "}) is None


@pytest.mark.parametrize(
    ("variable", "service"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("OPENROUTER_API_KEY", "openrouter"),
        ("DEEPSEEK_API_KEY", "deepseek"),
        ("NOUS_API_KEY", "nous"),
        ("MISTRAL_API_KEY", "mistral"),
    ],
)
def test_a_key_is_enough(variable: str, service: str) -> None:
    found = choice(Config(), {variable: "secret"})

    assert found is not None
    assert (found.service, found.key, bool(found.model)) == (service, "secret", True)


def test_an_address_without_a_key_is_enough() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "HERMES_MODEL": "local-thing"}
    assert at(environ) == ("openai", "local-thing", "http://127.0.0.1:9/v1")


def test_the_option_wins_over_the_environment_and_that_over_the_settings() -> None:
    environ = {"OPENROUTER_API_KEY": "k", "HERMES_MODEL": "b/b"}

    assert at(environ, "a/a", name="c/c") == ("openrouter", "a/a", "https://openrouter.ai/api/v1")
    assert (at(environ, name="c/c") or ())[1] == "b/b"
    del environ["HERMES_MODEL"]
    assert (at(environ, name="c/c") or ())[1] == "c/c"


def test_the_address_of_the_environment_wins_over_that_of_the_settings() -> None:
    environ = {"OPENAI_BASE_URL": "http://env/v1", "OPENAI_API_KEY": "k"}
    settings = {"provider": "openai", "name": "m", "base_url": "http://file/v1"}

    assert at(environ, **settings) == ("openai", "m", "http://env/v1")
    assert at({"OPENAI_API_KEY": "k"}, **settings) == ("openai", "m", "http://file/v1")


def test_settings_with_only_an_address_are_a_server_of_ones_own() -> None:
    found = at({}, name="m", base_url="http://box:9/v1")
    assert found == ("custom", "m", "http://box:9/v1")


def test_a_name_goes_to_its_maker_when_there_is_a_key_for_it() -> None:
    both = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}

    assert (at(both, "claude-opus-4-5") or ())[0] == "anthropic"
    assert (at(both, "gpt-5.1") or ())[0] == "openai"


def test_a_name_with_a_maker_goes_to_the_maker_or_to_one_that_has_them_all() -> None:
    assert (at({"OPENAI_API_KEY": "o"}, "openai/gpt-5") or ())[:2] == ("openai", "gpt-5")
    gateway = at({"OPENROUTER_API_KEY": "r"}, "openai/gpt-5") or ()
    assert gateway[:2] == ("openrouter", "openai/gpt-5")
    named = at({"OPENROUTER_API_KEY": "r"}, "openrouter:openai/gpt-5") or ()
    assert named[:2] == ("openrouter", "openai/gpt-5")


def test_a_local_server_is_named_and_not_looked_for() -> None:
    found = at({}, "ollama/qwen3:8b")
    assert found == ("ollama", "qwen3:8b", "http://127.0.0.1:11434/v1")
    found = at({"OLLAMA_HOST": "0.0.0.0:5000"}, "ollama/qwen3:8b")
    assert found == ("ollama", "qwen3:8b", "http://127.0.0.1:5000/v1")


def test_embedded_can_be_chosen_though_there_is_a_key() -> None:
    assert at({"OPENAI_API_KEY": "k"}, "embedded") is None
    assert at({"OPENAI_API_KEY": "k"}, provider="embedded") is None


@pytest.mark.parametrize(
    ("environ", "option", "model"),
    [
        ({}, "gpt-5", {}),
        ({}, None, {"provider": "anthropic"}),
        ({}, None, {"provider": "custom", "name": "m"}),
        ({}, "ollama", {}),
        ({}, None, {"provider": "opnai"}),
    ],
)
def test_what_is_missing_is_said_in_one_line_with_what_to_do(
    environ: dict[str, str], option: str | None, model: dict[str, str]
) -> None:
    with pytest.raises(HermesError) as caught:
        at(environ, option, **model)

    assert caught.value.hint
    assert "\n" not in f"{caught.value}{caught.value.hint}"


def test_models_to_fall_back_on_come_after_the_chosen_one() -> None:
    config = Config({"model": {"name": "gpt-5.1", "fallbacks": ["claude-sonnet-4-5", "gpt-5.1"]}})
    environ = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}

    found = chosen_providers(config, environ, None)

    assert [(p.name, p.model) for p in found] == [
        ("openai", "gpt-5.1"),
        ("anthropic", "claude-sonnet-4-5"),
    ]
    assert isinstance(chosen_provider(config, environ), Fallback)
    assert chosen_provider(config, environ).window > 0


def test_the_window_can_be_set() -> None:
    config = Config({"model": {"name": "m", "base_url": "http://x/v1", "window": 5000}})
    assert chosen_providers(config, {}, None)[0].window == 5000


def test_how_long_a_model_may_be_silent_is_read_from_both_places() -> None:
    settings = Config({"model": {"idle_timeout": 7}})

    assert idle_timeout(settings, {}) == 7
    assert idle_timeout(settings, {"HERMES_MODEL_IDLE_TIMEOUT": "0.5"}) == 0.5
    assert idle_timeout(Config(), {}) is None
    with pytest.raises(ConfigError):
        idle_timeout(Config(), {"HERMES_MODEL_IDLE_TIMEOUT": "soon"})


def test_a_key_is_named_by_the_settings_where_the_server_is_ones_own() -> None:
    config = Config({"model": {"name": "m", "base_url": "http://x/v1", "key_env": "MY_KEY"}})
    found = choice(config, {"MY_KEY": "mine", "OPENAI_API_KEY": "not this"})

    assert found is not None
    assert found.key == "mine"


def test_a_key_of_one_service_is_never_sent_to_another() -> None:
    config = Config({"model": {"name": "m", "base_url": "http://x/v1"}})
    found = choice(config, {"OPENAI_API_KEY": "secret", "OPENROUTER_API_KEY": "secret"})

    assert found is not None
    assert found.key == ""


def test_the_error_names_the_variable_to_set() -> None:
    with pytest.raises(ModelError) as caught:
        choice(Config(), {"HERMES_MODEL": "claude-x"}, None)
    assert "ANTHROPIC_API_KEY" in str(caught.value.hint)
