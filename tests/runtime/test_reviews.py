"""Calls that are put aside: kept once, found, settled by one person only."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes.core.context import Cancellation, ToolContext
from hermes.core.errors import ToolError
from hermes.runtime import reviews as module
from hermes.runtime.reviews import Review, ReviewError, Reviews
from hermes.runtime.stages import CallState
from hermes.safety.policy import Ruling


@pytest.fixture
def reviews(tmp_path: Path) -> Reviews:
    return Reviews(str(tmp_path / "reviews"))


def held(
    reviews: Reviews, *, places: dict[tuple[str, str], str] | None = None, **more: Any
) -> Review:
    context = ToolContext(session_id="s", turn="t", front_door="test", agent_path="root/1")
    state = CallState("c1", "memory", context, Cancellation(), 0.0)
    state.arguments = more
    ruling = Ruling("ask", keeps="memory", paths=places)
    return reviews.hold(state, ruling, ["https://a.example"])


def test_what_is_put_aside_says_who_wanted_what_and_why(reviews: Reviews) -> None:
    review = held(reviews, action="add", content="x")

    (found,) = reviews.pending()

    assert found.plain() == review.plain()
    assert (found.tool, found.kind, found.session, found.agent) == (
        "memory",
        "memory",
        "s",
        "root/1",
    )
    assert found.sources == ["https://a.example"]
    (file,) = (Path(reviews.folder) / "pending").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_same_call_waits_once(reviews: Reviews) -> None:
    first, second, third = (held(reviews, content=text) for text in ("a", "a", "b"))

    assert first.id == second.id != third.id
    assert len(reviews.pending()) == 2


def test_one_is_found_by_the_beginning_of_its_name(reviews: Reviews) -> None:
    review = held(reviews, content="a")

    assert reviews.find(review.id[:4].upper()).id == review.id
    for wrong in ("", "zz", "../pending"):
        with pytest.raises(ReviewError, match="nothing that waits"):
            reviews.find(wrong)


def test_only_one_person_settles_it(reviews: Reviews) -> None:
    review = held(reviews, content="a")
    together, won = threading.Barrier(8), []

    def settle() -> None:
        mine = reviews.find(review.id)
        together.wait()
        try:
            reviews.settle(mine, "approved", "me")
        except ReviewError:
            return
        won.append(1)

    threads = [threading.Thread(target=settle) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert won == [1]
    assert reviews.pending() == []
    assert [(one.state, one.by) for one in reviews.settled()] == [("approved", "me")]


def test_one_that_failed_waits_again(reviews: Reviews) -> None:
    review = held(reviews, content="a")
    reviews.settle(review, "approved", "me")

    reviews.reopen(review)

    assert [one.state for one in reviews.pending()] == ["pending"]
    assert reviews.settled() == []


def test_a_file_that_changed_meanwhile_is_named(reviews: Reviews, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    review = held(reviews, places={("write", "AGENTS.md"): str(file)}, path="AGENTS.md")
    assert review.outdated() == []

    file.write_text("somebody else")

    assert reviews.find(review.id).outdated() == [str(file)]


def test_no_more_wait_than_a_person_could_read(
    reviews: Reviews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    for number in range(3):
        held(reviews, content=number)

    with pytest.raises(ToolError, match="neither done nor kept"):
        held(reviews, content="one more")


def test_a_damaged_file_is_named(reviews: Reviews) -> None:
    review = held(reviews, content="a")
    path = Path(reviews.folder) / "pending" / f"{review.id}.json"
    path.write_text(json.dumps({"id": 3}))

    with pytest.raises(ReviewError, match=str(path)):
        reviews.pending()
