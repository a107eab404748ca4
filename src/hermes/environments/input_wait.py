"""Detection of commands that wait for input: prompts in the output, blocked reads, `read` without
stdin.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


# Calls in which a program waits for input on a file that it names first.
_READS = frozenset({"0", "45", "63", "207"})  # read, recvfrom on x86-64; read, recvfrom on arm64


def blocked_on_input(pids: list[int], places: tuple[str, ...]) -> bool | None:
    """Whether one of the processes is blocked reading a file whose name begins with a place.

    None where the system does not say.
    """
    known = False
    for pid in pids:
        try:
            with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
                number, *arguments = file.read().split()
            if number == "running":
                known = True
                continue
            if number not in _READS or not arguments:
                known = known or bool(arguments)
                continue
            known = True
            target = os.readlink(f"/proc/{pid}/fd/{int(arguments[0], 16)}")
        except (OSError, ValueError):
            continue
        if target.startswith(places):
            return True
    return False if known else None


def echo_is_off(terminal: int) -> bool:
    """Whether a terminal shows nothing of the line that is typed, as for a password."""
    import termios

    modes: int = termios.tcgetattr(terminal)[3]
    # Editors and shells show nothing either, but don't take whole lines.
    return bool(modes & termios.ICANON) and not modes & termios.ECHO


def all_sleep(pids: list[int]) -> bool:
    """Whether all of the processes sleep; False where the system does not say."""
    seen = False
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split(None, 1)[0]
        except OSError:
            continue
        if state not in (b"S", b"Z", b"T"):
            return False
        seen = True
    return seen


_ASKS = re.compile(
    r"""
      (?: \[\s*y(?:es)?\s*/\s*n(?:o)?\s*(?:/[^\]]*)?\] | \(\s*y(?:es)?\s*/\s*n(?:o)?\b[^)]*\) )
          \s* [?:>]? \s* $                                    # [y/N], (yes/no/[fingerprint])?
    | (?: pass(?:word|phrase|code)? | \bpin\b | token | otp | secret | username | login )
          [^\n]{0,80} : \s* $                                 # Password for root:
    | press \s+ (?: any \s+ key | enter | return | space ) [^\n]* $
    | (?: continue | proceed | overwrite | replace | delete | remove | sure | accept | agree
        | confirm | install | abort | retry | quit | exit ) \b [^\n]{0,80} \? \s* $
    | ^ \s* (?: \(END\) | :\s* | --\s?More\s?-- [^\n]* | lines \s+ \d+-\d+ [^\n]* ) $  # a pager
    | (?: enter | type | choose | select | which | your ) \b [^\n]{0,80} [:?>] \s* $
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SECRET = re.compile(
    r"(?:pass(?:word|phrase|code)?|\bpin\b|token|otp|secret)[^\n]{0,80}[:?]\s*$", re.IGNORECASE
)
# What programs say when they wanted to ask and could not.
_COULD_NOT = (
    r"a terminal is required to (?:read|authenticate)|no tty present|must be run from a terminal"
    r"|EOF when reading a line|terminal prompts disabled|could not read (?:Username|Password)"
    r"|cannot open '?/dev/tty|/dev/tty'?: No such device"
)
# What may be the reason of a failure, and is a mere remark where nothing failed.
_MAY_BE_WHY = (
    r"(?<!allocated because )(?:stdin|standard input|the input device) is not a (?:tty|terminal)"
    r"|Host key verification failed|Inappropriate ioctl for device|su: must be run|setRawMode"
    r"|requires? an interactive terminal|inputs? (?:is|are) required|non-interactive"
)
_SAID = re.compile(_COULD_NOT, re.IGNORECASE)
_SAID_AND_FAILED = re.compile(f"{_COULD_NOT}|{_MAY_BE_WHY}", re.IGNORECASE)
# What was asked before a program gave up, on one line with its complaint.
_GAVE_UP = re.compile(r"^(\S[^\n]{0,199}?)[ ]?Traceback \(most recent call last\):$", re.MULTILINE)
# Any other question of a program: one leaves a space for the answer, and no line ends that way.
_OPEN = re.compile(r"(?:\w[?:]|\w[^\n]*[)\]>]|[?#>:]) $")
# Commands that do nothing but print such a line, and those that show what others have written.
_SAYS_SO = re.compile(r"\s*(?:echo|printf)\b[^;|&\n]*")
_SHOWS = re.compile(
    r"\s*(?:echo|printf|cat|head|tail|e?grep|rg|sed|awk|less|diff"
    r"|git (?:log|show|diff|grep|blame))\b"
)
# An editor that goes on without a terminal, and will wait for keys for ever.
_WITHOUT_SCREEN = re.compile(r"Warning: (?:In|Out)put is not (?:from|to) a terminal")
# Given no file and nothing to read, these wait for somebody to type.
_TALKERS = re.compile(
    r"\s*(?:\S*/)?(?:python[\d.]*|node|irb|bash|sh|zsh|psql|mysql|sqlite3|ruby|perl|lua|php|bc|ghci"
    r"|R|cat|passwd|su)\s*;?\s*"
)


def last_line(text: str) -> str:
    """The last line that says something, at most 200 characters of it."""
    for line in reversed(text[-4000:].splitlines()):
        if line.strip():
            return " ".join(line.split())[-200:]
    return ""


