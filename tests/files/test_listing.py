"""A folder as a tree: counts, sizes, order, pages, and what is left out."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.files.search.conftest import make

from hermes.core.errors import ToolError
from hermes.environments.disk.local_disk import LocalDisk
from hermes.files.listing import MOST_BELOW, list_folder, listing_report, size_text
from hermes.files.search.query import Choice, SearchDeadline

if TYPE_CHECKING:
    from typing import Any

TREE = {
    "b.txt": "x" * 1500,
    "a.txt": "",
    "src/main.py": "x" * 10,
    "src/lib/one.py": "",
    "src/lib/deep/two.py": "",
    "empty/": "",
    ".env": "",
    "out.log": "",
    ".gitignore": "*.log\n",
    ".git/config": "",
}


def report(root: Path, **options: Any) -> dict[str, Any]:
    watch = options.setdefault("watch", SearchDeadline())
    listing = list_folder(LocalDisk(), str(root), **options)
    return listing_report(
        listing, offset=options.get("offset", 0), limit=options.get("limit", 200), watch=watch
    )


def test_folders_come_first_with_their_counts(tmp_path: Path) -> None:
    make(tmp_path, TREE)

    assert report(tmp_path) == {
        "tree": "empty/  empty\nsrc/  1 folder, 1 file\n  lib/  1 folder, 1 file\n  main.py  10B\n"
        "a.txt  0B\nb.txt  1.5K",
        "folders": 3,
        "files": 3,
        "skipped": "2 hidden (hidden=true), 1 ignored (ignored=true)",
    }


def test_one_level_still_says_what_folders_hold(tmp_path: Path) -> None:
    make(tmp_path, TREE)

    answer = report(tmp_path, depth=1, sizes=False)

    assert answer["tree"] == "empty/  empty\nsrc/  1 folder, 1 file\na.txt\nb.txt"


def test_what_is_left_out_is_shown_when_wanted(tmp_path: Path) -> None:
    make(tmp_path, TREE)

    answer = report(tmp_path, depth=1, choice=Choice(hidden=True, ignored=True))

    assert ".env" in answer["tree"]
    assert "out.log" in answer["tree"]
    assert ".git/" not in answer["tree"]
    assert "skipped" not in answer


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_pages_fit_together(tmp_path: Path, depth: int) -> None:
    make(
        tmp_path,
        {f"d{n % 5}/e{n % 3}/f{n}": "" for n in range(40)} | {f"g{n}": "" for n in range(9)},
    )
    whole = report(tmp_path, depth=depth)["tree"].split("\n")

    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = report(tmp_path, depth=depth, offset=offset, limit=7)
        pages += page["tree"].split("\n")
        offset = page.get("next_offset")

    assert pages == whole


def test_a_full_folder_below_is_cut_short_and_the_root_is_not(tmp_path: Path) -> None:
    make(tmp_path, {f"many/{n:04}": "" for n in range(MOST_BELOW + 30)})

    assert "… 30 more files" in report(tmp_path)["tree"]
    assert report(tmp_path)["files"] == MOST_BELOW + 30
    assert len(report(tmp_path / "many")["tree"].split("\n")) == MOST_BELOW + 30


def test_many_entries_take_little_memory(tmp_path: Path) -> None:
    for number in range(20_000):
        os.close(os.open(tmp_path / f"entry-{number}", os.O_CREAT | os.O_WRONLY))
    report(tmp_path, limit=1)

    tracemalloc.start()
    answer = report(tmp_path, limit=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert answer["files"] == 20_000
    assert answer["next_offset"] == 10
    assert peak < 8_000_000


def test_links_pipes_and_odd_names_are_shown_as_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "new\nline").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()

    tree = report(tmp_path)["tree"].split("\n")

    assert tree == ["link -> nowhere", '"new\\nline"  0B', "pipe  pipe", '"\\udcff"  0B']


def test_a_folder_that_was_named_is_listed_even_when_it_is_ignored(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "out/**\n", "out/a": "", "out/.b/c": ""})

    assert report(tmp_path / "out")["tree"] == "a  0B"
    assert report(tmp_path / "out/.b")["tree"] == "c  0B"


def test_what_is_closed_is_withheld(tmp_path: Path) -> None:
    make(tmp_path, TREE)

    answer = report(tmp_path, readable=lambda place: not place.endswith("a.txt"))

    assert "a.txt" not in answer["tree"]
    assert "1 entry is withheld" in answer["note"]


def test_time_that_is_up_is_said(tmp_path: Path) -> None:
    make(tmp_path, TREE)

    assert "stopped after" in report(tmp_path, watch=SearchDeadline(1e-9))["note"]


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    make(tmp_path, TREE)

    with pytest.raises(ToolError, match="no folder but a file"):
        report(tmp_path / "a.txt")
    with pytest.raises(ToolError, match="no such"):
        report(tmp_path / "nowhere")


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert report(tmp_path)["note"] == "the folder is empty"
    (tmp_path / ".h").touch()
    assert report(tmp_path)["note"] == "nothing else is in it"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0K"),
        (10_240, "10K"),
        (5_000_000, "4.8M"),
        (10**15, "909T"),
    ],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert size_text(size) == text
