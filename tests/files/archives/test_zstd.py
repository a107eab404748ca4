"""Zstandard streams are held to the same limits as every other."""

from __future__ import annotations

import io
import tarfile
from importlib import import_module
from typing import Any

import pytest
from tests.files.archives.conftest import Place, file

from hermes.files.archives.compression import zstd_compressor
from hermes.files.archives.extraction import extract_archive
from hermes.files.archives.limits import ArchiveError


def library() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    pytest.skip("no Zstandard here")


def tar(*members: tuple[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in members:
            info, _ = file(name, data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def test_one_and_several_frames_unpack(place: Place) -> None:
    zstd = library()
    data = tar(("a", b"one" * 5_000), ("b", bytes(range(256)) * 900))
    cut = len(data) // 2
    place.archive.write_bytes(zstd.compress(data[:cut]) + zstd.compress(data[cut:]))

    extract_archive(place.archive, place.target)

    assert (place.target / "a").read_bytes() == b"one" * 5_000
    assert (place.target / "b").stat().st_size == 256 * 900


def test_our_own_compressor_is_understood(place: Place) -> None:
    library()
    compressor = zstd_compressor(5)
    place.archive.write_bytes(compressor.compress(tar(("a", b"one"))) + compressor.flush())

    extract_archive(place.archive, place.target)

    assert (place.target / "a").read_bytes() == b"one"


def test_a_cut_or_changed_stream_is_refused(place: Place) -> None:
    library()
    compressor = zstd_compressor(3)
    whole = compressor.compress(tar(("a", bytes(range(256)) * 4))) + compressor.flush()

    for broken in (whole[:-5], whole[: len(whole) // 2], whole[:-1] + b"\xff", whole[:5]):
        place.archive.write_bytes(broken)
        place.refuses()


def test_a_bomb_is_refused(place: Place) -> None:
    zstd = library()
    place.archive.write_bytes(zstd.compress(tar(("a", bytes(24 * 2**20)))))

    place.refuses("to 1")


def test_a_window_of_gigabytes_is_refused(place: Place) -> None:
    library()
    # A frame that declares a window of two gigabytes, then a block.
    place.archive.write_bytes(b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\x00\x00" + bytes(2_000))

    with pytest.raises(ArchiveError):
        extract_archive(place.archive, place.target)
    assert not place.target.exists()
