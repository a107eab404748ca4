"""What a half-typed word may become: a /command, what can follow it, an @file."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from hermes.interfaces.chat.catalogue import COMMANDS

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Arguments = Mapping[str, Callable[[], Iterable[tuple[str, str]]]]

_HALF_FILE = re.compile(r"""(?<![^\s(\[{])@("[^"\n]*|(?:\\.|[^\s"\\])*)$""")
_MOST = 200


class Half(NamedTuple):
    """What may stand in place of the last `length` characters, and a word about it."""

    text: str
    length: int
    about: str = ""


def completions(before: str, folder: str, arguments: Arguments) -> Iterator[Half]:
    """What the text before the cursor may become.

    Args:
        before: The text up to the cursor.
        folder: Where relative paths start.
        arguments: For a command's name, what may follow it: words, and a word about each.
    """
    if before.startswith("/") and "\n" not in before:
        yield from _command(before, arguments)
    half = _HALF_FILE.search(before)
    if half is not None:
        yield from _files(half[1], folder)


def _command(before: str, arguments: Arguments) -> Iterator[Half]:
    word, blank, rest = before[1:].partition(" ")
    if not blank:
        for name, (_, line) in COMMANDS.items():
            if name.startswith(word.lower()):
                yield Half(f"/{name}", len(before), line)
        return
    if word in arguments and " " not in rest:
        for value, about in arguments[word]():
            if value.startswith(rest):
                yield Half(value, len(rest), about)


def _files(half: str, folder: str) -> Iterator[Half]:
    typed = half[1:] if half.startswith('"') else re.sub(r"\\(.)", r"\1", half)
    above, _, start = typed.rpartition("/")
    place = os.path.join(folder, os.path.expanduser(f"{above}/" if "/" in typed else above))
    try:
        with os.scandir(place) as entries:
            found = [
                (not entry.is_dir(), entry.name)
                for entry in entries
                if entry.name.lower().startswith(start.lower())
                and (start.startswith(".") or not entry.name.startswith("."))
                and entry.name.isprintable()
            ]
    except (OSError, ValueError):
        return
    for is_file, name in sorted(found)[:_MOST]:
        path = f"{above}/{name}" if "/" in typed else name
        path += "" if is_file else "/"
        spelled = f'"{path}' + ('"' if is_file else "") if re.search(r"[\s\"'\\]", path) else path
        yield Half(spelled, len(half))
