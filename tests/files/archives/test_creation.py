"""Archives hold what was asked for, as it was, and come to be as a whole."""

from __future__ import annotations

import os
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.core import ToolError
from hermes.environments.disk.local_disk import LocalDisk
from hermes.files.archives.creation import (
    Source,
    create_archive,
    folder_for,
    format_of,
    gather,
    leads_out,
    name_for,
)
from hermes.files.archives.extraction import check_archive, extract_archive, list_archive
from hermes.files.archives.limits import ArchiveError

FORMATS: list[Any] = ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "7z"]
DISK = LocalDisk()


def pack(folder: Path, archive: Path, form: Any, **options: Any) -> None:
    gathered = gather(DISK, [Source(str(folder), folder.name)], str(archive))
    create_archive(DISK, str(archive), gathered.items, form=form, **options)


def tree(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content: object = os.readlink(path)
        else:
            content = path.read_bytes() if path.is_file() else None
        when = None if path.is_dir() else int(status.st_mtime) // 2
        found[str(path.relative_to(folder))] = (stat.S_IMODE(status.st_mode), when, content)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "sub/empty").mkdir(parents=True)
    (top / "sub/data").write_bytes(bytes(range(256)) * 300)
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "nothing").write_text("")
    (top / "für 你好.txt").write_text("x")
    (top / ("long" * 40)).write_text("long")
    (top / "sub/link").symlink_to("../run.sh")
    os.utime(top / "nothing", (1_000_000_000, 1_000_000_000))
    return top


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("level", [0, 6])
def test_what_is_packed_unpacks_as_it_was(
    folder: Path, tmp_path: Path, form: Any, level: int
) -> None:
    archive = tmp_path / "archive"

    pack(folder, archive, form, level=level)
    extract_archive(archive, tmp_path / "out")

    assert tree(tmp_path / "out/top") == tree(folder)
    assert len(check_archive(archive)) == len(list_archive(archive)) == len(tree(folder)) + 1


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_sources_give_the_same_bytes(folder: Path, tmp_path: Path, form: Any) -> None:
    pack(folder, tmp_path / "one", form)
    pack(folder, tmp_path / "two", form)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_other_programs_read_them(folder: Path, tmp_path: Path) -> None:
    py7zr = pytest.importorskip("py7zr")
    names = {f"top/{path.relative_to(folder)}" for path in folder.rglob("*")} | {"top"}
    for form in ("zip", "tar", "7z"):
        pack(folder, tmp_path / form, form)

    with zipfile.ZipFile(tmp_path / "zip") as zipped:
        assert zipped.testzip() is None
        assert {name.rstrip("/") for name in zipped.namelist()} == names
    with tarfile.open(tmp_path / "tar") as tarred:
        assert set(tarred.getnames()) == names
    with py7zr.SevenZipFile(tmp_path / "7z") as seven:
        assert set(seven.getnames()) == names
        seven.extractall(tmp_path / "by-others")
    assert (tmp_path / "by-others/top/sub/data").read_bytes() == (folder / "sub/data").read_bytes()
    listed = subprocess.run(["tar", "tf", tmp_path / "tar"], capture_output=True, check=True)
    assert len(listed.stdout.splitlines()) == len(names)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=20),
        st.binary(max_size=200),
        max_size=6,
    ),
    st.sampled_from(FORMATS),
)
def test_any_content_comes_back(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], form: Any
) -> None:
    place = tmp_path_factory.mktemp("any")
    top = place / "top"
    top.mkdir()
    for name, data in files.items():
        (top / name).write_bytes(data)
    pack(top, place / "archive", form)

    try:
        extract_archive(place / "archive", place / "out")
    except ArchiveError as error:
        # Names that are one on some systems, or devices on others.
        assert "name" in str(error)  # noqa: PT017
        return

    assert tree(place / "out/top") == tree(top)


