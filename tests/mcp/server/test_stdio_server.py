"""The server as clients start it: a process at the other end of two pipes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from tests.conftest import approve_plugins
from tests.mcp.server.peers import ERAS, SERVE, Person, environment, processes, run, soon, until

from hermes.interfaces.cli import main
from hermes.mcp.server import stdio_server
from mcp import Client, StdioServerParameters

NOISY = '''
import os
import subprocess
import sys

from hermes.tools import tool

print("loading")

@tool(toolset="noise", effect="read")
def shout() -> str:
    """Print everywhere."""
    print("printed")
    sys.stdout.flush()
    os.write(1, b"written\\n")
    subprocess.run(["echo", "from a child"])
    return "quiet" if not sys.stdin.read() else "heard"
'''


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    (place / "plugins").mkdir(parents=True)
    (place / "plugins" / "noisy.py").write_text(NOISY)
    approve_plugins(place)
    monkeypatch.setenv("HERMES_HOME", str(place))
    return place


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    """A number of seconds that nobody else sleeps."""
    return f"{3600 + os.getpid() % 1000}.{abs(hash(request.node.name)) % 100_000:05}"


class Line:
    """The server, and a client that says exactly what it is told to say."""

    def __init__(self, home: Path, work: Path, *words: str) -> None:
        work.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [*SERVE, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home),
            cwd=work,
        )
        # Set, it hears one more line and closes its ear.
        self.deaf = False
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):
            while not self.deaf and (line := self.process.stdout.readline()):
                self._lines.put(line)
        if self.deaf:
            self.process.stdout.close()
        self._lines.put(b"")

    def say(self, message: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        line = self._lines.get(timeout=60)
        assert line, self.process.stderr and self.process.stderr.read().decode()
        message: dict[str, Any] = json.loads(line)
        return message

    def answer(self, number: Any) -> dict[str, Any]:
        while (message := self.hear()).get("id") != number or "method" in message:
            pass
        return message

    def ask(self, number: Any, method: str, **params: Any) -> dict[str, Any]:
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.answer(number)

    def begin(self) -> None:
        who = {"name": "line", "version": "1"}
        self.ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=who)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self) -> tuple[list[bytes], bytes]:
        """Go away; what was still said."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        remarks = self.process.stderr.read()
        self.process.wait(60)
        return list(iter(lambda: self._lines.get(timeout=60), b"")), remarks

    def close(self) -> None:
        """Leave nothing of it."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


@pytest.fixture
def line(home: Path, tmp_path: Path) -> Iterator[Line]:
    made = Line(home, tmp_path / "work")
    yield made
    made.close()


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """A server for several tests, which outlives them all."""
    folder = tmp_path_factory.mktemp("talk")
    made = Line(folder / "home", folder / "work")
    assert "error" in made.ask("too early", "tools/list")
    made.begin()
    yield made
    made.end()
    made.close()
    assert made.process.returncode == 0


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize("mode", ERAS)
def test_the_sdk_s_client_works_with_it(mode: str, home: Path, tmp_path: Path, mark: str) -> None:
    """One process, one era, all of it: start-up is most of the time that this takes."""
    server = StdioServerParameters(
        command=SERVE[0],
        args=[*SERVE[1:], "--workspace", str(tmp_path)],
        env=environment(home),
    )
    seen: list[float] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async def work() -> None:
        person = Person({"decision": "once"})
        async with Client(server, mode=mode, elicitation_callback=person) as c:
            assert c.protocol_version == ERAS[mode]
            assert "terminal" in [tool.name for tool in (await c.list_tools()).tools]

            told = await c.call_tool(
                "terminal", {"command": "pwd; git push --force origin main; cd /"}
            )
            assert told.structured_content["stdout"] == f"{tmp_path}\n"
            assert len(person.asked) == 1
            moved = await c.call_tool("terminal", {"command": "pwd"})
            assert moved.structured_content["stdout"] == "/\n"

            await c.call_tool("sleep", {"seconds": 0.5}, progress_callback=watch)
            assert seen

            await c.call_tool("terminal", {"command": f"sleep {mark}1", "background": True})
            await soon(lambda: processes(f"{mark}1"), "the background process never began")
            with anyio.move_on_after(60) as scope:
                async with anyio.create_task_group() as group:

                    async def cancel() -> None:
                        await soon(lambda: processes(f"{mark}2"), "the command never began")
                        group.cancel_scope.cancel()

                    group.start_soon(cancel)
                    await c.call_tool("terminal", {"command": f"sleep {mark}2"})
            assert not scope.cancelled_caught
            await soon(lambda: not processes(f"{mark}2"), "a cancelled command went on")
            assert processes(f"{mark}1")

            assert not (await c.call_tool("sleep", {"seconds": 0})).is_error
        await soon(lambda: not processes(f"{mark}1"), "a process outlived its client")

    run(work)


def test_nothing_but_the_protocol_goes_out(line: Line) -> None:
    line.begin()
    answer = line.ask(1, "tools/call", **_call("shout"))
    listed = line.ask(2, "tools/list")
    out, err = line.end()

    # Every line was JSON, or `hear` would have failed.
    assert answer["result"]["content"][0]["text"] == "quiet"
    assert listed["result"]["tools"]
    assert out == []
    for word in (b"loading", b"printed", b"written", b"from a child"):
        assert word in err
    assert line.process.returncode == 0


def test_what_is_no_message_is_answered_and_the_next_one_served(talk: Line) -> None:
    deep = (
        b'{"jsonrpc":"2.0","id":9,"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    )
    hostile = [
        b"{not json",
        b"\xff\xfe\x00",
        b'"text"',
        b"[]",
        b"{}",
        b"null",
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}',
        deep,
        b"x" * (17 * 1024 * 1024),
    ]
    for data in hostile:
        talk.say(data)
        refused = talk.hear()
        assert "error" in refused, (data[:80], refused)
        assert refused["error"]["code"] in (-32700, -32600, -32602)
    for ignored in (b"", b"   ", b'{"jsonrpc":"2.0","id":77,"result":{}}'):
        talk.say(ignored)

    assert talk.ask("still there", "ping")["result"] == {}


def test_requests_that_make_no_sense_are_errors_and_harm_nobody(talk: Line) -> None:
    unknown = talk.ask(2, "tools/explode")
    nameless = talk.ask(3, "tools/call", arguments={})
    shapeless = talk.ask(4, "tools/call", name="sleep", arguments=[1])
    nobody = talk.ask(5, "tools/call", **_call("nobody"))
    enormous = talk.ask(6, "tools/call", **_call("sleep", seconds="9" * 3_000_000))
    cancelled = {"requestId": 12345, "reason": "never asked"}
    talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    fine = talk.ask(7, "tools/call", **_call("sleep", seconds=0))

    assert unknown["error"]["code"] == -32601
    assert nameless["error"]["code"] == -32602
    assert shapeless["error"]["code"] == -32602
    assert nobody["error"]["code"] == -32602
    assert enormous["result"]["isError"]
    assert fine["result"]["structuredContent"]["cancelled"] is False


def test_a_client_that_vanishes_ends_its_calls_and_processes(line: Line, mark: str) -> None:
    line.begin()
    line.ask(1, "tools/call", **_call("terminal", command=f"sleep {mark}1", background=True))
    call = _call("terminal", command=f"sleep {mark}2")
    line.say({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    until(lambda: processes(f"{mark}1") and processes(f"{mark}2"), "they never began")

    line.end()

    assert line.process.returncode == 0
    until(lambda: not processes(mark), "something was left behind")


def test_whoever_asks_and_closes_at_once_is_answered(line: Line) -> None:
    line.begin()
    line.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    said, _ = line.end()

    assert [json.loads(each)["result"] for each in said] == [{}]


def test_a_client_that_reads_no_more_ends_it_too(line: Line, mark: str) -> None:
    line.begin()
    call = _call("terminal", command=f"sleep {mark}", background=True)
    line.ask(1, "tools/call", **call)
    line.deaf = True
    line.ask(2, "ping")
    until(lambda: line.process.stdout and line.process.stdout.closed, "it still hears")

    line.say({"jsonrpc": "2.0", "id": 3, "method": "ping"})

    assert line.process.wait(60) == 0
    until(lambda: not processes(mark), "something was left behind")


def test_a_signal_ends_it_in_good_order(line: Line, mark: str) -> None:
    line.begin()
    call = _call("terminal", command=f"sleep {mark}")
    line.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    until(lambda: processes(mark), "it never began")

    line.process.send_signal(signal.SIGTERM)

    assert line.process.wait(60) == 0
    until(lambda: not processes(mark), "something was left behind")
    assert line.process.stderr is not None
    assert b"Traceback" not in line.process.stderr.read()


def test_killed_it_leaves_nothing_behind(line: Line, mark: str) -> None:
    line.begin()
    line.ask(1, "tools/call", **_call("terminal", command=f"sleep {mark}", background=True))
    until(lambda: processes(mark), "it never began")

    line.process.kill()

    until(lambda: not processes(mark), "something was left behind")


def test_a_client_that_reads_slowly_loses_nothing(talk: Line) -> None:
    for number in range(1, 40):
        call = _call("terminal", command=f"seq {number} 4000")
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
        talk.say(message)
    ids = set()
    while len(ids) < 39:
        message = talk.hear()
        if "result" in message:
            ids.add(message["id"])
            assert message["result"]["structuredContent"]["exit_code"] == 0

    assert ids == set(range(1, 40))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--toolsets", "flie", "--http", "127.0.0.1:0"], "flie"),
        (["--toolsets", ""], "names no toolset"),
        (["--toolsets", " , "], "names no toolset"),
        (["--profile", "nobody's"], "nobody's"),
        (["--workspace", "/does/not/exist"], "can't be worked in"),
        (["--allow-remote"], "go with --http"),
        (["--http", "nowhere"], "is no HOST:PORT"),
        (["--http", "127.0.0.1:" + "9" * 5_000], "is no HOST:PORT"),
        (["--http", "a..b:80"], "is no host"),
        (["--http", "x" * 300 + ":80"], "is no host"),
        (["--http", "0.0.0.0:0"], "other machines"),
        (["--http", ":0", "--token-file", "/does/not/exist"], "does not exist"),
    ],
)
def test_wrong_options_are_one_line_and_nothing_on_stdout(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["mcp", "serve", *words])

    out, err = capsys.readouterr()
    assert code in (1, 2)
    assert out == ""
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err


def test_what_is_cancelled_is_not_waited_for_at_the_end() -> None:
    async def work() -> None:
        open_ = stdio_server._Open()
        open_.asked(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call"))
        open_.asked(JSONRPCRequest(jsonrpc="2.0", id="b", method="tools/call"))
        open_.answered(JSONRPCResponse(jsonrpc="2.0", id="b", result={}))
        for number in (7, 1, 1):
            params = {"requestId": number}
            open_.asked(
                JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
            )
        await open_.none()

    run(work)
