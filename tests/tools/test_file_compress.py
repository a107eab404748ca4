"""file_compress, called as a model calls it."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.tools.bench import Bench

from hermes.core import ToolCall
from hermes.core.context import Cancellation
from hermes.stores.checkpoints.checkpoint_store import checkpoints

NAMES = ["a.zip", "a.tar", "a.tgz", "a.tar.bz2", "a.tar.xz", "a.tar.zst", "a.7z"]


def fill(folder: Path) -> None:
    (folder / "src/sub").mkdir(parents=True)
    (folder / "src/sub/data").write_bytes(bytes(range(256)) * 40)
    (folder / "src/text").write_text("words\n")
    (folder / "src/link").symlink_to("text")


@pytest.mark.parametrize("name", NAMES)
def test_every_format_goes_there_and_back(bench: Bench, name: str) -> None:
    fill(bench.work)

    made = bench("file_compress", action="create", archive=name, sources=["src"])
    listed = bench("file_compress", action="list", archive=name)
    tested = bench("file_compress", action="test", archive=name)
    out = bench("file_compress", action="extract", archive=name)

    assert made["members"] == listed["total"] == tested["members"] == 5
    assert tested["sound"]
    assert out["target"] == str(bench.work / "a")
    assert (bench.work / "a/src/link").read_text() == "words\n"
    assert (bench.work / "a/src/sub/data").stat().st_size == 256 * 40


def test_a_link_named_as_a_source_stays_a_link(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (bench.work / "link").symlink_to(tmp_path / "outside")

    found = bench("file_compress", action="create", archive="a.zip", sources=["link"])

    with zipfile.ZipFile(bench.work / "a.zip") as made:
        assert made.namelist() == ["link"]
    assert "lead out" in found["notes"][0]


def test_an_archive_in_its_own_source_is_left_out(bench: Bench) -> None:
    (bench.work / "x").write_text("")
    bench("file_compress", action="create", archive="a.zip", sources=["."])

    found = bench(
        "file_compress", action="create", archive="a.zip", sources=["."], existing="replace"
    )

    assert found["members"] == 1
    assert found["notes"] == ["the archive itself was left out"]


def test_an_archive_that_is_there_is_not_overwritten_unasked(bench: Bench) -> None:
    (bench.work / "x").write_text("")
    (bench.work / "a.zip").write_text("mine")

    found = bench("file_compress", action="create", archive="a.zip", sources=["x"])

    assert "there already" in found["error"]
    assert (bench.work / "a.zip").read_text() == "mine"


def test_files_in_the_way_are_refused_skipped_or_replaced(bench: Bench) -> None:
    fill(bench.work)
    bench("file_compress", action="create", archive="a.zip", sources=["src"])
    (bench.work / "src/text").write_text("mine")

    def extract(existing: str) -> dict[str, object]:
        found: dict[str, object] = bench(
            "file_compress", action="extract", archive="a.zip", target=".", existing=existing
        )
        return found

    assert "there already" in str(extract("refuse")["error"])
    assert extract("skip")["files"] == 0
    assert (bench.work / "src/text").read_text() == "mine"
    assert extract("replace")["replaced"] == {
        "files": 3,
        "paths": ["src/link", "src/sub/data", "src/text"],
    }
    assert (bench.work / "src/text").read_text() == "words\n"


def test_chosen_members_are_listed_and_unpacked(bench: Bench) -> None:
    fill(bench.work)
    bench("file_compress", action="create", archive="a.tar.gz", sources=["src"])

    listed = bench("file_compress", action="list", archive="a.tar.gz", members=["*data"])
    out = bench("file_compress", action="extract", archive="a.tar.gz", members=["src/sub"])
    none = bench(
        "file_compress", action="extract", archive="a.tar.gz", target="b", members=["*.none"]
    )

    assert [member["path"] for member in listed["members"]] == ["src/sub/data"]
    assert out["paths"] == ["src/sub/data"]
    assert "no member fits" in none["error"]
    assert not (bench.work / "b").exists()


def test_a_long_list_is_paged(bench: Bench) -> None:
    for number in range(7):
        (bench.work / f"f{number}").write_text("")
    bench("file_compress", action="create", archive="a.zip", sources=["."])

    first = bench("file_compress", action="list", archive="a.zip", limit=5)
    rest = bench(
        "file_compress", action="list", archive="a.zip", limit=5, offset=first["next_offset"]
    )

    assert [len(first["members"]), len(rest["members"])] == [5, 2]
    assert "next_offset" not in rest


def test_a_hostile_archive_leaves_nothing(bench: Bench) -> None:
    with tarfile.open(bench.work / "a.tar", "w") as made:
        made.addfile(tarfile.TarInfo("../outside"))
    before = sorted(bench.work.iterdir())

    refused = bench("file_compress", action="extract", archive="a.tar", target="out")
    tested = bench("file_compress", action="test", archive="a.tar")

    assert "refused" in refused["error"]
    assert not tested["sound"]
    assert "refused" in tested["problem"]
    assert sorted(bench.work.iterdir()) == before


def test_a_member_that_would_be_guarded_is_not_written(bench: Bench) -> None:
    with zipfile.ZipFile(bench.work / "a.zip", "w") as made:
        made.writestr("fine", "")
        made.writestr(".git/hooks/pre-commit", "#!/bin/sh\n")
    (bench.work / ".git").mkdir()

    found = bench("file_compress", action="extract", archive="a.zip", target=".")

    assert "error" in found
    assert not (bench.work / "fine").exists()
    assert not (bench.work / ".git/hooks").exists()


def test_what_was_made_and_replaced_can_be_undone(bench: Bench) -> None:
    fill(bench.work)
    before = sorted(path.relative_to(bench.work) for path in bench.work.rglob("*"))
    bench("file_compress", action="create", archive="new/a.7z", sources=["src"])
    (bench.work / "src/text").write_text("mine")
    bench("file_compress", action="extract", archive="new/a.7z", target=".", existing="replace")
    store = checkpoints(bench.context)

    assert not store.undo(call="s1-2").left
    assert (bench.work / "src/text").read_text() == "mine"
    assert not store.undo(call="s1-1").left

    assert sorted(path.relative_to(bench.work) for path in bench.work.rglob("*")) == before


def test_a_cancelled_call_leaves_nothing(bench: Bench) -> None:
    fill(bench.work)
    before = sorted(bench.work.iterdir())
    bench.context.cancellation = Cancellation()
    bench.context.cancellation.cancel("enough")

    call = ToolCall("file_compress", {"action": "create", "archive": "a.zip", "sources": ["src"]})
    outcome = bench.app.runtime.call_sync(call, bench.context)

    assert outcome.status == "cancelled"
    assert sorted(bench.work.iterdir()) == before


def test_what_is_missing_or_makes_no_sense_is_said(bench: Bench) -> None:
    (bench.work / "x").write_text("x")

    assert "not there" in bench("file_compress", action="list", archive="a.zip")["error"]
    assert "sources" in bench("file_compress", action="create", archive="a.zip")["error"]
    assert (
        "format" in bench("file_compress", action="create", archive="a.rar", sources=["x"])["error"]
    )
    assert (
        "not there"
        in bench("file_compress", action="create", archive="a.zip", sources=["y"])["error"]
    )
    assert "no archive" in bench("file_compress", action="list", archive="x")["error"]
    assert (
        "itself"
        in bench(
            "file_compress",
            action="create",
            archive="x",
            sources=["x"],
            format="zip",
            existing="replace",
        )["error"]
    )


def test_only_what_changes_something_counts_as_a_change(bench: Bench) -> None:
    entry = bench.app.registry.get("file_compress")

    assert entry is not None
    assert entry.effect_of({"action": "list"}) == entry.effect_of({"action": "test"}) == "read"
    assert entry.effect_of({"action": "extract"}) == "write"
