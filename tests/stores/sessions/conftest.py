"""A store of this test's own, and a session in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.stores.sessions import Session, Sessions


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Sessions]:
    """A store in a folder that does not exist yet."""
    with Sessions(tmp_path / "home" / "state.db") as made:
        yield made


@pytest.fixture
def session(store: Sessions) -> Session:
    """A session that was just begun."""
    return store.begin(workspace="/work", model="small", front_door="test")
