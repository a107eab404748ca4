"""What is damaged is noticed, said, and mended where it can be; the rest is left alone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.core.model_protocol import Message
from hermes.stores.sessions import DamagedError, Session, Sessions, SessionsError

PAGE = 4096


@pytest.fixture
def filled(store: Sessions) -> Session:
    """A session of some size, searched once."""
    session = store.begin(workspace="/w", model="m", front_door="test")
    with store.database.writing():
        for number in range(400):
            session.append(Message("user", f"apple number{number} " + "filling text " * 20))
    store.search("apple")
    return session


def _overwrite(path: str, start: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(data)


def _settle(path: str) -> None:
    """Bring everything into the file itself."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def _damage_journal(store: Sessions) -> None:
    store.close()
    _settle(store.path)
    connection = sqlite3.connect(store.path)
    (root,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'entries'"
    ).fetchone()
    connection.close()
    _overwrite(store.path, (root - 1) * PAGE, os.urandom(PAGE))


def test_a_sound_store_is_said_to_be_sound(store: Sessions, filled: Session) -> None:
    health = store.doctor()

    assert health.ok
    assert (health.sessions, health.messages, health.index) == (1, 400, "sound")
    assert health.sizes["journal"] > 0
    assert health.sizes["index"] > 0


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with Sessions(tmp_path / "state.db") as store:
        assert store.doctor().ok

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM found_data",
        "DELETE FROM found_data WHERE id > 10",
        "UPDATE found_data SET block = zeroblob(length(block))",
        "UPDATE found_data SET block = randomblob(length(block)) WHERE id > 10",
        "DROP TABLE words",
        "DROP TABLE found_idx",
        "DELETE FROM marks",
        "DROP TABLE found",
        "INSERT INTO found (found) VALUES ('delete-all')",
    ],
)
def test_a_damaged_index_is_reported_and_made_again(
    damage: str, store: Sessions, filled: Session
) -> None:
    index = sqlite3.connect(f"{store.path}.search-1")
    with index:
        index.execute(damage)
    index.close()

    told = store.doctor(repair=False)
    mended = store.doctor()

    assert not told.ok
    assert "index" in told.problems[0]
    assert mended.ok
    assert mended.repaired
    assert len(store.search("apple", limit=500).hits) == 400
    assert not os.path.exists(f"{store.path}.search-1")


@pytest.mark.parametrize("damage", ["DELETE FROM found_data", "DROP TABLE words", "garbage"])
def test_a_search_makes_a_damaged_index_again_by_itself(
    damage: str, store: Sessions, filled: Session
) -> None:
    path = f"{store.path}.search-1"
    if damage == "garbage":
        _settle(path)
        _overwrite(path, 0, os.urandom(8 * PAGE))
    else:
        index = sqlite3.connect(path)
        with index:
            index.execute(damage)
        index.close()

    found = store.search("pple", limit=500)

    assert len(found.hits) == 400
    assert store.doctor().repaired == []


def test_a_damaged_index_keeps_nobody_from_writing_or_deleting(
    store: Sessions, filled: Session
) -> None:
    path = f"{store.path}.search-1"
    _settle(path)
    _overwrite(path, 0, os.urandom(8 * PAGE))

    for number in range(600):
        filled.append(Message("user", f"banana {number}"))
    store.delete(filled.id)

    assert store.doctor().ok
    assert store.list() == []


def test_a_damaged_journal_is_read_and_never_written(store: Sessions, filled: Session) -> None:
    other = store.begin(workspace="/w", model="m", front_door="test")
    _damage_journal(store)
    size = os.path.getsize(store.path)

    health = store.doctor()

    assert not health.ok
    assert "damaged" in health.problems[0]
    assert store.read_only
    with pytest.raises(DamagedError, match="nothing is written"):
        other.append(Message("user", "more"))
    with Sessions(store.path) as another, pytest.raises(DamagedError):
        another.begin(workspace="/w", model="m", front_door="test")
    assert [info.id for info in store.list()] == [other.id, filled.id]
    assert os.path.getsize(store.path) == size
    assert not [name for name in os.listdir(os.path.dirname(store.path)) if "recover" in name]


