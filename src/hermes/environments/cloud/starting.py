"""Starts a command beside others in a cloud sandbox, with a folder there for what is its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.far.scripts import quoted, settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.environments.cloud.shell import Shell
    from hermes.environments.order import Order

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
    f"else unset P; exec python3 -c {quoted(_PTY)} sh -c {{text}}; fi"
)


def begin(
    shell: Shell,
    order: Order,
    kept: str,
    *,
    folder: str,
    variables: Mapping[str, str | None],
    definitions: str,
) -> int:
    """Start a command with `kept` as its folder for log, input and exit code; its process id."""
    given = "" if order.stdin is None or order.pty else shell.send(order.stdin)
    text = _text(shell, order, kept, folder, variables, definitions, given)
    said = shell.quick(text)
    if "no folder" in said:
        raise ToolError(f"{folder} is no folder", hint="Give a workdir that exists.")
    if "no terminal" in said:
        raise ToolError(
            "no terminal can be had in this sandbox: its image has neither script nor python3",
            hint="Leave pty out, or use another image.",
        )
    pid = shell.quick(f"cat {quoted(kept)}/pid").strip()
    if not pid.isdigit():
        raise ToolError(f"it could not be started: {said.strip()[-200:] or pid[-200:]}")
    return int(pid)


def _text(
    shell: Shell,
    order: Order,
    kept: str,
    folder: str,
    variables: Mapping[str, str | None],
    definitions: str,
    given: str,
) -> str:
    around = shell_state.wrapped(bash=shell.bash, keep=False)
    words = " ".join(
        ["exec", "bash" if shell.bash else "sh", "-c"]
        + [quoted(word) for word in (around, "sh", order.command, definitions)]
    )
    if order.pty:
        words = _ON_TERMINAL.format(text=quoted(f"stty rows 40 cols 120 2>/dev/null; {words}"))
    inner = (
        f'(cd "$W" && unset D W; {words}) <{given or "in"} >log 2>&1; '
        "echo $? >code.new; mv code.new code; [ ! -e hold ] || kill $(cat hold) 2>/dev/null"
    )
    # Whoever holds the pipe open keeps its reader from the end of its input.
    hold = "" if given else "mkfifo in; (exec 3<>in; exec sleep 2147483647) & echo $! >hold\n"
    return (
        f"D={quoted(kept)}; export D; X=$(command -v setsid)\n{_TERMINAL if order.pty else ''}"
        f"cd {quoted(folder)} || {{ echo no folder; exit 0; }}\nW=$PWD; export W\n"
        f'{settings(variables)}mkdir -p "$D" && cd "$D" && : >log || exit 97\n'
        f"exec </dev/null >pid 2>/dev/null\n{hold}"
        f"$X sh -c {quoted(inner)} >/dev/null 2>&1 & echo $!; exec >&-\n"
    )
