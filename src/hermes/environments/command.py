"""Command request, environment variables of commands, and command result."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.runtime.child_process import child_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Literal

    from hermes.core.context import Cancellation
    from hermes.environments.background import Background
    from hermes.environments.command_output import Output


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
