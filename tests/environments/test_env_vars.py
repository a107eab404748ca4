"""No credential of ours reaches a command, whatever its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.environments.command import command_environment, inherited_variables
from hermes.environments.host.host_environment import LocalEnvironment

CANARIES = [
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN", "PYPI_TOKEN",
    "DATABASE_URL", "REDIS_URL", "MONGO_URI", "SENTRY_DSN", "APP_DSN", "SLACK_WEBHOOK",
    "DISCORD_WEBHOOK_URL", "DB_PASS", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SMTP_PASS",
    "SECRET", "SECRET_KEY", "DJANGO_SECRET_KEY", "JWT_KEY", "SIGNING_KEY", "PRIVATE_KEY",
    "ENCRYPTION_KEY", "STRIPE_KEY", "TWILIO_AUTH", "AUTH", "BEARER", "COOKIE", "SESSION",
    "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "VAULT_ADDR", "HF_TOKEN",
    "DOCKER_AUTH_CONFIG", "NETRC", "MY_LITTLE_THING", "path_to_secret", "HERMES_SOMETHING",
    "BASH_ENV", "LD_PRELOAD", "PYTHONPATH",
]  # fmt: skip


def test_no_canary_is_seen_by_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CANARIES:
        monkeypatch.setenv(name, f"sparrow-{name}")
    monkeypatch.setenv("https_proxy", "http://joe:sparrow-proxy@proxy:3128")
    local = LocalEnvironment(str(tmp_path))

    seen = local.execute("env; cat /proc/$PPID/environ", timeout=10)
    beside = local.start("env")
    beside.wait(5)
    local.cleanup()

    assert "PATH=" in seen.stdout
    assert "sparrow" not in seen.stdout
    assert "sparrow" not in beside.log()[0]


def test_a_variable_that_is_named_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANTED_KEY", "yes")

    assert inherited_variables(["WANTED_KEY"])["WANTED_KEY"] == "yes"
    assert "WANTED_KEY" not in inherited_variables()


def test_proxies_without_a_password_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")

    assert inherited_variables()["HTTPS_PROXY"] == "http://proxy:3128"


def test_the_task_and_the_call_win_over_the_rest() -> None:
    env = command_environment({"PAGER": "less", "A": "1", "B": None}, {"B": "2"}, extra={"A": "3"})

    assert env["PAGER"] == "less"
    assert env["A"] == "3"
    assert "B" not in env


def test_somebody_who_can_answer_is_not_kept_from_it() -> None:
    assert "EDITOR" not in command_environment({}, {}, attended=True)
    assert command_environment({}, {})["EDITOR"] == "true"
