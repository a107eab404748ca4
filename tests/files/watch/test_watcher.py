"""What changed is told as it is, not as the system announces it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core import ToolError
from hermes.files.watch import watcher as known_module
from hermes.files.watch.watcher import Change, Stop, Watcher, merged

LONG = 20.0
NEVER = Stop(lambda: False)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = (tmp_path / "top").resolve()
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_text("old")
    return folder


@pytest.fixture(params=[False, True], ids=["notices", "polling"])
def watch(request: pytest.FixtureRequest) -> Iterator[Callable[..., Watcher]]:
    made: list[Watcher] = []

    def make(place: Path, **options: Any) -> Watcher:
        made.append(Watcher(str(place), polling=request.param, **options))
        return made[-1]

    yield make
    for watcher in made:
        watcher.close()


def told(watcher: Watcher, quiet: float = 0.15) -> list[tuple[str, str]]:
    return sorted(tuple(change) for change in watcher.next(LONG, quiet, NEVER))


def test_new_changed_and_deleted_files_are_told(watch: Callable[..., Watcher], top: Path) -> None:
    (top / "gone").write_text("")
    watcher = watch(top)

    (top / "sub/new").write_text("new")
    (top / "file").write_text("changed a lot")
    (top / "gone").unlink()

    # A poller may see them one after the other.
    seen: set[tuple[str, str]] = set()
    while len(seen) < 3:
        seen |= set(told(watcher))
    assert seen == {("added", "sub/new"), ("modified", "file"), ("deleted", "gone")}


def test_a_file_replaced_as_a_whole_is_modified(top: Path) -> None:
    watcher = Watcher(str(top))

    (top / ".draft").write_text("new")
    (top / ".draft").replace(top / "file")

    assert told(watcher) == [("modified", "file")]
    watcher.close()


def test_what_is_in_a_new_folder_is_told_too(top: Path) -> None:
    watcher = Watcher(str(top))

    (top / "a/b/c").mkdir(parents=True)
    (top / "a/b/c/file").write_text("")

    assert told(watcher) == [
        ("added", "a/"),
        ("added", "a/b/"),
        ("added", "a/b/c/"),
        ("added", "a/b/c/file"),
    ]
    watcher.close()


def test_a_moved_folder_takes_its_files_along(top: Path) -> None:
    (top / "sub/x").write_text("")
    watcher = Watcher(str(top))

    (top / "sub").rename(top / "moved")

    assert told(watcher) == [
        ("added", "moved/"),
        ("added", "moved/x"),
        ("deleted", "sub/"),
        ("deleted", "sub/x"),
    ]
    watcher.close()


def test_a_file_that_came_and_went_is_nothing(top: Path) -> None:
    watcher = Watcher(str(top))

    (top / "brief").write_text("")
    (top / "brief").unlink()
    (top / "file").write_text("changed")

    assert told(watcher) == [("modified", "file")]
    watcher.close()


def test_only_what_fits_is_told(watch: Callable[..., Watcher], top: Path) -> None:
    watcher = watch(top, globs=["*.py"])

    (top / "a.c").write_text("")
    (top / "sub/a.py").write_text("")

    assert told(watcher) == [("added", "sub/a.py")]


def test_repositories_and_packages_are_passed_over_unless_asked_for(top: Path) -> None:
    (top / ".git").mkdir()
    (top / "node_modules").mkdir()
    quiet, everything = Watcher(str(top)), Watcher(str(top), ignore=())

    (top / ".git/x").write_text("")
    (top / "node_modules/x").write_text("")
    (top / "last").write_text("")

    assert told(quiet) == [("added", "last")]
    assert len(told(everything)) == 3
    quiet.close()
    everything.close()


def test_what_lies_behind_a_link_is_not_watched(top: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (top / "link").symlink_to(tmp_path / "outside")
    watcher = Watcher(str(top))

    (tmp_path / "outside/secret").write_text("")
    (top / "last").write_text("")

    assert told(watcher) == [("added", "last")]
    watcher.close()


def test_a_single_file_is_watched_through_being_replaced(
    watch: Callable[..., Watcher], top: Path
) -> None:
    watcher = watch(top / "file")

    (top / "other").write_text("")
    (top / "draft").write_text("replaced by a longer one")
    (top / "draft").replace(top / "file")

    assert told(watcher) == [("modified", "file")]


def test_a_file_that_is_not_there_yet_can_be_waited_for(
    watch: Callable[..., Watcher], top: Path
) -> None:
    watcher = watch(top / "sub/later")

    (top / "sub/later").write_text("")

    assert told(watcher) == [("added", "later")]


def test_a_place_in_no_folder_is_refused(top: Path) -> None:
    with pytest.raises(ToolError, match="not there"):
        Watcher(str(top / "none/at/all"))


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_root_that_goes_is_noticed(watch: Callable[..., Watcher], top: Path, how: str) -> None:
    watcher = watch(top)

    if how == "deleted":
        shutil.rmtree(top)
    else:
        top.rename(top.with_name("elsewhere"))
    while not watcher.gone:
        watcher.next(LONG, 0, NEVER)

    assert watcher.next(LONG, 0, NEVER) == []


def test_a_name_that_is_no_text_is_told(top: Path) -> None:
    watcher = Watcher(str(top))

    (top / "bad\udcff").write_text("")
    first = told(watcher)
    (top / "after").write_text("")

    assert first == [("added", "bad\udcff")]
    assert ("added", "after") in told(watcher)
    watcher.close()


def test_a_stop_ends_the_wait(top: Path) -> None:
    watcher = Watcher(str(top))
    asked = threading.Event()
    threading.Timer(0.1, asked.set).start()

    assert watcher.next(3600, 0.1, Stop(asked.is_set)) == []
    watcher.close()


def test_time_runs_out_with_nothing(top: Path) -> None:
    watcher = Watcher(str(top))

    assert watcher.next(0.1, 0, NEVER) == []
    watcher.close()


def test_more_files_than_can_be_known_are_told_by_what_the_system_says(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_module, "MOST_KNOWN", 1)
    for number in range(5):
        (top / f"f{number}").write_text("")
    watcher = Watcher(str(top))

    (top / "f3").unlink()
    (top / "new").write_text("")

    assert not watcher.complete
    assert told(watcher) == [("added", "new"), ("deleted", "f3")]
    watcher.close()


def test_no_thread_stays_behind(top: Path) -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0

    Watcher(str(top)).close()
    before = threads()
    for _ in range(5):
        Watcher(str(top)).close()

    # The library's own threads end by themselves, in their own time.
    for _ in range(100):
        if threads() <= before:
            break
        threading.Event().wait(0.05)
    assert threads() <= before


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("added", "modified", "added"),
        ("added", "deleted", None),
        ("deleted", "added", "modified"),
        ("modified", "deleted", "deleted"),
        ("modified", "modified", "modified"),
    ],
)
def test_two_batches_are_one_change(first: Any, second: Any, both: str | None) -> None:
    found = merged([Change(first, "x")], [Change(second, "x")])

    assert [change.kind for change in found] == ([] if both is None else [both])
