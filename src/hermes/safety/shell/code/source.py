"""What every inline interpreter does first: find the code, from an option, a file or a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.file_flow import code_in, is_unread
from hermes.safety.shell.inner_command import note_unread
from hermes.safety.shell.script_files import run_file
from hermes.safety.shell.shells import note_stream, run_known

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.word_builder import Word

_PYTHONS = frozenset(("python", "pypy", "ipython", "pythonw", "py"))
_STDIN = frozenset(("-", "/dev/stdin", "/dev/fd/0"))


class Source:
    """Code to read, and the word it stands in (None when it came through a pipe)."""

    __slots__ = ("text", "word")

    def __init__(self, text: str, word: Word | None) -> None:
        self.text = text
        self.word = word


def find_source(
    command: Command, judge: Judge, *, inline: str, valued: str = "", long: tuple[str, ...] = ()
) -> Source | None:
    """The code that an interpreter would run, when it can be read here.

    Args:
        inline: Letters of the options that carry code, such as `eE` for Perl.
        valued: Letters of other options that take a value.
        long: Long options that carry code.
    """
    words = command.words
    index = 1
    pieces: list[tuple[str, Word]] = []
    while index < len(words):
        text = words[index].text
        if len(text) < 2 or text[0] != "-" or text in _STDIN:
            break
        index += 1
        if text == "--":
            break
        if text[1] == "-":
            name, equals, value = text.partition("=")
            if name in long:
                if equals:
                    pieces.append((value, words[index - 1]))
                elif index < len(words):
                    pieces.append((words[index].text, words[index]))
                    index += 1
            continue
        for position, letter in enumerate(text[1:], 2):
            if letter in inline:
                attached = text[position:]
                if attached:
                    pieces.append((attached, words[index - 1]))
                elif index < len(words):
                    pieces.append((words[index].text, words[index]))
                    index += 1
                break
            if letter in valued:
                index += 0 if text[position:] else 1
                break
    if pieces:
        for _, word in pieces:
            note_unread(word, command, judge)
        return Source("\n".join(text for text, _ in pieces), pieces[0][1])
    return _file_or_pipe(words[index:], command, judge)


def _file_or_pipe(rest: list[Word], command: Command, judge: Judge) -> Source | None:
    stream = command.stdin
    if rest and rest[0].process is not None:
        stream = rest[0].process
    elif rest and rest[0].text not in _STDIN:
        known = code_in(rest[0], command.scope)
        if known is not None and known.text is not None:
            if is_unread(known):
                judge.blame("remote-code.downloaded", command)
            return Source(known.text, None)
        if known is not None:
            run_known(known, rest[0].text, command, judge)
        else:
            if command.scope.elevated:
                judge.blame("system.elevated-script", command)
            if command.name in _PYTHONS and rest[0].known:
                args = [word.text for word in rest[1:]]
                run_file(rest[0].text, command, judge, kind="python", args=args)
        return None
    if stream is None:
        if command.scope.elevated and not command.has("-V", "-v", "--version", "-h", "--help"):
            judge.blame("accounts.root-shell", command)
        return None
    if stream.text is None and command.scope.elevated:
        judge.blame("system.elevated-script", command)
    note_stream(stream, command, judge)
    if stream.path and command.name in _PYTHONS:
        run_file(stream.path, command, judge, kind="python", args=[])
    return Source(stream.text, None) if stream.text is not None else None
