"""Shell state that carries over between commands: directory, exported variables, functions.

Each command runs in a fresh shell. `wrapped` gives the script around a command: it restores the
functions and aliases, runs the command, and writes the state to a descriptor at the end.
`read_state` parses that. Nothing is run here.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.core.paths import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

# Descriptor numbers for the state, and for the text of a long command.
STATE_FILE = 9
TEXT_FILE = 8
# Linux limits an argument to 128 KB.
LONGEST_ARGUMENT = 100_000

# Made for each command, so they do not carry over.
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


# Text that could change the state: certain builtins, assignments, definitions.
_MAY_CHANGE = re.compile(
    r"[=(){}]|\b(?:cd|pushd|popd|export|declare|typeset|readonly|local|unset|source|eval|alias|unalias"
    r"|set|shopt|read|mapfile|readarray|getopts|exec|trap|builtin|command|function|let|enable|printf"
    r"|for|select|coproc|wait|hash)\b|(?:^|[;&|\n])\s*\.\s|\\"
)


# Text that is meant to change the state for the next command.
_MEANT = re.compile(
    r"(?:^|[;&|({\n]|\bthen|\bdo)\s*(?:cd|pushd|popd|export|unset|source|alias|unalias|\.)\s",
    re.MULTILINE,
)


class ShellState:
    """State after a command: directory, exported variables, and definitions as shell text."""

    __slots__ = ("cwd", "definitions", "exports")

    def __init__(self, cwd: str, exports: dict[str, str], definitions: str) -> None:
        self.cwd = cwd
        self.exports = exports
        self.definitions = definitions


def wrapped(*, bash: bool = True, long: bool = False, keep: bool = True) -> str:
    """The script to run as `SHELL -c SCRIPT NAME COMMAND DEFINITIONS`.

    With `long` the command is read from descriptor 8; for bash it ends with a zero byte. With
    `keep` the state is written to descriptor 9 at the end.
    """
    read = "__hermes=$1"
    if long:
        # Other shells have no `-d`, or read byte by byte; trailing line ends don't matter.
        text = f"IFS= read -r -d '' __hermes <&{TEXT_FILE}"
        read = f"{text if bash else f'__hermes=$(cat <&{TEXT_FILE})'}; exec {TEXT_FILE}<&-"
    # All on one line, so that line numbers in errors are those of the command.
    script = (
        f"{'shopt -s expand_aliases' if bash else ':'}; "
        f'{read}; __hermes_d=$2; shift "$#"; '
        '[ -z "$__hermes_d" ] || eval "$__hermes_d"; unset __hermes_d; '
    )
    if not keep:
        return f'{script}eval "$__hermes"\n'
    more = "declare -f; printf '\\0'; alias -p; printf '\\0'; " if bash else ""
    dump = f"printf '%s\\0' \"$PWD\"; export -p; printf '\\0'; {more}"
    dump = f"{{ {{ {dump}}} >&{STATE_FILE}; }} 2>/dev/null"
    # Closed while the command runs: processes that it leaves must not hold it open.
    hidden, closing = f" {STATE_FILE}>&-", f"exec {STATE_FILE}>&-"
    quoted = dump.replace("'", "'\\''")
    return (
        f"{script}trap '{{ set +x; }} 2>/dev/null; {quoted}' EXIT; "
        # On the same line, which is parsed before the command can change the parser.
        f'eval "$__hermes"{hidden}; '
        f"{{ __hermes=$?; set +xveu; }} 2>/dev/null; {dump}; {closing}; "
        'exit "$__hermes"\n'
    )


def is_stateless(command: str) -> bool:
    """Whether a command can't change the state, so that it needs no wrapper."""
    return command[:1].isalpha() and not _MAY_CHANGE.search(command)


def state_was_lost(command: str, state: bytes) -> bool:
    """Whether a command meant to change the state, and its shell wrote none."""
    return not state and _MEANT.search(command) is not None


def read_state(data: bytes) -> ShellState | None:
    """Parse the state; None if the shell wrote none (it was killed, or replaced by `exec`)."""
    parts = data.split(b"\0")
    if len(parts) < 3 or not parts[0].startswith(b"/"):
        return None
    functions = parts[2] if len(parts) > 4 else b""
    aliases = parts[3] if len(parts) > 4 else b""
    definitions = (aliases + functions).decode("utf-8", "surrogateescape")
    return ShellState(os.fsdecode(parts[0]), read_exports(parts[1]), definitions)


def read_exports(data: bytes) -> dict[str, str]:
    """Exported variables, from the output of `export -p`."""
    found = {}
    for name, value in _DECLARED.findall(data):
        text = os.fsdecode(name)
        # A variable without a value is not in the environment.
        if value and text not in _VOLATILE and not text.startswith(_PRIVATE):
            found[text] = os.fsdecode(_unquoted(value))
    return found


def changes(given: Mapping[str, str], left: Mapping[str, str]) -> dict[str, str | None]:
    """The variables that a command changed; None for removed ones."""
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
    text = found[1]
    if text[:1] == b"x" and len(text) > 1:
        return bytes([int(text[1:], 16)])
    if text[:1] == b"u" and len(text) > 1:
        return chr(int(text[1:], 16)).encode("utf-8", "surrogatepass")
    if text[:1] in b"01234567":
        return bytes([int(text, 8) & 255])
    return _LETTERS.get(text, text)
