"""Exit codes: their meaning by signal and by program, where the number alone misleads."""

from __future__ import annotations

import re
import signal

_SIGNALS = {
    9: "killed (by SIGKILL: out of memory, or stopped from outside)",
    11: "crashed (segmentation fault)",
    6: "aborted (a failed assertion, or memory damaged)",
    7: "crashed (bus error)",
    8: "crashed (arithmetic error)",
    4: "crashed (illegal instruction)",
    2: "interrupted",
    13: "its reader went away (broken pipe)",
    15: "ended on request (SIGTERM)",
    24: "ran out of its CPU time limit",
    25: "wrote past the file size limit",
}
_GENERAL = {
    124: "timed out",
    126: "found, but not executable",
    127: "command not found",
}
# Programs whose non-zero answers are answers and not failures.
_ANSWERS: dict[str, dict[int, str]] = {
    "grep": {1: "no match"},
    "diff": {1: "the inputs differ"},
    "cmp": {1: "the files differ"},
    "test": {1: "the condition is false"},
    "[": {1: "the condition is false"},
    "[[": {1: "the condition is false"},
    "expr": {1: "the result is empty or 0"},
    "pgrep": {1: "no process matches"},
    "pkill": {1: "no process matches"},
    "which": {1: "not found"},
    "systemctl": {3: "the unit is not active"},
    "pytest": {1: "some tests failed", 5: "no tests were found"},
    "make": {2: "a rule failed"},
    "curl": {
        6: "the host name was not found",
        7: "no connection",
        22: "the server answered with an error",
        28: "timed out",
        60: "the certificate is not trusted",
    },
    "rsync": {23: "some files were not transferred", 24: "some files vanished meanwhile"},
    "ssh": {255: "the connection failed"},
    "shellcheck": {1: "it has remarks"},
    "read": {1: "nothing to read: standard input is at its end"},
}
_SAME = {
    "egrep": "grep", "fgrep": "grep", "zgrep": "grep", "rg": "grep", "ag": "grep", "ack": "grep",
    "git grep": "grep", "colordiff": "diff", "zdiff": "diff", "git diff": "diff",
}  # fmt: skip
_LAST = re.compile(r"(?:\|\||&&|[;|&\n])")
_WRAPPERS = frozenset({"sudo", "command", "time", "nice", "nohup", "env", "exec", "builtin", "!"})


def exit_meaning(code: int, command: str = "") -> str | None:
    """What an exit code says of a command; None where it says no more than its number."""
    if code == 0:
        return None
    if code < 0 or 128 < code < 128 + 65:
        number = -code if code < 0 else code - 128
        if number in _SIGNALS:
            return _SIGNALS[number]
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            # A program's own number.
            return None
    program = _program(command)
    return _ANSWERS.get(_SAME.get(program, program), {}).get(code) or _GENERAL.get(code)


def _program(command: str) -> str:
    """The program whose exit code a command line most likely ends with."""
    words = _LAST.split(command.strip().rstrip(";&| \n"))[-1].split()
    while words and (words[0] in _WRAPPERS or re.fullmatch(r"[A-Za-z_]\w*=.*", words[0])):
        words = words[1:]
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name == "git" and len(words) > 1:
        return f"git {words[1]}"
    if re.fullmatch(r"python[\d.]*", name) and words[1:3] == ["-m", "pytest"]:
        return "pytest"
    return name
