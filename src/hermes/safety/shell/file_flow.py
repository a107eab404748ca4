"""File flow: the contents of files that a command writes and uses again."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import (
    DECODED,
    KEPT,
    NETWORK,
    PRIVATE,
    SETTINGS,
    UNKNOWN_CHARS,
    UNPACKED,
    Stream,
    joined,
    names,
    tagged,
)

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope, Word

FETCHED = tagged(NETWORK)
_UNREAD = frozenset((NETWORK, DECODED))
_TELLING = _UNREAD | PRIVATE | {SETTINGS}
_INSTALLED = ("/usr/", "/bin/", "/sbin/", "/opt/")
_STDIN = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
# With more of them nobody looks for those that a pattern fits.
MOST_FILES = 100
_COPYING = names("cp gcp mv gmv install ginstall ln gln rsync scp ditto")


def place_of(word: Word, scope: Scope) -> str:
    """Where a file is remembered: its path, or the variables that name it where that is open."""
    if word.text.strip(UNKNOWN_CHARS):
        return scope.absolute(word.text)
    return "$" + ",".join(word.variables)


def remember(word: Word, scope: Scope, stream: Stream, *, append: bool = False) -> None:
    """Keep what a text writes to a file, after what it wrote there before with `append`."""
    _keep(place_of(word, scope), scope, stream, append=append)


def remember_text(path: str, text: str, scope: Scope, *, append: bool = False) -> None:
    """Keep the text that code of another language puts into a file."""
    if text and path.strip(UNKNOWN_CHARS) and not any(char in text for char in UNKNOWN_CHARS):
        _keep(scope.absolute(path), scope, Stream(text), append=append)


def _keep(place: str, scope: Scope, stream: Stream, *, append: bool) -> None:
    if not (stream.text or stream.tags & _TELLING):
        return
    if append or scope.unsure:
        old = scope.written.get(place) or Stream("", frozenset((KEPT,)))
        stream = joined([old, stream])
    scope.written[place] = stream


def fetch(path: str, scope: Scope) -> None:
    """Note that a file holds text from elsewhere, unread; text that is known may still be there."""
    place = scope.absolute(path)
    old = scope.written.get(place, FETCHED)
    scope.written[place] = Stream(old.text, old.tags | FETCHED.tags)


def is_unread(stream: Stream | None) -> bool:
    """Whether a file was fetched or decoded: nobody has seen what is in it."""
    return stream is not None and not _UNREAD.isdisjoint(stream.tags)


def code_in(word: Word, scope: Scope) -> Stream | None:
    """What this text wrote to a file that is now run; None when it is not known to have."""
    if not scope.written:
        return None
    place = place_of(word, scope)
    if word.glob and place not in scope.written:
        if len(scope.written) > MOST_FILES:
            return FETCHED
        # A pattern stands for the files that fit it, and this text may have made one of them.
        place = next((made for made in scope.written if fnmatchcase(made, place)), place)
    return _code(place, word.text, scope)


def code_at(path: str, scope: Scope) -> Stream | None:
    """The same for a path that no word of the text stands for."""
    return _code(scope.absolute(path), path, scope) if scope.written else None


def _code(place: str, path: str, scope: Scope) -> Stream | None:
    known = scope.written.get(place)
    if known is not None and (known.text is not None or is_unread(known)):
        return known
    if path.startswith(_INSTALLED):
        return None
    # Whatever an archive had in it may be anywhere in the folder.
    return scope.written.get(UNPACKED)


def holds_private(words: list[Word], scope: Scope) -> bool:
    """Whether this text put something into one of these files that others are not meant to get."""
    found = (scope.written.get(place_of(word, scope)) for word in words)
    return any(known is not None and not PRIVATE.isdisjoint(known.tags) for known in found)


def carry(command: Command, targets: list[Word]) -> None:
    """Follow what is known of a file or a pipe into the files that a program copies it to."""
    scope, stdin, name = command.scope, command.stdin, command.name
    if name in ("tee", "sponge") and stdin is not None:
        for target in targets:
            remember(target, scope, stdin, append=command.has("-a", "--append"))
    elif name in _COPYING:
        # The target, then each name that would appear inside it.
        sources = command.operands if command.has("-t") else command.operands[:-1]
        for source, target in [
            *product(sources[:1], targets[:1]),
            *zip(sources, targets[1:], strict=False),
        ]:
            _copy(source, target, command)
    elif name == "dd" and targets:
        given = [word.part(word.text[3:]) for word in command.operands if word.text[:3] == "if="]
        _copy(given[0] if given else command.words[0].part("-"), targets[0], command)


def _copy(source: Word, target: Word, command: Command) -> None:
    scope = command.scope
    known = command.stdin if source.text in _STDIN else scope.written.get(place_of(source, scope))
    if known is not None:
        remember(target, scope, known)
