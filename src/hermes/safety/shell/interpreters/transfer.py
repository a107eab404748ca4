"""Clients that move files to and from other machines, by the commands that they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.stream import Stream

_TAKES_AWAY = re.compile(
    r"(?:^|[;\n&])\s*(?:mrm|mdelete|mdel|rmdir|(?:glob\s+-?\w*\s*)?rm\s+-r|"
    r"(?:rm|del|delete|prompt|put\s+-E)\b[^;\n]*\*|mirror\b(?![^;\n]*--dry-run)[^;\n]*--(?:delete|Remove))",
    re.I,
)


def _transfer(command: Command, judge: Judge) -> Stream | None:
    texts = [
        following.text
        for word, following in zip(command.words, command.words[1:], strict=False)
        if word.text in ("-e", "-c", "-Q", "--command")
    ]
    if command.stdin is not None and command.stdin.text is not None:
        texts.append(command.stdin.text)
    if any(_TAKES_AWAY.search(text) for text in texts):
        judge.blame("service.destroyed", command)
    own = TOOLS.get(command.name)
    return own(command, judge) if own is not None else None


TRANSFERS: dict[str, Callable[[Command, Judge], Stream | None]] = dict.fromkeys(
    ("lftp", "sftp", "ftp", "tnftp", "ncftp", "smbclient", "psftp", "cadaver"), _transfer
)
