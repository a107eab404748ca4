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
# What programs say when they wanted to ask and could not.
_COULD_NOT = re.compile(
    r"a terminal is required to (?:read|authenticate)|no tty present|must be run from a terminal"
    r"|EOFError: EOF when reading a line|EOF when reading a line"
    r"|(?:stdin|standard input|the input device) is not a (?:tty|terminal)"
    r"|terminal prompts disabled|cannot open '?/dev/tty|/dev/tty'?: No such device"
    r"|Host key verification failed|Inappropriate ioctl for device"
    r"|requires? an interactive terminal|could not read (?:Username|Password)"
    r"|inputs? (?:is|are) required|su: must be run|setRawMode|non-interactive",
    re.IGNORECASE,
)
# Any other question of a program: one leaves a space for the answer, and no line ends that way.
_OPEN = re.compile(r"(?:\w[?:]|\w[^\n]*[)\]>]|[?#>:]) $")
# Commands that do nothing but print such a line.
_SAYS_SO = re.compile(r"\s*(?:echo|printf)\b[^;|&\n]*")
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


def wanted_input(
    command: str, output: str, *, fed: bool = False, stopped: bool = False
) -> str | None:
    """The line in which a command that has ended asked for what nobody could give it.

    `fed` says that it was given something to read, `stopped` that it did not end by itself.
    """
    for line in reversed(output[-4000:].splitlines()):
        if _COULD_NOT.search(line):
            return line.strip()[-200:]
    if _stands_open(output, stopped) and not _SAYS_SO.fullmatch(command):
        return last_line(output)
    if fed:
        return None
    if not output.strip() and _TALKERS.fullmatch(command):
        return f"{command.strip()} reads standard input, which is closed"
    from hermes.environments.unfed import unfed_read

    return unfed_read(command)


def _stands_open(output: str, stopped: bool) -> bool:
    """Whether the last line is not ended, and is or looks like a question."""
    if not output or output.endswith("\n"):
        return False
    line = _line(output[-400:])
    # Whoever was stopped may have been in the middle of any line.
    return bool(_ASKS.search(line)) or (not stopped and bool(_OPEN.search(line)))


def _line(tail: str) -> str:
    return tail.rsplit("\n", 1)[-1]
