"""What goes into a session comes out of it."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.model_protocol import Image, Message, ToolUse, Usage
from hermes.stores.sessions import Base, Session, Sessions, SessionsError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    text=texts,
    calls=st.lists(st.builds(ToolUse, id=texts, name=texts, arguments=texts), max_size=2).map(
        tuple
    ),
    call_id=texts,
    name=texts,
    reasoning=texts,
    images=st.lists(st.builds(Image, media_type=texts, data=texts), max_size=1).map(tuple),
    extra=st.dictionaries(texts, values, max_size=2),
)


def _ask(name: str = "read_file", arguments: str = '{"path": "a"}') -> Message:
    return Message("assistant", "", (ToolUse("call-1", name, arguments),))


@given(said=st.lists(messages, max_size=6))
def test_every_message_comes_back_as_it_was(
    said: list[Message], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Sessions(tmp_path_factory.mktemp("any") / "state.db") as store:
        session = store.begin(workspace="/w", model="m", front_door="test")
        numbers = [session.append(message) for message in said]

        again = store.open(session.id)

        assert again.messages() == said
        assert numbers == sorted(set(numbers))


def test_half_a_character_does_not_stop_the_conversation(session: Session) -> None:
    broken = Message("user", "a\ud800b", extra={"k": "\udfff"})

    session.append(broken)
    session.note("steer\ud800", {"text": "\ud800"})

    (kept,) = session.messages()
    assert kept.text == "a\ufffdb"
    assert kept.extra == {"k": "\ufffd"}


def test_the_store_is_its_owners_alone(store: Sessions, session: Session) -> None:
    session.append(Message("user", "hello"))
    store.search("hello")

    for name in os.listdir(os.path.dirname(store.path)):
        mode = os.stat(os.path.join(os.path.dirname(store.path), name)).st_mode
        assert stat.S_IMODE(mode) & 0o077 == 0, name
    assert stat.S_IMODE(os.stat(os.path.dirname(store.path)).st_mode) == 0o700


def test_a_store_that_is_never_used_makes_no_file(tmp_path: Path) -> None:
    with Sessions(tmp_path / "none" / "state.db"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_a_call_without_an_outcome_is_unfinished(store: Sessions, session: Session) -> None:
    session.append(_ask())
    first = session.intend("t1", "call-1", "read_file", {"path": "a"}, "read")
    second = session.intend("t1", "call-2", "terminal", {"command": "make"}, "execute")
    session.outcome(first, "ok", "text", 0.25)

    (left,) = store.open(session.id).unfinished()

    assert (left.seq, left.turn, left.call_id, left.tool) == (second, "t1", "call-2", "terminal")
    assert left.arguments == {"command": "make"}
    assert left.effect == "execute"
    session.outcome(second, "unknown", "", 0.0)
    assert session.unfinished() == []


@pytest.mark.parametrize("arguments", [{"path": "a"}, '{"path": "a"}', {"path": "b"}, "{broken"])
def test_arguments_are_those_of_the_intent_whatever_the_model_wrote(
    session: Session, arguments: Any
) -> None:
    session.append(_ask())

    session.intend("t", "call-1", "read_file", arguments, "read")

    wanted = json.loads(arguments) if arguments == '{"path": "a"}' else arguments
    assert session.unfinished()[0].arguments == wanted


def test_an_outcome_needs_a_call_of_this_session(store: Sessions, session: Session) -> None:
    other = store.begin(workspace="/w", model="m", front_door="test")
    seq = other.intend("t", "c", "sleep", {}, "read")

    with pytest.raises(SessionsError, match="no call with the number"):
        session.outcome(seq, "ok", "", 0.0)


def test_a_result_is_written_once(store: Sessions, session: Session) -> None:
    result = "".join(map(str, range(100_000)))
    arguments = json.dumps({"content": result})
    session.append(_ask("write_file", arguments))
    seq = session.intend("t", "call-1", "write_file", json.loads(arguments), "write")
    session.outcome(seq, "ok", result, 0.1)
    session.append(Message("tool", result, call_id="call-1", name="write_file"))

    again = store.open(session.id)

    assert again.messages()[1].text == result
    assert again.intents()[0].arguments["content"] == result
    assert [entry.kind for entry in again.journal()] == ["assistant", "intent", "outcome", "tool"]
    assert sum(store.doctor().sizes.values()) < 2.5 * 2 * len(result)


def test_a_result_that_was_changed_on_the_way_is_kept_as_the_model_saw_it(
    session: Session,
) -> None:
    session.append(_ask())
    seq = session.intend("t", "call-1", "read_file", {"path": "a"}, "read")
    session.outcome(seq, "ok", "x" * 1000, 0.1)

    session.append(Message("tool", "x" * 10 + " (cut)", call_id="call-1"))

    assert session.messages()[-1].text == "x" * 10 + " (cut)"
    assert session.journal()[2].value.content == "x" * 1000


def test_a_summary_stands_for_what_came_before_it(store: Sessions, session: Session) -> None:
    numbers = [session.append(Message("user", f"number{n}")) for n in range(10)]
    summary = [Message("user", "all so far")]

    session.compact(numbers[6], summary)
    session.append(Message("user", "number10"))

    again = store.open(session.id)
    assert [m.text for m in again.messages()] == [
        "all so far", "number7", "number8", "number9", "number10",
    ]  # fmt: skip
    assert [m.text for m in again.messages(at=numbers[1])] == ["number0", "number1"]
    assert len(store.search("number3").hits) == 1
    again.compact(numbers[8], [Message("user", "still less")])
    assert [m.text for m in session.messages()] == ["still less", "number9", "number10"]


def test_a_fork_goes_on_alone(store: Sessions, session: Session) -> None:
    first = session.append(Message("user", "one"))
    session.append(Message("assistant", "two"))

    whole, early = session.fork(), session.fork(first, title="Another way")
    whole.append(Message("user", "three"))
    store.delete(session.id)

    assert [m.text for m in whole.messages()] == ["one", "two", "three"]
    assert [m.text for m in early.messages()] == ["one"]
    assert early.title == "Another way"
    assert whole.fork().messages() == whole.messages()


def test_a_fork_has_to_do_what_was_left_to_do_at_its_line(session: Session) -> None:
    session.append(Message("user", "one"))
    session.note("todos", [{"id": "1", "content": "sow", "status": "pending"}])
    line = session.append(Message("assistant", "two"))
    session.note("todos", [{"id": "1", "content": "reap", "status": "pending"}])

    early, whole = session.fork(line), session.fork()

    assert [note.data[0]["content"] for note in early.notes("todos")] == ["sow"]
    assert [note.data[0]["content"] for note in whole.notes("todos")] == ["reap"]


def test_a_fork_from_a_line_that_is_not_there_is_refused(store: Sessions, session: Session) -> None:
    line = session.append(Message("user", "one"))
    other = store.begin(workspace="/w", model="m", front_door="cli")
    foreign = other.append(Message("user", "of another"))

    for missing in (0, -1, foreign, foreign + 1, 10**12):
        with pytest.raises(SessionsError, match="has no line"):
            session.fork(missing)
    assert len(session.fork(line).messages()) == 1
    assert len(store.list()) == 3


def test_the_last_session_is_one_in_which_something_happened(
    store: Sessions, session: Session
) -> None:
    session.append(Message("user", "one"))
    empty = store.begin(workspace="/w", model="m", front_door="cli")

    assert store.open("last").id == session.id
    assert store.open(empty.id).id == empty.id
    empty.note("agent", {"status": "running"})
    assert store.open("last").id == empty.id


def test_a_fork_leaves_a_step_behind_that_waits_for_results(session: Session) -> None:
    session.append(Message("user", "go"))
    session.append(Message("assistant", "", (ToolUse("a", "sleep"), ToolUse("b", "sleep"))))
    session.append(Message("tool", "done", call_id="a"))

    waiting = session.fork()
    session.append(Message("tool", "done", call_id="b"))
    complete = session.fork()

    assert [m.role for m in waiting.messages()] == ["user"]
    assert [m.role for m in complete.messages()] == ["user", "assistant", "tool", "tool"]


def test_notes_come_back_by_kind(session: Session) -> None:
    session.note("approval", {"rule": "rm", "answer": "once"}, turn="t1")
    session.note("steering", "go left")

    assert [note.data for note in session.notes("steering")] == ["go left"]
    assert session.notes()[0].turn == "t1"


def test_the_first_words_are_the_title_until_there_is_another(
    store: Sessions, session: Session
) -> None:
    session.append(Message("system", "You are helpful"))
    session.append(Message("user", "  please\nmend   the build " + "x" * 100))
    taken = session.title
    session.title = "Mending"
    session.append(Message("user", "more"))

    assert taken.startswith("please mend the build x")
    assert len(taken) <= 60
    assert store.open("last").title == "Mending"


def test_names_sort_by_time_and_are_found_by_their_start(store: Sessions) -> None:
    made = [store.begin(workspace="/w", model="m", front_door="test") for _ in range(30)]

    names = [session.id for session in made]

    assert names == sorted(set(names))
    assert all(len(name) == 13 and name.isascii() for name in names)
    assert store.open(names[3]).id == names[3]
    assert store.open(names[3][7:]).id == names[3]
    with pytest.raises(SessionsError, match="may be any of"):
        store.open(names[0][:6])
    for unknown in ("nothing", "", " ", "%", "_"):
        with pytest.raises(SessionsError, match="no session is called"):
            store.open(unknown)


def test_those_touched_last_are_listed_first(store: Sessions) -> None:
    made = [store.begin(workspace=f"/{n % 2}", model="m", front_door="test") for n in range(5)]
    with store.database.writing() as connection:
        connection.execute("UPDATE sessions SET touched = began - 5000 + n")
    made[1].append(Message("user", "again"))

    listed = store.list(limit=3)

    assert [info.id for info in listed] == [made[n].id for n in (1, 4, 3)]
    assert [info.id for info in store.list(limit=3, offset=3)] == [made[2].id, made[0].id]
    assert [info.id for info in store.list("/1")] == [made[1].id, made[3].id]
    assert listed[0].messages == 1
    assert store.open("last").id == made[1].id


def test_totals_add_up_by_model_tool_and_agent(store: Sessions, session: Session) -> None:
    session.append(Message("assistant", "hi"), usage=Usage(100, 10, cached=50))
    session.model = "large"
    calls = (ToolUse("1", "read_file"), ToolUse("2", "read_file"), ToolUse("3", "patch"))
    session.append(Message("assistant", "", calls), usage=Usage(200, 20, reasoning=7))
    seq = session.intend("t", "3", "patch", {}, "write")
    session.outcome(seq, "error", "no", 1.5)
    child = store.begin(workspace="/w", model="tiny", parent=session, front_door="agent")
    child.append(Message("assistant", "done"), usage=Usage(1, 2))
    grandchild = store.begin(workspace="/w", model="tiny", parent=child.id, front_door="agent")
    grandchild.append(Message("assistant", "done"), usage=Usage(10, 20))
    session.fork().append(Message("assistant", "elsewhere"), usage=Usage(1000, 1000))

    totals = session.totals()

    assert totals.usage == Usage(311, 52, cached=50, reasoning=7)
    assert totals.by_model["large"] == Usage(200, 20, reasoning=7)
    assert totals.by_agent[child.id] == Usage(1, 2)
    assert set(totals.by_tool) == {"", "read_file", "patch"}
    for sums in (totals.by_model, totals.by_tool, totals.by_agent):
        assert sum(sums.values(), Usage()) == totals.usage
    assert totals.work["patch"].failed == 1
    assert store.totals().usage.input == 1311


def test_a_deleted_session_is_gone_and_can_not_be_written_to(
    store: Sessions, session: Session
) -> None:
    child = store.begin(workspace="/w", model="m", parent=session, front_door="test")
    session.append(Message("user", "hiddenword"), usage=Usage(1, 1))

    store.delete(session.id)

    with pytest.raises(SessionsError, match="deleted"):
        session.append(Message("user", "still here?"))
    assert [info.id for info in store.list()] == [child.id]
    assert store.list()[0].parent == ""
    assert store.doctor().ok


def test_numbers_of_deleted_lines_are_never_used_again(store: Sessions) -> None:
    first = store.begin(workspace="/w", model="m", front_door="test")
    old = first.append(Message("user", "one"))
    store.delete(first.id)

    second = store.begin(workspace="/w", model="m", front_door="test")

    assert second.append(Message("user", "two")) > old


def test_what_stands_around_a_line_can_be_read(store: Sessions, session: Session) -> None:
    numbers = []
    for number in range(10):
        numbers.append(session.append(Message("user", f"m{number}")))
        session.note("between", number)
    session.compact(numbers[8], [Message("user", "short")])

    near = session.around(numbers[4], before=2, after=1)

    assert near == [(numbers[n], Message("user", f"m{n}")) for n in (2, 3, 4, 5)]
    assert [m.text for _, m in session.around(numbers[0], before=3, after=0)] == ["m0"]
    assert session.around(10**9, before=0)[0][1].text == "m9"


def test_a_store_can_wait_for_the_disk(tmp_path: Path) -> None:
    with Sessions(tmp_path / "state.db", power=True) as store:
        store.begin(workspace="/w", model="m", front_door="test")
        store.sync()

        with store.database.reading() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_what_a_summary_and_a_note_cost_is_counted(session: Session) -> None:
    session.compact(0, [], usage=Usage(7, 8))
    session.note("title", "x", usage=Usage(1, 1), model="tiny")

    assert session.totals().by_model == {"small": Usage(7, 8), "tiny": Usage(1, 1)}


def test_many_may_make_the_store_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(8)
    made = []

    def make(path: Path) -> None:
        together.wait()
        with Sessions(path) as store:
            made.append(store.begin(workspace="/w", model="m", front_door="test").id)

    for number in range(10):
        path = tmp_path / str(number) / "state.db"
        threads = [threading.Thread(target=make, args=(path,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(made) == 80


def test_two_handles_write_into_one_session(store: Sessions, session: Session) -> None:
    with Sessions(store.path) as another:
        twin = another.open(session.id)
        session.append(Message("user", "a"))
        twin.append(Message("user", "b"))
        session.append(Message("user", "c"))

        assert [m.text for m in twin.messages()] == ["a", "b", "c"]


def _in_child(store: Sessions, name: str) -> None:
    store.open(name).append(Message("user", "from the child"))
    store.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_leaves_its_parents_connection_alone(
    store: Sessions, session: Session
) -> None:
    session.append(Message("user", "before"))
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(store, session.id))

    child.start()
    child.join()
    session.append(Message("user", "after"))

    assert child.exitcode == 0
    assert [m.text for m in session.messages()] == ["before", "from the child", "after"]
    assert store.doctor().ok


def test_a_store_of_a_newer_version_is_left_alone(store: Sessions, session: Session) -> None:
    with store.database.writing() as connection:
        connection.execute("PRAGMA user_version = 99")
    store.close()

    with pytest.raises(SessionsError, match="newer Hermes"):
        session.append(Message("user", "x"))


def test_the_journal_has_every_line_in_order(session: Session) -> None:
    session.append(Message("user", "go"), turn="t1")
    session.append(_ask(), usage=Usage(5, 6), turn="t1")
    seq = session.intend("t1", "call-1", "read_file", {"path": "a"}, "read")
    session.outcome(seq, "ok", "text", 0.1)
    session.note("approval", {"answer": "once"})
    session.compact(1, [Message("user", "short")])

    journal = session.journal()

    kinds = [entry.kind for entry in journal]
    assert kinds == ["user", "assistant", "intent", "outcome", "note", "base"]
    assert journal[1].usage == Usage(5, 6)
    assert journal[3].turn == "t1"
    assert isinstance(journal[5].value, Base)
