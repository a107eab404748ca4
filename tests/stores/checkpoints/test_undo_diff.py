"""What undo shows of a file that it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stores.checkpoints.conftest import Agent


def shown(agent: Agent, root: Path, old: bytes, new: bytes) -> list[str]:
    """What a dry run says of a file that a person changed since."""
    (root / "a").write_bytes(old)
    agent.write("a", b"the agent's\n")
    (root / "a").write_bytes(new)
    return agent.store.undo(below=str(root), dry_run=True).left[0].difference.split("\n")


def test_a_small_change_among_many_equal_lines_is_found(agent: Agent, root: Path) -> None:
    lines = [f"{number % 97}" for number in range(100_000)]
    edited = [*lines[:10], "new", *lines[10:60_000], "edited", *lines[60_001:]]

    said = shown(agent, root, "\n".join(lines).encode(), "\n".join(edited).encode())

    assert [line for line in said[2:] if line[:1] in ("-", "+")] == [
        "-new",
        "-edited",
        f"+{lines[60_000]}",
    ]
    assert [line for line in said if line.startswith("@@")] == [
        "@@ -8,7 +8,6 @@",
        "@@ -59999,7 +59998,7 @@",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_the_text_of_a_file_is_shown_in_its_encoding(
    agent: Agent, root: Path, encoding: str
) -> None:
    said = shown(agent, root, "größer\n".encode(encoding), "kleiner als größer\n".encode(encoding))

    assert said[3:5] == ["-kleiner als größer", "+größer"]


def test_the_change_in_a_long_line_is_seen(agent: Agent, root: Path) -> None:
    said = shown(agent, root, b"x" * 9_000 + b"old" + b"y" * 900, b"x" * 9_000 + b"new")

    assert "xnew" in said[3]
    assert "xoldy" in "".join(said[4:])
    assert max(map(len, said)) < 1_200


def test_lines_that_end_at_carriage_returns_are_lines(agent: Agent, root: Path) -> None:
    said = shown(agent, root, b"one\rtwo\rthree\r", b"one\r2\rthree\r")

    assert said[3:7] == [" one", "-2", "+two", " three"]
