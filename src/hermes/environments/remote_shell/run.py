"""Run of one remote command: request text, worker shell, output until its end."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

import hermes.environments.shell_state as shell_state
from hermes.environments.command import is_name
from hermes.environments.command_wait import (
    DOUBT_SECONDS,
    LOOK_SECONDS,
    SILENCE_SECONDS,
    STOP_SECONDS,
    End,
    Show,
)
from hermes.environments.env_vars import MARK
from hermes.environments.host.process import ERR, OUT, Process
from hermes.environments.input_wait import last_line, looks_like_prompt
from hermes.environments.remote_shell.framing import BrokenChannelError, pour
from hermes.environments.remote_shell.scripts import limited, quoted, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.environments.command import Ended, Order
    from hermes.environments.command_output import Collector
    from hermes.environments.remote_shell.connection import Connection
    from hermes.environments.remote_shell.framing import Channel


# More than this is sent by itself and not within the text.
MOST_INLINE = 64 * 1024


class Request:
    """One order for one worker; its processes are found by the request's `number`.

    `worker` says whose files at the far end it uses: its own, until a worker takes it on.
    """

    def __init__(
        self,
        connection: Connection,
        order: Order,
        variables: Mapping[str, str | None],
        definitions: str = "",
    ) -> None:
        self._far = connection.known
        self._token = connection.token
        self._order = order
        self.number = self.worker = connection.number()
        self.variables = {
            **{name: value for name, value in variables.items() if is_name(name)},
            MARK: f"{connection.token}.{self.number}.",
            # Or bash would take itself for a login by ssh, and read its settings each time.
            "SHLVL": "1",
        }
        self._definitions = definitions
        # What is typed at a terminal comes from it, and not from a file.
        self.data = None if order.pty else order.stdin

    @property
    def inline(self) -> bool:
        """Whether what it reads can be sent within the text."""
        return self.data is None or (len(self.data) <= MOST_INLINE and b"\0" not in self.data)

    def place(self, letter: str) -> str:
        """A file of this worker's at the far end."""
        return f"{self._far.folder}/{letter}{self.worker}"

    def text(self, folder: str, *, keep: bool, strict: bool) -> str:
        """Run it in the worker; with `keep` the state it leaves is told.

        With `strict` it does not run where the folder is gone.
        """
        before, files = self._files()
        files += " 2>&3 3>&-"
        if keep:
            files += f" {shell_state.STATE_FILE}>{self.place('s')}"
        return (
            f"{before}if go {quoted(folder)} {'1' if strict else quoted('')}; then (\n"
            f"{settings(self.variables)}exec {self._far.setsid} {self._words(keep)}{files}\n"
            f"); end $? {'1' if keep else ''}\nelse end 255; fi\n"
        )

    def alone(self, folder: str, mark: str) -> str:
        """The text of a script that runs it by itself, reading our input where it has no other.

        It begins with a mark on each stream, behind what a login prints, and ends with one.
        """
        before, files = self._files(default="")
        begin = f"printf '\\036{mark}<'"
        before = f"{begin}\n{'' if self._order.pty else f'{begin} >&2'}\n{before}"
        before = f"{limited(self._token)}\n{before}"
        text = f"{before}cd {quoted(folder)} || exit 126\nexport PWD\n{settings(self.variables)}"
        words = f"{self._words(keep=False)}{files}{'' if self._order.pty else ' 2>&3 3>&-'}\n"
        if self._order.pty:
            # It has a session of its own already, and must keep it for the terminal's sake.
            # Who asks for a terminal from none of his own is given one in which no key works.
            keys = "{ stty 38400 sane; stty rows 40 cols 120; } 2>/dev/null"
            return f"{keys}\n{text}exec {words}"
        # What this shell itself has to say of the command ("Terminated") is not the command's.
        return (
            f"{text}exec 3>&2 2>/dev/null\n( exec {self._far.setsid} {words})\n"
            f"c=$?; printf '\\036{mark}<\\036{mark}>'; exit $c\n"
        )

    def _files(self, default: str = " </dev/null") -> tuple[str, str]:
        """What has to be done before, and where it reads from."""
        before, files = "", default
        if self.data is not None:
            files = f" <{self.place('i')}"
            if self.inline:
                text = quoted(self.data.decode("utf-8", "surrogateescape"))
                before = f"printf %s {text} >{self.place('i')}\n"
        if self._long:
            form = "'%s\\0'" if self._far.bash else "%s"
            before += f"printf {form} {quoted(self._order.command)} >{self.place('t')}\n"
            files += f" {shell_state.TEXT_FILE}<{self.place('t')}"
        return before, files

    @property
    def _long(self) -> bool:
        return len(self._order.command) > shell_state.LONGEST_ARGUMENT // 4

    def _words(self, keep: bool) -> str:
        far = self._far
        first = f"echo $$ {self.number} >{self.place('p')}; "
        if not keep and not self._long and not self._definitions:
            words = [far.shell, "-c", first + self._order.command]
        else:
            script = shell_state.wrapped(bash=far.bash, long=self._long, keep=keep)
            name = "bash" if far.bash else "sh"
            text = "" if self._long else self._order.command
            words = [far.shell, "-c", first + script, name, text, self._definitions]
        return " ".join(map(quoted, words))


