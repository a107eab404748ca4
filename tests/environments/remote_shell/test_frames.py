"""Messages are told from output, wherever the pieces are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.environments.remote_shell.connection import FrameSplitter

MARK = "0123456789abcdef"
PIECES = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([b"\x1e", b"\x1e0123", b"\x1e\x1e", f"\x1e{MARK}".encode()[:-1], b"<", b">"]),
).filter(lambda data: MARK.encode() not in data)


@given(st.lists(st.tuples(st.booleans(), PIECES)), st.lists(st.integers(1, 30)))
def test_every_byte_comes_out_once_and_on_its_side(
    sent: list[tuple[bool, bytes]], sizes: list[int]
) -> None:
    whole = b"".join(
        b"\x1e" + MARK.encode() + b"<" + data + b"\x1e" + MARK.encode() + b">" if told else data
        for told, data in sent
    )
    # What happens to spell a mark when put together is one.
    plain = b"\0".join(data for told, data in sent if not told)
    if MARK.encode() in plain.replace(b"\0", b""):
        return
    printed: list[bytes] = []
    told: list[bytes] = []
    splitter = FrameSplitter(MARK, on_output=printed.append, on_message=told.append)

    at = 0
    for size in [*sizes, len(whole) + 1]:
        splitter.feed(whole[at : at + size])
        at += size
    # Nothing is held back for good once it can't be the beginning of a mark.
    splitter.feed(b".")

    assert told == [data for is_told, data in sent if is_told]
    assert b"".join(printed) == b"".join(data for is_told, data in sent if not is_told) + b"."
