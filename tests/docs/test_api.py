"""The public API: one page, and it agrees with the code."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import hermes
import hermes.tools

SCRIPT = Path(__file__).parents[2] / "docs" / "api_reference.py"


def _script() -> ModuleType:
    spec = spec_from_file_location("api_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_code_says() -> None:
    script = _script()

    assert script.PAGE.read_text(encoding="utf-8") == script.page(), f"run: python {SCRIPT}"


def test_every_public_name_is_on_the_page_and_can_be_imported() -> None:
    listed = [name for names in _script().GROUPS.values() for name in names]

    assert sorted([*listed, "__version__"]) == sorted(hermes.__all__)
    assert len(listed) == len(set(listed))
    for name in (*hermes.__all__, "registry"):
        assert getattr(hermes, name) is not None
    for name in hermes.tools.__all__:
        assert getattr(hermes.tools, name) is not None


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, hermes; print([m for m in sys.modules if m.startswith('hermes.')])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_older_import_paths_still_work() -> None:
    from hermes.core import ToolCall, replace_text
    from hermes.runtime import App, Runtime
    from hermes.tools import registry, tool

    assert (ToolCall, Runtime, App) == (hermes.ToolCall, hermes.Runtime, hermes.App)
    assert (registry, tool) == (hermes.registry, hermes.tool)
    assert replace_text("a b", "a", "c").text == "c b"