# A dead connection is noticed by the program that holds it; this is for a host that stalls.
_PATIENCE = 5.0


class Run:
    """What the worker has told of a command."""

    def __init__(self) -> None:
        self.begun = False
        self.code: int | None = None
        self.pid = 0
        # Whether something of its process group is left; and whether there are processes that
        # have been started since it was, be they its own or not.
        self.left = False
        self.others = False
        self.state = b""
        self.no_folder = False
        self.moved_to = ""
        self._errors_ended = False

    @property
    def over(self) -> bool:
        """Whether it has ended, and all that it printed was read."""
        return self.code is not None and self._errors_ended

    def hear(self, message: bytes) -> None:
        """Take in one message."""
        kind, rest = message[:1], message[1:]
        if kind == b"B":
            self.begun = True
        elif kind == b"S":
            self.state = rest
        elif kind == b"F":
            self.no_folder = True
        elif kind == b"G":
            self.moved_to = rest.decode("utf-8", "surrogateescape")
        elif kind == b"E":
            code, pid, left = rest.split()
            self.code, self.pid = int(code), int(pid)
            self.left, self.others = left == b"2", left != b"0"
        elif kind == b"e":
            self._errors_ended = True


def follow(
    channel: Channel,
    run: Run,
    collector: Collector,
    order: Order,
    text: str,
    *,
    stop: Callable[[], None],
    idle: Callable[[], bool],
) -> End:
    """Send the text of a command, and read what it prints until it has ended.

    `stop` has everything of it ended. Raises `BrokenChannelError` when it did not even begin.
    """
    show = Show(order.on_output, collector.feed) if order.on_output is not None else None
    feed = collector.feed if show is None else show.feed
    channel.printed = lambda stream, data: feed(stream, memoryview(data))
    channel.told = run.hear
    channel.send(text)
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        # One that has ended by itself was not cancelled.
        cancelled = not run.over
        stop()

    forget = order.cancellation.on_cancel(cancel) if order.cancellation is not None else None
    try:
        end = _followed(channel, run, collector, order, show, stop, idle)
        if end.why == "lost" and not run.begun:
            raise BrokenChannelError
        return End("cancelled", notes=end.notes) if cancelled and end.why == "exited" else end
    finally:
        if forget is not None:
            forget()
        if show is not None:
            show.flush(last=True)


def heard(
    channel: Channel,
    run: Run,
    text: str,
    *,
    printed: Callable[[int, bytes], None],
    seconds: float,
) -> bool:
    """Have a script of ours carried out; whether it ended in time."""
    channel.printed = printed
    channel.told = run.hear
    channel.send(text)
    until = time.monotonic() + seconds
    while not run.over and (left := until - time.monotonic()) > 0:
        if channel.gone:
            raise BrokenChannelError
        channel.listen(left)
    return run.over


def _followed(
    channel: Channel,
    run: Run,
    collector: Collector,
    order: Order,
    show: Show | None,
    stop: Callable[[], None],
    idle: Callable[[], bool],
) -> End:
    now = silent_since = time.monotonic()
    deadline = None if order.timeout is None else now + order.timeout
    while not run.over and not channel.gone:
        now = time.monotonic()
        if order.cancelled:
            stop()
            return _stopped(channel, run, "cancelled")
        if deadline is not None and now >= deadline:
            stop()
            return _stopped(channel, run, "timeout")
        silence = now - silent_since
        if silence >= DOUBT_SECONDS:
            recent = collector.recent(400)
            if looks_like_prompt(recent) and idle():
                stop()
                return _stopped(channel, run, "needs input", last_line(recent))
        patience = SILENCE_SECONDS if silence < SILENCE_SECONDS else LOOK_SECONDS
        if silence > 60:
            patience = _PATIENCE
        if deadline is not None:
            patience = min(patience, deadline - now)
        before = collector.total
        channel.listen(patience)
        if show is not None:
            show.flush()
        if collector.total != before:
            silent_since = time.monotonic()
    if run.over:
        return End("exited", alive=run.left)
    channel.process.drain()
    return End("exited" if run.over else "lost", alive=run.left)


