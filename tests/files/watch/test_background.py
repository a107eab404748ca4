"""Watches go on between calls, hold so much and no more, and end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.core import ToolError
from hermes.files.watch import watcher as background_module
from hermes.files.watch.watcher import BackgroundWatches, Watcher


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = (tmp_path / "top").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def watches() -> Iterator[BackgroundWatches]:
    made = BackgroundWatches()
    yield made
    made.close()


def start(watches: BackgroundWatches, top: Path, name: str = "") -> background_module.Watch:
    return watches.start(name, str(top), lambda: Watcher(str(top)))


def test_what_happened_before_collecting_is_collected_once(
    watches: BackgroundWatches, top: Path
) -> None:
    watch = start(watches, top)

    (top / "a").write_text("")
    first = watch.collect()
    second = watch.collect()

    assert [tuple(change) for change in first.changes] == [("added", "a")]
    assert second.changes == []


def test_what_is_too_much_is_counted(
    watches: BackgroundWatches, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "MOST_PENDING", 10)
    watch = start(watches, top)

    for number in range(25):
        (top / f"f{number}").write_text("")
    found = watch.collect()

    assert len(found.changes) == 10
    assert found.lost == 15
    assert watch.collect().lost == 0


def test_a_root_that_goes_ends_the_watch(watches: BackgroundWatches, top: Path) -> None:
    watch = start(watches, top)

    shutil.rmtree(top)
    found = watch.collect()
    while not found.gone:
        found = watch.collect()

    assert found.failure == ""


def test_names_are_given_and_taken_once(watches: BackgroundWatches, top: Path) -> None:
    assert start(watches, top).name == "watch-1"
    assert start(watches, top, "mine").name == "mine"
    with pytest.raises(ToolError, match="already"):
        start(watches, top, "mine")
    with pytest.raises(ToolError, match="no watch 'other'") as caught:
        watches.get("other")

    assert "mine" in str(caught.value.hint)


def test_there_is_an_end_to_how_many(
    watches: BackgroundWatches, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "MOST_WATCHES", 1)
    start(watches, top)

    with pytest.raises(ToolError, match="running already"):
        start(watches, top)


def test_closing_ends_every_thread_and_starts_no_more(top: Path) -> None:
    before = threading.active_count()
    watches = BackgroundWatches()
    for _ in range(3):
        start(watches, top)

    watches.close()

    assert threading.active_count() == before
    with pytest.raises(ToolError, match="ended"):
        start(watches, top)
