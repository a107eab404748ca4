"""Output within bounds: beginning, end, size and order."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes.environments.command import ERR, IN_MEMORY, OUT, Collector, RollingLog, Spill

PIECES = st.lists(
    st.tuples(st.sampled_from([OUT, ERR]), st.text("abé日\n", max_size=30)), max_size=30
)


@given(PIECES)
def test_streams_are_kept_apart_and_in_order(pieces: list[tuple[int, str]]) -> None:
    collector = Collector()
    for stream, text in pieces:
        collector.feed(stream, text.encode())

    output = collector.output()

    assert output.stdout == "".join(text for stream, text in pieces if stream == OUT)
    assert output.stderr == "".join(text for stream, text in pieces if stream == ERR)
    assert output.merged == "".join(text for _, text in pieces)
    assert output.left_out == 0


@given(st.text("aé日🙂\n", max_size=100), st.integers(1, 5))
def test_characters_split_between_pieces_survive(text: str, size: int) -> None:
    collector = Collector()
    raw = text.encode()
    for at in range(0, len(raw), size):
        collector.feed(OUT, raw[at : at + size])
        collector.feed(ERR, b"!")

    assert collector.output().stdout == text


@given(PIECES, st.integers(1, 60), st.integers(1, 60))
def test_memory_is_bounded_and_what_is_left_out_is_counted(
    pieces: list[tuple[int, str]], head: int, tail: int
) -> None:
    collector = Collector(head=head, tail=tail)
    for stream, text in pieces:
        collector.feed(stream, text.encode())

    kept = sum(len(piece) for _, piece in (*collector._head, *collector._tail))
    assert kept <= head + 2 * tail
    assert kept + collector.dropped == collector.total


def test_a_flood_goes_to_a_file_up_to_its_limit(tmp_path: Path) -> None:
    collector = Collector(
        head=100, tail=100, make_spill=lambda: Spill(str(tmp_path / "kept"), largest=5000)
    )
    for number in range(2000):
        collector.feed(OUT, f"{number}\n".encode())

    output = collector.output()
    kept = collector.keep_spill()

    assert output.stdout.startswith("0\n1\n")
    assert output.stdout.endswith("1998\n1999\n")
    assert "bytes left out" in output.stdout
    assert kept is not None
    path, size = kept
    assert size == 5000
    assert Path(path).read_text().startswith("0\n1\n2\n")
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_file_of_odd_bytes_becomes_text(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path))
    spill.write("é".encode()[:1])
    spill.write("é".encode()[1:] + b"\xff\n")

    assert Path(spill.keep()).read_text(encoding="utf-8") == "é\\xff\n"


def test_a_discarded_file_is_gone(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path))
    spill.write(b"x")
    spill.discard()

    assert list(tmp_path.iterdir()) == []


def test_turns_are_told_in_lines() -> None:
    collector = Collector()
    for stream, text in ((OUT, b"1\n2\n"), (ERR, b"3\n"), (OUT, b"4")):
        collector.feed(stream, text)

    assert collector.output().turns() == "out 2, err 1, out 1"
    assert collector.recent() == "1\n2\n3\n4"


def test_a_long_log_is_read_from_any_place(tmp_path: Path) -> None:
    rolling = RollingLog(lambda: Spill(str(tmp_path)))
    whole = b"".join(b"%06d\n" % number for number in range(100_000))
    for at in range(0, len(whole), 5000):
        rolling.feed(whole[at : at + 5000])

    assert rolling.read(0, 7) == (b"000000\n", 0)
    assert rolling.read(350_000, 7) == (b"050000\n", 350_000)
    assert rolling.read(len(whole) - 7, 100) == (b"099999\n", len(whole) - 7)
    assert len(rolling._recent) <= 2 * IN_MEMORY
    rolling.discard()
    assert list(tmp_path.iterdir()) == []
