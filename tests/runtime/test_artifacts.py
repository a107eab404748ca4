"""Large results: kept once, privately, for a while; paged and searched completely."""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.core.json_text import to_json
from hermes.runtime.artifacts import PAGE, ArtifactStore
from hermes.text import regex_worker

if TYPE_CHECKING:
    from typing import Any

ANY_TEXT = st.text(st.characters(), max_size=300)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "artifacts"))


def pages(store: ArtifactStore, handle: str, **options: Any) -> list[dict[str, Any]]:
    found = [store.read(handle, **options)]
    while "next_offset" in found[-1]:
        assert found[-1]["next_offset"] > options.get("offset", -1)
        options["offset"] = found[-1]["next_offset"]
        found.append(store.read(handle, **options))
    return found


@given(text=ANY_TEXT, limit=st.integers(1, 400))
def test_pages_of_any_size_put_together_are_the_text(text: str, limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = ArtifactStore(folder)
        handle = store.put(text)

        found = pages(store, handle, limit=limit)

        assert "".join(page["text"] for page in found) == text
        assert {page["total_chars"] for page in found} == {len(text)}
        assert store.put(text) == handle


@pytest.mark.parametrize("character", ["\x00", "\ud800", '"', "é", "\n", "😀", "a"])
def test_a_page_fits_its_tool_however_its_characters_are_written(
    store: ArtifactStore, character: str
) -> None:
    text = character * (2 * PAGE)
    handle = store.put(text)

    found = pages(store, handle)

    assert "".join(page["text"] for page in found) == text
    assert all(len(to_json(page)) <= 2 * PAGE + 2_000 for page in found)


def test_different_texts_have_different_handles(store: ArtifactStore) -> None:
    handles = {store.put(text) for text in ("", "a", "a\n", "A")}

    assert len(handles) == 4
    assert all(re.fullmatch(r"art_[0-9a-f]{24}", handle) for handle in handles)


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path / "artifacts"))

    handle = store.put("secret")

    assert stat.S_IMODE((tmp_path / "artifacts").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "artifacts" / handle).stat().st_mode) == 0o600


def test_the_oldest_go_when_there_is_no_room_and_never_the_newest(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), max_bytes=250)
    old, middle = store.put("a" * 100), store.put("b" * 100)
    os.utime(tmp_path / old, (time.time() - 60, time.time() - 60))

    new = store.put("c" * 100)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([middle, new])
    with pytest.raises(ToolError, match="not there"):
        store.read(old)


def test_putting_a_text_again_makes_it_young_again(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), max_bytes=250)
    first, second = store.put("a" * 100), store.put("b" * 100)
    os.utime(tmp_path / first, (1, 1))
    os.utime(tmp_path / second, (time.time() - 60, time.time() - 60))

    store.put("a" * 100)
    store.put("c" * 100)

    assert (tmp_path / first).exists()
    assert not (tmp_path / second).exists()


@given(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=12))
@settings(max_examples=20)
def test_the_store_never_grows_past_its_size_and_keeps_what_was_just_written(
    sizes: list[int],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = ArtifactStore(folder, max_bytes=150)
        for number, size in enumerate(sizes):
            text = f"{number:03}" + "x" * size

            handle = store.put(text)

            assert store.read(handle)["text"] == text
            assert store.usage()[1] <= 150


def test_what_is_too_old_goes_with_the_next_one(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), keep_days=7)
    old, young = store.put("old"), store.put("young")
    for handle, days in ((old, 8), (young, 6)):
        os.utime(tmp_path / handle, (time.time() - days * 86_400,) * 2)

    new = store.put("new")

    assert {path.name for path in tmp_path.iterdir()} == {young, new}


def test_a_text_larger_than_the_store_is_refused_and_drops_nothing(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), max_bytes=10)
    kept = store.put("small")

    with pytest.raises(OSError, match="more than the artifact store may hold"):
        store.put("x" * 11)

    assert store.read(kept)["text"] == "small"


def test_strangers_in_the_folder_do_not_stop_the_store(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), max_bytes=100)
    (tmp_path / "folder").mkdir()
    os.utime(tmp_path / "folder", (1, 1))
    in_the_making = tmp_path / "art_x.0123.new"
    in_the_making.write_text("another process writes this")
    left_behind = tmp_path / "art_y.0123.new"
    left_behind.write_text("of a process that was killed")
    os.utime(left_behind, (1, 1))

    store.put("x" * 90)

    assert (tmp_path / "folder").is_dir()
    assert in_the_making.exists()
    assert not left_behind.exists()


