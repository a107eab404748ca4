"""PowerShell and cmd: the text after `-Command`, `-EncodedCommand` or `/c`, and bare cmdlets.

Both languages are read as words between separators, which is enough to know the command, its
switches and its targets. Variables of the environment become the home directory where they mean it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.command import Command, literal
from hermes.safety.shell.scope import ANYTHING, HOLE, NETWORK, Stream, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.scope import Scope, Word

_TOKEN = re.compile(
    r"'((?:[^']|'')*)'|\"((?:[^\"`]|`.)*)\"|(\|\||&&|[;|\n&{}()])|((?:[^\s;|&(){}'\"]|`.)+)"
)
_HOME = re.compile(
    r"[$\ue000\ue001](?:env)?:(?:userprofile|home|homepath)|%userprofile%|%homepath%|%homedrive%%homepath%|\$home\b|"
    r"\$\{?env:userprofile\}?"
    r"|\[environment\]::getfolderpath\(['\"]userprofile['\"]\)|~(?=[\\/]|$|\s)",
    re.I,
)
_SYSTEM_ROOT = re.compile(
    r"\$env:(?:systemroot|windir|programfiles)|%(?:systemroot|windir|programfiles)%", re.I
)
_DRIVE = re.compile(r"\$env:systemdrive|%systemdrive%|%homedrive%", re.I)
_QUOTED = re.compile(r"['\"]")
_EVALUATES = re.compile(r"\b(?:iex|invoke-expression)\b|scriptblock\]::create", re.I)
_TO_PROFILE = re.compile(r">>?\s*\$\{?PROFILE\b", re.I)
_DOWNLOAD = re.compile(
    (
        r"downloadstring|downloaddata|invoke-webrequest|invoke-restmethod|\biwr\b|\birm\b|"
        r"net\.webclient|\bcurl\b|\bwget\b"
    ),
    re.I,
)


def _powershell(command: Command, judge: Judge) -> Stream:
    words = command.words
    value = False
    for index, word in enumerate(words[1:], 1):
        flag = word.text.lower()
        if value:
            value = False
            continue
        if flag[:1] not in "-/":
            break
        value = any(_is_option(flag, name, short) for name, short in _VALUED.items())
        if _is_option(flag, "encodedcommand", ("e", "ec", "en", "enc")):
            judge.blame("remote-code.pipe", command)
            return ANYTHING
        if _is_option(flag, "command", ("c",)):
            _line(words[index + 1 :], command, judge)
            return ANYTHING
        if _is_option(flag, "file", ("f",)):
            return ANYTHING
    start = next((i for i, word in enumerate(words) if i and word.text[:1] not in "-/"), len(words))
    rest = words[start:]
    if rest and not rest[0].text.lower().endswith(".ps1"):
        _line(rest, command, judge)
    elif command.stdin is not None and command.stdin.text:
        run_windows(command.stdin.text, command, judge)
    elif command.stdin is not None:
        judge.blame("remote-code.unknown-input", command)
    return ANYTHING


_VALUED = {
    "windowstyle": ("w", "wi"), "executionpolicy": ("ep", "ex", "exec"), "version": ("v",),
    "inputformat": ("inp", "if"), "outputformat": ("o", "of"), "workingdirectory": ("wd",),
}  # fmt: skip


def _is_option(flag: str, name: str, short: tuple[str, ...]) -> bool:
    text = flag[1:]
    return text in short or (len(text) > 2 and name.startswith(text))


def _line(words: list[Word], command: Command, judge: Judge) -> None:
    # Outside quotes a POSIX shell takes the backslashes of a path away; what was meant is kept.
    pieces = [
        word.raw if "\\" in word.raw and not _QUOTED.match(word.raw) else word.text
        for word in words
    ]
    run_windows(" ".join(pieces), command, judge)


def _cmd(command: Command, judge: Judge) -> Stream:
    for index, word in enumerate(command.words[1:], 1):
        if word.text.lower() in ("/c", "/k", "/r", "//c", "-c"):
            text = " ".join(word.text for word in command.words[index + 1 :])
            if re.fullmatch(r"\s*%0\s*\|\s*%0\s*", text):
                judge.blame("process.fork-bomb", command)
            run_windows(text, command, judge)
            break
    return ANYTHING


def run_windows(text: str, outer: Command, judge: Judge) -> None:
    """Judge every command in a PowerShell or cmd text."""
    if _EVALUATES.search(text) and _DOWNLOAD.search(text):
        judge.blame("remote-code.pipe", outer)
    elif _EVALUATES.search(text) or "frombase64string" in text.lower():
        judge.blame("remote-code.unknown-input", outer)
    if _TO_PROFILE.search(text):
        judge.blame("windows.startup-file", outer)
    if re.search(r"net\.sockets\.tcpclient", text, re.I):
        judge.blame("network.reverse-shell", outer)
    judge.depth += 1
    if judge.depth < 24:
        for words, each in _commands(text, outer):
            if words and words[0].text:
                judge.run_command(Command(words, outer.scope.copy(), found=each))
    judge.depth -= 1


def _commands(text: str, outer: Command) -> Iterator[tuple[list[Word], bool]]:
    """The words of each command, and whether it runs for each of several things."""
    words: list[Word] = []
    before: list[Word] = []
    piped = False
    for single, double, separator, bare in [*_TOKEN.findall(text), ("", "", ";", "")]:
        if not separator:
            word = _word(single or double or bare, outer)
            if words and words[0].text.lower() in _DELETES and _VARIABLE.match(word.text):
                # The items of a pipe or loop, or of a variable that was set before.
                word = literal(HOLE, outer)
            words.append(word)
        elif separator not in "()":
            if piped and words and words[0].text.lower() in _TAKES_PIPE:
                items = [word for word in before[1:] if word.text[:1] != "-"]
                words[1:1] = items if len(items) == 1 else [literal(HOLE, outer)]
                yield words, True
            else:
                yield _statement(words)
            before, words, piped = words, [], separator == "|"


# Words of both grammars, after which a command or an expression stands.
_LEADING = names(
    "if elseif else while until do try catch finally return begin process end not trap"
)
# `if exist FILE`, `if defined NAME`, `if errorlevel 1`: what follows the next word is run.
_TESTS = frozenset(("exist", "defined", "errorlevel"))


_VARIABLE = re.compile(r"\$(?!true|false|null|home|env)\w+(?:\.\w+)?\Z", re.I)
_DELETES = names("remove-item ri rm del erase rd rmdir")
_TAKES_PIPE = frozenset(("remove-item", "ri", "rm", "del", "stop-process", "kill", "spps"))


def _statement(words: list[Word]) -> tuple[list[Word], bool]:
    """The command of a statement, and whether it is run for each of several things."""
    name = words[0].text.lower() if words else ""
    if name in ("for", "foreach", "foreach-object") and any(w.text.lower() == "in" for w in words):
        texts = [word.text.lower() for word in words]
        last = "do" if "do" in texts else "in"
        return words[texts.index(last) + 1 :], last == "do"
    while words and words[0].text.lower() in _LEADING:
        words = words[1:]
        while words and words[0].text.lower() in ("not", "/i", "-not", "!"):
            words = words[1:]
        if words and words[0].text.lower() in _TESTS and name == "if":
            words = words[2:]
    return words, False


def _word(text: str, outer: Command) -> Word:
    word = literal(windows_path(text, outer.scope), outer)
    word.raw = text
    word.glob = "*" in text or "?" in text
    return word


def windows_path(text: str, scope: Scope) -> str:
    """A Windows spelling as a path that the other rules understand."""
    text = _HOME.sub(lambda _: scope.home, text)
    text = _DRIVE.sub("C:", _SYSTEM_ROOT.sub("C:/Windows", text)).replace("`", "")
    if re.match(r"[A-Za-z]:(?:[\\/]|$|\*)", text) or "\\" in text:
        text = text.replace("\\", "/")
        if re.fullmatch(r"[A-Za-z]:/?", text):
            return "/"
        if re.fullmatch(r"[A-Za-z]:/?\*(\.\*)?", text):
            return "/*"
        match = re.match(r"[A-Za-z]:/Users/([^/]+)(/.*)?\Z", text, re.I)
        if match:
            return f"/Users/{match[1]}{match[2] or ''}"
        if re.match(r"[A-Za-z]:/Users/?\Z", text, re.I):
            return "/Users"
        if re.match(r"[A-Za-z]:/", text):
            return text[2:]
    return text


def _expression(command: Command, judge: Judge) -> Stream:
    network = command.stdin is not None and NETWORK in command.stdin.tags
    judge.blame("remote-code.pipe" if network else "remote-code.unknown-input", command)
    return ANYTHING


POWERSHELLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "powershell": _powershell,
    "pwsh": _powershell,
    "cmd": _cmd,
    "invoke-expression": _expression,
}
