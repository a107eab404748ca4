"""Starting costs only what the command needs: seen from what each one imports."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import CommandLine


PROGRAM = """
import sys

before = set(sys.modules)
from hermes.__main__ import main

try:
    main()
finally:
    sys.stderr.write(" ".join(set(sys.modules) - before))
"""


def imported(hermes: CommandLine, *words: str) -> set[str]:
    """The modules that a command imports, beside those of the bare interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=hermes.environment(),
        cwd=hermes.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def test_the_version_needs_nothing(hermes: CommandLine) -> None:
    found = imported(hermes, "--version")

    assert found & {"argparse", "json", "typing", "asyncio", "pathlib", "re", "logging"} == set()
    assert {name for name in found if name.startswith("hermes.")} <= {"hermes.__main__"}


HEAVY = {
    "asyncio",
    "msgspec",
    "jsonschema_rs",
    "httpx2",
    "psutil",
    "yaml",
    "importlib.metadata",
    "tree_sitter",
    "tree_sitter_bash",
    "dataclasses",
    "inspect",
    "subprocess",
    "logging",
    "email",
}


@pytest.mark.parametrize(
    "words", [["tools", "list"], ["tools"], ["tools", "show", "sleep"], ["toolsets"]], ids=" ".join
)
def test_a_second_listing_imports_no_tool_and_nothing_heavy(
    hermes: CommandLine, words: list[str]
) -> None:
    imported(hermes, *words)

    found = imported(hermes, *words)

    assert found & HEAVY == set()
    assert {name for name in found if name.startswith("hermes.tools")} <= {"hermes.tools"}
    assert {name for name in found if name.startswith("hermes.safety")} == set()
    assert {name for name in found if name.startswith("hermes.runtime.yaml_tools")} == set()


@pytest.mark.parametrize("words", [[], ["--help"], ["config", "path"], ["config", "list"]])
def test_help_and_settings_load_no_tools(hermes: CommandLine, words: list[str]) -> None:
    found = imported(hermes, *words)

    assert found & (HEAVY - {"subprocess"}) == set()
    assert not {name for name in found if name.startswith("hermes.tools.")}
    assert "hermes.runtime.discovery" not in found


def test_a_call_imports_the_module_of_its_tool_and_no_other(hermes: CommandLine) -> None:
    imported(hermes, "tools")

    found = imported(hermes, "call", "sleep", "seconds=0")

    tools = {name for name in found if name.startswith("hermes.tools.")}
    assert tools == {"hermes.tools.system"}
    assert "psutil" not in found


def test_importing_the_author_s_names_is_light() -> None:
    program = "import sys, hermes.tools; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert set(done.stdout.split()) & HEAVY == set()
