"""Python calls on something else than files: services, processes by name, set-uid bits."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.service_calls import (
    LISTS_PROCESSES,
    STARTS,
    deletes_all,
    request_rule,
    service_rule,
)

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

# Sources without any of these need no look at their calls.
_TELLING = (
    ".delete", ".batch_delete", ".drop", ".flush", ".terminate", ".destroy", ".purge", ".prune",
    ".deregister", ".kill", ".remove", ".truncate", "chmod(", "DELETE",
)  # fmt: skip
_SET_ID = re.compile(r"S_IS[UG]ID")


def judge_services(calls: list[ast.Call], text: str, command: Command, judge: Judge) -> None:
    """Report calls that destroy what a service keeps, kill by name or set the user on running."""
    if ".objects" in text and deletes_all(text):
        judge.blame("database.empty", command)
    if not any(word in text for word in _TELLING):
        return
    by_name = "process_iter" in text or "pids()" in text
    by_number = not by_name and "kill" in text and LISTS_PROCESSES.search(text) is not None
    for call in calls:
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        kills = (by_name and name in ("kill", "terminate", "send_signal")) or (
            by_number and name in ("kill", "killpg") and call.args
        )
        if kills and not _asks(call):
            judge.blame("process.kill-by-name", command)
        elif name in ("chmod", "fchmod", "lchmod"):
            if any(_sets_id(node) for node in call.args):
                judge.blame("permissions.set-uid", command)
        elif name.startswith(STARTS):
            given = ", ".join(
                [
                    *(ast.unparse(node) for node in call.args),
                    *(f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords),
                ]
            )
            rule = service_rule(name, given, text)
            if rule:
                judge.blame(rule, command)
    rule = request_rule(text)
    if rule:
        judge.blame(rule, command)


def _asks(call: ast.Call) -> bool:
    """Whether a signal only asks whether a process is there."""
    signal = call.args[-1] if call.args else None
    return isinstance(signal, ast.Constant) and signal.value == 0


def _sets_id(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and bool(node.value & 0o6000)
    return isinstance(node, ast.BinOp | ast.Attribute) and bool(_SET_ID.search(ast.unparse(node)))
