"""Programs that run a command for each match or line: `find`, `fd`, `xargs`, `parallel`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import hermes.safety.shell.path_classes as delete_targets
from hermes.safety.shell.command import literal, run_line, run_words
from hermes.safety.shell.path_classes import is_credential, targets
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import HOLE, SECRET_FILES, UNKNOWN, Stream, names, tagged

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word

_EXECUTING = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FILTERS = names(
    "-name -iname -path -ipath -wholename -regex -iregex -size -mtime -mmin -newer -ctime -atime "
    "-user -group "
    "-empty -perm -inum -links -amin -cmin -lname -samefile"
)
_NAMES = frozenset(("-name", "-iname", "-path", "-wholename"))
_XARGS_VALUED = names(
    "-I -n -P -L -d -E -s -a --max-args --max-procs --max-lines --delimiter --arg-file "
    "--max-chars -R -S -J "
    "--eof --process-slot-var"
)
_PARALLEL_VALUED = names("-j --jobs -a --arg-file -I --colsep -C -S -N")
_MOST_ITEMS = 24


def _find(command: Command, judge: Judge) -> Stream:
    words = command.words[1:]
    paths: list[Word] = []
    index = 0
    while index < len(words):
        text = words[index].text
        if text in ("-H", "-L", "-P", "-D", "-O3"):
            index += 1
            continue
        if text.startswith(("-", "(", ")", "!", ",")):
            break
        paths.append(words[index])
        index += 1
    paths = paths or [literal(".", command)]
    texts = [word.text for word in words]
    # What is only left out does not limit the rest.
    filtered = any(
        text in _FILTERS and (not at or texts[at - 1] not in ("!", "-not"))
        for at, text in enumerate(texts)
    )
    # Files at the top alone are a part of it; folders there are all that is below them too.
    shallow = "-maxdepth" in texts and ("-type", "d") not in pairwise(texts)
    patterns = [name.text for flag, name in pairwise(words) if flag.text in _NAMES]
    secret = any(
        name != "*" and is_credential("/x/" + name.strip("*"), command.scope) for name in patterns
    )
    while index < len(words):
        text = texts[index]
        if text == "-delete":
            delete_targets.judge_found(command, paths, judge, filtered=filtered or shallow)
            for path in paths:
                judge_write(path, command.text, command.scope, judge)
        elif text in ("-fprint", "-fprint0", "-fls", "-fprintf") and index + 1 < len(words):
            run_words([literal("tee", command), words[index + 1]], command, judge)
        elif text in _EXECUTING:
            end = index + 1
            while end < len(words) and texts[end] not in (";", "+"):
                end += 1
            inner = words[index + 1 : end]
            recursive = any(word.text[:1] == "-" and "r" in word.text.lower() for word in inner)
            top = shallow and (not recursive or ("-type", "f") in pairwise(texts))
            _for_each(command, inner, paths, judge, filtered=filtered or top, secret=secret)
            index = end
        index += 1
    if secret or any(
        is_credential(place, command.scope)
        for path in paths
        for place in targets(path, command.scope)
    ):
        return tagged(UNKNOWN, "names", SECRET_FILES)
    return tagged(UNKNOWN, "names")


def _for_each(
    command: Command,
    inner: list[Word],
    paths: list[Word],
    judge: Judge,
    *,
    filtered: bool,
    secret: bool,
) -> None:
    if not inner:
        return
    if any("{}" in word.text for word in inner[:1]):
        judge.blame("text.unknown-program", command)
        return
    for path in paths[:4]:
        base = path.text.rstrip("/") or ("/" if path.text else "")
        # Unfiltered, the files found are all that is there; a filter leaves only some of them.
        if secret:
            found = "/root/.ssh/id_rsa"
        elif filtered:
            found = f"{base}/{HOLE}"
        else:
            found = f"{base}/*"
        filled = [_fill(word, "{}", found) for word in inner]
        run_words(filled, command, judge, found=True)


def _fill(word: Word, marker: str, value: str, stream: Stream | None = None) -> Word:
    if marker not in word.text:
        return word
    filled = word.part(word.text.replace(marker, value))
    filled.glob = True
    filled.stream = stream or filled.stream
    return filled


def _fd(command: Command, judge: Judge) -> Stream:
    words = command.words
    for index, word in enumerate(words):
        if word.text in ("-x", "--exec", "-X", "--exec-batch"):
            inner = words[index + 1 :]
            if not any("{" in part.text for part in inner):
                inner = [*inner, literal("{}", command)]
            base = command.scope.cwd
            filled = [_fill(part, "{}", f"{base}/{HOLE}") for part in inner]
            run_words(filled, command, judge, found=True)
            break
    return tagged(UNKNOWN, "names")


def _xargs(command: Command, judge: Judge) -> Stream:
    words = command.words[1:]
    index = 0
    marker = ""
    separator: str | None = None
    while index < len(words):
        text = words[index].text
        if text == "--":
            index += 1
            break
        if not text.startswith("-") or text == "-":
            break
        if text.startswith(("-I", "-J")):
            marker = text[2:] or (words[index + 1].text if index + 1 < len(words) else "{}")
        elif text in ("-i", "--replace"):
            marker = "{}"
        elif text.startswith("--replace="):
            marker = text[10:]
        elif text in ("-0", "--null") or (
            text[1:2] != "-" and "0" in text and not text[1:].isdigit()
        ):
            separator = "\0"
        elif text.startswith("-d") and (len(text) > 2 or index + 1 < len(words)):
            separator = (
                (text[2:] or words[index + 1].text).replace("\\n", "\n").replace("\\0", "\0")
            )
        index += 2 if text in _XARGS_VALUED else 1
    inner = words[index:]
    if not inner:
        return command.stdin or tagged(UNKNOWN)
    # With a marker it is lines that are filled in, blanks and all.
    items = _items(command, separator or ("\n" if marker else None))
    if marker:
        output = tagged(UNKNOWN)
        for item in items:
            filled = [_fill(word, marker, item.text, command.stdin) for word in inner]
            output = run_words(filled, command, judge, found=not item.known)
        return output
    known = all(item.known for item in items)
    return run_words([*inner, *items], command, judge, found=not known)


def _items(command: Command, separator: str | None) -> list[Word]:
    stdin = command.stdin
    if stdin is None or stdin.text is None:
        word = literal(HOLE, command)
        word.stream = stdin
        return [word]
    pieces = stdin.text.split(separator) if separator else _split(stdin.text)
    items = [literal(piece.strip("\n"), command) for piece in pieces[:_MOST_ITEMS] if piece.strip()]
    for item in items:
        item.stream = stdin if stdin.tags else None
        # Printed by a shell, a pattern has become the files that fit it.
        item.glob = "*" in item.text or "?" in item.text
    if len(pieces) > _MOST_ITEMS:
        items.append(literal(HOLE, command))
    return items


def _split(text: str) -> list[str]:
    """The items of a line, with what is quoted in one piece."""
    if "'" in text or '"' in text or "\\" in text:
        import shlex

        try:
            return shlex.split(text)
        except ValueError:
            return [piece.strip("'\"") for piece in text.split()]
    return text.split()


def _parallel(command: Command, judge: Judge) -> Stream:
    words = command.words[1:]
    index = 0
    while index < len(words) and words[index].text.startswith("-"):
        valued = words[index].text in _PARALLEL_VALUED
        index += 2 if valued else 1
    rest = words[index:]
    cut = next(
        (i for i, word in enumerate(rest) if word.text in (":::", "::::", ":::+")), len(rest)
    )
    inner, items = rest[:cut], rest[cut + 1 :]
    if cut == len(rest):
        items = _items(command, "\n")
    if not inner:
        for item in items:
            run_line([item], command, judge)
        return tagged(UNKNOWN)
    for item in items[:_MOST_ITEMS] or [literal(HOLE, command)]:
        if any("{" in word.text for word in inner):
            filled = [_fill(_fill(word, "{}", item.text), "{.}", item.text) for word in inner]
        else:
            filled = [*inner, item]
        run_line(filled, command, judge)
    if len(items) > 1 and inner[0].text in ("rm", "unlink", "shred"):
        judge.blame("delete.each", command)
    return tagged(UNKNOWN)


FINDERS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "xargs": _xargs,
    "gxargs": _xargs,
    "parallel": _parallel,
}
