"""Trust is for exact content, links included, and ends with the first change."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from hermes.core.errors import ConfigError
from hermes.runtime.plugins import TrustStore, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    (folder / "inner").mkdir(parents=True)
    (folder / "one.py").write_text("1")
    (folder / "inner" / "two.py").write_text("2")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "three.py").write_text("3")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    return folder


def _replaced_by_link(place: Path) -> None:
    (place / "inner" / "copy.py").write_text("1")
    (place / "one.py").unlink()
    (place / "one.py").symlink_to(place / "inner" / "copy.py")


CHANGES: dict[str, Callable[[Path], object]] = {
    "another text": lambda place: (place / "one.py").write_text("2"),
    "a longer text": lambda place: (place / "inner" / "two.py").write_text("22"),
    "a new file": lambda place: (place / "new.py").write_text(""),
    "a new folder": lambda place: (place / "new").mkdir(),
    "a removed file": lambda place: (place / "one.py").unlink(),
    "another name": lambda place: (place / "one.py").rename(place / "eno.py"),
    "a link for a file": _replaced_by_link,
    "behind a link": lambda place: (place / "linked" / "three.py").write_text("changed"),
    "new behind a link": lambda place: (place / "linked" / "four.py").write_text(""),
    "a compiled module beside": lambda place: (place / "one.pyc").write_bytes(b"x"),
    "names moved between files": lambda place: (
        (place / "one.py").rename(place / "on"),
        (place / "on").write_text("e.py1"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_ends_trust(place: Path, change: Callable[[Path], object]) -> None:
    store = TrustStore()
    store.give(str(place))
    assert store.trusts(str(place))

    change(place)

    assert not store.trusts(str(place))
    assert store.knows(str(place))


def test_giving_trust_again_and_taking_it_back(place: Path) -> None:
    store = TrustStore()
    store.give(str(place))
    (place / "one.py").write_text("2")

    store.give(str(place))
    assert TrustStore().trusts(str(place))

    assert store.revoke(str(place))
    assert not store.trusts(str(place))
    assert not store.revoke(str(place))


def test_a_place_is_known_by_where_it_really_is(place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place)
    store = TrustStore()

    store.give(str(tmp_path / "link"))

    assert store.trusts(str(place))
    assert list(store.all()) == [str(place.resolve())]


def test_compiled_copies_that_python_makes_do_not_count(place: Path) -> None:
    before = fingerprint(str(place))

    (place / "inner" / "__pycache__").mkdir()
    (place / "inner" / "__pycache__" / "two.cpython-311.pyc").write_bytes(b"x")

    assert fingerprint(str(place)) == before


def test_links_in_a_circle_end(place: Path) -> None:
    (place / "inner" / "up").symlink_to(place)

    assert fingerprint(str(place)) == fingerprint(str(place))


def test_nothing_is_trusted_at_first_and_missing_places_can_t_be(tmp_path: Path) -> None:
    store = TrustStore()

    assert not store.trusts(str(tmp_path))
    with pytest.raises(ConfigError, match="does not exist"):
        store.give(str(tmp_path / "nowhere"))


def test_the_list_is_for_its_owner_only(place: Path, home: Path) -> None:
    TrustStore().give(str(place))

    assert stat.S_IMODE((home / "trust.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", "7", "\\xff"])
def test_a_damaged_list_trusts_nothing_and_says_so(place: Path, home: Path, content: str) -> None:
    TrustStore().give(str(place))
    (home / "trust.json").write_text(content)

    with pytest.raises(ConfigError, match=r"trust\.json can't be read"):
        TrustStore().trusts(str(place))
