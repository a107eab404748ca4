"""One call runs through few files: a reader can follow it. Counted with the profiler, warm."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, sys, threading
from hermes.core import ToolCall
from hermes.runtime.app import App

os.chdir(sys.argv[1])
open("a.txt", "w").write("x\\n" * 30)
seen = set()

def note(frame, event, arg):
    name = frame.f_code.co_filename
    if "/hermes/" in name:
        seen.add(name)

def count(work):
    work()
    seen.clear()
    threading.setprofile(note)
    sys.setprofile(note)
    work()
    sys.setprofile(None)
    threading.setprofile(None)
    return len(seen)

CASE
"""
CALL = """
runtime = App().runtime
print(count(lambda: runtime.call_sync(ToolCall(NAME, ARGUMENTS))))
runtime.close()
"""
VERDICT = """
from hermes.safety.shell import detect_dangerous_command
print(count(lambda: detect_dangerous_command("git push --force", cwd=os.getcwd())))
"""
# These two run in threads of their own, which are profiled from their start.
THREADS = """
threading.setprofile(note)
sys.setprofile(note)

def count(work):
    work()
    seen.clear()
    work()
    sys.setprofile(None)
    return len([name for name in seen if "/hermes/testing/" not in name])
"""
AGENT = (
    THREADS
    + """
from hermes import Agent
from hermes.testing import Call, ScriptedModel, Turn

def answer(request):
    asked = request["messages"][-1]["role"] == "user"
    return Turn(calls=[Call("terminal", {"command": "ls -la"})]) if asked else "done"

with ScriptedModel(then=answer) as model:
    os.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="none")
    with Agent("openai/gpt-4o", app=App()) as agent:
        print(count(lambda: agent.run("list the files")))
"""
)
MCP = (
    THREADS
    + """
from hermes.mcp.client import attach, find_tool

open("server.py", "w").write('''
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
server = MCPServer("echo")
@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    return text
server.run("stdio")
''')
with open(os.environ["HERMES_HOME"] + "/config.yaml", "w") as file:
    file.write(f"mcp_servers: {{echo: {{command: {sys.executable}, args: [server.py]}}}}")
app = App()
assert not find_tool(app, "mcp-echo:echo")
runtime = app.runtime
call = ToolCall("mcp-echo:echo", {"text": "hi"})
assert runtime.call_sync(call).ok
print(count(lambda: runtime.call_sync(call)))
attach(app).close()
runtime.close()
"""
)


def called(name: str, arguments: dict[str, str]) -> str:
    return CALL.replace("NAME", repr(name)).replace("ARGUMENTS", repr(arguments))


@pytest.mark.parametrize(
    ("case", "most"),
    [
        (called("read_file", {"path": "a.txt"}), 32),
        (called("terminal", {"command": "ls -la"}), 56),
        (VERDICT, 12),
        (AGENT, 76),
        (MCP, 26),
    ],
    ids=["read_file", "terminal", "verdict on git push --force", "agent", "mcp"],
)
def test_a_call_runs_through_few_files(tmp_path: Path, case: str, most: int) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("CASE", case), str(tmp_path / "work")],
        env={"PATH": "/usr/bin:/bin", "HERMES_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert int(done.stdout) <= most
