"""Shell text for the gate: the command with the state it runs in; detection of commands with a
syntax error.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.core.context import ToolContext


def gate_text(
    ctx: ToolContext,
    command: str,
    *,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> str:
    """A shell text that does what the command will: with the variables, functions and aliases that
    earlier commands left, with those of this call, and with what it is given to read."""
    from hermes.environments.for_task import existing_environment

    so_far = existing_environment(ctx)
    definitions = so_far.definitions if so_far is not None else ""
    if not (definitions or env or stdin or ctx.task.env):
        return command
    lines = [definitions] if definitions else []
    used = {
        name: value
        for name, value in ctx.task.env.items()
        # What the gate does not see used can't change what it sees.
        if value is not None and (name in command or name in definitions)
    }
    lines += [f"{name}={shlex.quote(value)}" for name, value in used.items()]
    lines += [
        f"export {name}={shlex.quote(value)}"
        for name, value in (env or {}).items()
        if isinstance(name, str) and isinstance(value, str)
    ]
    if stdin:
        command = f"printf %s {shlex.quote(stdin)} | {{\n{command}\n}}"
    return "\n".join([*lines, command])


_LONGEST = 20_000
_SECONDS = 5.0
# Words without any sign that means something to a shell.
_WORDS = re.compile(r"[\w./+:,@%=\- \t]*", re.ASCII)
_GRAMMAR = re.compile(
    r"\s*(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|coproc|time)\b"
)
_PREFIX = re.compile(r"^[^\n]*?: (?=line \d+: )", re.MULTILINE)


def syntax_error(command: str) -> str:
    """The shell's message on a command that no shell can parse; empty for all others.

    Such a command does nothing, so there is nothing to approve either.
    """
    if len(command) > _LONGEST or "\0" in command:
        return ""
    if _WORDS.fullmatch(command) and not _GRAMMAR.match(command):
        return ""
    from hermes.safety.placeholders.format import START
    from hermes.safety.shell.lexing import as_ascii
    from hermes.safety.shell.parse import parse

    if START in command:
        # The handler gets a value in its place, and that may parse.
        return ""
    return _shell_says(command) if parse(as_ascii(command)).has_error else ""


def _shell_says(command: str) -> str:
    """The complaint of a shell that only reads; empty where it has none, or there is no shell."""
    import shutil
    import subprocess

    shell = shutil.which("bash")
    if shell is None:
        return ""
    try:
        read = subprocess.run(
            # Patterns that a command may allow itself are no errors.
            [shell, "--norc", "-O", "extglob", "-n"],
            input=command.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env={},
            cwd="/",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, UnicodeEncodeError, subprocess.TimeoutExpired):
        return ""
    if read.returncode == 0:
        return ""
    said = _PREFIX.sub("", read.stderr.decode("utf-8", "replace"))
    return "; ".join(said.splitlines())[:500]
