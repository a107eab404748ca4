"""No name and no link of an archive reaches anything but its own new files."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile

import pytest
from tests.files.archives.conftest import Place, entry

from hermes.files.archives.extraction import extract_archive

BAD_NAMES = [
    "../x", "a/../../x", "a/../b", "a/./b", "a//b", "..", ".", "/x", "//host/share/x", "\\x",
    "\\\\host\\share", "a\\..\\x", "a\\b", "C:x", "c:/x", "C:\\x", "~", "~root/x", "~/x", "a\nb",
    "a\x1bb", "a\x7f", "a\u202eb", "a.", "a ", "a./b", "a /b", "CON", "nul.txt", "a/Aux",
    "com1", "LPT9.tar.gz", "COM¹", "CONIN$", "con .txt", "x" * 256, "é" * 128, "d/" * 64 + "x",
    "", "a/", "...",
]  # fmt: skip
CLASHES = [
    ("a", "a"), ("a", "./a"), ("A", "a"), ("d/A", "D/b"), ("é", "e\u0301"), ("straße", "STRASSE"),
    ("a", "a/b"), ("a/b", "a"), ("a\u200db", "ab"), ("Ω", "\u2126"), ("A/x", "a"),
]  # fmt: skip
OUT = [
    "/etc", "..", "../x", "d/../../x", "up/../..", "missing/../x", "~/x", "C:x", "\\\\host\\x",
    "", "self", "d/../../target/x", "a\x07b",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_an_odd_name_is_refused_in_a_tar(place: Place, name: str) -> None:
    # The extended header carries the name as it is.
    info = tarfile.TarInfo("good")
    info.pax_headers = {"path": name}
    place.tar(("first", b"1"), info)

    place.refuses("name")


@pytest.mark.parametrize("name", [n for n in BAD_NAMES if n not in ("a/", "")] + ["a\0b"])
def test_an_odd_name_is_refused_in_a_zip(place: Place, name: str) -> None:
    info = zipfile.ZipInfo("placeholder")
    info.filename = name
    with zipfile.ZipFile(place.archive, "w") as made:
        made.writestr("first", b"1")
        made.writestr(info, b"2")

    place.refuses("name")


@pytest.mark.parametrize("pair", CLASHES)
def test_two_names_for_one_file_are_refused(place: Place, pair: tuple[str, str]) -> None:
    place.tar((pair[0], b"1"), (pair[1], b"2"))
    place.refuses("name")

    with pytest.warns(UserWarning, match="Duplicate") if pair[0] == pair[1] else io.BytesIO():
        with zipfile.ZipFile(place.archive, "w") as made:
            made.writestr(pair[0], b"1")
            made.writestr(pair[1], b"2")
    place.refuses("name")


def test_a_folder_named_twice_is_one_folder(place: Place) -> None:
    folder = entry("d/", tarfile.DIRTYPE)
    place.tar(("d/a", b"1"), folder, folder, ("d/b", b"2"))

    assert extract_archive(place.archive, place.target).files == 2


@pytest.mark.parametrize("link", OUT)
@pytest.mark.parametrize("late", [False, True])
def test_a_link_out_of_the_target_is_refused(place: Place, link: str, late: bool) -> None:
    links = [entry("d/up", b"2", ".."), entry("up", b"2", "d/up"), entry("self", b"2", link)]
    place.tar(*(reversed(links) if late else links))
    place.refuses()

    info = zipfile.ZipInfo("self")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(place.archive, "w") as made:
        made.writestr("d/a", b"")
        made.writestr(info, link)
    place.refuses()


def test_links_that_lead_out_only_together_are_refused(place: Place) -> None:
    # Each looks harmless to whoever reads its text alone.
    place.tar(
        ("a/b/c/d", b""), entry("x", b"2", "a/b/c/.."), entry("y", b"2", "x/../../.."), ("z", b"")
    )
    place.refuses("out of the target")

    place.tar(entry("D", b"2", "."), ("e/f", b""), entry("e/g", b"2", "../d/../x"))
    place.refuses("out of the target")


@pytest.mark.parametrize("order", [1, -1])
def test_nothing_is_written_through_a_link(place: Place, order: int) -> None:
    members = [entry("l", b"2", "d"), ("l/x", b"")]
    place.tar(("d/y", b""), *members[::order])

    place.refuses("name")


@pytest.mark.parametrize("link", ["/etc/passwd", "../outside", "missing", "l", "d", "h", "F"])
def test_a_hard_link_to_anything_but_an_earlier_file_is_refused(place: Place, link: str) -> None:
    (place.folder / "outside").write_bytes(b"secret")
    place.tar(("d/f", b""), ("f", b""), entry("l", b"2", "f"), entry("h", b"1", link))

    place.refuses("name")


@pytest.mark.parametrize("kind", [b"3", b"4", b"6", b"S", b"V", b"Z"])
def test_devices_pipes_and_unknown_members_are_refused(place: Place, kind: bytes) -> None:
    place.tar(("first", b"1"), entry("x", kind))

    place.refuses()


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_devices_and_pipes_are_refused_in_a_zip(place: Place, kind: int) -> None:
    info = zipfile.ZipInfo("x")
    info.external_attr = kind << 16
    with zipfile.ZipFile(place.archive, "w") as made:
        made.writestr(info, b"")

    place.refuses("device or a pipe")


def test_a_name_that_is_not_unicode_is_refused(place: Place) -> None:
    with tarfile.open(place.archive, "w", format=tarfile.GNU_FORMAT, encoding="latin-1") as made:
        made.addfile(tarfile.TarInfo("café"))

    place.refuses("not valid UTF-8")


@pytest.mark.parametrize("name", ["Foo::Bar.3pm", "ab:c", "...x", ".hidden", "a~", "x" * 255,
                                  "console", "nullable.c", "com10", "d/" * 63 + "x", "ab. c"])  # fmt: skip
def test_an_unusual_but_harmless_name_is_kept(place: Place, name: str) -> None:
    place.tar((name, b"1"))

    assert extract_archive(place.archive, place.target).paths == [name]