def test_meeting_damage_is_enough_to_stop_writing(store: Sessions, filled: Session) -> None:
    _damage_journal(store)

    with pytest.raises(DamagedError) as caught:
        filled.messages()

    assert caught.value.hint
    with pytest.raises(DamagedError):
        store.begin(workspace="/w", model="m", front_door="test")


def test_a_file_that_is_no_store_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"this is somebody's text, not a database " * 200)

    with Sessions(path) as store, pytest.raises(DamagedError):
        store.begin(workspace="/w", model="m", front_door="test")

    assert path.read_bytes().startswith(b"this is somebody's text")


def test_a_backup_in_its_place_makes_it_writable_again(
    store: Sessions, filled: Session, tmp_path: Path
) -> None:
    store.backup(tmp_path / "copy.db")
    _damage_journal(store)
    assert not store.doctor().ok
    store.close()
    for name in ("-wal", "-shm"):
        Path(store.path + name).unlink(missing_ok=True)
    os.replace(tmp_path / "copy.db", store.path)

    health = store.doctor()

    assert health.ok
    assert "written to again" in " ".join(health.repaired)
    filled.append(Message("user", "and on"))
    assert len(filled.messages()) == 401


def test_an_index_of_what_the_journal_was_before_is_not_believed(
    store: Sessions, filled: Session, tmp_path: Path
) -> None:
    store.backup(tmp_path / "copy.db")
    for _ in range(10):
        filled.append(Message("user", "banana"))
    store.search("banana")
    store.close()
    os.replace(tmp_path / "copy.db", store.path)

    again = store.open(filled.id)
    for _ in range(15):
        again.append(Message("user", "cherry"))

    assert len(store.search("cherry", limit=100).hits) == 15
    assert store.search("banana").hits == []
    assert store.doctor().ok


def test_an_index_of_another_journal_is_not_believed(
    store: Sessions, filled: Session, tmp_path: Path
) -> None:
    with Sessions(tmp_path / "other" / "state.db") as other:
        session = other.begin(workspace="/w", model="m", front_door="test")
        for _ in range(10):
            session.append(Message("user", "cherry"))
        other.search("cherry")
    store.close()
    _settle(f"{store.path}.search-1")
    os.replace(f"{store.path}.search-1", f"{other.path}.search-1")

    with Sessions(other.path) as again:
        assert len(again.search("cherry").hits) == 10
        assert again.search("apple").hits == []


def test_damage_that_one_process_met_stops_all(store: Sessions, filled: Session) -> None:
    with Sessions(store.path) as another:
        another.database.set_damage("bad sector")

    with pytest.raises(DamagedError, match="bad sector"):
        filled.append(Message("user", "x"))
    assert len(filled.messages()) == 400
    assert store.doctor().repaired
    filled.append(Message("user", "x"))


def test_a_full_disk_is_an_error_and_loses_nothing(store: Sessions, filled: Session) -> None:
    with store.database.reading() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()

        with pytest.raises(SessionsError, match="no room"):
            filled.append(Message("user", "x" * 100_000))
        connection.execute("PRAGMA max_page_count = 1000000").fetchall()
    filled.append(Message("user", "y" * 100_000))

    assert len(filled.messages()) == 401
    assert store.doctor().ok


def test_a_lost_entry_of_a_table_index_is_mended(store: Sessions, filled: Session) -> None:
    store.close()
    connection = sqlite3.connect(store.path)
    where = "WHERE name = 'entries_by_session'"
    row = connection.execute(f"SELECT * FROM sqlite_master {where}").fetchone()
    with connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"DELETE FROM sqlite_master {where}")
    connection.close()
    filled.append(Message("user", "unknown to the index"))
    store.close()
    connection = sqlite3.connect(store.path)
    with connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
    connection.close()

    told = store.doctor(repair=False)
    mended = store.doctor()

    assert not told.ok
    assert mended.ok
    assert "made again" in mended.repaired[0]
    assert filled.messages()[-1].text == "unknown to the index"


def test_a_backup_is_complete_and_searchable(
    store: Sessions, filled: Session, tmp_path: Path
) -> None:
    filled.append(Message("user", "the last word"))

    store.backup(tmp_path / "copy.db")

    with Sessions(tmp_path / "copy.db") as copy:
        assert copy.doctor(repair=False).ok
        assert copy.open(filled.id).messages() == filled.messages()
        assert len(copy.search("last word").hits) == 1
    with pytest.raises(SessionsError, match="exists already"):
        store.backup(tmp_path / "copy.db")


