"""Scripts that call tools: through the gate and the whole pipeline, in a real sandbox."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.environments.places import ssh_host
from tests.environments.servers import SshHost

from hermes.core.context import Answer, ApprovalRequest
from hermes.core.entry import ToolCall, ToolOutcome
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App
from hermes.runtime.pipeline import Runtime

__all__ = ["ssh_host"]


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    app = App(ToolRegistry())
    yield app.runtime
    app.close()


def outcome(runtime: Runtime, code: str, **arguments: Any) -> ToolOutcome:
    context = runtime.context(approver=arguments.pop("approver", None))
    return runtime.call_sync(ToolCall("execute_code", {"code": code, **arguments}), context)


def run(runtime: Runtime, code: str, **arguments: Any) -> dict[str, Any]:
    ended = outcome(runtime, code, **arguments)
    assert ended.ok, ended.content
    value: dict[str, Any] = ended.value
    return value


def test_prints_and_the_last_expression_come_back(runtime: Runtime) -> None:
    assert run(runtime, "print('a')\n[1, 2] * 2") == {"output": "a\n[1, 2, 1, 2]\n"}
    assert run(runtime, "x = 1") == {"output": ""}
    assert run(runtime, "'text as it is'")["output"] == "text as it is\n"


def test_results_are_values_and_errors_are_exceptions(runtime: Runtime) -> None:
    Path("a.txt").write_text("one\ntwo\n")

    result = run(
        runtime,
        "from hermes_tools import read_file, ToolError\n"
        "print(read_file('a.txt')['total_lines'], read_file(path='a.txt', limit=1)['content'])\n"
        "try:\n"
        "    read_file('b.txt')\n"
        "except ToolError as error:\n"
        "    print(error.tool, error.reason, error.hint)\n",
    )

    first, second = result["output"].splitlines()
    assert first.startswith("2 1|one")
    assert second.startswith("read_file b.txt is not there")
    assert result["calls"] == {"read_file": 3}


def test_a_traceback_shows_the_script_alone(runtime: Runtime) -> None:
    result = run(runtime, "from hermes_tools import read_file\nread_file('none')")

    assert result["exit_code"] == 1
    assert 'File "script.py", line 2' in result["stderr"]
    assert "    read_file('none')" in result["stderr"]
    assert result["stderr"].count("File ") == 1


def test_calls_pass_the_gate_and_are_in_the_audit_log(runtime: Runtime, home: Path) -> None:
    Path("src").mkdir()
    Path("src/keep").write_text("1")

    result = run(
        runtime,
        "import hermes_tools\n"
        "try:\n"
        "    hermes_tools.terminal('git push --force')\n"
        "except hermes_tools.ToolError as error:\n"
        "    print(error.reason)\n",
    )

    assert "nobody" in result["output"]
    assert runtime.audit is not None
    runtime.audit.flush()
    lines = [json.loads(line) for line in (home / "audit/audit.jsonl").read_text().splitlines()]
    assert [line["tool"] for line in lines] == ["terminal", "execute_code"]


def test_one_yes_covers_the_rest_of_the_script(runtime: Runtime) -> None:
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Answer:
        asked.append(request)
        return Answer("batch", by="a person")

    result = run(
        runtime,
        "import hermes_tools\nfor n in range(5):\n    print(hermes_tools.terminal(f'rm -rf d{n}')['exit_code'])",
        approver=approver,
    )

    assert result["output"] == "0\n" * 5
    assert [request.tool for request in asked] == ["terminal"]
    assert asked[0].reason.startswith("a script, line 3: ")
    assert asked[0].batch


def test_each_call_is_asked_about_with_its_count_after_a_single_yes(runtime: Runtime) -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> str:
        asked.append(request.reason)
        return "once"

    run(
        runtime,
        "import hermes_tools\nfor n in range(5): hermes_tools.terminal(f'rm -rf d{n}')",
        approver=approver,
    )

    assert len(asked) == 5
    assert "call 5 of terminal" in asked[4]
    assert "rm -rf d0, rm -rf d1, rm -rf d2 and 1 more" in asked[4]


def test_a_no_raises_in_the_script(runtime: Runtime) -> None:
    result = run(
        runtime,
        "import hermes_tools\n"
        "try: hermes_tools.terminal('rm -rf src')\n"
        "except hermes_tools.ToolError as error: print('no:', error.reason)",
        approver=lambda request: False,
    )

    assert "said no" in result["output"]


def test_threads_asyncio_and_forked_children_call_side_by_side(runtime: Runtime) -> None:
    for number in range(8):
        Path(f"{number}.txt").write_text(f"content {number}\n")

    result = run(
        runtime,
        "import asyncio, os, hermes_tools\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    texts = list(pool.map(lambda n: hermes_tools.read_file(f'{n}.txt')['content'], range(8)))\n"
        "print(all(f'content {n}' in texts[n] for n in range(8)))\n"
        "async def main():\n"
        "    return await asyncio.gather(*(hermes_tools.aio.read_file(f'{n}.txt') for n in range(8)))\n"
        "print(len(asyncio.run(main())))\n"
        "if os.fork() == 0:\n"
        "    print(hermes_tools.read_file('7.txt')['content'], flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(hermes_tools.read_file('6.txt')['content'])",
    )

    assert result["output"] == "True\n8\n1|content 7\n1|content 6\n"
    assert result["calls"] == {"read_file": 18}


def test_large_results_are_whole_by_their_handle(runtime: Runtime) -> None:
    result = run(
        runtime,
        "import hermes_tools\n"
        "answer = hermes_tools.terminal('seq 1 40000')\n"
        "text = hermes_tools.artifact(answer['artifact'])\n"
        "print(text.count('\\n'), text.split()[20000])",
    )

    assert result["output"] == "40000 20001\n"


def test_files_written_by_a_script_are_undoable(runtime: Runtime) -> None:
    Path("kept.txt").write_text("before")

    run(runtime, "open('kept.txt', 'w').write('after')\nopen('new.txt', 'w').write('x')")
    assert Path("kept.txt").read_text() == "after"
    undone = subprocess.run(
        [str(Path(sys.executable).with_name("hermes")), "undo"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert undone.returncode == 0, undone.stderr
    assert Path("kept.txt").read_text() == "before"
    assert not Path("new.txt").exists()


class TestLimits:
    """Over a limit: stopped, with what it had printed and the reason; the next one runs."""

    def test_time(self, runtime: Runtime) -> None:
        ended = outcome(runtime, "print('begun', flush=True)\nwhile True: pass", timeout=0.5)

        assert "timed out" in (ended.error or "")
        assert ended.value["data"]["output"] == "begun\n"
        assert run(runtime, "1")["output"] == "1\n"

    def test_calls(self, runtime: Runtime) -> None:
        Path("a").write_text("1")
        ended = outcome(
            runtime,
            "import hermes_tools\nwhile True:\n    try: hermes_tools.read_file('a')\n    except hermes_tools.ToolError: pass",
        )

        assert "more than 50 calls" in (ended.error or "")
        assert ended.value["data"]["calls"] == {"read_file": 50}

    def test_output(self, runtime: Runtime) -> None:
        result = run(
            runtime, "import sys\nprint('x' * 200_000)\nprint('e' * 50_000, file=sys.stderr)"
        )

        assert len(result["output"]) < 51_000
        assert len(result["stderr"]) < 11_000
        assert result["artifact"]

    def test_processes_left_running_end_with_the_script(self, runtime: Runtime) -> None:
        result = run(
            runtime,
            "import subprocess\nsubprocess.Popen(['sleep', '600'])\nprint('done')",
        )

        assert result["output"] == "done\n"
        assert any("stopped" in note for note in result["notes"])
        assert run(runtime, _PIDS % "sleep")["output"].strip() == "0"

    def test_fork_bomb(self, runtime: Runtime) -> None:
        outcome(runtime, "import os\nwhile True: os.fork()", timeout=2)

        assert run(runtime, "1")["output"] == "1\n"

    def test_exit_inside_a_call(self, runtime: Runtime) -> None:
        result = run(
            runtime,
            "import hermes_tools, os, threading, time\n"
            "threading.Thread(target=lambda: hermes_tools.terminal('sleep 30'), daemon=True).start()\n"
            "time.sleep(0.3)\nos._exit(3)",
        )

        assert result["exit_code"] == 3
        assert not runtime.running()


_PIDS = (
    "import os\n"
    "n = 0\n"
    "for p in os.listdir('/proc'):\n"
    "    try: n += open(f'/proc/{p}/comm').read().strip() == %r\n"
    "    except OSError: pass\n"
    "n"
)


class TestIsolation:
    """Held by the operating system, not by a list of names."""

    def test_no_network_home_or_program(self, runtime: Runtime) -> None:
        result = run(
            runtime,
            "import socket, os\n"
            "try: socket.create_connection(('127.0.0.1', 22), 1)\n"
            "except OSError: print('no network')\n"
            "try: import hermes\n"
            "except ImportError: print('no program')\n"
            "print(os.path.expanduser('~'), os.access('/usr', os.W_OK))",
        )

        assert result["output"] == "no network\nno program\n/home/hermes False\n"

    def test_variables_of_this_program_are_not_there(
        self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number, name in enumerate(
            ("DATABASE_URL", "SENTRY_DSN", "HOOK_WEBHOOK", "A_PASS", "KEY")
        ):
            monkeypatch.setenv(name, f"canary-{number}")

        result = run(
            runtime,
            "import os\ntext = repr(dict(os.environ))\n"
            "for pid in os.listdir('/proc'):\n"
            "    try: text += open(f'/proc/{pid}/environ').read()\n"
            "    except OSError: pass\n"
            "'canary' in text",
        )

        assert result["output"] == "False\n"

    def test_sandbox_escapes_of_other_systems_leave_no_mark(
        self, runtime: Runtime, tmp_path: Path
    ) -> None:
        mark = tmp_path / "mark"
        attempts = [
            "().__class__.__base__.__subclasses__()[0]\nopen({0!r}, 'w').write('x')",
            "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.system(b'touch {0}')",
            "import os\nos.system('touch {0}')",
            "import subprocess\nsubprocess.run(['unshare', '-r', 'touch', {0!r}])",
            "import os\nos.symlink('/', 'root')\nopen('root{0}', 'w')",
            "import builtins\nbuiltins.__import__('os').mkdir({0!r})",
        ]
        for attempt in attempts:
            outcome(runtime, attempt.format(str(mark)))

        assert not mark.exists()

    def test_nothing_is_accepted_without_the_token(self, runtime: Runtime) -> None:
        result = run(
            runtime,
            "import hermes_tools, socket, json\n"
            "path = hermes_tools.CHANNEL['socket']\n"
            "def call(token):\n"
            "    peer = socket.socket(socket.AF_UNIX); peer.connect(path)\n"
            "    for data in (token.encode(), json.dumps({'tool': 'read_file', 'arguments': {'path': 'a'}}).encode()):\n"
            "        peer.sendall(len(data).to_bytes(4, 'big') + data)\n"
            "    return peer.recv(4)\n"
            "try: print(call('0' * 32))\n"
            "except OSError: print(b'')\n"
            "print(bool(call(hermes_tools.CHANNEL['token'])))",
        )

        assert result["output"] == "b''\nTrue\n"

    def test_the_socket_of_an_ended_script_is_gone(self, runtime: Runtime) -> None:
        path = run(runtime, "import hermes_tools\nhermes_tools.CHANNEL['socket']")["output"].strip()

        result = run(
            runtime,
            "import socket\n"
            f"try: socket.socket(socket.AF_UNIX).connect({path!r})\n"
            "except OSError as error: print(type(error).__name__)",
        )

        assert result["output"] == "FileNotFoundError\n"

    def test_only_listed_tools_can_be_called(self, runtime: Runtime) -> None:
        result = run(
            runtime,
            "import hermes_tools\n"
            "for tool in ('memory', 'execute_code', 'nothing'):\n"
            "    try: hermes_tools.call(tool, {})\n"
            "    except hermes_tools.ToolError as error: print(error.reason)",
        )

        assert result["output"].count("scripts may not call") == 3


class TestJavaScript:
    def test_calls_and_errors(self, runtime: Runtime) -> None:
        Path("a.txt").write_text("one\n")

        result = run(
            runtime,
            "const file = await hermes_tools.read_file({path: 'a.txt'});\n"
            "console.log(file.total_lines);\n"
            "const all = await Promise.all([1, 2, 3].map(() => hermes_tools.read_file('a.txt')));\n"
            "console.log(all.length);\n"
            "try { await hermes_tools.read_file('none') } catch (error) { console.log(error.reason) }",
            language="javascript",
        )

        assert result["output"].splitlines()[:2] == ["1", "3"]
        assert "none is not there" in result["output"]
        assert result["calls"] == {"read_file": 5}

    def test_a_question_names_the_line(self, runtime: Runtime) -> None:
        asked: list[str] = []

        def approver(request: ApprovalRequest) -> str:
            asked.append(request.reason)
            return "once"

        run(
            runtime,
            "// first\nawait hermes_tools.terminal({command: 'rm -rf src'})",
            language="javascript",
            approver=approver,
        )

        assert asked[0].startswith("a script, line 2: ")


def test_nothing_is_left_when_hermes_is_killed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    program = (
        "from hermes import App, ToolCall\n"
        "app = App()\n"
        "app.runtime.call_sync(ToolCall('execute_code', {'code': "
        "\"import time\\nopen('begun', 'w').write('yes')\\nwhile True: time.sleep(0.1)\"}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=work)
    try:
        waiting = threading.Event()
        for _ in range(600):
            if (work / "begun").exists():
                break
            waiting.wait(0.05)
        assert (work / "begun").exists()
    finally:
        process.kill()
        process.wait()
    for _ in range(200):
        left = subprocess.run(
            ["pgrep", "-f", str(work)], capture_output=True, text=True, check=False
        ).stdout.split()
        if not left:
            break
        threading.Event().wait(0.05)
    assert left == []


def test_calls_over_ssh_go_through_files(
    ssh_host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = App(ToolRegistry())
    app.config.values["terminal"] = {
        "ssh": {
            "host": "127.0.0.1",
            "port": ssh_host.port,
            "cwd": str(ssh_host.home),
            "identity_file": str(ssh_host.folder / "id"),
            "known_hosts_file": str(ssh_host.folder / "known_hosts"),
            "config_file": str(ssh_host.folder / "config"),
        }
    }
    monkeypatch.setenv("HERMES_TERMINAL_ENV", "ssh")
    try:
        result = run(
            app.runtime,
            "import hermes_tools\n"
            "from concurrent.futures import ThreadPoolExecutor\n"
            "hermes_tools.write_file('big.txt', 'é' * 100_000 + '\\n')\n"
            "print(len(hermes_tools.terminal('cat big.txt | wc -c')['stdout']) > 3)\n"
            "with ThreadPoolExecutor(4) as pool:\n"
            "    print(list(pool.map(lambda n: hermes_tools.terminal(f'echo {n}')['stdout'], range(4))))",
            approver=lambda request: True,
        )
    finally:
        app.close()

    assert result["output"] == "True\n['0\\n', '1\\n', '2\\n', '3\\n']\n"
    assert result["calls"] == {"write_file": 1, "terminal": 5}
