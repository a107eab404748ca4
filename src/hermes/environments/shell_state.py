"""What a shell carries from one command to the next: folder, exported variables, functions.

Each command runs in a fresh shell. `wrapped` gives the script around a command: it brings back
the functions and aliases of before, runs the command, and at its end writes down the state, into a
file that is handed over (`>&9`) or, where there is only the output, between two marks in it.
`read_state` and `split_marked` read that again. Nothing here runs anything.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.environments.env_vars import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

# The number of the file that the state is written to, and of one that holds a long command.
STATE_FILE = 9
TEXT_FILE = 8
# The system takes no longer argument than 128 KB.
LONGEST_ARGUMENT = 100_000

# Not the task's: they are made for each command.
_VOLATILE = frozenset({"_", "SHLVL", "PWD", "BASHOPTS", "SHELLOPTS", "BASH_EXECUTION_STRING", MARK})
_PRIVATE = "__hermes"

_DECLARED = re.compile(
    rb"^(?:declare|typeset|export)(?: -[A-Za-z-]+)? ([A-Za-z_][A-Za-z0-9_]*)"
    rb"""(?:=((?:"(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|'[^']*'|\\.|[^\s"'\\])*))?$""",
    re.MULTILINE | re.DOTALL,
)
_PIECE = re.compile(
    rb"""\$'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)|([^"'\\]+)""", re.DOTALL
)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|.)", re.DOTALL)
_LETTERS = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b",
    b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"v": b"\v",
}  # fmt: skip


# Whatever could change what the shell carries on: builtins that do, assignments, definitions.
_MAY_CHANGE = re.compile(
    r"[=(){}]|\b(?:cd|pushd|popd|export|declare|typeset|readonly|local|unset|source|eval|alias|unalias"
    r"|set|shopt|read|mapfile|readarray|getopts|exec|trap|builtin|command|function|let|enable|printf"
    r"|for|select|coproc|wait|hash)\b|(?:^|[;&|\n])\s*\.\s|\\"
)


# What people write to change the state, and expect to find at the next command.
_MEANT = re.compile(
    r"(?:^|[;&|({\n]|\bthen|\bdo)\s*(?:cd|pushd|popd|export|unset|source|alias|unalias|\.)\s",
    re.MULTILINE,
)


class ShellState:
    """What the last command left: `cwd`, exported variables, and definitions as shell text."""

    __slots__ = ("cwd", "definitions", "exports")

    def __init__(self, cwd: str, exports: dict[str, str], definitions: str) -> None:
        self.cwd = cwd
        self.exports = exports
        self.definitions = definitions


def wrapped(
    *, bash: bool = True, long: bool = False, keep: bool = True, mark: str | None = None
) -> str:
    """The script to run as `SHELL -c SCRIPT NAME COMMAND DEFINITIONS`.

    With `long` the command is read from file 8 and not from the arguments; for bash it ends with a
    zero byte.
    `keep` writes the state down at the end: to file 9, or with a `mark` (hex digits that nobody can
    guess) into the output, where `split_marked` finds it.
    """
    read = "__hermes=$1"
    if long:
        # Others have no `-d`, or read byte by byte; a command needs no line ends behind it.
        text = f"IFS= read -r -d '' __hermes <&{TEXT_FILE}"
        read = f"{text if bash else f'__hermes=$(cat <&{TEXT_FILE})'}; exec {TEXT_FILE}<&-"
    # All on one line, so that the shell counts the lines of the command alone.
    script = (
        f"{'shopt -s expand_aliases' if bash else ':'}; "
        f'{read}; __hermes_d=$2; shift "$#"; '
        '[ -z "$__hermes_d" ] || eval "$__hermes_d"; unset __hermes_d; '
    )
    if not keep:
        return f'{script}eval "$__hermes"\n'
    more = "declare -f; printf '\\0'; alias -p; printf '\\0'; " if bash else ""
    dump = f"printf '%s\\0' \"$PWD\"; export -p; printf '\\0'; {more}"
    if mark is None:
        dump = f"{{ {{ {dump}}} >&{STATE_FILE}; }} 2>/dev/null"
        # Out of the command's sight while it runs: what it leaves behind can't hold the file.
        hidden, closing = f" {STATE_FILE}>&-", f"exec {STATE_FILE}>&-"
    else:
        dump = f"printf '\\036{mark}<'; {dump}printf '\\036{mark}>'"
        hidden, closing = "", "trap - EXIT"
    quoted = dump.replace("'", "'\\''")
    return (
        f"{script}trap '{{ set +x; }} 2>/dev/null; {quoted}' EXIT; "
        # Still on that line: it is read by now, whatever the command does to how lines are read.
        f'eval "$__hermes"{hidden}; '
        f"{{ __hermes=$?; set +xveu; }} 2>/dev/null; {dump}; {closing}; "
        'exit "$__hermes"\n'
    )


