"""Programs with a command among their options: git, tar, rsync, tmux, file transfer clients."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.command import run_line, run_word, run_words
from hermes.safety.shell.file_operands import option_values
from hermes.safety.shell.programs import rows
from hermes.safety.shell.remote_commands import judge_connection
from hermes.safety.shell.scope import ANYTHING, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command


_GIT_COMMANDS = re.compile(
    r"(?:core\.(?:editor|pager|sshcommand|fsmonitor|askpass|gitproxy)|diff\.external|"
    r"sequence\.editor|"
    r"credential\.helper|gpg\.program|pager\.\w+|difftool\.\S+\.cmd|mergetool\.\S+\.cmd|"
    r"filter\.\S+\.(?:clean|smudge)|"
    r"merge\.\S+\.driver|diff\.\S+\.(?:command|textconv)|uploadpack\.packobjectshook)=(.*)",
    re.I | re.S,
)


_HARMLESS = ("", "cat", "true", "false", "vim", "vi", "nano")


def _git(command: Command, judge: Judge) -> Stream | None:
    folders = command.values("-C")
    if folders:
        command.scope = command.scope.copy()
        for folder in folders:
            command.scope.go(folder.text)
    for value in command.values("-c", "--config-env"):
        text = value.text
        if text.startswith("alias.") and "=!" in text:
            run_word(value.part(text.partition("=!")[2]), command, judge)
        elif text.startswith("alias."):
            _alias(command, text, judge)
        match = _GIT_COMMANDS.match(text)
        if match and match.group(1).lstrip("!") not in _HARMLESS:
            run_word(value.part(match.group(1).lstrip("!")), command, judge)
        if text.lower().startswith("core.hookspath="):
            judge.blame("git.hooks", command)
    operands = command.operands
    sub = operands[0].text if operands else ""
    if sub == "bisect" and len(operands) > 2 and operands[1].text == "run":
        run_words(command.after(operands[1]), command, judge)
    elif sub == "submodule" and len(operands) > 2 and operands[1].text == "foreach":
        inner = command.after(operands[1])
        while inner and inner[0].text in ("--recursive", "--quiet", "-q"):
            inner = inner[1:]
        run_line(inner, command, judge)
    elif sub == "rebase":
        words = command.words
        for index, word in enumerate(words):
            if word.text in ("-x", "--exec"):
                run_line(words[index + 1 : index + 2], command, judge)
    elif sub == "config":
        _git_config(command, judge)
    return None


def _alias(command: Command, text: str, judge: Judge) -> None:
    """`git -c alias.x='reset --hard' x` runs what the alias says."""
    name, _, value = text[6:].partition("=")
    if command.operands and command.operands[0].text == name:
        judge.run_text(f"git {value}", command.origin.vague(), command.scope.copy())


def _git_config(command: Command, judge: Judge) -> None:
    words = [word for word in command.operands[1:] if word.text not in ("set", "--add")]
    if len(words) < 2:
        return
    name, value = words[0].text.lower(), words[1]
    if name.startswith("alias."):
        text = value.text
        line = text[1:] if text.startswith("!") else f"git {text}"
        judge.run_text(line, command.origin.vague(), command.scope.copy())
    elif _GIT_COMMANDS.match(f"{name}={value.text}") and not name.startswith(
        ("credential", "core.editor", "core.pager")
    ):
        run_word(value, command, judge)


# Options whose values are commands. What `tar` only says at a checkpoint is none.
_RUN_VALUES = {
    name: tuple(text.split())
    for name, text in rows("""
tar bsdtar gtar = --checkpoint-action -I --use-compress-program -F --info-script
  --new-volume-script --rsh-command --rmt-command --to-command
rsync = -e --rsh --rsync-path
scp sftp = -S
zip = -TT --unzip-command
sort = --compress-program
rg = --pre
man = -P --pager -H --html
""").items()
}
_SAID = ("dot", "echo", "bell", "ttyout", "sleep", "totals")


def _option(command: Command, judge: Judge) -> Stream | None:
    """A program that runs the values of some options and is otherwise judged by its rules."""
    if command.name in ("scp", "sftp"):
        judge_connection(command, judge)
    for word in option_values(command, _RUN_VALUES[command.name]):
        if word.text.partition("=")[0] not in _SAID:
            run_word(word.part(word.text.removeprefix("exec=")), command, judge)
    return None


def _multiplexer(command: Command, judge: Judge) -> Stream | None:
    """`tmux new -d LINE`, `screen -dm PROGRAM`: a word with blanks is a line to run."""
    words = [word for word in command.words[1:] if word.text not in ("Enter", "C-m", ";")]
    lines = [word for word in words if " " in word.text]
    for word in lines:
        run_word(word, command, judge)
    start = next((i for i, w in enumerate(words) if w.text.endswith(("m", "stuff"))), len(words))
    if not lines and command.name == "screen":
        run_words(words[start + 1 :], command, judge)
    return ANYTHING


TOOLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "git": _git,
    **dict.fromkeys(_RUN_VALUES, _option),
    **dict.fromkeys(("tmux", "screen"), _multiplexer),
}


_TAKES_AWAY = re.compile(
    r"(?:^|[;\n&])[ \t]*+(?:mrm|mdelete|mdel|rmdir|(?:glob\s+-?\w*\s*)?rm\s+-r|"
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
