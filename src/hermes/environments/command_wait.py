"""Wait for a command, and detect that it waits for input."""

from __future__ import annotations

import os
import re
import shlex
import time
from typing import TYPE_CHECKING, NamedTuple

from hermes.environments.command import OUT, Collector, CommandResult
from hermes.text.encoding import live_decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tree_sitter import Node

    from hermes.environments.background import Background
    from hermes.environments.command import CommandRequest, EndReason
    from hermes.environments.host.process import Poller, Process


# System calls that read from the descriptor in their first argument.
_READS = frozenset({"0", "45", "63", "207"})  # read, recvfrom on x86-64; read, recvfrom on arm64


def blocked_on_input(pids: list[int], prefixes: tuple[str, ...]) -> bool | None:
    """Whether a process is blocked on a read of a file with one of these path prefixes.

    None where `/proc` does not show it.
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
        if target.startswith(prefixes):
            return True
    return False if known else None


def echo_is_off(terminal: int) -> bool:
    """Whether a terminal has its echo off in line mode, as for a password."""
    import termios

    modes: int = termios.tcgetattr(terminal)[3]
    # Editors and shells turn the echo off too, but not in line mode.
    return bool(modes & termios.ICANON) and not modes & termios.ECHO


def all_sleep(pids: list[int]) -> bool:
    """Whether all processes sleep; False without `/proc`."""
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
# Messages of programs that could not ask.
_COULD_NOT = (
    r"a terminal is required to (?:read|authenticate)|no tty present|must be run from a terminal"
    r"|EOF when reading a line|terminal prompts disabled|could not read (?:Username|Password)"
    r"|cannot open '?/dev/tty|/dev/tty'?: No such device"
)
# Messages that may explain a failure, and mean nothing where nothing failed.
_MAY_BE_WHY = (
    r"(?<!allocated because )(?:stdin|standard input|the input device) is not a (?:tty|terminal)"
    r"|Host key verification failed|Inappropriate ioctl for device|su: must be run|setRawMode"
    r"|requires? an interactive terminal|inputs? (?:is|are) required|non-interactive"
)
_ASKED_IN_VAIN = re.compile(_COULD_NOT, re.IGNORECASE)
_ASKED_OR_FAILED = re.compile(f"{_COULD_NOT}|{_MAY_BE_WHY}", re.IGNORECASE)
# A prompt on one line with the traceback of the program that gave up.
_GAVE_UP = re.compile(r"^(\S[^\n]{0,199}?)[ ]?Traceback \(most recent call last\):$", re.MULTILINE)
# Any other prompt: it ends with a space for the answer, as no other line does.
_OPEN = re.compile(r"(?:\w[?:]|\w[^\n]*[)\]>]|[?#>:]) $")
# Commands that only print such a line, and those that show the text of others.
_SAYS_SO = re.compile(r"\s*(?:echo|printf)\b[^;|&\n]*")
_SHOWS = re.compile(
    r"\s*(?:echo|printf|cat|head|tail|e?grep|rg|sed|awk|less|diff"
    r"|git (?:log|show|diff|grep|blame))\b"
)
# An editor that goes on without a terminal, and will wait for keys for ever.
_WITHOUT_SCREEN = re.compile(r"Warning: (?:In|Out)put is not (?:from|to) a terminal")
# Programs that read stdin if they have no arguments.
_TALKERS = re.compile(
    r"\s*(?:\S*/)?(?:python[\d.]*|node|irb|bash|sh|zsh|psql|mysql|sqlite3|ruby|perl|lua|php|bc|ghci"
    r"|R|cat|passwd|su)\s*;?\s*"
)


def last_line(text: str) -> str:
    """The last line that is not blank, at most 200 characters of it."""
    for line in reversed(text[-4000:].splitlines()):
        if line.strip():
            return " ".join(line.split())[-200:]
    return ""


def looks_like_prompt(text: str) -> bool:
    """Whether a text ends in a prompt, without a line end."""
    tail = text[-400:]
    if _WITHOUT_SCREEN.search(text):
        return True
    return bool(tail.strip()) and not tail.endswith("\n") and bool(_ASKS.search(_line(tail)))


def asks_for_secret(text: str) -> bool:
    """Whether a text ends in a prompt for a password or the like."""
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
    """The input that an ended command asked for and did not get.

    Args:
        command: Its text.
        output: Both streams.
        stdout: Standard output alone.
        failed: Its exit code is not 0.
        fed: It had a stdin.
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
    """The line with the message of a program that could not ask."""
    lines = output[-4000:].splitlines()
    if not failed:
        # The last program of a pipeline may succeed where the first one failed.
        lines = [] if _SHOWS.match(command) else lines[-3:]
    pattern = _ASKED_OR_FAILED if failed else _ASKED_IN_VAIN
    return next((line.strip()[-200:] for line in reversed(lines) if pattern.search(line)), "")


