"""What the settings want deleted is deleted, said, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hermes.core.config import Config
from hermes.core.model_protocol import Message
from hermes.stores.sessions import Session, Sessions
from hermes.stores.sessions.maintenance import apply_limits, open_sessions


def _begun(store: Sessions, days: float, text: str = "hello") -> Session:
    """A session that was touched so many days ago."""
    session = store.begin(workspace="/w", model="m", front_door="test")
    session.append(Message("user", text))
    with store.database.writing() as connection:
        connection.execute(
            "UPDATE sessions SET touched = ? WHERE id = ?",
            (int((time.time() - days * 86_400) * 1000), session.id),
        )
    return session


def _left(store: Sessions) -> set[str]:
    return {info.id for info in store.list(limit=-1)}


def test_what_nobody_touched_for_long_goes_and_is_named(home: Path) -> None:
    said: list[str] = []
    with Sessions() as store:
        old, young = _begun(store, 40), _begun(store, 5)
    config = Config({"sessions": {"keep_days": 30}})

    with open_sessions(config, said.append) as store:
        assert _left(store) == {old.id, young.id}

    with Sessions() as store:
        assert _left(store) == {young.id}
    assert len(said) == 1
    assert old.id in said[0]
    assert "sessions.keep_days" in said[0]


def test_without_settings_nothing_is_ever_deleted(home: Path) -> None:
    said: list[str] = []
    with open_sessions(Config(), said.append) as store:
        old = _begun(store, 4000)
    with Sessions() as store:
        assert _left(store) == {old.id}
    assert said == []


def test_too_much_takes_the_oldest_first_and_never_todays(home: Path) -> None:
    with Sessions() as store:
        old = _begun(store, 9, "x" * 400_000)
        kept = [_begun(store, 5, "y" * 50_000), _begun(store, 0, "z" * 400_000)]
        (line,) = apply_limits(store, max_bytes=700_000)
        assert old.id in line
        assert _left(store) == {session.id for session in kept}
        assert store.doctor().ok

        (line,) = apply_limits(store, max_bytes=1000)
        assert kept[0].id in line
        (line,) = apply_limits(store, max_bytes=1000)
        assert "in use" in line
        assert _left(store) == {kept[1].id}


def test_a_store_within_its_limits_is_left_alone(home: Path) -> None:
    with Sessions() as store:
        _begun(store, 9)
        assert apply_limits(store, keep_days=30, max_bytes=10**9) == []


@pytest.mark.parametrize("power", [True, False])
def test_the_settings_say_how_durable_a_line_is(home: Path, power: bool) -> None:
    with (
        open_sessions(Config({"sessions": {"power": power}}), lambda _: None) as store,
        store.database.reading() as connection,
    ):
        assert connection.execute("PRAGMA synchronous").fetchone() == (2 if power else 1,)