def looks_like_prompt(text: str) -> bool:
    """Whether a text ends in a question, with the cursor still behind it."""
    tail = text[-400:]
    if _WITHOUT_SCREEN.search(text):
        return True
    return bool(tail.strip()) and not tail.endswith("\n") and bool(_ASKS.search(_line(tail)))


def asks_for_secret(text: str) -> bool:
    """Whether a text ends in a question for a password or the like."""
    return not text.endswith("\n") and bool(_SECRET.search(_line(text[-400:])))


def wanted_input(
    command: str,
    output: str,
    *,
    stdout: str = "",
    failed: bool = True,
    fed: bool = False,
    stopped: bool = False,
) -> str | None:
    """What a command that has ended asked for and nobody could give it.

    Args:
        command: The text that ran.
        output: What it printed on both streams.
        stdout: What of that was on standard output.
        failed: Its exit code says that it did not do what it should.
        fed: It was given something to read.
        stopped: It did not end by itself.
    """
    complaint = _complaint(command, output, failed)
    if complaint:
        if _stands_open(stdout, stopped):
            return last_line(stdout)
        asked = _GAVE_UP.search(output[-4000:])
        return asked[1] if asked else complaint
    if _stands_open(output, stopped) and not _SAYS_SO.fullmatch(command):
        return last_line(output)
    if fed:
        return None
    if not output.strip() and _TALKERS.fullmatch(command):
        return f"{command.strip()} reads standard input, which is closed"

    return unfed_read(command)


def _complaint(command: str, output: str, failed: bool) -> str:
    """The line in which a program says that it could not ask."""
    lines = output[-4000:].splitlines()
    if not failed:
        # The end of a pipeline may be well where its beginning was not; its last words are left.
        lines = [] if _SHOWS.match(command) else lines[-3:]
    said = _SAID_AND_FAILED if failed else _SAID
    return next((line.strip()[-200:] for line in reversed(lines) if said.search(line)), "")


def _stands_open(output: str, stopped: bool) -> bool:
    """Whether the last line is not ended, and is or looks like a question."""
    if not output or output.endswith("\n"):
        return False
    line = _line(output[-400:])
    # Whoever was stopped may have been in the middle of any line.
    return bool(_ASKS.search(line)) or (not stopped and bool(_OPEN.search(line)))


def _line(tail: str) -> str:
    return tail.rsplit("\n", 1)[-1]


_WORTH_IT = re.compile(r"\b(?:read|select|mapfile|readarray)\b")
_READERS = frozenset({"read", "mapfile", "readarray"})
_LONGEST = 20_000
# What follows these may well not run.
_TESTS = frozenset({"test_command", "negated_command"})
_FEEDS = frozenset({"herestring_redirect", "heredoc_redirect"})
# The options of `read` that take a value.
_VALUED = "adinNptu"


def unfed_read(command: str) -> str | None:
    """The question of the first such `read`, or its text where it has none; None without one."""
    if len(command) > _LONGEST or not _WORTH_IT.search(command):
        return None
    from hermes.safety.shell.lexing import as_ascii
    from hermes.safety.shell.parse import parse

    root = parse(as_ascii(command))
    if root.has_error:
        return None
    for node in _reads(root):
        if node.type == "for_statement":
            return "select, which asks for a number"
        return _asked(node, command)
    return None


def _reads(node: Node) -> Iterator[Node]:
    """The statements below a node that would read what it reads, in the order they run in."""
    kind = node.type
    if kind in ("function_definition", "case_statement", "process_substitution"):
        return
    if kind == "redirected_statement" and any(map(_feeds, node.children)):
        return
    if kind == "command":
        if _name(node) in _READERS and not any(map(_feeds, node.children)):
            yield node
        return
    if kind == "for_statement" and node.children[0].type == "select":
        yield node
    if kind == "if_statement":
        # The condition alone: what is before `then`.
        for child in node.children:
            if child.type == "then":
                return
            yield from _reads(child)
        return
    first = True
    for child in node.named_children:
        if kind == "pipeline" and not first:
            return
        if kind == "list" and not first and node.named_children[0].type in _TESTS:
            return
        yield from _reads(child)
        first = False


def _feeds(node: Node) -> bool:
    if node.type in _FEEDS:
        return True
    if node.type != "file_redirect":
        return False
    first = node.children[0]
    # Another file than standard input (`3<f`) feeds nothing to it.
    if first.type == "file_descriptor" and first.text != b"0":
        return False
    return any(child.type in ("<", "<&", "<>") for child in node.children)


def _name(node: Node) -> str:
    for child in node.children:
        if child.type == "command_name":
            return (child.text or b"").decode("latin-1")
    return ""


def _asked(node: Node, command: str) -> str | None:
    """What a `read` asks; None when it reads another file, or only looks whether there is input."""
    text = command[node.start_byte : node.end_byte]
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    while words and words.pop(0) not in _READERS:
        # Variables for it alone stand before.
        continue
    prompt = ""
    while words and words[0].startswith("-") and words[0] != "--":
        option = words.pop(0)
        at = next((i for i, letter in enumerate(option) if i and letter in _VALUED), 0)
        if not at:
            continue
        value = option[at + 1 :] or (words.pop(0) if words else "")
        if option[at] == "u" and value != "0":
            return None
        if option[at] == "t" and not value.strip("0."):
            return None
        if option[at] == "p":
            prompt = value
    return prompt.strip() or f"`{text[:100]}` found standard input closed"
