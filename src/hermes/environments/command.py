"""Commands: request, variables, output within limits, result."""

from __future__ import annotations

import os
import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.core.paths import home_path, make_private
from hermes.runtime.child_process import child_environment
from hermes.text.ansi import clean
from hermes.text.encoding import decode_console, live_decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Literal

    from hermes.core.context import Cancellation
    from hermes.environments.background import Background


if TYPE_CHECKING:
    EndReason = Literal["exited", "timeout", "cancelled", "needs input", "lost"]

# Capacity of a terminal's input queue.
MAX_TYPED = 4000
# Exit code after a timeout.
TIMED_OUT = 124
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_VARIABLES: Mapping[str, str] = {}


class BackendError(ToolError):
    """A backend can't be reached, or can't start a command."""


class CommandRequest(NamedTuple):
    """One command with its options."""

    command: str
    # In seconds; None is without limit.
    timeout: float | None = None
    # For this command alone; None is the directory of the last one.
    cwd: str | None = None
    env: Mapping[str, str] = _NO_VARIABLES
    # None: stdin is closed.
    stdin: bytes | None = None
    pty: bool = False
    # Name of a background command.
    name: str = ""
    on_output: Callable[[str], None] | None = None
    cancellation: Cancellation | None = None

    @property
    def cancelled(self) -> bool:
        return self.cancellation is not None and self.cancellation.cancelled

    @property
    def typed(self) -> bytes:
        """The bytes to type at the start, on a terminal; raises `ToolError` for too many."""
        if len(self.stdin or b"") > MAX_TYPED:
            raise ToolError(
                f"a terminal takes no more than {MAX_TYPED} bytes at once",
                hint="Leave pty out. Or give the rest with `process` write.",
            )
        return self.stdin or b""

    def check(self) -> None:
        """Raise `ToolError` for text that the system can't pass to a program."""
        encode_text(self.command)
        if "\0" in self.command:
            raise ToolError("a command can't hold a zero character")
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name + value:
                raise variable_error(name)

    def check_names(self) -> None:
        """Raise `ToolError` for variables that a shell can't set."""
        for name in self.env:
            if not is_variable_name(name):
                raise variable_error(name)


class CommandResult(NamedTuple):
    """Outcome and output of a command."""

    code: int | None
    output: Output
    cwd: str
    duration: float
    # Remarks for the model.
    notes: list[str]
    ended: EndReason = "exited"
    cpu_seconds: float = 0.0
    # The processes that it left running, or the command itself while it waits for input.
    background: Background | None = None
    background_pids: tuple[int, ...] = ()
    # The line in which it asked for input.
    prompt: str = ""
    # Whether the order of the two streams is reliable.
    ordered: bool = False

    @property
    def exit_code(self) -> int:
        """As a shell has it: 128 + N for a signal, 124 after a timeout; -1 when it is not known."""
        if self.ended == "timeout":
            return TIMED_OUT
        return -1 if self.code is None else self.code

    @property
    def stdout(self) -> str:
        """Standard output; a line marks where bytes were left out."""
        return self.output.stdout

    @property
    def stderr(self) -> str:
        return self.output.stderr

    @property
    def timed_out(self) -> bool:
        return self.ended == "timeout"

    @property
    def spill(self) -> str | None:
        """The file with the whole output, when it was too large for memory."""
        return self.output.spill

    @property
    def truncated(self) -> int:
        """The number of output bytes left out."""
        return self.output.left_out


class Isolation(NamedTuple):
    """The isolation that a backend enforces: one sentence per kind, empty where there is none."""

    backend: str
    files: str = ""
    network: str = ""
    processes: str = ""
    memory: str = ""
    # Isolation that one might expect here, and why it is missing.
    not_enforced: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The same for JSON and listings."""
        return {
            "backend": self.backend,
            "files": self.files or "not isolated",
            "network": self.network or "not isolated",
            "processes": self.processes or "not isolated",
            "memory": self.memory or "not limited",
            "not_enforced": list(self.not_enforced),
        }


def is_variable_name(name: str) -> bool:
    """Whether a shell can have a variable of that name."""
    return _NAME.fullmatch(name) is not None


def variable_error(name: str) -> ToolError:
    """The error for an invalid variable."""
    return ToolError(f"{name!r:.80} can't be a variable, or not with that value")


def encode_text(text: str) -> bytes:
    """Text as UTF-8; surrogates from undecodable bytes become those bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolError("the text holds half a character, which no program can be given") from None


