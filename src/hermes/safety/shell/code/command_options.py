"""Programs that take a command among their options or input: git, tar, rsync, crontab, at, file
transfer clients.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.command import run_line, run_word, run_words
from hermes.safety.shell.remote_commands import judge_connection
from hermes.safety.shell.scope import ANYTHING, NETWORK, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.words import Word


_GIT_COMMANDS = re.compile(
    r"(?:core\.(?:editor|pager|sshcommand|fsmonitor|askpass|gitproxy)|diff\.external|"
    r"sequence\.editor|"
    r"credential\.helper|gpg\.program|pager\.\w+|difftool\.\S+\.cmd|mergetool\.\S+\.cmd|"
    r"filter\.\S+\.(?:clean|smudge)|"
    r"merge\.\S+\.driver|diff\.\S+\.(?:command|textconv)|uploadpack\.packobjectshook)=(.*)",
    re.I | re.S,
)
_DEBUGGER_SHELL = re.compile(r"\s*(?:platform shell|shell|!|spawn|system|exec)\s*(.*)", re.S)


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
        found = _GIT_COMMANDS.match(text)
        if found and found.group(1).lstrip("!") not in (
            "",
            "cat",
            "true",
            "false",
            "vim",
            "vi",
            "nano",
        ):
            run_word(value.part(found.group(1).lstrip("!")), command, judge)
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


def _option(*names: str) -> Callable[[Command, Judge], Stream | None]:
    """A tool that runs the value of some options and is otherwise judged by its rules."""

    def run(command: Command, judge: Judge) -> Stream | None:
        for value in command.values(*names):
            text = value.text
            if text.startswith("exec="):
                text = text[5:]
            elif names[0] == "--checkpoint-action" and text.partition("=")[0] in (
                "dot",
                "echo",
                "bell",
                "ttyout",
                "sleep",
            ):
                continue
            run_word(value.part(text), command, judge)
        return None

    return run


def _copier(command: Command, judge: Judge) -> Stream | None:
    judge_connection(command, judge)
    return _option("-S")(command, judge)


def _zip(command: Command, judge: Judge) -> Stream | None:
    for word, following in pairwise(command.words):
        if word.text in ("-TT", "--unzip-command"):
            run_word(following, command, judge)
    return None


def _tar(command: Command, judge: Judge) -> Stream | None:
    for value in command.values(
        "--checkpoint-action",
        "-I",
        "--use-compress-program",
        "-F",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
        "--rmt-command",
    ):
        text = value.text
        if text.partition("=")[0] in ("dot", "echo", "bell", "ttyout", "sleep", "totals"):
            continue
        run_word(value.part(text.removeprefix("exec=")), command, judge)
    for value in command.values("--to-command"):
        # The members of the archive come in by a pipe, and nobody has read them.
        judge.run_text(value.text, command.origin.vague(), command.scope.copy(), ANYTHING)
    return None


def _scheduled(command: Command, judge: Judge) -> Stream | None:
    if command.stdin is not None and command.stdin.text is not None:
        judge.run_text(command.stdin.text, command.origin.vague(), command.scope.copy())
    return None


def _crontab(command: Command, judge: Judge) -> Stream | None:
    reads = not command.operands or command.operands[0].text in ("-", "/dev/stdin")
    if reads and command.stdin is not None and command.stdin.text is not None:
        for line in command.stdin.text.splitlines():
            fields = line.split(None, 5)
            if len(fields) == 6 and not line.startswith("#"):
                judge.run_text(fields[5], command.origin.vague(), command.scope.copy())
    return None


_LOGIN_ITEM = re.compile(
    r"make\s+(?:a\s+)?(?:new\s+)?login item|loginItems\.push|LoginItem\(.*\.make", re.I | re.S
)
_APPLE_POWER = re.compile(r"delete|empty (?:the )?trash|restart|shut down|log out")


def _osascript(command: Command, judge: Judge) -> Stream | None:
    texts = [following.text for word, following in pairwise(command.words) if word.text == "-e"]
    if command.stdin is not None and command.stdin.text is not None:
        texts.append(command.stdin.text)
    for text in texts:
        for found in re.findall(r'do ?[sS]hell ?[sS]cript[\s(]+"((?:[^"\\]|\\.)*)"', text):
            judge.run_text(found.replace('\\"', '"'), command.origin.vague(), command.scope.copy())
        if _LOGIN_ITEM.search(text):
            judge.blame("persist.startup-file", command)
        if _APPLE_POWER.search(text) and "tell app" in text:
            judge.blame("power.off", command)
    if command.stdin is not None and command.stdin.tags & {NETWORK}:
        judge.blame("remote-code.pipe", command)
    return ANYTHING


def _tmux(command: Command, judge: Judge) -> Stream | None:
    """A terminal multiplexer types or starts what its last words say."""
    part: list[Word] = []
    for word in command.words[1:]:
        if word.text == ";":
            _tmux_command(part, command, judge)
            part = []
        elif word.text not in ("Enter", "C-m"):
            part.append(word)
    _tmux_command(part, command, judge)
    return ANYTHING


def _tmux_command(words: list[Word], command: Command, judge: Judge) -> None:
    names = ("new", "split", "respawn", "run", "send", "if", "popup", "display-popup", "pipe")
    if words and words[0].text.startswith(names):
        for index, word in enumerate(words[1:], 1):
            if " " in word.text:
                run_word(word, command, judge)
            elif not word.text.startswith("-") and not words[index - 1].text.startswith("-"):
                run_line(words[index:], command, judge)
                break


def _screen(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    texts = [word.text for word in words]
    if "stuff" in texts:
        run_line(words[texts.index("stuff") + 1 :], command, judge)
        return ANYTHING
    index = 1
    while index < len(words) and texts[index].startswith("-"):
        index += 2 if texts[index][-1] in "Sthsec" else 1
    if index < len(words) and not {"-ls", "-r", "-x", "-R"} & set(texts[1:index]):
        run_words(words[index:], command, judge)
    return ANYTHING


def _debugger(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    for index, (word, following) in enumerate(pairwise(words)):
        if word.text in ("-ex", "-eval-command", "--eval-command", "-o", "-c"):
            found = _DEBUGGER_SHELL.match(following.text)
            if found:
                run_word(following.part(found.group(1)), command, judge)
            elif "python" in following.text or "system" in following.text:
                judge.blame("remote-code.unknown-input", command)
        elif word.text == "--args":
            return run_words(words[index + 1 :], command, judge)
    return ANYTHING


TOOLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "git": _git,
    "tar": _tar,
    "bsdtar": _tar,
    "gtar": _tar,
    "rsync": _option("-e", "--rsh", "--rsync-path"),
    **dict.fromkeys(("scp", "sftp"), _copier),
    "zip": _zip,
    "sort": _option("--compress-program"),
    "rg": _option("--pre"),
    "tmux": _tmux,
    "screen": _screen,
    "gdb": _debugger,
    "lldb": _debugger,
    "expect": _debugger,
    "at": _scheduled,
    "batch": _scheduled,
    "crontab": _crontab,
    "osascript": _osascript,
    "man": _option("-P", "--pager", "-H", "--html"),
}


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
