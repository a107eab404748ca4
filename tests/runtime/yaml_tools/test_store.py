"""Registering files, and following what happens to them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core.entry import ToolCall
from hermes.core.errors import ConfigError, HermesError
from hermes.core.registry import ToolRegistry
from hermes.runtime.yaml_tools.document import DefinitionError
from hermes.runtime.yaml_tools.store import YamlTools

if TYPE_CHECKING:
    from pathlib import Path


def echo(*names: str, says: str = "one") -> str:
    tools = "".join(
        f"  - name: {name}\n    type: command\n    command: [echo, {says}]\n" for name in names
    )
    return f"tools:\n{tools}"


def versions(bench: Any) -> dict[str, int]:
    return {entry.name: entry.version for entry in bench.registry.entries()}


def test_a_registered_file_is_there_at_the_next_start(bench: Any) -> None:
    path = bench.register(echo("alpha", "beta"))
    registry = ToolRegistry()

    problems = bench.another(registry).load()

    assert problems == []
    assert registry.names() == ["alpha", "beta"]
    entry = registry.get("alpha")
    assert entry is not None
    assert (entry.origin, entry.owner, entry.effect) == ("yaml", path, "execute")
    assert os.stat(os.path.join(bench.home, "yaml_tools", "registered.json")).st_mode & 0o77 == 0


def test_a_relative_path_is_remembered_in_full(bench: Any, monkeypatch: Any) -> None:
    bench.write(echo("alpha"))
    monkeypatch.chdir(bench.folder)

    bench.tools.register("tools.yaml")

    assert [state.path for state in bench.tools.files()] == [str(bench.folder / "tools.yaml")]


def test_an_edit_makes_a_new_version_of_what_changed_only(bench: Any) -> None:
    bench.register(echo("alpha", "beta"))
    assert bench.call("alpha").value["stdout"] == "one\n"

    bench.write(echo("alpha", says="two") + echo("beta").removeprefix("tools:\n"))
    assert bench.refresh()

    assert bench.call("alpha").value["stdout"] == "two\n"
    assert versions(bench) == {"alpha": 2, "beta": 1}
    assert not bench.refresh()


def test_a_comment_changes_nothing(bench: Any) -> None:
    path = bench.register(echo("alpha"))
    generation = bench.registry.generation

    bench.write("# a remark\n" + echo("alpha"))
    bench.refresh()
    os.utime(path, ns=(5, 5))
    bench.refresh()

    assert bench.registry.generation == generation


def test_tools_come_and_go_with_the_file(bench: Any) -> None:
    bench.register(echo("alpha", "beta"))

    bench.write(echo("beta", "gamma"))
    bench.refresh()

    assert versions(bench) == {"beta": 1, "gamma": 1}


def test_a_change_of_equal_size_within_one_tick_is_seen(bench: Any) -> None:
    bench.register(echo("alpha", says="one"))

    for word in ("two", "six", "ten", "one", "two"):
        bench.write(echo("alpha", says=word))
        bench.refresh()
        assert bench.call("alpha").value["stdout"] == f"{word}\n"


def test_the_files_are_looked_at_four_times_a_second_at_most(bench: Any) -> None:
    bench.register(echo("alpha"))
    bench.refresh()
    bench.write(echo("alpha", "beta"))

    bench.clock.now += 0.2
    assert not bench.tools.refresh()
    assert "beta" not in bench.registry
    bench.clock.now += 0.06
    assert bench.tools.refresh()
    assert "beta" in bench.registry


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "tools:\n  - name: [",
        "tools:\n  - {name: alpha, type: command, command: echo hi}\n",
        "just words",
        "tools: []\n",
        echo("alpha") + "  - {name: beta}\n",
        "\x00\x01",
    ],
)
def test_a_broken_edit_keeps_the_last_good_version_and_says_why_once(
    bench: Any, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = bench.register(echo("alpha"))
    caplog.set_level(logging.WARNING)

    bench.write(broken)
    for _ in range(3):
        bench.refresh()

    assert bench.call("alpha").value["stdout"] == "one\n"
    assert len(bench.tools.problems()) == 1
    assert path in bench.tools.problems()[0]
    assert "last good version stays in use" in bench.tools.problems()[0]
    assert len([r for r in caplog.records if r.name == "hermes.yaml_tools"]) == 1
    assert len(bench.told) == 1
    assert bench.tools.files()[0].problem == bench.tools.problems()[0]

    bench.write(echo("alpha", says="two"))
    bench.refresh()
    assert bench.tools.problems() == []
    assert bench.call("alpha").value["stdout"] == "two\n"


def test_a_broken_or_missing_file_falls_back_at_the_next_start(bench: Any) -> None:
    path = bench.register(echo("alpha"))
    other = bench.register(echo("beta"), "other.yaml")
    bench.write("tools: 5")
    os.unlink(other)
    registry = ToolRegistry()

    tools = bench.another(registry)
    problems = tools.load()

    assert registry.names() == ["alpha", "beta"]
    assert len(problems) == 2
    assert f"{path} is refused: line 1" in problems[0]
    assert f"{other} is gone" in problems[1]
    bench.write(echo("beta", says="back"), "other.yaml")
    bench.clock.now += 1
    tools.refresh()
    assert len(tools.problems()) == 1


def test_a_folder_or_a_pipe_in_the_place_of_a_file_is_a_problem_and_no_wait(
    bench: Any, tmp_path: Path
) -> None:
    path = bench.register(echo("alpha"))
    os.unlink(path)
    os.mkfifo(path)
    bench.refresh()
    assert "not a file" in bench.tools.problems()[0]
    os.unlink(path)
    os.mkdir(path)
    bench.refresh()
    assert "not a file" in bench.tools.problems()[0]
    assert "alpha" in bench.registry
    with pytest.raises(ConfigError):
        bench.tools.register(str(tmp_path / "nowhere.yaml"))


def test_one_broken_tool_refuses_the_whole_file(bench: Any) -> None:
    path = bench.write(echo("alpha") + "  - {name: beta, type: command, command: [5, {}]}\n")

    with pytest.raises(DefinitionError) as caught:
        bench.tools.register(path)

    assert caught.value.problems[0].line == 5
    assert len(bench.registry) == 0
    assert bench.tools.files() == []
    assert bench.another(ToolRegistry()).load() == []


def test_a_name_that_somebody_else_holds_is_refused_whatever_the_toolset(bench: Any) -> None:
    bench.registry.register("read_file", "file", {}, lambda: "built in", origin="builtin")
    bench.registry.register("other", "x", {}, lambda: "x", aliases=["known_as"], origin="plugin")
    bench.register(echo("alpha"), "first.yaml")

    for name in ("read_file", "known_as", "alpha"):
        text = echo(name, "fine") + "    toolset: file\n"
        path = bench.write(text.replace(f"name: {name}\n", f"name: {name}\n    toolset: file\n"))
        with pytest.raises(DefinitionError, match="held by"):
            bench.tools.register(path)
    assert "fine" not in bench.registry
    assert bench.registry.dispatch("read_file", {}) == '"built in"'


def test_a_name_that_becomes_free_is_taken_up_without_another_edit(bench: Any) -> None:
    bench.register(echo("alpha"))
    bench.registry.register("beta", "x", {}, lambda: "x")
    bench.write(echo("alpha", "beta"))
    bench.refresh()
    assert "held by" in bench.tools.problems()[0]

    bench.registry.deregister("beta")
    bench.refresh()

    assert bench.tools.problems() == []
    assert bench.call("beta").ok


def test_unregistering_a_file_takes_its_tools_and_its_copy(bench: Any) -> None:
    path = bench.register(echo("alpha", "beta"))

    assert bench.tools.unregister(path) == ["alpha", "beta"]

    assert len(bench.registry) == 0
    assert bench.tools.files() == []
    assert os.listdir(os.path.join(bench.home, "yaml_tools", "last_good")) == []
    bench.refresh()
    assert len(bench.registry) == 0


def test_unregistering_one_tool_leaves_the_others_for_good(bench: Any) -> None:
    path = bench.register(echo("alpha", "beta"))

    assert bench.tools.unregister("alpha") == ["alpha"]
    bench.write(echo("alpha", "beta", says="two"))
    bench.refresh()
    registry = ToolRegistry()
    bench.another(registry).load()

    assert registry.names() == bench.registry.names() == ["beta"]
    bench.tools.register(path)
    assert bench.registry.names() == ["alpha", "beta"]


def test_unregistering_what_is_not_there_says_what_is_near(bench: Any) -> None:
    bench.register(echo("weather"))

    with pytest.raises(HermesError, match="did you mean `weather`"):
        bench.tools.unregister("wether")


def test_another_process_is_followed(bench: Any) -> None:
    registry = ToolRegistry()
    elsewhere = bench.another(registry)
    elsewhere.load()

    path = bench.register(echo("alpha", "beta"))
    bench.clock.now += 1
    elsewhere.refresh()
    assert registry.names() == ["alpha", "beta"]
    bench.tools.unregister("alpha")
    bench.clock.now += 1
    elsewhere.refresh()
    assert registry.names() == ["beta"]
    bench.tools.unregister(path)
    bench.clock.now += 1
    elsewhere.refresh()
    assert registry.names() == []


def test_a_damaged_list_is_reported_and_not_overwritten(bench: Any) -> None:
    bench.register(echo("alpha"))
    listing = os.path.join(bench.home, "yaml_tools", "registered.json")
    with open(listing, "w") as file:
        file.write('{"files": [')

    bench.refresh()

    assert "can't be read" in bench.tools.problems()[0]
    assert "alpha" in bench.registry
    with pytest.raises(ConfigError):
        bench.tools.register(bench.write(echo("beta"), "b.yaml"))
    with open(listing) as file:
        assert file.read() == '{"files": ['


REGISTER = """
import sys
from hermes.core.registry import ToolRegistry
from hermes.runtime.yaml_tools.store import YamlTools
tools = YamlTools(ToolRegistry(), home=sys.argv[1])
sys.stdin.readline()
for path in sys.argv[2:]:
    tools.register(path)
