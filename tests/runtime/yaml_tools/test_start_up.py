"""Registered files cost a start little: nothing heavy is loaded to list their tools."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
tools:
  - name: weather
    description: The weather in a city.
    type: http_wrapper
    endpoint: https://api.example/v1/{city}
    parameters:
      - {name: city, type: string, required: true, in: path}
    response: {jsonpath: "$.days[*].summary"}
  - name: disk_use
    description: How full the disk is.
    type: command
    command: [df, -h]
"""

PROGRAM = """
import sys
from hermes.core.registry import ToolRegistry
from hermes.runtime.yaml_tools.store import YamlTools

registry = ToolRegistry()
tools = YamlTools(registry, home=sys.argv[1])
if sys.argv[2:]:
    tools.register(sys.argv[2])
assert tools.load() == []
assert registry.names() == ["disk_use", "weather"]
print(*sys.modules, sep="\\n")
"""


def modules(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_a_start_with_registered_files_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text(FILE)
    modules(str(tmp_path / "home"), str(tmp_path / "tools.yaml"))

    loaded = modules(str(tmp_path / "home"))

    heavy = {"asyncio", "dataclasses", "hashlib", "httpx", "inspect", "logging", "typing"}
    assert not loaded & heavy
