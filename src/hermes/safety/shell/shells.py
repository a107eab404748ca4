"""Shells as programs: `bash -c`, a script file, or whatever comes in by a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.command import run_word
from hermes.safety.shell.file_flow import code_at, code_in, is_unread
from hermes.safety.shell.fork_bombs import starts_itself
from hermes.safety.shell.scope import (
    ANYTHING,
    DECODED,
    FILE,
    KEPT,
    NETWORK,
    NOTHING,
    SET_UP,
    Origin,
    Stream,
    Value,
    names,
)
from hermes.safety.shell.script_files import run_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word

_CHECKING = frozenset(("bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "fish", "yash"))
_VALUED = frozenset(("-o", "+o", "-O", "+O", "--rcfile", "--init-file", "-C", "--init-command"))
_SCRIPT_LANGUAGES = ("perl", "ruby", "node", "php", "lua")
_STDIN = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))


def _shell(command: Command, judge: Judge) -> Stream:
    words = command.words
    index, inline, from_stdin = 1, False, False
    if _only_reads_syntax(command):
        return NOTHING
    while index < len(words):
        text = words[index].text
        if text in ("--", "-"):
            index += 1
            break
        if len(text) < 2 or text[0] not in "-+":
            break
        if text in ("--command",):
            inline = True
        elif text.startswith("--command="):
            return run_word(words[index].part(text[10:]), command, judge)
        elif text in ("--help", "--version"):
            return NOTHING
        elif text in _VALUED:
            if text in ("--rcfile", "--init-file"):
                run_script(words[index + 1 : index + 2], command, judge)
            index += 1
        elif text[1] != "-" and text[0] == "-":
            inline = inline or "c" in text
            from_stdin = from_stdin or "s" in text
            if text.endswith("o"):
                index += 1
        index += 1
    rest = words[index:]
    if inline:
        if not rest:
            return NOTHING
        scope = command.scope.copy()
        scope.positional = [word.text for word in rest[2:]]
        for word in rest[1:2]:
            scope.assign("0", Value([word.text]))
        for name, word in command.assignments:
            scope.assign(name, Value([word.text]))
        return run_word(rest[0], command, judge, scope=scope)
    if command.scope.elevated and not rest and command.stdin is None:
        judge.blame("accounts.root-shell", command)
    if rest and not from_stdin:
        return run_script(rest[:1], command, judge, args=[word.text for word in rest[1:]])
    return run_stream(command.stdin, command, judge)


def _only_reads_syntax(command: Command) -> bool:
    """`bash -n`: nothing of what is read runs. An interactive shell does not know the option."""
    if command.name not in _CHECKING:
        return False
    options: list[str] = []
    for word in command.words[1:]:
        text = word.text
        if text[:1] not in ("-", "+") or len(text) < 2 or text[1] == "-":
            break
        options.append(text)
        if "c" in text or text[-1] in "oO":
            break
    given = "".join(text[1:] for text in options if text[0] == "-")
    return "n" in given and "i" not in given and not any(text[0] == "+" for text in options)


def run_script(
    words: list[Word],
    command: Command,
    judge: Judge,
    *,
    args: list[str] | None = None,
    sourced: bool = False,
) -> Stream:
    """A script named by its path; what this text itself wrote or fetched there is known."""
    if not words:
        return NOTHING
    word = words[0]
    if word.process is not None:
        return run_stream(word.process, command, judge)
    if word.text in _STDIN or word.text == ";":
        # A lone `;` is the end of a `find -exec` that a pipe has cut in two, no file of that name.
        return run_stream(command.stdin, command, judge)
    known = code_in(word, command.scope)
    if known is not None:
        return run_known(known, word.text, command, judge)
    if command.scope.elevated:
        judge.blame("system.elevated-script", command)
    if word.known:
        run_file(word.text, command, judge, kind="shell", args=args or [], sourced=sourced)
    return ANYTHING


def run_known(stream: Stream, path: str, command: Command, judge: Judge) -> Stream:
    """Run a file that this text made, as far as its content is known."""
    if is_unread(stream):
        judge.blame("remote-code.downloaded", command)
    if KEPT in stream.tags:
        run_file(path, command, judge, args=command.args)
    known = stream.text
    if known is None:
        return ANYTHING
    if starts_itself(known, path):
        judge.blame("process.fork-bomb", command)
        return ANYTHING
    first = known.partition("\n")[0]
    if first.startswith("#!") and "python" in first:
        from hermes.safety.shell.code.python import judge_source

        judge_source(known, command, judge)
        return ANYTHING
    if first.startswith("#!") and any(name in first for name in _SCRIPT_LANGUAGES):
        from hermes.safety.shell.code.scripts import judge_script

        language = next(name for name in _SCRIPT_LANGUAGES if name in first)
        judge_script(known, command, judge, language)
        return ANYTHING
    return judge.run_text(known, command.origin.vague(), command.scope.copy(), command.stdin)


def run_stream(stream: Stream | None, command: Command, judge: Judge) -> Stream:
    """A shell that reads its commands from a pipe or redirection."""
    if stream is None:
        return NOTHING
    note_stream(stream, command, judge)
    if stream.text is None:
        if command.scope.elevated:
            judge.blame("system.elevated-script", command)
        known = code_at(stream.path, command.scope) if stream.path else None
        if known is not None:
            return run_known(known, stream.path, command, judge)
        if stream.path:
            run_file(stream.path, command, judge, kind="shell", args=[])
        return ANYTHING
    return judge.run_text(stream.text, _origin(command), command.scope.copy())


def note_stream(stream: Stream, command: Command, judge: Judge) -> None:
    """Report code of which nobody can say what it is before it runs."""
    if stream.tags & {NETWORK, DECODED}:
        judge.blame("remote-code.pipe", command)
    elif stream.text is None and stream.tags != {FILE} and SET_UP not in stream.tags:
        judge.blame("remote-code.unknown-input", command)


def _origin(command: Command) -> Origin:
    for redirect in command.redirects:
        if redirect.operator == "<<":
            return Origin(redirect.origin.start, redirect.origin.end, exact=False)
    return command.origin.vague()


SHELLS: dict[str, Callable[[Command, Judge], Stream | None]] = dict.fromkeys(
    names("bash sh zsh dash ksh mksh ash rbash csh tcsh fish yash oksh pdksh elvish xonsh nu"),
    _shell,
)
