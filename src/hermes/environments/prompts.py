"""Whether the end of some output is a question that waits for an answer."""

from __future__ import annotations

import re

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
    from hermes.environments.unfed import unfed_read

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