def test_two_names_of_a_file_are_a_hard_link_in_a_tar(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "one").write_bytes(b"x" * 5_000)
    os.link(top / "one", top / "two")

    pack(top, tmp_path / "archive", "tar")

    assert [member.kind for member in list_archive(tmp_path / "archive")] == [
        "folder",
        "file",
        "hardlink",
    ]


def test_links_are_never_followed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "secret").write_text("secret")
    (top / "out").symlink_to(tmp_path / "secret")
    (top / "folder").symlink_to(tmp_path)

    gathered = gather(DISK, [Source(str(top), "top")], str(tmp_path / "archive"))

    assert [(item.name, item.kind) for item in gathered.items] == [
        ("top", "folder"),
        ("top/folder", "link"),
        ("top/out", "link"),
    ]
    assert all(leads_out(item) for item in gathered.items[1:])


def test_the_archive_is_not_packed_into_itself(tmp_path: Path) -> None:
    (tmp_path / "archive.zip").write_text("old")
    (tmp_path / "file").write_text("")

    gathered = gather(DISK, [Source(str(tmp_path), "")], str(tmp_path / "archive.zip"))

    assert [item.name for item in gathered.items] == ["file"]
    assert gathered.archive_left_out


def test_pipes_are_left_out_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    gathered = gather(DISK, [Source(str(tmp_path), "top")], "")

    assert gathered.special == ["top/pipe"]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    sources = [Source(str(tmp_path / name / "x"), "x") for name in ("a", "b")]

    with pytest.raises(ToolError, match="would both be x"):
        gather(DISK, sources, "")


def test_what_is_excluded_is_left_out(tmp_path: Path) -> None:
    for name in ("a.py", "a.pyc", "node_modules/x", "src/a.py", "src/b.c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")

    gathered = gather(
        DISK, [Source(str(tmp_path), "")], "", exclude=["*.pyc", "node_modules", "src/*.c"]
    )

    assert [item.name for item in gathered.items] == ["a.py", "src", "src/a.py"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_stop_leaves_nothing_and_keeps_what_was_there(
    folder: Path, tmp_path: Path, form: Any
) -> None:
    archive = tmp_path / "archive"
    archive.write_text("old")

    def check(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(folder, archive, form, check=check)

    assert archive.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "top"]


def test_a_file_that_shrinks_while_it_is_packed_is_said(folder: Path, tmp_path: Path) -> None:
    gathered = gather(DISK, [Source(str(folder), "top")], "")
    (folder / "sub/data").write_bytes(b"short")

    with pytest.raises(ToolError, match="shorter"):
        create_archive(DISK, str(tmp_path / "archive"), gathered.items, form="tar")


def test_a_name_that_is_no_text_goes_into_a_tar_only(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "bad\udcff").write_text("")

    pack(top, tmp_path / "tar", "tar")
    for form in ("zip", "7z"):
        with pytest.raises(ToolError, match=r"UTF-8|Unicode"):
            pack(top, tmp_path / form, form)

    assert len(list_archive(tmp_path / "tar")) == 2


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.zip", "zip"),
        ("A.TAR.GZ", "tar.gz"),
        ("x.tgz", "tar.gz"),
        ("b.tar.zst", "tar.zst"),
        ("c.7z", "7z"),
    ],
)
def test_the_name_says_the_format(name: str, form: str) -> None:
    assert format_of(name) == form


def test_an_unknown_ending_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ToolError, match="no format") as caught:
        format_of("a.rar")

    assert ".zip" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a/b", "a/b"),
        ("./a/", "a"),
        (".", ""),
        ("/w/a/b", "a/b"),
        ("/w", ""),
        ("/x/y", "y"),
        ("../z", "z"),
        ("a/../b", "b"),
    ],
)
def test_a_source_goes_by_its_path_from_the_workspace(source: str, name: str) -> None:
    assert name_for(source, "/w") == name


def test_an_archive_unpacks_into_a_folder_of_its_name() -> None:
    assert folder_for("x/a.tar.gz") == "a"
    assert folder_for("a.jar") == "a.jar.unpacked"
    assert folder_for(".zip") == ".zip.unpacked"
