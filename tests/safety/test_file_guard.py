"""Commands without confinement can't change what decides over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core import ToolCall, ToolRegistry
from hermes.core.config import set_value
from hermes.runtime.app import App

SETTINGS = "terminal: {confine: off}\n"
# File, and what is done with it.
CHANGES = {
    "settings": ("config.yaml",),
    "permissions": ("hermes_permissions.yaml",),
    "trust": ("trust.json",),
    "plugin": ("plugins/new.py",),
    "plugin changed": ("plugins/mine.py",),
    "YAML tools": ("yaml_tools/registered.json",),
    "MCP pins": ("approvals/mcp.json",),
    "settings deleted": ("config.yaml", "delete"),
    "settings made a link": ("config.yaml", "link"),
}
MAKE = """
import os, sys
# Disguised: the analyser would refuse it.
path = os.path.join(os.environ["H"], open("name").read()[::-1])
os.makedirs(os.path.dirname(path), exist_ok=True)
how = sys.argv[1:]
if how == ["delete"]:
    os.unlink(path)
elif how == ["link"]:
    os.unlink(path)
    os.symlink("/tmp/elsewhere", path)
else:
    open(path, "w").write("{}")
"""


@pytest.fixture
def app(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    (home / "plugins").mkdir(parents=True)
    home.chmod(0o700)
    (home / "config.yaml").write_text(SETTINGS)
    (home / "plugins" / "mine.py").write_text("")
    (tmp_path / "make.py").write_text(MAKE)
    monkeypatch.chdir(tmp_path)
    app = App(ToolRegistry(), approver=lambda request: True)
    yield app
    app.close()


def _files(home: Path) -> dict[str, bytes]:
    names = ("config.yaml", "hermes_permissions.yaml", "trust.json", "plugins", "yaml_tools")
    found = [path for path in home.rglob("*") if path.is_file() or path.is_symlink()]
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in found
        if str(path.relative_to(home)).startswith((*names, "approvals/mcp"))
    }


@pytest.mark.parametrize("what", CHANGES)
def test_what_decides_is_put_back_and_reported(what: str, app: App, home: Path) -> None:
    before = _files(home)
    name, *how = CHANGES[what]
    Path("name").write_text(name[::-1])
    command = " ".join(["python3 make.py", *how])
    trouble = []
    app.runtime.events.subscribe(lambda e: e.kind == "trouble" and trouble.append(e.data))

    outcome = app.runtime.call_sync(
        ToolCall("terminal", {"command": command, "env": {"H": str(home)}})
    )

    assert outcome.status == "ok", outcome.content
    assert outcome.value["exit_code"] == 0, outcome.content
    assert _files(home) == before
    assert "was put back" in outcome.content
    assert len(trouble) == 1


def test_what_hermes_itself_writes_meanwhile_stays(app: App, home: Path) -> None:
    app.runtime.home_guard.begin()
    set_value("tools.parallel", "3")

    assert app.runtime.home_guard.end() == []
    assert "parallel: 3" in (home / "config.yaml").read_text()


def test_a_rejected_version_is_kept_aside(app: App, home: Path) -> None:
    app.runtime.home_guard.begin()
    (home / "config.yaml").write_text("approvals: {mode: relaxed}\n")

    (note,) = app.runtime.home_guard.end()

    assert str(home / "put-back") in note
    (aside,) = (home / "put-back").iterdir()
    assert aside.read_text() == "approvals: {mode: relaxed}\n"
    assert (home / "config.yaml").read_text() == SETTINGS
