"""Large results are cut into valid JSON that says what is missing; the whole is kept."""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.json_text import to_json
from hermes.runtime.artifacts import ArtifactStore
from hermes.runtime.result_texts import fit

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

TEXT = st.text(st.characters(), max_size=80)
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUE = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(TEXT, inner, max_size=8),
    max_leaves=60,
)
LARGE = st.one_of(
    VALUE,
    st.builds(lambda value, count: [value] * count, VALUE, st.integers(1, 200)),
    st.builds(lambda text, count: text * count, TEXT, st.integers(1, 300)),
    st.builds(
        lambda value, count: {f"field {n}": value for n in range(count)}, VALUE, st.integers(1, 99)
    ),
    st.builds(lambda key, value: {key * 50: value}, TEXT, VALUE),
)


@given(value=LARGE, limit=st.integers(500, 3_000))
@settings(max_examples=80, deadline=None)
def test_any_value_becomes_valid_json_within_the_limit(value: Any, limit: int) -> None:
    content = to_json(value)
    with tempfile.TemporaryDirectory() as folder:
        store = ArtifactStore(folder)

        cut, handle = fit(content, limit, store)

        assert len(cut) <= limit
        shown = json.loads(cut)
        if len(content) <= limit:
            assert (cut, handle) == (content, None)
            return
        assert shown["truncated"] is True
        assert shown["artifact"] == handle
        assert handle is not None
        kept = _all(store, handle)
        assert kept == (json.loads(content) if isinstance(value, str) else content)
        assert shown["total_chars"] == len(kept)


@given(count=st.integers(0, 3_000), limit=st.integers(500, 5_000))
@settings(max_examples=30, deadline=None)
def test_arrays_lose_whole_items_from_their_middle_and_say_how_many(count: int, limit: int) -> None:
    items = [{"number": number, "name": f"item {number}"} for number in range(count)]
    content = to_json(items)

    shown = json.loads(fit(content, limit, None)[0])

    if len(content) <= limit:
        assert shown == items
        return
    notes = [item for item in shown["items"] if isinstance(item, str)]
    kept = [item for item in shown["items"] if isinstance(item, dict)]
    assert notes == [f"…[{count - len(kept)} items left out]…"]
    assert all(item in items for item in kept)
    at = shown["items"].index(notes[0])
    assert kept == items[:at] + items[count - (len(kept) - at) :]
    assert kept[0] == items[0]


@given(length=st.integers(0, 9_000), limit=st.integers(500, 5_000))
@settings(max_examples=30, deadline=None)
def test_texts_lose_characters_from_their_middle_and_say_how_many(length: int, limit: int) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(length))
    content = to_json(text)

    shown = json.loads(fit(content, limit, None)[0])

    if len(content) <= limit:
        assert shown == text
        return
    head, note, tail = shown["text"].split("\n")
    assert note == f"…[{length - len(head) - len(tail)} characters left out]…"
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) >= len(tail) > 0


@given(count=st.integers(30, 400), limit=st.integers(500, 3_000))
@settings(max_examples=30, deadline=None)
def test_objects_with_too_many_fields_say_how_many_are_left_out(count: int, limit: int) -> None:
    fields = {f"field_{number:04}": "x" * 60 for number in range(count)}

    shown = json.loads(fit(to_json(fields), limit, None)[0])

    kept = [name for name in shown if name.startswith("field_")]
    gone = count - len(kept)
    assert shown.get("…") == (f"{gone} fields left out" if gone else None)
    assert kept or limit < 700


def test_the_small_fields_of_an_object_stay_whole() -> None:
    content = to_json({"exit_code": 0, "output": "x" * 5_000, "cwd": "/tmp"})

    shown = json.loads(fit(content, 1_000, None)[0])

    assert (shown["exit_code"], shown["cwd"]) == (0, "/tmp")
    assert "characters left out" in shown["output"]
    assert len(shown["output"]) > 300


def test_an_object_that_uses_our_words_keeps_its_own() -> None:
    content = to_json({"note": "mine", "truncated": False, "text": "x" * 5_000})

    shown = json.loads(fit(content, 1_000, None)[0])

    assert shown["truncated"] is True
    assert shown["result"]["note"] == "mine"
    assert shown["result"]["truncated"] is False


def test_a_number_too_long_for_python_is_cut_like_a_text() -> None:
    content = f'{{"number": {"7" * 6_000}}}'

    cut, _ = fit(content, 600, None)

    assert len(cut) <= 600
    assert json.loads(cut)["total_chars"] == len(content)


def test_nesting_too_deep_for_python_is_cut_like_a_text() -> None:
    content = "[" * 200_000 + "]" * 200_000

    cut, _ = fit(content, 600, None)

    assert len(cut) <= 600
    assert json.loads(cut)["truncated"] is True


def test_without_a_store_the_answer_says_that_the_rest_is_gone() -> None:
    cut, handle = fit(to_json("x" * 5_000), 600, None)

    assert handle is None
    assert "not kept" in json.loads(cut)["note"]
    assert "artifact" not in json.loads(cut)


def test_a_store_that_is_too_small_is_said_and_raises_nothing(tmp_path: Path) -> None:
    cut, handle = fit(to_json("x" * 5_000), 600, ArtifactStore(str(tmp_path), max_bytes=100))

    assert handle is None
    assert "could not be kept: 5000 bytes are more" in json.loads(cut)["note"]


@pytest.mark.parametrize("deep", ["", "/very" + "/long" * 300])
def test_a_store_that_can_t_be_written_is_said_and_raises_nothing(
    tmp_path: Path, deep: str
) -> None:
    (tmp_path / "file").write_text("no folder")

    cut, handle = fit(to_json("x" * 5_000), 600, ArtifactStore(f"{tmp_path}/file{deep}"))

    assert handle is None
    assert len(cut) <= 600
    assert "could not be kept" in json.loads(cut)["note"]


def test_a_full_disk_is_said_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)

    cut, handle = fit(to_json("x" * 5_000), 600, ArtifactStore(str(tmp_path)))

    assert handle is None
    assert "No space left on device" in json.loads(cut)["note"]
    assert list(tmp_path.iterdir()) == []


def _all(store: ArtifactStore, handle: str) -> str:
    page = store.read(handle)
    text = page["text"]
    while "next_offset" in page:
        page = store.read(handle, offset=page["next_offset"])
        text += page["text"]
    return text
