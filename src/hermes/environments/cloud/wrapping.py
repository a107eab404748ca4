"""A command and what comes of it, as one text there and one back.

Services differ in what they do with input, with standard error and with bytes that are no text. So
everything is put into the text of one `sh -c`, and comes back as one ASCII text.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, NamedTuple

import hermes.environments.shell_state as shell_state
from hermes.environments.far.scripts import quoted, settings
from hermes.environments.results import PlaceError

if TYPE_CHECKING:
    from collections.abc import Mapping

# No more of each stream is brought back at once, or at all; no more is sent within one text.
MOST_BACK = 4_000_000
MOST_WHOLE = 32_000_000
MOST_SENT = 60_000

_BEFORE = """
mkdir -m 700 "$d" || exit 97
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
o=$(wc -c <"$d/o"); e=$(wc -c <"$d/e"); k=
if [ -n "$K" ]; then
  k=$(grep -lsF -e "$K" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n' | tr '\\n' ,)
fi
printf '\\n%s %s %s %s %s %s %s\\n' "$M" "$c" "$o" "$e" "${m:-0}" "${k:--}" "$d"
for n in o e s; do head -c @most@ "$d/$n" | base64; echo "$M"; done
# What is longer is fetched piece by piece, and taken away then.
[ "$o" -le @most@ ] && [ "$e" -le @most@ ] || trap - EXIT
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
    # What it left running, and where what it printed is kept while there is more of that.
    left: tuple[int, ...] = ()
    folder: str = ""


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
    counted: str = "",
) -> str:
    """The text that runs a command there for at most so long, reading the file `given`.

    What it leaves running is told by `counted`, which all its processes have in their environment.
    """
    script = shell_state.wrapped(bash=bash, keep=keep)
    limit = max(1, round(seconds))
    return (
        f"M={mark}; K={quoted(counted)}; d={working_folder(mark)}{_BEFORE}"
        f"f={quoted(folder)}; x={'1' if strict else ''}{_ENTER}(\n"
        f"{settings(variables)}export PWD\n"
        f'exec timeout -k 2 {limit} "$B" -c {quoted(script)} sh {quoted(command)} '
        f'{quoted(definitions)} <{quoted(given)} >"$d/o" 2>"$d/e" 9>"$d/s"\n)'
        f"{_AFTER}"
    )


def working_folder(mark: str) -> str:
    """Where a command's output is kept there, in the files `o` and `e`, until it comes back."""
    return f"/tmp/hermes-{mark}"


def answered(text: str, mark: str) -> Answer:
    """What a text says that came back; raises `PlaceError` when it is not whole."""
    _, found, rest = text.partition(f"\n{mark} ")
    head, _, body = rest.partition("\n")
    words = head.split()
    parts = body.split(mark)
    if not found or len(words) not in (4, 6):
        raise PlaceError(f"the sandbox gave no answer: {text.strip()[-200:]}")
    code, out_size, err_size, moved = (int(word) for word in words[:4])
    if code == 98 and not body.strip():
        return Answer(code, b"", b"", b"", (0, 0), True)
    if len(parts) < 4:
        raise PlaceError("the answer of the sandbox was cut off")
    try:
        out, err, state = (base64.b64decode(part) for part in parts[:3])
    except binascii.Error:
        raise PlaceError("the answer of the sandbox can't be read") from None
    left = tuple(int(word) for word in words[4].split(",") if word.isdigit())
    return Answer(code, out, err, state, (out_size, err_size), bool(moved), left, words[5])


def page(folder: str, name: str, start: int) -> str:
    """The command that prints the next piece of what was printed, from a byte on."""
    return f"tail -c +{start + 1} {quoted(folder)}/{name} | head -c {MOST_BACK} | base64"


def paged(text: str) -> bytes:
    """What that printed; raises `PlaceError` when it can't be read."""
    try:
        return base64.b64decode(text)
    except binascii.Error:
        raise PlaceError("the answer of the sandbox can't be read") from None


def sending(data: bytes, place: str) -> list[str]:
    """The commands that put bytes into a file there, one after the other."""
    commands = [f": >{quoted(place)}"]
    for start in range(0, len(data), MOST_SENT):
        piece = base64.b64encode(data[start : start + MOST_SENT]).decode()
        commands.append(f"printf %s {piece} | base64 -d >>{quoted(place)}")
    return commands
