"""What a process of ours may see of our environment: named variables, never all but some.

A list of names to keep back would miss the next secret's name; this is a list of names to pass.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PASSED = ("PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL")
# Without these a process on Windows does not even start.
_PASSED_WINDOWS = ("SYSTEMROOT", "PATHEXT", "COMSPEC", "TEMP", "TMP", "USERPROFILE", "WINDIR")


def child_environment(
    declared: Iterable[str], task_env: Mapping[str, str | None]
) -> dict[str, str]:
    """What a process of ours may see: a few harmless variables, those declared, the task's own."""
    passed = {*_PASSED, *declared, *(_PASSED_WINDOWS if os.name == "nt" else ())}
    env = {
        name: value
        for name, value in os.environ.items()
        if name in passed or name.startswith("LC_")
    }
    for name, setting in task_env.items():
        if setting is None:
            env.pop(name, None)
        else:
            env[name] = setting
    return env
