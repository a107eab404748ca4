"""Tool modules are found by their syntax trees, and imported only when that is new."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest
from tests.corpus import each

from hermes.core.errors import ToolError
from hermes.core.registry import ToolRegistry
from hermes.core.registry import registry as shared
from hermes.runtime.discovery import discover, holds_tools, registrations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.runtime.discovery import Discovery

DECORATED = '''
from hermes.tools import tool

@tool(toolset="{toolset}")
def {name}(text: str) -> str:
    """Say a text."""
    return text
'''


class Tools:
    """A package of tool modules on `sys.path`."""

    def __init__(self, folder: Path, package: str) -> None:
        self.folder = folder
        self.package = package

    def write(self, module: str, text: str) -> None:
        path = self.folder / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def discover(self, registry: ToolRegistry) -> Discovery:
        """What a program that starts now finds."""
        self.forget()
        return discover(registry, str(self.folder), self.package)

    def forget(self) -> None:
        importlib.invalidate_caches()
        for entry in shared.entries():
            if entry.module.startswith(self.package):
                shared.deregister(entry.name)
        for name in [name for name in sys.modules if name.startswith(self.package)]:
            del sys.modules[name]


@pytest.fixture
def tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Tools]:
    package = f"found_{abs(hash(request.node.name))}"
    folder = tmp_path / package
    folder.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    # Two texts written within a second of each other have compiled copies that look alike.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = Tools(folder, package)
    yield found
    found.forget()


def test_both_spellings_of_a_registration_are_found(tools: Tools, registry: ToolRegistry) -> None:
    tools.write("decorated", DECORATED.format(name="spoken_text", toolset="speech"))
    tools.write(
        "registered",
        """
