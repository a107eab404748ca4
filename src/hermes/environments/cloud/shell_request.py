"""Shell requests to a cloud sandbox: command, stdin and output packed into one text each way.

Services differ in how they treat stdin, stderr and bytes that are no text. So everything goes into
the text of one `sh -c`, and comes back as ASCII.
"""

from __future__ import annotations

import base64
import binascii
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.cloud.provider import ProviderError
from hermes.environments.command import BackendError
from hermes.environments.command_output import ERR, OUT
from hermes.environments.remote_shell.scripts import exports, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.environments.cloud.provider import Provider


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
        f"M={mark}; K={quote(counted)}; d={working_folder(mark)}{_BEFORE}"
        f"f={quote(folder)}; x={'1' if strict else ''}{_ENTER}(\n"
        f"{exports(variables)}export PWD\n"
        f'exec timeout -k 2 {limit} "$B" -c {quote(script)} sh {quote(command)} '
        f'{quote(definitions)} <{quote(given)} >"$d/o" 2>"$d/e" 9>"$d/s"\n)'
        f"{_AFTER}"
    )


def working_folder(mark: str) -> str:
    """Where a command's output is kept there, in the files `o` and `e`, until it comes back."""
    return f"/tmp/hermes-{mark}"


def answered(text: str, mark: str) -> Answer:
    """What a text says that came back; raises `BackendError` when it is not whole."""
    _, found, rest = text.partition(f"\n{mark} ")
    head, _, body = rest.partition("\n")
    words = head.split()
    parts = body.split(mark)
    if not found or len(words) not in (4, 6):
        raise BackendError(f"the sandbox gave no answer: {text.strip()[-200:]}")
    code, out_size, err_size, moved = (int(word) for word in words[:4])
    if code == 98 and not body.strip():
        return Answer(code, b"", b"", b"", (0, 0), True)
    if len(parts) < 4:
        raise BackendError("the answer of the sandbox was cut off")
    try:
        out, err, state = (base64.b64decode(part) for part in parts[:3])
    except binascii.Error:
        raise BackendError("the answer of the sandbox can't be read") from None
    left = tuple(int(word) for word in words[4].split(",") if word.isdigit())
    return Answer(code, out, err, state, (out_size, err_size), bool(moved), left, words[5])


def page(folder: str, name: str, start: int) -> str:
    """The command that prints the next piece of what was printed, from a byte on."""
    return f"tail -c +{start + 1} {quote(folder)}/{name} | head -c {MOST_BACK} | base64"


def paged(text: str) -> bytes:
    """What that printed; raises `BackendError` when it can't be read."""
    try:
        return base64.b64decode(text)
    except binascii.Error:
        raise BackendError("the answer of the sandbox can't be read") from None


def sending(data: bytes, place: str) -> list[str]:
    """The commands that put bytes into a file there, one after the other."""
    commands = [f": >{quote(place)}"]
    for start in range(0, len(data), MOST_SENT):
        piece = base64.b64encode(data[start : start + MOST_SENT]).decode()
        commands.append(f"printf %s {piece} | base64 -d >>{quote(place)}")
    return commands


SECONDS = 120.0
# What the service itself may need, on top of a command's time.
_SLACK_SECONDS = 15.0
_KILL = (
    "for p in $(grep -lsF -e {mark} /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n'); "
    "do kill -9 $p; done"
)


class Shell:
    """The shell of the sandbox that a provider has now. `probe` before everything else."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        # Nothing is assumed of it before it is looked at.
        self.bash = False
        self.exports: dict[str, str] = {}

    def probe(self) -> None:
        """Learn what the sandbox is like."""
        self.bash = False
        look = "command -v bash >/dev/null && echo y || echo n; export -p"
        answer = self.ask(look, "/", variables={}, seconds=30.0, strict=True)
        bash, _, exports = answer.out.partition(b"\n")
        self.bash = bash == b"y"
        self.exports = shell_state.read_exports(exports)

    def quick(self, script: str) -> str:
        """What a short script of ours prints, which is plain ASCII."""
        return self._provider.run(script, seconds=SECONDS)

    def ask(
        self,
        command: str,
        folder: str,
        *,
        variables: Mapping[str, str | None],
        seconds: float,
        strict: bool,
        data: bytes | None = None,
        definitions: str = "",
        keep: bool = False,
        counted: str = "",
        mark: str = "",
    ) -> Answer:
        """Run a command there to its end, or for so long; what came of it."""
        mark = mark or os.urandom(8).hex()
        given = "/dev/null" if data is None else self.send(data)
        text = asked(
            command, mark=mark, folder=folder, strict=strict, variables=variables, seconds=seconds,
            given=given, definitions=definitions, keep=keep, bash=self.bash, counted=counted,
        )  # fmt: skip
        try:
            said = self._provider.run(text, seconds=seconds + _SLACK_SECONDS)
            return answered(said, mark)
        finally:
            if data is not None:
                self.quick(f"rm -f {given}")

    def send(self, data: bytes) -> str:
        """Put bytes into a file there; its place."""
        place = f"/tmp/hermes-{os.urandom(8).hex()}"
        for step in sending(data, place):
            self.quick(step)
        return place

    def pages(self, answer: Answer, feed: Callable[[int, memoryview], None]) -> int:
        """Pass on all that was printed, which may take several answers; how much is missing."""
        missing = 0
        long = False
        for stream, name, piece, size in (
            (OUT, "o", answer.out, answer.sizes[0]),
            (ERR, "e", answer.err, answer.sizes[1]),
        ):
            have = 0
            while piece:
                feed(stream, memoryview(piece))
                have += len(piece)
                if have >= min(size, MOST_WHOLE):
                    break
                long = True
                piece = paged(self.quick(page(answer.folder, name, have)))
            missing += size - have
        if long:
            self.quick(f"rm -rf {quote(answer.folder)}")
        return missing

    def script(self, text: str, data: bytes) -> tuple[int, bytes, bytes]:
        """Run a script of ours: its exit code, standard output and standard error."""
        answer = self.ask(text, "/", data=data or None, variables={}, seconds=SECONDS, strict=True)
        streams: dict[int, list[bytes]] = {OUT: [], ERR: []}
        if self.pages(answer, lambda stream, piece: streams[stream].append(bytes(piece))):
            raise ToolError(f"more than {MOST_WHOLE} bytes can't be brought back at once")
        return answer.code, b"".join(streams[OUT]), b"".join(streams[ERR])

    def kill(self, mark: str) -> None:
        """End everything that has a mark in its environment."""
        with suppress(ProviderError):
            self._provider.run(_KILL.format(mark=quote(mark)), seconds=10.0)