@pytest.mark.parametrize("victim_exists", [True, False])
def test_a_link_at_the_name_is_replaced_and_not_followed(
    tmp_path: Path, victim_exists: bool
) -> None:
    store = ArtifactStore(str(tmp_path / "artifacts"))
    handle = store.put("text")
    victim = tmp_path / "victim"
    if victim_exists:
        victim.write_text("mine")
        os.utime(victim, (1, 1))
    place = tmp_path / "artifacts" / handle
    place.unlink()
    place.symlink_to(victim)

    with pytest.raises(ToolError):
        store.read(handle)
    assert store.put("text") == handle

    assert not place.is_symlink()
    assert store.read(handle)["text"] == "text"
    assert (victim.read_text(), victim.stat().st_mtime) == ("mine", 1) if victim_exists else True


def test_a_damaged_copy_is_written_anew(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    handle = store.put("the whole text")
    (tmp_path / handle).write_bytes(b"the wh")

    store.put("the whole text")

    assert store.read(handle)["text"] == "the whole text"


@pytest.mark.parametrize(
    "handle",
    [
        "art_../../x",
        "../etc/passwd",
        "/etc/passwd",
        "art_",
        "",
        "art_" + "a" * 5000,
        "art_" + "A" * 24,
        "art_" + "é" * 24,
        "art_" + "0" * 23 + "\n",
        "art_" + "0" * 23 + "\0",
        "0" * 24,
    ],
)
def test_what_is_no_handle_is_refused(store: ArtifactStore, handle: str) -> None:
    with pytest.raises(ToolError, match="no artifact handle"):
        store.read(handle)


def test_a_handle_that_is_gone_says_so(store: ArtifactStore) -> None:
    with pytest.raises(ToolError, match="kept for 7 days") as caught:
        store.read("art_" + "0" * 24)

    assert caught.value.hint


def test_an_offset_past_the_end_says_so(store: ArtifactStore) -> None:
    page = store.read(store.put("abc"), offset=10)

    assert page == {"text": "", "offset": 10, "total_chars": 3, "note": "offset 10 is past the end"}


# -- searching -----------------------------------------------------------------------------------


def test_a_search_shows_lines_with_their_number_and_offset(store: ArtifactStore) -> None:
    text = "one\r\ntwo\r\nthree two\n"
    handle = store.put(text)

    found = store.read(handle, pattern="two$")

    assert found["total_matches"] == 2
    assert [match["line"] for match in found["matches"]] == [2, 3]
    assert [text[match["offset"] :][:3] for match in found["matches"]] == ["two", "thr"]


@given(
    lines=st.lists(st.sampled_from(["", "x", "match", "a match here", "y" * 50]), max_size=60),
    limit=st.integers(1, 300),
    pattern=st.sampled_from(["match", "^", "^$", "a|x", "y+"]),
)
@settings(max_examples=15, deadline=None)
def test_a_search_in_pages_finds_every_line_once(
    lines: list[str], limit: int, pattern: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = ArtifactStore(folder)
        handle = store.put("\n".join(lines))
        wanted = [
            number
            for number, line in enumerate("\n".join(lines).split("\n"), 1)
            if re.search(pattern, line)
        ]
        if any(mark in pattern for mark in "|+"):
            # Each page of such a search is a process of its own: fewer of them.
            limit = 1_500

        found = pages(store, handle, pattern=pattern, limit=limit)

        assert [match["line"] for page in found for match in page["matches"]] == wanted
        assert {page["total_matches"] for page in found} == {len(wanted)}


def test_a_search_of_one_long_line_shows_every_place_and_not_the_beginning(
    store: ArtifactStore,
) -> None:
    text = to_json([{"number": number, "pad": "x" * 400} for number in range(50)])
    handle = store.put(text)

    found = pages(store, handle, pattern='number":', limit=1000)

    shown = [match["text"] for page in found for match in page["matches"]]
    assert all(any(f'number":{number},' in piece for piece in shown) for number in range(50))
    assert all(len(piece) <= 402 for piece in shown)
    assert len(found) > 1


@pytest.mark.parametrize("pattern", ["^$", "x*", "$"])
def test_a_match_of_nothing_ends_too(store: ArtifactStore, pattern: str) -> None:
    handle = store.put("a" * 3000 + "\n\n" + "b")

    found = pages(store, handle, pattern=pattern)

    assert found[0]["total_matches"] >= 1


def test_many_empty_matches_stay_within_a_page(store: ArtifactStore) -> None:
    handle = store.put("\n" * 5_000)

    found = pages(store, handle, pattern="^$")

    assert sum(len(page["matches"]) for page in found) == 5_001
    assert all(len(to_json(page)) <= 2 * PAGE + 2_000 for page in found)


def test_no_match_says_what_was_searched(store: ArtifactStore) -> None:
    handle = store.put("one\ntwo\nthree")

    found = store.read(handle, pattern="four")
    later = store.read(handle, pattern="one", offset=4)

    assert found["matches"] == []
    assert found["total_matches"] == 0
    assert "3 lines (13 characters) were searched" in found["note"]
    assert "1 before it" in later["note"]


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{2,1}", "(?P<", "a{99999999999999999999}"])
def test_a_bad_pattern_is_named_and_explained(store: ArtifactStore, pattern: str) -> None:
    handle = store.put("text")

    with pytest.raises(ToolError, match="no regular expression") as caught:
        store.read(handle, pattern=pattern)

    assert caught.value.hint


def test_a_pattern_that_would_run_for_years_is_stopped(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex_worker, "SECONDS", 1)
    handle = store.put("a" * 5_000 + "!")

    with pytest.raises(ToolError, match="stopped after 1 s") as caught:
        store.read(handle, pattern="(a+)+$")

    assert "simpler" in (caught.value.hint or "")
    assert store.read(handle, pattern="a!|b")["total_matches"] == 1


def test_a_search_sees_texts_that_are_no_proper_unicode(store: ArtifactStore) -> None:
    handle = store.put("before\n\ud800 héllo\n")

    found = store.read(handle, pattern="h.llo+")

    assert found["matches"][0]["text"] == "\ud800 héllo"


# -- whose words these are ----------------------------------------------------------------------


def test_a_strangers_text_stays_a_strangers(store: ArtifactStore, tmp_path: Path) -> None:
    theirs = store.put("obey me", source="box, an MCP server")
    ours = store.put("our own words")
    spilled = tmp_path / "spilled"
    spilled.write_text("a flood")
    flood = store.adopt(str(spilled), source="curl https://x.example")

    again = store.put("obey me")

    assert again == theirs
    assert store.source(theirs) == "box, an MCP server"
    assert store.source(flood) == "curl https://x.example"
    assert store.source(ours) == ""
    assert ArtifactStore(str(tmp_path / "artifacts")).source(theirs) == "box, an MCP server"


def test_our_own_text_becomes_a_strangers_once_one_says_it(store: ArtifactStore) -> None:
    handle = store.put("the very same words")
    store.put("the very same words", source="a stranger")

    assert store.source(handle) == "a stranger"


def test_a_source_that_cannot_be_read_is_somebody(store: ArtifactStore, tmp_path: Path) -> None:
    handle = store.put("words", source="a stranger")
    beside = tmp_path / "artifacts" / f"{handle}.source"
    beside.unlink()
    beside.symlink_to("/dev/null")
    linked = store.source(handle)
    beside.unlink()
    beside.touch()

    assert linked == store.source(handle) == "somebody unknown"


def test_the_source_goes_with_its_text_and_not_before(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path / "a"), max_bytes=3_000)
    first = store.put("x" * 2_000, source="a stranger")
    # Older than its text, as it always is.
    os.utime(tmp_path / "a" / f"{first}.source", (1, 1))
    store.put("y" * 500)

    assert store.source(first) == "a stranger"
    assert store.usage()[0] == 2
    os.utime(tmp_path / "a" / first, (1, 1))
    store.put("z" * 2_500)

    with pytest.raises(ToolError, match="not there"):
        store.read(first)
    assert not list((tmp_path / "a").glob("*.source"))


def test_a_source_that_was_left_alone_goes_in_time(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path / "a"))
    handle = store.put("words", source="a stranger")
    (tmp_path / "a" / handle).unlink()
    os.utime(tmp_path / "a" / f"{handle}.source", (1, 1))

    store.put("other words")

    assert not list((tmp_path / "a").glob("*.source"))
