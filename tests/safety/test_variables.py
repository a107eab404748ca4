"""Variables that load code get one verdict, whichever way they are set; ordinary ones pass."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App

LOADING = {
    "LD_PRELOAD": "./x.so",
    "BASH_ENV": "rc",
    "ENV": "./rc",
    "PERL5OPT": "-Mx",
    "PYTHONSTARTUP": "x.py",
    "NODE_OPTIONS": "--require ./x.js",
    "JAVA_TOOL_OPTIONS": "-javaagent:x.jar",
    "TAR_OPTIONS": "--checkpoint-action=exec=x",
    "GIT_CONFIG_GLOBAL": "cfg",
    "GIT_CONFIG_PARAMETERS": "'core.pager=x'",
    "XDG_CONFIG_HOME": "/w/conf",
    "PATH": "/tmp/bin:/usr/bin",
    "PYTHONPATH": "/tmp/lib",
    "HERMES_HOME": "/tmp/h",
}
ORDINARY = {
    "DEBUG": "1",
    "NODE_ENV": "test",
    "ENV": "production",
    "CI": "true",
    "DATABASE_URL": "sqlite:///x.db",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "NODE_OPTIONS": "--max-old-space-size=4096",
    "PYTHONPATH": "src",
    "TAR_OPTIONS": "--exclude=x",
    "EDITOR": "vim",
}


def _statuses(name: str, value: str) -> list[str]:
    app = App(ToolRegistry())
    text = shlex.quote(value)
    calls: list[dict[str, object]] = [
        {"command": "true", "env": {name: value}},
        {"command": f"export {name}={text}; true"},
        {"command": f"{name}={text} true"},
    ]
    found = [app.runtime.call_sync(ToolCall("terminal", call)).status for call in calls]
    app.close()
    return found


@pytest.fixture(autouse=True)
def _unconfined(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home / "config.yaml").write_text("terminal: {confine: off}\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", LOADING)
def test_what_loads_code_asks_in_every_way(name: str) -> None:
    assert _statuses(name, LOADING[name]) == ["refused"] * 3


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names_and_values_pass(name: str) -> None:
    assert _statuses(name, ORDINARY[name]) == ["ok"] * 3