def _stands_open(output: str, stopped: bool) -> bool:
    """Whether the last line has no end, and looks like a prompt."""
    if not output or output.endswith("\n"):
        return False
    line = _line(output[-400:])
    # A stopped command may have been in the middle of any line.
    return bool(_ASKS.search(line)) or (not stopped and bool(_OPEN.search(line)))


def _line(tail: str) -> str:
    return tail.rsplit("\n", 1)[-1]


_WORTH_IT = re.compile(r"\b(?:read|select|mapfile|readarray)\b")
_READERS = frozenset({"read", "mapfile", "readarray"})
_LONGEST = 20_000
# The right side of a list after one of these may not run.
_TESTS = frozenset({"test_command", "negated_command"})
_FEEDS = frozenset({"herestring_redirect", "heredoc_redirect"})
# The options of `read` that take a value.
_VALUED = "adinNptu"


def unfed_read(command: str) -> str | None:
    """The prompt, or else the text, of the first `read` that gets an empty stdin; None without one.

    At the end of its stdin a `read` returns at once, and `read -p` prints no prompt. So the command
    itself is parsed, and only statements that are sure to run count: not those below a condition,
    a function or a `case`.
    """
    if len(command) > _LONGEST or not _WORTH_IT.search(command):
        return None
    from hermes.safety.shell.analysis import parse
    from hermes.safety.shell.lexing import as_ascii

    root = parse(as_ascii(command))
    if root.has_error:
        return None
    for node in _reads(root):
        if node.type == "for_statement":
            return "select, which asks for a number"
        return _asked(node, command)
    return None


def _reads(node: Node) -> Iterator[Node]:
    """The statements below a node that read the same stdin, in the order of execution."""
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
        # The condition alone: everything before `then`.
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
    """The prompt of a `read`; None if it reads another descriptor, or only checks for input."""
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


# After so long without output, look for a prompt.
SILENCE_SECONDS = 1.5
# The same for a prompt where no process is seen to be blocked on a read.
DOUBT_SECONDS = 3.5
LOOK_SECONDS = 0.5
# After so long a silence a prompt is unlikely.
LONG_SILENCE, LONG_LOOK_SECONDS = 60.0, 5.0
# Processes left running may end, or print something, within this time.
SETTLE_SECONDS = 0.1
# Limit for the end of a stopped command.
STOP_SECONDS = 4.0
SHOW_SECONDS = 0.1
_WHOLE_LOG = 1 << 20
_SHOWN_CHARS = 8000


class WaitOutcome(NamedTuple):
    """Why waiting ended; `alive` when processes of the command still run."""

    reason: EndReason
    alive: bool = False
    prompt: str = ""
    notes: tuple[str, ...] = ()