def stdin_bytes(stdin: str | bytes | None) -> bytes | None:
    return encode_text(stdin) if isinstance(stdin, str) else stdin


# Paths of tools and libraries, locale and time zone: no secrets.
_PLACES = (
    "TZ", "COLUMNS", "LINES", "HOSTNAME",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_DATA_DIRS",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "UV_CACHE_DIR",
    "JAVA_HOME", "GRADLE_HOME", "M2_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT",
    "GOPATH", "GOROOT", "GOBIN", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "NVM_BIN", "FNM_DIR",
    "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "RBENV_ROOT", "GEM_HOME", "GEM_PATH",
    "DOTNET_ROOT", "SDKROOT", "DEVELOPER_DIR", "CUDA_HOME", "CUDA_VISIBLE_DEVICES",
    "HOMEBREW_PREFIX", "NIX_PATH", "NIX_PROFILES", "PKG_CONFIG_PATH", "MANPATH", "INFOPATH",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
)  # fmt: skip
# Inherited if they contain no password.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy")

# Variables for unattended runs: no pager, no editor, no password prompt.
UNATTENDED = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "BAT_PAGER": "cat",
    "DELTA_PAGER": "cat",
    "AWS_PAGER": "",
    "PSQL_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_MERGE_AUTOEDIT": "no",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
    # Otherwise output to a pipe is buffered until the end.
    "PYTHONUNBUFFERED": "1",
}


def inherited_variables(named: Iterable[str] = ()) -> dict[str, str]:
    """The variables of this program that commands inherit: the allow-list and the `named` ones."""
    env = child_environment((*_PLACES, *named), {})
    for name in _PROXIES:
        for spelling in (name, name.upper()):
            value = os.environ.get(spelling)
            if value and "@" not in value:
                env[spelling] = value
    return env


def command_environment(
    task_env: Mapping[str, str | None],
    passed: Mapping[str, str],
    *,
    extra: Mapping[str, str] | None = None,
    attended: bool = False,
) -> dict[str, str]:
    """The environment variables of one command.

    Later ones win: the inherited ones, those for unattended runs (not on a terminal: `attended`),
    the task's, the call's.
    """
    env = dict(passed)
    if attended:
        env["TERM"] = "xterm-256color"
    else:
        env.update(UNATTENDED)
    env = apply_changes(env, task_env)
    env.update(extra or {})
    return env