def is_stateless(command: str) -> bool:
    """Whether a command can't change the state, so that a plain shell will do for it."""
    return command[:1].isalpha() and not _MAY_CHANGE.search(command)


def state_was_lost(command: str, state: bytes) -> bool:
    """Whether a command meant to change the state, and its shell did not get to write it down."""
    return not state and _MEANT.search(command) is not None


def split_marked(output: bytes, mark: str) -> tuple[bytes, bytes]:
    """The output without the state that was written into it, and the state."""
    before, after = f"\x1e{mark}<".encode(), f"\x1e{mark}>".encode()
    start = output.rfind(before)
    if start < 0:
        return output, b""
    end = output.find(after, start)
    state = output[start + len(before) : end if end >= 0 else len(output)]
    rest = output[end + len(after) :] if end >= 0 else b""
    return output[:start] + rest, state


def read_state(data: bytes) -> ShellState | None:
    """The state as a shell wrote it; None when it could not (it was killed, or replaced itself)."""
    parts = data.split(b"\0")
    if len(parts) < 3 or not parts[0].startswith(b"/"):
        return None
    functions = parts[2] if len(parts) > 4 else b""
    aliases = parts[3] if len(parts) > 4 else b""
    definitions = (aliases + functions).decode("utf-8", "surrogateescape")
    return ShellState(os.fsdecode(parts[0]), read_exports(parts[1]), definitions)


def read_exports(data: bytes) -> dict[str, str]:
    """Exported variables, from what `export -p` prints."""
    found = {}
    for name, value in _DECLARED.findall(data):
        text = os.fsdecode(name)
        # One that has no value yet is not in the environment.
        if value and text not in _VOLATILE and not text.startswith(_PRIVATE):
            found[text] = os.fsdecode(_unquoted(value))
    return found


def changes(given: Mapping[str, str], left: Mapping[str, str]) -> dict[str, str | None]:
    """What a command changed of the variables it was given; None for what it took away."""
    changed: dict[str, str | None] = {
        name: value for name, value in left.items() if given.get(name) != value
    }
    for name in given:
        if name not in left and name not in _VOLATILE and not name.startswith("BASH_FUNC_"):
            changed[name] = None
    return changed


def _unquoted(word: bytes) -> bytes:
    if word[:1] == b'"' and word[-1:] == b'"' and b"\\" not in word and word.count(b'"') == 2:
        return word[1:-1]
    return b"".join(_piece(piece) for piece in _PIECE.finditer(word))


def _piece(piece: re.Match[bytes]) -> bytes:
    ansi, double, single, escaped, plain = piece.groups()
    if ansi is not None:
        return _ESCAPE.sub(_escape, ansi)
    if double is not None:
        return re.sub(rb'\\([$`"\\])', rb"\1", double).replace(b"\\\n", b"")
    if single is not None:
        return single
    return escaped if escaped is not None else plain


def _escape(found: re.Match[bytes]) -> bytes:
    said = found[1]
    if said[:1] == b"x" and len(said) > 1:
        return bytes([int(said[1:], 16)])
    if said[:1] == b"u" and len(said) > 1:
        return chr(int(said[1:], 16)).encode("utf-8", "surrogatepass")
    if said[:1] in b"01234567":
        return bytes([int(said, 8) & 255])
    return _LETTERS.get(said, said)