def _stopped(channel: Channel, run: Run, why: Ended, prompt: str = "") -> End:
    """Wait until everything is gone; what it printed meanwhile is read."""
    until = time.monotonic() + STOP_SECONDS
    while not run.over and not channel.gone and (left := until - time.monotonic()) > 0:
        channel.listen(left)
    if run.over or channel.gone:
        return End(why, prompt=prompt)
    return End(why, prompt=prompt, notes=("something of it could not be ended yet",))


# What a command left running may still end within this time.
_SETTLE_SECONDS = 0.1
_LOOK_SECONDS = 0.03
_SCRIPT_SECONDS = 120.0
# Likely to leave something running that is out of its process group.
_LEAVES = re.compile(r"(?<![&<>])&(?![&>])|\b(?:setsid|nohup|daemon)")


class Left(NamedTuple):
    """What a command left running: by process id, and the program here that listens to it."""

    process: Process
    pids: list[int]


class Done(NamedTuple):
    """How a command ended, what its worker told of it, and what is left of it."""

    end: End
    run: Run
    seconds: float
    left: Left | None


def run(
    connection: Connection,
    request: Request,
    order: Order,
    collector: Collector,
    *,
    folder: str,
    keep: bool,
) -> Done:
    """Have a command run there; with `keep` the state it leaves is told.

    Raises `BrokenChannelError` when it did not even begin.
    """
    channel = connection.worker()
    request.worker = channel.number
    told = Run()
    left: Left | None = None
    begun = time.monotonic()
    try:
        hand_over(connection, request)
        end = follow(
            channel,
            told,
            collector,
            order,
            request.text(folder, keep=keep, strict=order.cwd is not None),
            stop=lambda: connection.stop(channel.number, request.number),
            idle=lambda: connection.idle(request.number),
        )
        seconds = time.monotonic() - begun
        if end.why == "exited" and told.others and not told.no_folder:
            again = _LEAVES.search(order.command) is not None
            left = _left(connection, channel, told, request.number, again=again)
    except BaseException:
        if not told.over:
            connection.stop(channel.number, request.number)
        collector.discard()
        raise
    finally:
        connection.give_back(channel if left is None else None, again=told.over)
    return Done(end, told, seconds, left)


def script(connection: Connection, request: Request) -> tuple[int | None, bytes, bytes]:
    """Have a script of ours run there: its exit code and what it printed on each stream.

    No exit code is that of one that did not end.
    """
    channel = connection.worker()
    request.worker = channel.number
    told = Run()
    printed: dict[int, list[bytes]] = {OUT: [], ERR: []}
    try:
        hand_over(connection, request)
        whole = heard(
            channel,
            told,
            request.text("/", keep=False, strict=True),
            printed=lambda stream, piece: printed[stream].append(piece),
            seconds=_SCRIPT_SECONDS,
        )
        if not whole:
            connection.stop(channel.number, request.number)
    finally:
        connection.give_back(channel, again=told.over)
    return told.code, b"".join(printed[OUT]), b"".join(printed[ERR])


def hand_over(connection: Connection, request: Request) -> None:
    """Send what a command reads when it is too much for the text; it is in a file there then."""
    if request.data is None or request.inline:
        return
    process = Process(lambda *_: None)
    place = f"{connection.known.folder}/w{connection.number()}"
    connection.ask(f"echo 'exec cat >{request.place('i')}' >{place}")
    argv = connection.link.argv(["/bin/sh", place])
    pour(process, argv, request.data, task=connection.task)
    if process.exit_code != 0:
        raise BrokenChannelError


def _left(
    connection: Connection, channel: Channel, told: Run, number: int, *, again: bool
) -> Left | None:
    """Go on listening to what a command left running."""
    until = time.monotonic() + _SETTLE_SECONDS
    pids = _alive(connection, channel.number, told, number)
    if not pids and again:
        # One that is just becoming another program shows no mark for a moment.
        time.sleep(_LOOK_SECONDS)
        pids = _alive(connection, channel.number, told, number)
    while pids and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        pids = _alive(connection, channel.number, told, number)
    if not pids:
        return None
    channel.send(f"linger {connection.token}.{number} {' '.join(map(str, pids))}\n")
    return Left(channel.release(), pids)


def _alive(connection: Connection, worker: int, told: Run, number: int) -> list[int]:
    """What is left of a command: by its mark, else by its process group."""
    return connection.members(number) or (connection.group(worker, number) if told.left else [])
