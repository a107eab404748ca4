"""Background command in a cloud sandbox: start, state, log and input through files there."""

from __future__ import annotations

import base64
import binascii
import signal
import time
from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.cloud.provider import ProviderError
from hermes.environments.remote_shell.scripts import LIST_SOCKETS, exports, parse_listeners, quote
from hermes.text.ansi import clean
from hermes.text.encoding import decode_console

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.core.context import Cancellation
    from hermes.environments.background import State
    from hermes.environments.cloud.shell_request import Shell
    from hermes.environments.command import CommandRequest


# A terminal, by whatever is there that makes one and tells how its command ended.
_TERMINAL = """
if script --version 2>/dev/null | grep -q util-linux; then P=script
elif command -v python3 >/dev/null; then P=python3
else echo no terminal; exit 0; fi
export P
"""
_PTY = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])) & 255)"
_ON_TERMINAL = (
    'if [ "$P" = script ]; then unset P; exec script -qfec {text} /dev/null; '
    f"else unset P; exec python3 -c {quote(_PTY)} sh -c {{text}}; fi"
)


def begin(
    shell: Shell,
    request: CommandRequest,
    kept: str,
    *,
    folder: str,
    variables: Mapping[str, str | None],
    definitions: str,
) -> int:
    """Start a command with `kept` as its folder for log, input and exit code; its process id."""
    given = "" if request.stdin is None or request.pty else shell.send(request.stdin)
    text = _text(shell, request, kept, folder, variables, definitions, given)
    said = shell.quick(text)
    if "no folder" in said:
        raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
    if "no terminal" in said:
        raise ToolError(
            "no terminal can be had in this sandbox: its image has neither script nor python3",
            hint="Leave pty out, or use another image.",
        )
    pid = shell.quick(f"cat {quote(kept)}/pid").strip()
    if not pid.isdigit():
        raise ToolError(f"it could not be started: {said.strip()[-200:] or pid[-200:]}")
    return int(pid)


def _text(
    shell: Shell,
    request: CommandRequest,
    kept: str,
    folder: str,
    variables: Mapping[str, str | None],
    definitions: str,
    given: str,
) -> str:
    around = shell_state.wrapped(bash=shell.bash, keep=False)
    words = " ".join(
        ["exec", "bash" if shell.bash else "sh", "-c"]
        + [quote(word) for word in (around, "sh", request.command, definitions)]
    )
    if request.pty:
        words = _ON_TERMINAL.format(text=quote(f"stty rows 40 cols 120 2>/dev/null; {words}"))
    inner = (
        f'(cd "$W" && unset D W; {words}) <{given or "in"} >log 2>&1; '
        "echo $? >code.new; mv code.new code; [ ! -e hold ] || kill $(cat hold) 2>/dev/null"
    )
    # Whoever holds the pipe open keeps its reader from the end of its input.
    hold = "" if given else "mkfifo in; (exec 3<>in; exec sleep 2147483647) & echo $! >hold\n"
    return (
        f"D={quote(kept)}; export D; X=$(command -v setsid)\n{_TERMINAL if request.pty else ''}"
        f"cd {quote(folder)} || {{ echo no folder; exit 0; }}\nW=$PWD; export W\n"
        f'{exports(variables)}mkdir -p "$D" && cd "$D" && : >log || exit 97\n'
        f"exec </dev/null >pid 2>/dev/null\n{hold}"
        f"$X sh -c {quote(inner)} >/dev/null 2>&1 & echo $!; exec >&-\n"
    )


if TYPE_CHECKING:
    # Runs a short script there and gives what it prints.
    Ask = Callable[[str], str]

# No more of a log comes back at once.
_MOST = 200_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0
_MARKED = "grep -lsF -e {mark} /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n'"
_LOOK = """
cd {folder} 2>/dev/null || {{ echo gone; exit 0; }}
p=$({marked} | tr '\\n' ,)
printf '%s|%s|%s|' "$(cat code 2>/dev/null)" "$p" "$(wc -c <log)"
tail -c +{start} log | head -c {limit} | base64
"""