from hermes.tools import registry
registry.register("written_text", "speech", {"properties": {"a": {"type": "string"}}}, lambda a: a)
""",
    )

    found = tools.discover(registry)

    assert registry.names() == ["spoken_text", "written_text"]
    assert found.modules == [f"{tools.package}.decorated", f"{tools.package}.registered"]
    assert found.failed == {}


def test_helpers_are_not_imported(tools: Tools, registry: ToolRegistry) -> None:
    trap = 'raise RuntimeError("imported")\n'
    tools.write("helper", trap)
    tools.write("_private", trap + DECORATED.format(name="hidden", toolset="t"))
    tools.write("atexit_user", "import atexit\natexit.register(print)\n" + trap)
    tools.write("words", '"""The word @tool and registry.register( in a text."""\n' + trap)
    tools.write("inside", "def f():\n    registry.register('a', 'b', {}, print)\n" + trap)
    tools.write("decorated", DECORATED.format(name="the_only_one", toolset="t"))

    found = tools.discover(registry)

    assert registry.names() == ["the_only_one"]
    assert found.imported == [f"{tools.package}.decorated"]
    assert found.failed == {}


def test_modules_in_folders_are_found(tools: Tools, registry: ToolRegistry) -> None:
    tools.write("inner/deep", DECORATED.format(name="deep_tool", toolset="t"))

    tools.discover(registry)

    assert registry.names() == ["deep_tool"]
    resolved = registry.resolve("deep_tool")
    assert resolved is not None
    assert resolved.handler is not None


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("import no_such_package_anywhere", "ModuleNotFoundError"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def (:", "SyntaxError"),
    ],
)
def test_a_module_that_fails_hides_its_own_tools_only(
    tools: Tools, registry: ToolRegistry, trouble: str, said: str
) -> None:
    tools.write("broken", DECORATED.format(name="half_there", toolset="t") + trouble + "\n")
    tools.write("sound", DECORATED.format(name="whole", toolset="t"))

    found = tools.discover(registry)

    assert registry.names() == ["whole"]
    assert "half_there" not in shared
    assert list(found.failed) == [f"{tools.package}.broken"]
    assert said in found.failed[f"{tools.package}.broken"]


def test_a_file_that_can_t_be_read_hides_nobody(tools: Tools, registry: ToolRegistry) -> None:
    (tools.folder / "gone.py").symlink_to(tools.folder / "nowhere")
    tools.write("sound", DECORATED.format(name="whole", toolset="t"))

    found = tools.discover(registry)

    assert registry.names() == ["whole"]
    assert "can't be read" in found.failed[f"{tools.package}.gone"]


def test_a_second_start_imports_nothing_until_the_first_call(tools: Tools) -> None:
    tools.write("decorated", DECORATED.format(name="spoken_text", toolset="speech"))
    first, second = ToolRegistry(), ToolRegistry()
    tools.discover(first)

    found = tools.discover(second)

    assert found.imported == []
    assert f"{tools.package}.decorated" not in sys.modules
    assert second.get_definitions() == first.get_definitions()
    loaded = second.resolve("spoken_text")
    assert loaded is not None
    assert loaded.invoke is not None
    assert loaded.invoke({"text": "hello"}, None) == "hello"
    assert second.get("spoken_text") is loaded


def test_a_tool_that_is_gone_from_its_module_says_so_at_the_call(tools: Tools) -> None:
    tools.write("decorated", DECORATED.format(name="spoken_text", toolset="speech"))
    tools.discover(ToolRegistry())
    registry = ToolRegistry()
    tools.discover(registry)
    tools.write("decorated", "raise RuntimeError('changed meanwhile')\n")

    with pytest.raises(ToolError, match="changed meanwhile"):
        registry.resolve("spoken_text")


def test_an_edit_is_seen_by_the_next_start(tools: Tools) -> None:
    tools.write("decorated", DECORATED.format(name="before", toolset="t"))
    tools.discover(ToolRegistry())
    tools.write("decorated", DECORATED.format(name="after", toolset="t"))
    registry = ToolRegistry()

    found = tools.discover(registry)

    assert registry.names() == ["after"]
    assert found.imported == [f"{tools.package}.decorated"]


def test_a_deleted_module_takes_its_tools_along(tools: Tools) -> None:
    tools.write("one", DECORATED.format(name="first_one", toolset="t"))
    tools.write("two", DECORATED.format(name="second_one", toolset="t"))
    tools.discover(ToolRegistry())
    (tools.folder / "two.py").unlink()
    registry = ToolRegistry()

    tools.discover(registry)

    assert registry.names() == ["first_one"]


def test_a_broken_module_that_is_mended_comes_back(tools: Tools) -> None:
    tools.write("one", DECORATED.format(name="first_one", toolset="t") + "1 / 0\n")
    tools.discover(ToolRegistry())
    tools.write("one", DECORATED.format(name="first_one", toolset="t"))
    registry = ToolRegistry()

    tools.discover(registry)

    assert registry.names() == ["first_one"]


def test_checks_in_code_and_texts_made_at_run_time_survive_the_second_start(tools: Tools) -> None:
    tools.write(
        "decorated",
        """
from hermes.tools import needs, tool

@tool(toolset="t", check_fn=lambda: False)
def never() -> None:
    "Never there."

@tool(toolset="t", check_fn=needs("no_such_package", extra="more"))
def lacking() -> None:
    "Lacks a package."

@tool(toolset="t", dynamic_schema_overrides=lambda: {"description": "Said at run time."})
def spoken() -> None:
    "Said before."
""",
    )
    from hermes.runtime.definitions import patched

    tools.discover(ToolRegistry())
    registry = ToolRegistry()

    tools.discover(registry)

    missing = registry.availability.missing(registry.entries())
    assert set(missing) == {"never", "lacking"}
    assert "pip install 'hermes-tools[more]'" in missing["lacking"]
    texts = [d["function"]["description"] for d in patched(registry.available())]
    assert texts == ["Said at run time."]


@each(
    ("text", "names"),
    [
        ("@tool\ndef a(): ...", ["a"]),
        ("@tool()\nasync def a(): ...", ["a"]),
        ("@hermes.tools.tool('b')\ndef a(): ...", ["b"]),
        ("@tool(name='b')\ndef a(): ...", ["b"]),
        ("@tool(NAME)\ndef a(): ...", ["?"]),
        ("@tool(**options)\ndef a(): ...", ["?"]),
        ("from hermes.tools import tool as t\n@t(toolset='x')\ndef a(): ...", ["a"]),
        ("from hermes.tools import registry as r\nr.register('a', 'b', {}, f)", ["a"]),
        ("registry.register(name='a', toolset='b')", ["a"]),
        ("entry = registry.register('a', 'b', {}, f)", ["a"]),
        ("hermes.tools.registry.register('a', 'b', {}, f)", ["a"]),
        ("tool('a')(function)", ["a"]),
        ("@tool\nclass A(BaseTool):\n    name = 'shown'", ["shown"]),
        ("@tool\nclass A(BaseTool):\n    name: str = 'shown'", ["shown"]),
        ("@tool\nclass A(BaseTool): ...", ["A"]),
        ("@tool\nclass A(Other): ...", ["?"]),
        ("@property\ndef tool(): ...", []),
        ("atexit.register(f)", []),
        ("signal.register('a')", []),
        ("x = 1", []),
        ("def (", ["?"]),
        ("\0", ["?"]),
    ],
)
def test_the_syntax_tree_shows_which_tools_there_are(text: str, names: list[str]) -> None:
    assert registrations(text) == names
    assert registrations(text.encode()) == names


def test_a_text_without_the_words_is_not_even_parsed() -> None:
    assert not holds_tools(b"def (")
    assert not holds_tools("x = 1")
