"""file_watch, called as a model calls it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from tests.tools.bench import Bench

from hermes.core import ToolCall
from hermes.core.context import Cancellation


def soon(path: Path) -> threading.Timer:
    timer = threading.Timer(0.3, path.write_text, ["new"])
    timer.start()
    return timer


def test_waiting_gives_the_changes(bench: Bench) -> None:
    soon(bench.work / "a.txt")

    found = bench("file_watch", action="wait", path=".", timeout=20)

    assert found["added"] == ["a.txt"]
    assert found["changes"] == 1


def test_a_file_can_be_waited_for(bench: Bench) -> None:
    soon(bench.work / "result")

    found = bench("file_watch", action="wait", path="result", timeout=20)

    assert found["added"] == ["result"]
    assert found["exists"]


def test_waiting_for_nothing_says_so(bench: Bench) -> None:
    found = bench("file_watch", action="wait", path=".", timeout=0.1)

    assert found["timed_out"]
    assert found["changes"] == 0


def test_a_folder_that_goes_ends_the_wait(bench: Bench) -> None:
    (bench.work / "sub").mkdir()
    threading.Timer(0.3, shutil.rmtree, [bench.work / "sub"]).start()

    assert bench("file_watch", action="wait", path="sub", timeout=20)["gone"]


def test_a_cancelled_wait_ends(bench: Bench) -> None:
    bench.context.cancellation = Cancellation()
    threading.Timer(0.2, bench.context.cancellation.cancel).start()

    call = ToolCall("file_watch", {"action": "wait", "path": ".", "timeout": 3600})
    outcome = bench.app.runtime.call_sync(call, bench.context)

    assert outcome.status == "cancelled"


def test_a_watch_collects_between_calls(bench: Bench) -> None:
    (bench.work / "gone").write_text("")
    started = bench("file_watch", action="start", path=".", globs=["*.txt", "gone"])

    (bench.work / "a.txt").write_text("")
    (bench.work / "a.bin").write_text("")
    (bench.work / "gone").unlink()
    listed = bench("file_watch", action="list")["watches"]
    found = bench("file_watch", action="collect", name=started["name"])
    stopped = bench("file_watch", action="stop")

    assert listed[0]["path"] == "."
    assert (found["added"], found["deleted"]) == (["a.txt"], ["gone"])
    assert stopped == {"stopped": started["name"]}
    assert bench("file_watch", action="list")["watches"] == []


def test_a_watch_ends_with_its_task(bench: Bench) -> None:
    before = {thread.name for thread in threading.enumerate()}
    bench("file_watch", action="start", path=".", name="mine")
    assert "hermes-mine" in {thread.name for thread in threading.enumerate()}

    bench.context.task.close()

    assert {thread.name for thread in threading.enumerate()} <= before | {
        thread.name for thread in threading.enumerate() if thread.name != "hermes-mine"
    }
    assert "hermes-mine" not in {thread.name for thread in threading.enumerate()}


def test_what_is_missing_is_said(bench: Bench) -> None:
    assert "path" in bench("file_watch", action="wait")["error"]
    assert "not there" in bench("file_watch", action="start", path="none/at/all")["error"]
    assert "no watch" in bench("file_watch", action="collect", name="x")["error"]
    assert "no watch" in bench("file_watch", action="stop")["error"]


def test_more_changes_than_asked_for_are_counted(bench: Bench) -> None:
    bench("file_watch", action="start", path=".")
    for number in range(9):
        (bench.work / f"f{number}").write_text("")

    found = bench("file_watch", action="collect", limit=4)

    assert found["changes"] == 9
    assert len(found["added"]) == 4
    assert found["not_shown"] == 5