"""


def test_processes_that_register_at_the_same_time_lose_nothing(bench: Any) -> None:
    paths = [bench.write(echo(f"t{n}"), f"f{n}.yaml") for n in range(40)]
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", REGISTER, bench.home, *paths[n::4]], stdin=subprocess.PIPE
        )
        for n in range(4)
    ]

    for process in crowd:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in crowd:
        process.communicate()

    assert [process.returncode for process in crowd] == [0] * 4
    with open(os.path.join(bench.home, "yaml_tools", "registered.json")) as file:
        assert sorted(row["path"] for row in json.load(file)["files"]) == sorted(paths)
    bench.tools.load()
    assert len(bench.registry) == 40


def test_a_thousand_calls_in_flight_are_not_disturbed_by_reloads(bench: Any, server: Any) -> None:
    def text(version: int) -> str:
        return (
            "tools:\n  - name: api\n    type: http_wrapper\n"
            f'    endpoint: "{server.url}/v{version}"\n    timeout_seconds: 60\n'
        )

    for version in range(1, 40):
        server.answer(f"/v{version}", {"version": version})
    bench.register(text(1))
    stop = threading.Event()
    loads: list[int] = []

    def edit() -> None:
        version = 1
        while not stop.is_set() and version < 39:
            version += 1
            bench.write(text(version) if version % 3 else "tools: [broken")
            if bench.refresh():
                loads.append(version)
            stop.wait(0.02)

    async def calls() -> list[Any]:
        gate = asyncio.Semaphore(50)

        async def one(number: int) -> Any:
            async with gate:
                return await bench.runtime.call(ToolCall("api", {}))

        return await asyncio.gather(*(one(number) for number in range(1000)))

    editor = threading.Thread(target=edit)
    editor.start()
    outcomes = asyncio.run(calls())
    stop.set()
    editor.join()

    assert [o.content for o in outcomes if not o.ok] == []
    seen = {outcome.value["version"] for outcome in outcomes}
    assert loads
    assert seen <= {1, *loads}
    assert versions(bench)["api"] == len(loads) + 1


def test_calls_from_threads_go_on_while_the_file_changes(bench: Any) -> None:
    bench.register(echo("alpha"))
    failures: list[str] = []
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            outcome = bench.call("alpha")
            if not outcome.ok:
                failures.append(outcome.content)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(30):
        bench.write(echo("alpha", says=f"w{number}") if number % 4 else "broken: [")
        bench.refresh()
    stop.set()
    for thread in threads:
        thread.join()

    assert failures == []


def test_looking_without_files_does_nothing(tmp_path: Path) -> None:
    tools = YamlTools(ToolRegistry(), home=str(tmp_path / "absent"))

    assert tools.load() == []
    assert tools.refresh() is False
    assert tools.files() == []
    assert not (tmp_path / "absent").exists()


def test_a_tool_can_move_to_another_toolset(bench: Any) -> None:
    bench.register(echo("alpha"))

    bench.write(echo("alpha") + "    toolset: elsewhere\n")
    bench.refresh()

    assert bench.tools.problems() == []
    assert bench.registry.get("alpha").toolset == "elsewhere"
    assert bench.call("alpha").ok


def test_the_files_are_there_without_an_explicit_load(bench: Any) -> None:
    path = bench.register(echo("alpha"))
    registry = ToolRegistry()

    assert [state.tools for state in bench.another(registry).files()] == [["alpha"]]
    assert bench.another(ToolRegistry()).unregister("alpha") == ["alpha"]
    bench.refresh()
    assert path not in [state.path for state in bench.tools.files()]


def test_the_gate_is_told_what_would_really_happen(bench: Any) -> None:
    from hermes.safety.call_effects import call_effects

    bench.register(
        """
        tools:
          - name: list
            type: command
            command: [ls, -l, "{folder}"]
            workdir: "a b"
            parameters: [{name: folder, default: "x; rm -rf /"}]
          - name: ask
            type: http_wrapper
            method: DELETE
            endpoint: https://api.example/{id}
            parameters: [{name: id, required: true}, {name: q}]
        """
    )
    context = bench.runtime.context()

    def acts(tool: str, **arguments: Any) -> list[tuple[str, str]]:
        entry = bench.registry.get(tool)
        return [act[:2] for act in call_effects(entry, entry.arguments.read(arguments), context)]

    folder = f"{bench.folder}/a b"
    assert acts("list") == [("execute", f"cd '{folder}' && ls -l 'x; rm -rf /'")]
    assert acts("list", folder="-R") == [("execute", f"cd '{folder}' && ls")]
    assert acts("ask", id="a/b", q="x y") == [("fetch", "https://api.example/a%2Fb?q=x%20y")]
    assert acts("ask", id="..") == [("fetch", "https://api.example")]
    assert bench.registry.get("ask").permissions == ("network:send",)


def test_what_can_not_be_remembered_is_not_registered(bench: Any) -> None:
    path = bench.write(echo("alpha"))
    with open(os.path.join(bench.home, "yaml_tools"), "w"):
        """A file where the folder should be."""

    with pytest.raises(ConfigError, match="can't be written"):
        bench.tools.register(path)

    assert len(bench.registry) == 0
    assert bench.tools.files() == []


def test_a_start_with_unchanged_files_writes_nothing(bench: Any) -> None:
    bench.register(echo("alpha").replace("\n", "\r\n"))
    folder = os.path.join(bench.home, "yaml_tools", "last_good")
    before = [os.stat(os.path.join(folder, name)).st_ino for name in os.listdir(folder)]

    bench.another(ToolRegistry()).load()

    after = [os.stat(os.path.join(folder, name)).st_ino for name in os.listdir(folder)]
    assert before == after
