"""Archives on another disk are read and unpacked as those of this one are."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import pytest
from tests.files.remote_disk import far_disk

from hermes.core.errors import ToolError
from hermes.files.archives.extraction import list_archive
from hermes.files.archives.limits import Extracted, PlacedPath
from hermes.files.archives.remote_disk import at_hand, extract_to

Existing = Literal["refuse", "skip", "replace"]


def packed(tmp_path: Path) -> str:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a.txt").write_text("new a\n")
    (source / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (source / "sub" / "run.sh").chmod(0o755)
    (source / "sub" / "link").symlink_to("../a.txt")
    (source / "empty").mkdir()
    archive = tmp_path / "it.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(source, arcname=".")
    return str(archive)


def unpack(
    archive: str,
    target: Path,
    *,
    existing: Existing = "refuse",
    planned: list[PlacedPath] | None = None,
    fail_after: int = 10**9,
) -> Extracted:
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks > fail_after:
            raise ToolError("stopped")

    told = [] if planned is None else planned
    return extract_to(
        far_disk(),
        archive,
        str(target),
        choose=lambda _: True,
        existing=existing,
        before=told.extend,
        watch=lambda _: None,
        check=check,
    )


def tree(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = f"{path.stat().st_mode & 0o777:o} {path.read_text()}"
    return found


def test_an_archive_elsewhere_is_read_through_a_copy_that_goes_again(tmp_path: Path) -> None:
    archive = packed(tmp_path)
    with at_hand(far_disk(), archive, lambda: None) as copy:
        assert copy != archive
        assert [one.path.strip("/") for one in list_archive(copy)] == [
            one.path.strip("/") for one in list_archive(archive)
        ]
    assert not os.path.exists(os.path.dirname(copy))


def test_files_folders_links_and_modes_arrive(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"
    planned: list[PlacedPath] = []
    made = unpack(packed(tmp_path), target, planned=planned)
    assert tree(target) == {
        "a.txt": "644 new a\n",
        "empty": "folder",
        "sub": "folder",
        "sub/link": "-> ../a.txt",
        "sub/run.sh": "755 #!/bin/sh\n",
    }
    assert made.files == 3
    assert [one.place for one in planned][:2] == [str(target.parent), str(target)]
    assert {one.place for one in planned} >= {str(target / name) for name in tree(target)}


@pytest.mark.parametrize("existing", ["skip", "replace"])
def test_what_is_in_the_way_is_left_or_replaced_as_asked(
    tmp_path: Path, existing: Existing
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "a.txt").write_text("old a\n")
    made = unpack(packed(tmp_path), target, existing=existing)
    kept = existing == "skip"
    assert (target / "a.txt").read_text() == ("old a\n" if kept else "new a\n")
    assert (made.skipped, made.replaced) == ((["a.txt"], []) if kept else ([], ["a.txt"]))
    assert (target / "sub" / "run.sh").exists()


def test_nothing_is_made_where_something_is_in_the_way(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (target / "sub").mkdir(parents=True)
    (target / "sub" / "run.sh").write_text("mine\n")
    with pytest.raises(ToolError, match=r"run\.sh.*there already"):
        unpack(packed(tmp_path), target)
    assert tree(target) == {"sub": "folder", "sub/run.sh": "644 mine\n"}


@pytest.mark.parametrize("fail_after", range(8))
def test_stopped_in_the_middle_it_leaves_what_was_there(tmp_path: Path, fail_after: int) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "a.txt").write_text("old a\n")
    before = tree(target)
    with pytest.raises(ToolError, match="stopped"):
        unpack(packed(tmp_path), target, existing="replace", fail_after=fail_after)
    assert tree(target) == before


def test_a_member_that_leads_out_is_refused_there_too(tmp_path: Path) -> None:
    archive = tmp_path / "evil.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("fine.txt", "fine")
        file.writestr("../evil.txt", "evil")
    with pytest.raises(ToolError, match="evil"):
        unpack(str(archive), tmp_path / "target")
    assert not (tmp_path / "target").exists()
    assert not (tmp_path / "evil.txt").exists()
