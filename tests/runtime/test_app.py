"""All of it put together: the parts fit, and each is made when it is asked for."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from hermes.core.entry import ToolCall
from hermes.core.errors import ConfigError
from hermes.core.registry import ToolRegistry
from hermes.runtime import App
from hermes.runtime.audit import verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUILT_IN = {
    "clipboard",
    "env_manager",
    "notification",
    "read_artifact",
    "sleep",
    "system_info",
    "tool_search",
}


@pytest.fixture
def app(registry: ToolRegistry, tmp_path: Path) -> Iterator[App]:
    made = App(registry, project=str(tmp_path))
    yield made
    made.close()


def test_the_registry_has_every_shipped_tool(app: App) -> None:
    assert set(app.registry.names()) >= BUILT_IN


def test_a_registry_of_one_s_own_has_only_what_was_put_into_it(registry: ToolRegistry) -> None:
    other = ToolRegistry()

    App(registry).registry  # noqa: B018

    assert len(registry) >= len(BUILT_IN)
    assert len(other) == 0


def test_a_call_goes_through_everything(app: App, home: Path) -> None:
    outcome = app.runtime.call_sync(ToolCall("sleep", '{"seconds": "0"}'))
    app.close()

    assert outcome.value == {"slept_seconds": 0.0, "cancelled": False}
    assert verify(str(home / "audit" / "audit.jsonl")) == (1, None)


def test_the_settings_decide_what_is_offered(app: App, home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("tools: {disabled_toolsets: [system], defer_above: 1}\n")

    offer = app.offer()

    assert offer.deferred
    assert offer.reachable.isdisjoint({"sleep", "system_info"})
    assert set(app.offer(enabled=["system"]).reachable) >= {"sleep", "system_info"}


def test_the_audit_log_can_be_turned_off(app: App, home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("audit: {enabled: false}\n")

    app.runtime.call_sync(ToolCall("sleep", {"seconds": 0}))
    app.close()

    assert not (home / "audit").exists()


def test_settings_that_can_t_be_read_are_named_every_time(app: App, home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("tools: [")

    for _ in range(2):
        with pytest.raises(ConfigError, match=r"config\.yaml"):
            app.offer()


def test_plugins_can_be_turned_off(app: App, home: Path) -> None:
    (home / "plugins").mkdir(parents=True)
    (home / "plugins" / "trap.py").write_text("raise SystemExit('loaded')")
    (home / "config.yaml").write_text("plugins: {enabled: false}\n")

    assert "sleep" in app.registry
    assert app.plugins.found == []


def test_everything_hermes_makes_is_for_its_owner_only(app: App, home: Path) -> None:
    app.runtime.call_sync(ToolCall("sleep", {"seconds": 0}))
    app.artifacts.put("text")
    app.close()

    made = [home, *home.rglob("*")]

    assert len(made) > 5
    assert [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_the_registry_is_whole_for_every_thread(registry: ToolRegistry) -> None:
    app = App(registry)
    seen: list[int] = []
    gate = threading.Barrier(8)

    def look() -> None:
        gate.wait()
        seen.append(len(app.registry))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(seen) == {len(registry)}


def test_a_registry_that_is_asked_to_dispatch_finds_its_runtime() -> None:
    program = (
        "from hermes.tools import registry, tool\n"
        "@tool(effect='read')\n"
        "def double(number: int) -> int:\n"
        "    'Double it.'\n"
        "    return number * 2\n"
        "print(registry.dispatch('double', {'number': '21'}))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert (done.stdout, done.stderr) == ("42\n", "")