def apply_changes(given: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Variables with some changes; None removes one."""
    env = dict(given)
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


LARGEST = 32 * 1024 * 1024
# The rest of the disk is not ours to fill.
_SHARE = 10
_PIECE = 1 << 20


class Spill:
    """Takes in bytes up to a limit; `full` from then on. Nothing of it stays unless it is kept."""

    def __init__(self, folder: str | None = None, *, largest: int = LARGEST) -> None:
        self._folder = folder or home_path("artifacts")
        self.path = os.path.join(make_private(self._folder), f"{os.urandom(8).hex()}.new")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        state = os.fstatvfs(self._file)
        self._room = min(largest, state.f_bavail * state.f_frsize // _SHARE)
        self.size = 0
        self.full = False
        self._ascii = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append the next piece, as far as it fits."""
        view = memoryview(data)
        if self.full:
            return
        if len(view) > self._room - self.size:
            view = view[: self._room - self.size]
            self.full = True
        self._ascii = self._ascii and bytes(view).isascii()
        try:
            while view:
                written = os.write(self._file, view)
                self.size += written
                view = view[written:]
        except OSError:
            # The disk is full; the file keeps its contents so far.
            self.full = True

    def keep(self) -> str:
        """Close the file and convert it to UTF-8; its path. It belongs to the caller."""
        os.close(self._file)
        if not self._ascii:
            self._make_text()
        return self.path

    def _make_text(self) -> None:
        decoder = live_decoder()
        draft = f"{self.path}.text"
        with open(self.path, "rb") as raw, open(draft, "xb", opener=_private) as text:
            while piece := raw.read(_PIECE):
                text.write(decoder.decode(piece).encode("utf-8", "replace"))
            text.write(decoder.decode(b"", True).encode("utf-8", "replace"))
        os.replace(draft, self.path)

    def discard(self) -> None:
        """Close and remove the file."""
        os.close(self._file)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


IN_MEMORY = 200 * 1024


class RollingLog:
    """Bytes by their offset. Those that fit neither in memory nor in the file are gone; then
    reading continues with the oldest that are left."""

    def __init__(self, make_spill: Callable[[], Spill] | None = None) -> None:
        self._make_spill = make_spill
        self._spill: Spill | None = None
        self._recent = bytearray()
        self.total = 0

    @property
    def path(self) -> str | None:
        """The file with all of it, once memory did not hold it."""
        return self._spill.path if self._spill is not None else None

    def feed(self, data: memoryview | bytes) -> None:
        """Append the next piece."""
        self.total += len(data)
        self._recent += data
        if self._spill is not None:
            self._spill.write(data)
        elif len(self._recent) > IN_MEMORY and self._make_spill is not None:
            self._spill = self._make_spill()
            self._spill.write(self._recent)
        if len(self._recent) > 2 * IN_MEMORY:
            del self._recent[:-IN_MEMORY]

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Bytes from an offset on, and the offset they really start at."""
        oldest = self.total - len(self._recent)
        if offset < oldest and self._spill is not None and offset < self._spill.size:
            with open(self._spill.path, "rb") as file:
                file.seek(max(offset, 0))
                return file.read(limit), max(offset, 0)
        start = min(max(offset, oldest), self.total)
        return bytes(self._recent[start - oldest : start - oldest + limit]), start

    def tail(self, size: int) -> bytes:
        """The newest bytes."""
        return bytes(self._recent[-size:])

    def discard(self) -> None:
        """Delete the file."""
        if self._spill is not None:
            self._spill.discard()
            self._spill = None
            self._make_spill = None


HEAD = 256 * 1024
TAIL = 512 * 1024
OUT, ERR = 1, 2
_NAMES = {OUT: "out", ERR: "err"}


class Output:
    """Collected output: clean text of both streams; `left_out` counts dropped bytes."""

    __slots__ = ("left_out", "pieces", "spill", "total")

    def __init__(
        self, pieces: list[tuple[int, str]], total: int, left_out: int, spill: str | None
    ) -> None:
        # (stream, text) in the order of printing; stream 0 is a gap.
        self.pieces = pieces
        self.total = total
        self.left_out = left_out
        # The file that holds the whole, as bytes, when it was too much for memory.
        self.spill = spill

    @property
    def stdout(self) -> str:
        """The text of standard output."""
        return self._of(OUT)

    @property
    def stderr(self) -> str:
        """The text of standard error."""
        return self._of(ERR)

    @property
    def merged(self) -> str:
        """Both streams, as a terminal would have shown them."""
        return "".join(text for _, text in self.pieces)

    def turns(self) -> str:
        """The order of the streams, in lines: `out 3, err 1, out 2`; empty for one stream."""
        turns = [
            (_NAMES[stream], text.count("\n") + (not text.endswith("\n")))
            for stream, text in self.pieces
            if stream and text
        ]
        if len({name for name, _ in turns}) < 2:
            return ""
        return ", ".join(f"{name} {lines}" for name, lines in turns)

    def _of(self, stream: int) -> str:
        mine = [(kind, text) for kind, text in self.pieces if kind in (stream, 0)]
        if all(kind == 0 for kind, _ in mine):
            return ""
        return "".join(text for _, text in mine)


class Collector:
    """Feed pieces as they come; ask for the output at any time."""

    def __init__(
        self,
        *,
        head: int = HEAD,
        tail: int = TAIL,
        make_spill: Callable[[], Spill] | None = None,
    ) -> None:
        self._most_head = head
        self._most_tail = tail
        self._make_spill = make_spill
        self._spill: Spill | None = None
        self._head: list[tuple[int, bytearray]] = []
        self._head_size = 0
        self._tail: deque[tuple[int, bytearray]] = deque()
        self._tail_size = 0
        self.total = 0
        self.dropped = 0

    def feed(self, stream: int, data: memoryview | bytes) -> None:
        """Append the next piece of a stream."""
        view = memoryview(data)
        self.total += len(view)
        if self._spill is not None:
            self._spill.write(view)
        room = self._most_head - self._head_size
        if room > 0:
            _append(self._head, stream, view[:room])
            self._head_size += min(room, len(view))
            view = view[room:]
            if not view:
                return
        _append(self._tail, stream, view)
        self._tail_size += len(view)
        if self._tail_size > 2 * self._most_tail:
            self._shorten()

    def _shorten(self) -> None:
        """Let go of all but the end, in large steps."""
        if self._spill is None and self._make_spill is not None and not self.dropped:
            self._spill = self._make_spill()
            for _, piece in (*self._head, *self._tail):
                self._spill.write(piece)
        while self._tail_size > self._most_tail:
            over = self._tail_size - self._most_tail
            stream, oldest = self._tail.popleft()
            if len(oldest) > over:
                # A copy: cutting the front off in place would move as much.
                self._tail.appendleft((stream, oldest[over:]))
            gone = min(over, len(oldest))
            self._tail_size -= gone
            self.dropped += gone

    def recent(self, size: int = 4000) -> str:
        """The end of the output so far, as clean text."""
        data = b""
        for _, piece in reversed((*self._head, *self._tail)):
            data = bytes(piece[-size:]) + data
            if len(data) >= size:
                break
        return clean(decode_console(data[-size:], cut=True))

    def output(self, *, ansi: bool = False) -> Output:
        """The output so far."""
        gap = [(0, bytearray())] if self.dropped else []
        raw = _joined([*self._head, *gap, *self._tail])
        pieces: list[tuple[int, str]] = []
        for (stream, _), text in zip(raw, _decoded(raw), strict=True):
            shown = clean(text, ansi=ansi)
            if not stream:
                pieces.append((0, f"\n… {self.dropped} bytes left out …\n"))
            elif shown:
                pieces.append((stream, shown))
        path = self._spill.path if self._spill is not None else None
        return Output(pieces, self.total, self.dropped, path)

    def keep_spill(self) -> tuple[str, int] | None:
        """Close the spill file; its path and size. It belongs to the caller."""
        spill, self._spill = self._spill, None
        return None if spill is None else (spill.keep(), spill.size)

    def discard(self) -> None:
        """Delete the file."""
        if self._spill is not None:
            self._spill.discard()
            self._spill = None


def _append(
    pieces: list[tuple[int, bytearray]] | deque[tuple[int, bytearray]],
    stream: int,
    view: memoryview,
) -> None:
    # Long ones are kept apart, so that dropping the oldest costs no copying.
    if pieces and pieces[-1][0] == stream and len(pieces[-1][1]) < 65_536:
        pieces[-1][1].extend(view)
    else:
        pieces.append((stream, bytearray(view)))


def _joined(pieces: list[tuple[int, bytearray]]) -> list[tuple[int, bytearray]]:
    """Adjacent pieces of one stream joined."""
    joined: list[tuple[int, bytearray]] = []
    for stream, piece in pieces:
        if joined and joined[-1][0] == stream:
            joined[-1] = (stream, joined[-1][1] + piece)
        else:
            joined.append((stream, piece))
    return joined


def _decoded(pieces: list[tuple[int, bytearray]]) -> list[str]:
    """Each piece as text; a stream is read as a whole, for its characters may be split."""
    texts = [""] * len(pieces)
    for stream in (OUT, ERR):
        mine = [at for at, (kind, _) in enumerate(pieces) if kind == stream]
        runs: list[list[int]] = []
        for at in mine:
            # A gap separates runs, which are decoded apart.
            gap = runs and any(not pieces[i][0] for i in range(runs[-1][-1], at))
            if not runs or gap:
                runs.append([at])
            else:
                runs[-1].append(at)
        for number, run in enumerate(runs):
            carried = b""
            for place, at in enumerate(run):
                data = carried + bytes(pieces[at][1])
                carried = b""
                if place + 1 < len(run):
                    whole = len(data) - _unfinished(data)
                    data, carried = data[:whole], data[whole:]
                texts[at] = decode_console(data, cut=len(runs) > 1 or number > 0)
    return texts


def _unfinished(data: bytes) -> int:
    """How many bytes at the end are the beginning of a UTF-8 character."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if length > back else 0
        if byte < 0x80:
            return 0
    return 0