class LiveOutput:
    """Forwards output to a callback while it is printed, a few times a second at most."""

    def __init__(
        self, on_output: Callable[[str], None], collect: Callable[[int, memoryview], None]
    ) -> None:
        self._on_output = on_output
        self._collect = collect
        self._decoders = {1: live_decoder(), 2: live_decoder()}
        self._pending = ""
        self._next_show = 0.0

    def feed(self, stream: int, data: memoryview) -> None:
        """Collect a piece, and queue its end for the callback."""
        self._collect(stream, data)
        end = bytes(data[-4000:]) if len(data) > 4000 else bytes(data)
        self._pending = (self._pending + self._decoders[stream].decode(end))[-_SHOWN_CHARS:]

    def flush(self, *, last: bool = False) -> None:
        """Call back with the queued text, if it is time to."""
        now = time.monotonic()
        if self._pending and (last or now >= self._next_show):
            self._next_show = now + SHOW_SECONDS
            text, self._pending = self._pending, ""
            self._on_output(text)


def poll_seconds(silence: float, deadline: float | None) -> float:
    """How long to wait for output before the next look for a prompt."""
    if silence > LONG_SILENCE:
        seconds = LONG_LOOK_SECONDS
    elif silence >= SILENCE_SECONDS:
        seconds = LOOK_SECONDS
    else:
        seconds = SILENCE_SECONDS - silence
    return seconds if deadline is None else min(seconds, deadline - time.monotonic())


def follow(
    process: Process, collector: Collector, request: CommandRequest, *, task: str, poller: Poller
) -> WaitOutcome:
    """Read the output of a command on a host until it is over."""
    forget = None
    if request.cancellation is not None:
        forget = request.cancellation.on_cancel(lambda: process.guardian.stop(process.id))
    try:
        return _Follower(process, collector, request, task, poller).run()
    finally:
        if forget is not None:
            forget()


class _Follower:
    def __init__(
        self,
        process: Process,
        collector: Collector,
        request: CommandRequest,
        task: str,
        poller: Poller,
    ) -> None:
        self._task = task
        self._process = process
        self._collector = collector
        self._request = request
        self._poller = poller
        self._live: LiveOutput | None = None
        if request.on_output is not None:
            self._live = LiveOutput(request.on_output, process.on_output)
            process.on_output = self._live.feed

    def run(self) -> WaitOutcome:
        process, request = self._process, self._request
        silent_since = time.monotonic()
        deadline = None if request.timeout is None else silent_since + request.timeout
        while process.exit_code is None and not process.gone:
            now = time.monotonic()
            if request.cancelled:
                return self._stopped("cancelled")
            if deadline is not None and now >= deadline:
                process.guardian.stop(process.id)
                return self._stopped("timeout")
            silence = now - silent_since
            if silence >= SILENCE_SECONDS:
                prompt = self._prompt(silence)
                if prompt is not None:
                    return self._needs_input(prompt)
            before = self._collector.total
            self._read(poll_seconds(silence, deadline))
            if self._collector.total != before:
                silent_since = time.monotonic()
        if request.cancelled:
            return self._stopped("cancelled")
        return self._ended()

    def _read(self, seconds: float) -> None:
        if not self._process.read_once(self._poller, seconds):
            # Not polled, since it is short as a rule; but a full pipe would block the shell.
            self._process.read_state()
        if self._live is not None:
            self._live.flush()

    def _finish(self) -> None:
        self._process.drain()
        if self._live is not None:
            self._live.flush(last=True)

    def _ended(self) -> WaitOutcome:
        process = self._process
        process.drain()
        deadline = time.monotonic() + SETTLE_SECONDS
        while process.left and not process.gone and (left := deadline - time.monotonic()) > 0:
            self._read(left)
        self._finish()
        if process.lost and process.exit_code is None:
            return WaitOutcome("lost", notes=("the guardian process was killed",))
        return WaitOutcome("exited", alive=bool(process.left) and not process.gone)

    def _stopped(self, reason: EndReason, prompt: str = "") -> WaitOutcome:
        """Read until all processes are gone."""
        process = self._process
        deadline = time.monotonic() + STOP_SECONDS
        while not process.gone and (left := deadline - time.monotonic()) > 0:
            self._read(left)
        self._finish()
        if process.gone:
            return WaitOutcome(reason, prompt=prompt)
        notes = ("some of its processes could not be ended yet",)
        return WaitOutcome(reason, alive=True, prompt=prompt, notes=notes)

    def _prompt(self, silence: float) -> str | None:
        """The prompt at which the command waits for input; None if it waits for something else."""
        recent = self._collector.recent(2000)
        if self._request.pty:
            pids = self._pids()
            if blocked_on_input(pids, ("/dev/pts/", "/dev/tty")):
                return last_line(recent)
            unfinished = bool(recent.strip()) and not recent.endswith("\n")
            # Editors and shells with line editing wait in other system calls.
            likely = silence >= DOUBT_SECONDS or looks_like_prompt(recent)
            return last_line(recent) if unfinished and likely and all_sleep(pids) else None
        if silence >= DOUBT_SECONDS and looks_like_prompt(recent) and all_sleep(self._pids()):
            return last_line(recent)
        return None

    def _pids(self) -> list[int]:
        return self._process.guardian.pids(self._task).get(self._process.id, [])

    def _needs_input(self, prompt: str) -> WaitOutcome:
        if self._request.pty:
            self._process.drain()
            return WaitOutcome("needs input", alive=True, prompt=prompt)
        # Without a terminal it can't be answered.
        self._process.guardian.stop(self._process.id)
        return self._stopped("needs input", prompt)