class CloudBackground:
    """See `environments.protocol.Background`. Nothing is known of it but by asking."""

    # Who does not answer may run all the same.
    dies_with_backend = False

    def __init__(
        self, ask: Ask, folder: str, mark: str, *, name: str, command: str, cwd: str, pid: int
    ) -> None:
        self.name = name
        self.command = command
        self.cwd = cwd
        self.pid = pid
        self.started_at = self.last_output_at = time.time()
        self.ended_at: float | None = None
        self.state: State = "running"
        self.exit_code: int | None = None
        self.killed_by = ""
        self.detached = False
        self.left_behind = False
        self.takes_input = False
        self.log_path: str | None = None
        self._ask = ask
        self._folder = folder
        self._mark = mark
        self._total = 0
        self._pids: list[int] = [pid]

    def look(self, start: int = 0, limit: int = 0) -> tuple[bytes, int]:
        """Ask how it is; a piece of its log, and how long that is."""
        marked = _MARKED.format(mark=quote(self._mark))
        script = _LOOK.format(
            folder=quote(self._folder), marked=marked, start=start + 1, limit=limit
        )
        try:
            code, pids, total, text = self._ask(script).split("|", 3)
            data, size = base64.b64decode(text), int(total or 0)
        except ProviderError:
            self._over("lost", None)
            return b"", self._total
        except (ValueError, binascii.Error):
            # The sandbox that had it came to its end.
            self._over("lost", None)
            return b"", self._total
        if size > self._total:
            self._total, self.last_output_at = size, time.time()
        self._pids = [int(word) for word in pids.split(",") if word]
        if code.strip().isdigit() and not self._pids:
            self._over("killed" if self.killed_by else "exited", int(code))
        elif not code.strip() and not self._pids and self.killed_by:
            self._over("killed", None)
        elif not self._pids and self.left_behind:
            self._over("exited", None)
        return data, size

    def _over(self, state: State, code: int | None) -> None:
        if self.state == "running":
            self.state = state
            self.exit_code = code
            self.ended_at = time.time()
            self.takes_input = False

    def log(self, offset: int | None = None, *, limit: int = 20_000) -> tuple[str, int, int]:
        """Text from a byte on (the newest when None); where it starts; how many bytes there are."""
        limit = min(limit, _MOST)
        if offset is None:
            self.look()
            offset = max(0, self._total - limit)
        data, total = self.look(offset, limit)
        return clean(decode_console(data, cut=True)), min(offset, total), total

    def recent(self, size: int = 2000) -> str:
        """The end of the log, as it would be seen."""
        return self.log(limit=size)[0]

    def wait(
        self,
        seconds: float,
        *,
        until: Callable[[], bool] | None = None,
        cancellation: Cancellation | None = None,
    ) -> bool:
        """Wait until it has ended, or until what is asked for holds; whether that came."""
        deadline = time.monotonic() + seconds
        pause = _FIRST_PAUSE
        while True:
            if until is not None and until():
                return True
            if self.state == "running":
                self.look()
            if self.state != "running":
                return until is None or until()
            left = deadline - time.monotonic()
            if left <= 0 or (cancellation is not None and cancellation.cancelled):
                return False
            if cancellation is not None:
                cancellation.wait(min(left, pause))
            else:
                time.sleep(min(left, pause))
            pause = min(_LONGEST_PAUSE, pause * 1.5)

    def write(self, data: bytes) -> None:
        """Type something."""
        if not self.takes_input or self.state != "running":
            raise ToolError(f"{self.name} takes no input", hint="Start it with `process` start.")
        text = base64.b64encode(data).decode()
        script = f"printf %s {text} | base64 -d | timeout 5 dd of={quote(self._folder)}/in"
        if "left" in self._ask(f"{script} 2>/dev/null || echo left"):
            raise ToolError(f"{self.name} does not read what is written to it")

    def close_input(self) -> None:
        """Let it read the end of its input."""
        if not self.takes_input:
            raise ToolError(f"the input of {self.name} is closed already")
        self.takes_input = False
        self._ask(f"cd {quote(self._folder)} && kill $(cat hold); rm -f hold")

    def signal(self, number: int) -> None:
        """Signal everything that belongs to it."""
        if self.state == "running":
            word = signal.Signals(number).name.removeprefix("SIG")
            marked = _MARKED.format(mark=quote(self._mark))
            self._ask(f"for p in $({marked}); do kill -{word} $p; done 2>/dev/null")

    def kill(self, by: str) -> None:
        """End everything that belongs to it, and note who wanted that."""
        if self.state == "running":
            self.killed_by = self.killed_by or by
            self.signal(signal.SIGTERM)
            self.wait(0.8)
            self.signal(signal.SIGKILL)

    def detach(self) -> None:
        """Nothing outlives its sandbox."""
        raise ToolError(f"{self.name} ends with its sandbox", hint="Use a host of your own.")

    def waits_for_input(self) -> bool:
        """Nobody can type anything there."""
        return False

    def hides_input(self) -> bool:
        """Nobody can type anything there."""
        return False

    def pids(self) -> list[int]:
        """Its processes that are alive, by their numbers there."""
        if self.state == "running":
            self.look()
        return self._pids if self.state == "running" else []

    def host_pids(self) -> list[int]:
        """They are elsewhere."""
        return []

    def discard(self) -> None:
        """Its log is in the sandbox, and goes with it."""

    def ports(self) -> list[str]:
        """Where they listen there, as `address:port`."""
        pids = " ".join(map(str, self.pids()))
        return parse_listeners(self._ask(f"set -- {pids}; {LIST_SOCKETS}")) if pids else []
