"""A session is gone on with by one program at a time."""

from __future__ import annotations

import fcntl
from contextlib import ExitStack

import pytest

from hermes.stores.sessions import Session, Sessions
from hermes.stores.sessions.session_db import locked_session


def _begun(sessions: Sessions) -> Session:
    return sessions.begin(workspace="/w", model="m", front_door="cli")


def test_the_second_gets_a_copy_and_so_does_the_third_when_the_first_has_gone() -> None:
    with Sessions() as sessions, ExitStack() as second, ExitStack() as third:
        session = _begun(sessions)
        with ExitStack() as first:
            assert locked_session(session, first) == (session, "")
            copy, told = locked_session(session, second)
        assert copy.id != session.id
        assert copy.id in told

        again, nothing = locked_session(session, third)
        other, told = locked_session(copy, third)

    assert (again.id, nothing) == (session.id, "")
    assert other.id not in (session.id, copy.id)
    assert copy.id in told


def test_whoever_comes_while_it_is_let_go_has_a_lock_that_others_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, flock = ExitStack(), fcntl.flock

    def lock(handle: int, how: int) -> None:
        # Between the second one's opening and its locking, the first one goes.
        first.close()
        flock(handle, how)

    with Sessions() as sessions, ExitStack() as second, ExitStack() as third:
        session = _begun(sessions)
        locked_session(session, first)
        monkeypatch.setattr(fcntl, "flock", lock)
        assert locked_session(session, second) == (session, "")

        copy, told = locked_session(session, third)

    assert copy.id != session.id
    assert "is open in another process" in told
