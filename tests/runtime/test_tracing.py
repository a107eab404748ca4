"""Traces: who belongs to whom, what is masked, what is kept, and what a crash leaves."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core import ToolCall, ToolContext, ToolRegistry, tool
from hermes.runtime import Runtime
from hermes.runtime.tracing import SpanFiles, Trace, Tracer, current, meant, traces
from hermes.safety.policy import Policy, Ruling

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


@pytest.fixture
def files(tmp_path: Path) -> SpanFiles:
    return SpanFiles(str(tmp_path / "traces"))


@pytest.fixture
def tracer(files: SpanFiles) -> Tracer:
    return Tracer(files)


@pytest.fixture
def runtime(registry: ToolRegistry, tracer: Tracer) -> Runtime:
    @tool(registry=registry, toolset="t", effect="read")
    async def outer(ctx: ToolContext, number: int, text: str = "") -> str:
        """Call another one."""
        runtime = ctx.service("runtime")
        await asyncio.sleep(0.001 * (number % 3))
        return (await runtime.call(ToolCall("inner", {"number": number}), ctx)).content

    @tool(registry=registry, toolset="t", effect="read")
    def inner(ctx: ToolContext, number: int) -> int:
        """Give it back, from a thread."""
        if number < 0:
            raise ValueError("broken")
        return number

    return Runtime(registry, tracer=tracer)


def spans(files: SpanFiles) -> list[dict[str, Any]]:
    return list(files.read())


def test_calls_side_by_side_have_their_own_children(
    runtime: Runtime, tracer: Tracer, files: SpanFiles
) -> None:
    calls = [ToolCall("outer", {"number": n}, id=f"c{n}") for n in range(12)]

    async def turn() -> None:
        with tracer.inside("turn", "invoke_agent hermes", {}):
            await runtime.call_many(calls)

    asyncio.run(turn())
    runtime.close()

    found = spans(files)
    by_id = {span["span_id"]: span for span in found}
    (root,) = [span for span in found if not span["parent_span_id"]]
    outers = [s for s in found if s["name"] == "execute_tool outer"]
    assert {s["parent_span_id"] for s in outers} == {root["span_id"]}
    for span in (s for s in found if s["name"] == "execute_tool inner"):
        above = by_id[span["parent_span_id"]]["attributes"]
        number = json.loads(span["attributes"]["gen_ai.tool.call.arguments"])["number"]
        assert above["gen_ai.tool.call.id"] == f"c{number}"
    assert len({span["trace_id"] for span in found}) == 1
    assert len(found) == 25


def test_a_call_alone_is_a_trace_of_its_own(runtime: Runtime, files: SpanFiles) -> None:
    runtime.call_sync(ToolCall("inner", {"number": 1}))
    runtime.call_sync(ToolCall("inner", {"number": 2}))
    runtime.close()

    assert len({span["trace_id"] for span in spans(files)}) == 2
    assert current.get() is None


def test_failure_and_refusal_are_told_apart(runtime: Runtime, files: SpanFiles) -> None:
    runtime.call_sync(ToolCall("inner", {"number": -1}))
    runtime.call_sync(ToolCall("inner", {"number": "many"}))
    runtime.call_sync(ToolCall("no_such_tool", {}))
    runtime.close()

    found = [(s["name"], s["status"], s["attributes"].get("error.type")) for s in spans(files)]
    assert found == [
        ("execute_tool inner", "error", "error"),
        ("execute_tool inner", "error", "error"),
        ("execute_tool no_such_tool", "error", "error"),
    ]


class _AskFirst(Policy):
    def judge(self, entry: Any, arguments: Any, context: Any) -> Ruling:
        return Ruling("ask", reason=f"it needs {SECRET}", rule="test:ask")


@pytest.mark.parametrize(
    ("answer", "status"), [("once", "ok"), ("deny", "refused"), (None, "refused")]
)
def test_an_approval_is_a_span_inside_of_its_call(
    registry: ToolRegistry, tracer: Tracer, files: SpanFiles, answer: str | None, status: str
) -> None:
    @tool(registry=registry, toolset="t", effect="read")
    def act() -> str:
        """Do it."""
        return "done"

    with Runtime(registry, policy=_AskFirst(), tracer=tracer, approver=lambda _: answer) as runtime:
        runtime.call_sync(ToolCall("act", {}))

    approval, call = spans(files)
    assert approval["parent_span_id"] == call["span_id"]
    assert (approval["status"], call["status"]) == (status, status)
    assert approval["attributes"]["hermes.approval.answer"] == (answer or "nobody")
    assert SECRET not in json.dumps([approval, call])


def test_no_secret_is_written(runtime: Runtime, files: SpanFiles) -> None:
    runtime.redactor.add("correct horse battery staple")
    for text in (
        SECRET,
        "x" * 960 + " " + SECRET,
        "correct horse battery staple",
        "y " * 25_000 + SECRET,
    ):
        runtime.call_sync(ToolCall("outer", {"number": 1, "text": text}))
    runtime.call_sync(ToolCall(f"tool {SECRET}", {}))
    runtime.close()

    written = b"".join(Path(path).read_bytes() for path in files.paths())
    assert b"sk-proj-abc" not in written
    assert b"horse battery" not in written
    assert len(written) < 20_000


@given(
    st.text(st.characters(exclude_categories=())), st.dictionaries(st.text(max_size=5), st.text())
)
def test_any_text_is_a_line_that_can_be_read_back(text: str, more: dict[str, str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tracer = Tracer(SpanFiles(folder))
        with tracer.inside("tool", text, {**more, "number": 3}):
            pass
        tracer.flush()
        (found,) = traces(tracer.files.read())
        assert found.spans[0]["attributes"]["number"] == 3
        lines = Path(tracer.files.path).read_bytes().split(b"\n")
        assert len(lines) == 2


def test_what_hangs_is_seen_before_it_ends(tracer: Tracer, files: SpanFiles) -> None:
    with (
        tracer.inside("turn", "invoke_agent hermes", {}),
        tracer.inside("tool", "execute_tool x", {}),
    ):
        tracer.flush()
        (trace,) = traces(files.read())
        assert [span["status"] for span in trace.spans] == ["open", "open"]
        assert trace.summary()["open"] == 2
    tracer.flush()
    (trace,) = traces(files.read())
    assert [span["status"] for span in trace.spans] == ["ok", "ok"]


def test_a_cancelled_block_says_so(tracer: Tracer, files: SpanFiles) -> None:
    async def wait() -> None:
        with tracer.inside("turn", "t", {}):
            await asyncio.sleep(60)

    async def stop() -> None:
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(stop())
    with pytest.raises(OSError), tracer.inside("turn", "t", {}):
        raise OSError("no")
    tracer.flush()

    assert [span["status"] for span in spans(files)] == ["cancelled", "error"]


def test_files_are_their_owners_and_take_no_more_room_than_allowed(tmp_path: Path) -> None:
    files = SpanFiles(str(tmp_path / "t"), max_bytes=40_000)
    tracer = Tracer(files)
    for _ in range(60):
        for number in range(20):
            with tracer.inside("tool", f"execute_tool {number}", {"text": "x" * 100}):
                pass
        tracer.flush()

    sizes = [os.stat(path).st_size for path in files.paths()]
    assert sum(sizes) <= 60_000
    assert len(sizes) > 1
    assert all(os.stat(path).st_mode & 0o077 == 0 for path in [files.folder, *files.paths()])
    times = [span["start_time_unix_nano"] for span in files.read()]
    assert times == sorted(times)


def test_what_is_old_goes(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    old, young = (
        folder / "spans-1577836800000000000.jsonl",
        folder / "spans-1893456000000000000.jsonl",
    )
    old.write_text("{}\n")
    young.write_text("{}\n")
    past = time.time() - 20 * 86_400
    os.utime(old, (past, past))
    tracer = Tracer(SpanFiles(str(folder), keep_days=14))
    with tracer.inside("tool", "x", {}):
        pass
    tracer.flush()

    assert not old.exists()
    assert young.exists()


def test_half_a_line_after_a_crash_spoils_nothing(tracer: Tracer, files: SpanFiles) -> None:
    for number in range(2):
        with tracer.inside("tool", f"x{number}", {}):
            pass
        tracer.flush()
        with open(files.path, "ab") as file:
            file.write(b'{"trace_id": "cut in the mid')

    assert [span["name"] for span in spans(files)] == ["x0", "x1"]


def _write_many(folder: str, name: str) -> None:
    tracer = Tracer(SpanFiles(folder, max_bytes=1_000_000))
    for number in range(300):
        with tracer.inside("tool", f"{name}-{number}", {"text": "x" * 50}):
            pass
        if number % 7 == 0:
            tracer.flush()
    tracer.flush()


def test_several_processes_and_threads_share_the_files(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    spawn = multiprocessing.get_context("spawn")
    workers: list[Any] = [
        spawn.Process(target=_write_many, args=(folder, f"p{n}")) for n in range(2)
    ]
    workers += [threading.Thread(target=_write_many, args=(folder, f"t{n}")) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    for path in SpanFiles(folder).paths():
        for line in Path(path).read_bytes().splitlines():
            json.loads(line)
    names = [span["name"] for span in SpanFiles(folder).read()]
    assert len(names) == len(set(names))
    assert {name.partition("-")[0] for name in names} == {"p0", "p1", "t0", "t1"}


def test_what_can_not_be_masked_is_not_written_and_stops_nobody(
    runtime: Runtime, files: SpanFiles
) -> None:
    def failing(text: str) -> str:
        if "poison" in text:
            raise RecursionError(text)
        return text

    assert runtime.tracer is not None
    runtime.tracer.redact = failing
    for text in ("good", "poison", "fine"):
        assert runtime.call_sync(ToolCall("outer", {"number": 1, "text": text})).ok
    runtime.close()

    assert [span["name"] for span in spans(files)].count("execute_tool outer") == 2


def test_a_home_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    import shutil

    home = tmp_path / "home"
    tracer = Tracer(SpanFiles(str(home / "traces")))
    tracer.session_begins("s")
    tracer.session_ends("s")
    assert (home / "traces").exists()
    shutil.rmtree(home)
    tracer.session_begins("s")
    tracer.session_ends("s")

    assert not home.exists()


def test_a_full_disk_loses_no_call(runtime: Runtime, tmp_path: Path) -> None:
    assert runtime.tracer is not None
    runtime.tracer.files.folder = str(tmp_path / "file" / "below")
    runtime.tracer.files.path = str(tmp_path / "file" / "below" / "spans.jsonl")
    (tmp_path / "file").write_text("no folder")

    assert runtime.call_sync(ToolCall("inner", {"number": 7})).content == "7"
    runtime.close()


def _span(
    trace: str, span: str, parent: str = "", at: int = 1, session: str = ""
) -> dict[str, Any]:
    return {
        "trace_id": trace, "span_id": span, "parent_span_id": parent, "name": span, "status": "ok",
        "start_time_unix_nano": at, "end_time_unix_nano": at + 1, "kind": "internal",
        "attributes": {"hermes.kind": "tool", "gen_ai.conversation.id": session},
    }  # fmt: skip


def test_a_tree_shows_every_span_once_whatever_its_parents() -> None:
    lines = [_span("t", "a"), _span("t", "b", "a", 3), _span("t", "c", "a", 2), _span("t", "d", "b", 4),
             _span("t", "lost", "nowhere", 5), _span("t", "self", "self", 6)]  # fmt: skip
    drawn = [(branches, span["name"]) for branches, span in Trace("t", lines).tree()]

    assert drawn == [("", "a"), ("├ ", "c"), ("└ ", "b"), ("  └ ", "d"), ("", "lost"), ("", "self")]


def test_a_trace_is_meant_by_its_id_its_session_or_as_the_last() -> None:
    lines = [
        _span("aaa1", "x", at=1, session="261116-bamodi"),
        _span("aab2", "y", at=2),
        {"span_id": "z"},
    ]
    found = traces(lines)

    assert [t.id for t in meant(found, "last")] == ["aab2"]
    assert [t.id for t in meant(found, "aab")] == ["aab2"]
    assert [t.id for t in meant(found, "261116-bamodi")] == ["aaa1"]
    assert [t.id for t in meant(found, "bamodi")] == ["aaa1"]
    for name in ("aa", "zzz", ""):
        with pytest.raises(Exception, match=r"may be any|no trace"):
            meant(found, name)