_DELETER = """
import sys
from hermes.core.model_protocol import Message
from hermes.stores.sessions import Sessions

store = Sessions(sys.argv[1])
while True:
    session = store.begin(workspace="/w", model="m", front_door="test")
    session.append(Message("user", "gone soon"))
    store.search("gone")
    store.delete(session.id)
    print(flush=True)
"""


def test_a_backup_taken_while_sessions_are_deleted_has_the_same_messages_in_both_files(
    store: Sessions, tmp_path: Path
) -> None:
    copies = [tmp_path / f"copy{number}.db" for number in range(25)]
    with subprocess.Popen(
        [sys.executable, "-c", _DELETER, store.path], stdout=subprocess.PIPE
    ) as deleter:
        try:
            assert deleter.stdout is not None
            assert deleter.stdout.readline()
            for copy in copies:
                store.backup(copy)
        finally:
            deleter.kill()

    for copy in copies:
        with Sessions(copy) as opened:
            assert opened.doctor(repair=False).ok


def test_a_damaged_index_is_left_out_of_a_backup(
    store: Sessions, filled: Session, tmp_path: Path
) -> None:
    store.search("apple")
    store.close()
    _settle(f"{store.path}.search-1")
    Path(f"{store.path}.search-1").write_bytes(b"no database at all" * 100)

    store.backup(tmp_path / "copy.db")

    with Sessions(tmp_path / "copy.db") as copy:
        assert copy.doctor(repair=False).ok
        assert len(copy.search("apple", limit=500).hits) == 400


def test_room_is_made_without_deleting_a_session(store: Sessions, filled: Session) -> None:
    gone = store.begin(workspace="/w", model="m", front_door="test")
    with store.database.writing():
        for _ in range(100):
            gone.append(Message("user", os.urandom(3000).hex()))
    store.delete(gone.id)

    report = store.prune(max_bytes=1000)

    assert report.after < report.before
    assert any("search index" in line for line in report.removed)
    assert report.deleted == []
    assert [info.id for info in report.due] == [filled.id]
    assert len(store.search("apple", limit=500).hits) == 400


def test_sessions_that_are_due_go_only_when_asked(store: Sessions) -> None:
    made = [store.begin(workspace="/w", model="m", front_door="test") for _ in range(3)]
    with store.database.writing() as connection:
        connection.execute(
            "UPDATE sessions SET touched = touched - 40 * 86400000 WHERE id <> ?", (made[2].id,)
        )

    told = store.prune(keep_days=30)
    kept = len(store.list())
    done = store.prune(keep_days=30, delete=True)

    assert {info.id for info in told.due} == {made[0].id, made[1].id}
    assert kept == 3
    assert {info.id for info in done.deleted} == {made[0].id, made[1].id}
    assert [info.id for info in store.list()] == [made[2].id]


def test_a_quota_takes_the_oldest_first(store: Sessions) -> None:
    made = []
    for _ in range(4):
        made.append(store.begin(workspace="/w", model="m", front_door="test"))
        with store.database.writing():
            for _ in range(20):
                made[-1].append(Message("user", os.urandom(5000).hex()))
    with store.database.writing() as connection:
        connection.execute("UPDATE sessions SET touched = touched + n * 1000")

    report = store.prune(max_bytes=500_000, delete=True)

    assert [info.id for info in report.deleted] == [session.id for session in made[:2]]
    assert report.after <= 500_000


def test_the_store_stays_within_two_and_a_half_times_its_text(store: Sessions) -> None:
    import random

    chance = random.Random(3)
    words = [
        "".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(5000)
    ]
    session = store.begin(workspace="/w", model="m", front_door="test")
    text = 0
    with store.database.writing():
        for number in range(5000):
            said = (
                "".join(chr(0x4E00 + int(chance.paretovariate(1)) % 2000) for _ in range(60))
                if number % 5 == 0
                else " ".join(words[int(chance.paretovariate(0.5)) % 5000] for _ in range(25))
            )
            text += len(said.encode())
            session.append(Message("user", said), turn="t1")
    store.search("abc")

    store.prune()

    assert sum(store.doctor().sizes.values()) < 2.5 * text
