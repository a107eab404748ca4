"""A command and what comes of it, as one text there and one back.

Services differ in what they do with input, with standard error and with bytes that are no text. So
everything is put into the text of one `sh -c`, and comes back as one ASCII text.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments import shell_state
from hermes.environments.far.scripts import quoted, settings
from hermes.environments.protocol import PlaceError

if TYPE_CHECKING:
    from collections.abc import Mapping

# No more of each stream is brought back, and no more is sent within one text.
MOST_BACK = 4_000_000
MOST_SENT = 60_000

_BEFORE = """
d=$(mktemp -d) || exit 97
trap 'rm -rf "$d"' EXIT
: >"$d/s"
"""
_ENTER = """
m=
until cd "$f" 2>/dev/null; do
  [ -z "$x" ] || { printf '\\n%s 98 0 0 1\\n' "$M"; exit 0; }
  m=1; f=${f%/*}; f=${f:-/}
done
B=$(command -v bash) || B=$(command -v sh)
"""
_AFTER = """
c=$?
printf '\\n%s %s %s %s %s\\n' "$M" "$c" "$(wc -c <"$d/o")" "$(wc -c <"$d/e")" "${m:-0}"
for n in o e s; do head -c @most@ "$d/$n" | base64; echo "$M"; done
""".replace("@most@", str(MOST_BACK))


class Answer(NamedTuple):
    """What came of a command; `sizes` are those of the whole streams."""

    code: int
    out: bytes
    err: bytes
    state: bytes
    sizes: tuple[int, int]
    # The folder was gone: it ran above it, or not at all when exactly that one was wanted.
    moved: bool


def asked(
    command: str,
    *,
    mark: str,
    folder: str,
    strict: bool,
    variables: Mapping[str, str | None],
    seconds: float,
    given: str = "/dev/null",
    definitions: str = "",
    keep: bool = False,
    bash: bool = True,
) -> str:
    """The text that runs a command there for at most so long, reading the file `given`."""
    script = shell_state.wrapped(bash=bash, keep=keep)
    limit = max(1, round(seconds))
    return (
        f"M={mark}{_BEFORE}f={quoted(folder)}; x={'1' if strict else ''}{_ENTER}(\n"
        f"{settings(variables)}export PWD\n"
        f'exec timeout -k 2 {limit} "$B" -c {quoted(script)} sh {quoted(command)} '
        f'{quoted(definitions)} <{quoted(given)} >"$d/o" 2>"$d/e" 9>"$d/s"\n)'
        f"{_AFTER}"
    )


def answered(text: str, mark: str) -> Answer:
    """What a text says that came back; raises `PlaceError` when it is not whole."""
    _, found, rest = text.partition(f"\n{mark} ")
    head, _, body = rest.partition("\n")
    words = head.split()
    parts = body.split(mark)
    if not found or len(words) != 4:
        raise PlaceError(f"the sandbox gave no answer: {text.strip()[-200:]}")
    code, out_size, err_size, moved = (int(word) for word in words)
    if code == 98 and not body.strip():
        return Answer(code, b"", b"", b"", (0, 0), True)
    if len(parts) < 4:
        raise PlaceError("the answer of the sandbox was cut off")
    try:
        out, err, state = (base64.b64decode(part) for part in parts[:3])
    except binascii.Error:
        raise PlaceError("the answer of the sandbox can't be read") from None
    return Answer(code, out, err, state, (out_size, err_size), bool(moved))


def sending(data: bytes, place: str) -> list[str]:
    """The commands that put bytes into a file there, one after the other."""
    commands = [f": >{quoted(place)}"]
    for start in range(0, len(data), MOST_SENT):
        piece = base64.b64encode(data[start : start + MOST_SENT]).decode()
        commands.append(f"printf %s {piece} | base64 -d >>{quoted(place)}")
    return commands