def wait_on_terminal(background: Background, request: CommandRequest) -> CommandResult:
    """Wait for a command on a remote terminal; one that waits for input stays in the background."""
    start = time.monotonic()
    deadline = None if request.timeout is None else start + request.timeout
    reason: EndReason = "exited"
    prompt = ""
    shown = 0
    while background.state == "running":
        silence = _silence(background)
        seconds = LOOK_SECONDS if silence < LONG_SILENCE else LONG_LOOK_SECONDS
        if deadline is not None:
            seconds = min(seconds, deadline - time.monotonic())
        if background.wait(max(0.01, seconds), cancellation=request.cancellation):
            break
        if request.on_output is not None:
            shown = _show(background, shown, request.on_output)
        if request.cancelled:
            reason = "cancelled"
        elif seconds <= 0.01:
            reason = "timeout"
        elif _waits_for_input(background):
            reason = "needs input"
            prompt = last_line(background.recent(400))
        if reason != "exited":
            break
    if reason in ("cancelled", "timeout"):
        background.kill("its time limit" if reason == "timeout" else "a cancel")
        background.wait(4.0)
    if request.on_output is not None:
        _show(background, shown, request.on_output)
    collector = Collector()
    text, _, _ = background.log(0, limit=_WHOLE_LOG)
    collector.feed(OUT, text.encode("utf-8", "surrogateescape"))
    return CommandResult(
        background.exit_code,
        collector.output(),
        cwd=background.cwd,
        duration=time.monotonic() - start,
        notes=[],
        ended=reason,
        background=background if reason == "needs input" else None,
        prompt=prompt,
    )


def _show(background: Background, seen: int, on_output: Callable[[str], None]) -> int:
    """Call back with the output since `seen`, or its end; the new total."""
    _, _, total = background.log(limit=1)
    if total > seen:
        text, _, total = background.log(max(seen, total - _SHOWN_CHARS), limit=_SHOWN_CHARS)
        on_output(text)
    return total


def _waits_for_input(background: Background) -> bool:
    silence = _silence(background)
    if silence < SILENCE_SECONDS:
        return False
    if background.waits_for_input():
        return True
    recent = background.recent(400)
    if not recent.strip() or recent.endswith("\n"):
        return False
    return silence >= DOUBT_SECONDS or looks_like_prompt(recent)


def _silence(background: Background) -> float:
    return time.time() - background.last_output_at
