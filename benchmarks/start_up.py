"""What it costs to start: `hermes --version`, a warm listing, a hundred functions made tools."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from typing import TYPE_CHECKING

from benchmarks.measure import Row, process_ms, python_ms, usual_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

_HUNDRED = """
from hermes.tools import tool, registry
source = '''
@tool(toolset="bench", effect="read")
def tool_{n}(path: str, count: int = 10, deep: bool = False, names: list[str] | None = None) -> str:
    \"\"\"Do the thing number {n}.

    Args:
        path: Where.
        count: How many.
    \"\"\"
    return path
'''
for n in range(100):
    exec(source.replace("{n}", str(n)), {"tool": tool, "__name__": "bench"})
assert len(registry.get_definitions()) == 100
"""

_FIRST = """
import time
begun = time.process_time()
from hermes.runtime import get_tool_definitions
found = get_tool_definitions()
assert found
print((time.process_time() - begun) * 1000)
"""


_YAML = """
tools:
  - name: weather
    description: The weather in a city for the next days.
    type: http_wrapper
    endpoint: https://api.example/v1/{city}
    parameters:
      - {name: city, type: string, required: true, in: path, description: Name of the city.}
      - {name: days, type: integer, in: query, default: 3}
  - name: disk_use
    description: How full the disk is.
    type: command
    command: [df, -h]
"""


def rows() -> Iterator[Row]:
    """Ratios to `python -c pass`, taken in the same run."""
    program = os.path.join(sysconfig.get_path("scripts"), "hermes")
    with tempfile.TemporaryDirectory() as home:
        env = {"HERMES_HOME": home}
        base = python_ms("pass")
        yield Row("python -c pass", base, "ms")
        yield Row("hermes --version", process_ms([program, "--version"], env=env) / base, "×", 2)
        process_ms([program, "tools", "list"], env=env, runs=1)
        warm = process_ms([program, "tools", "list"], env=env)
        yield Row("hermes tools list, warm", warm / base, "×", 6)
        yield Row("the same with settings and YAML tools", _settled_ms(program) / base, "×", 6)
        hundred = python_ms(_HUNDRED, env=env)
        yield Row("import hermes.tools, 100 functions, 100 schemas", hundred / base, "×", 8)
        yield Row("first definitions, checks included", _first_ms(env), "ms", 40)
        launcher = os.path.join(os.path.dirname(os.path.dirname(__file__)), "hermes")
        if os.path.exists(os.path.join(os.path.dirname(launcher), ".venv", ".ready")):
            through = process_ms([launcher, "--version"], env=env)
            direct = process_ms([program, "--version"], env=env)
            yield Row("./hermes over the installed program", through - direct, "ms", 5)


def _settled_ms(program: str) -> float:
    with tempfile.TemporaryDirectory() as home:
        env = {"HERMES_HOME": home}
        file = os.path.join(home, "own.yaml")
        with open(file, "w", encoding="utf-8") as text:
            text.write(_YAML)
        with open(os.path.join(home, "config.yaml"), "w", encoding="utf-8") as text:
            text.write("model: {name: gpt-4o}\n")
        process_ms([program, "tool", "register", "--config", file], env=env, runs=1)
        process_ms([program, "tools", "list"], env=env, runs=1)
        return process_ms([program, "tools", "list"], env=env)


def _first_ms(env: dict[str, str]) -> float:
    import subprocess

    found = []
    for _ in range(15):
        done = subprocess.run(
            [sys.executable, "-c", _FIRST],
            check=True,
            capture_output=True,
            text=True,
            env=usual_environment({**env, "PATH": "/nonexistent"}),
        )
        found.append(float(done.stdout))
    return min(found)
