"""Needle variants: the old text as sent, without outer blank lines, unescaped, without line
numbers.
"""

from __future__ import annotations

from itertools import pairwise

from hermes.core.errors import EditError
from hermes.text.replace.match import (
    EXACT,
    Match,
    exact_positions,
    find_lines,
    find_matches,
    whole_words,
)
from hermes.text.replace.source_lines import BOM

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes.text.replace.source_lines import Source


# Stand for the text to replace and for what takes its place; no text has these characters.
OLD, NEW = "\ufdd0", "\ufdd1"


def name(error: EditError, old: str, new: str) -> None:
    """Insert the names of both texts into an error."""
    error.args = (_named(str(error), old, new),)
    if error.hint is not None:
        error.hint = _named(error.hint, old, new)


def _named(text: str, old: str, new: str) -> str:
    return text.replace(OLD, old).replace(NEW, new)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/", "`": "`"}
_ENTITIES = {"lt": "<", "gt": ">", "quot": '"', "#39": "'", "#x27": "'", "apos": "'", "amp": "&"}
_NUMBER_ENDS = "|:\t→"


def readings(old: str, new: str) -> Iterator[tuple[str, str, str | None]]:
    """(strategy, old, new) for every reading in which the old text is another one.

    The new text is None where it can't be read in the same way.
    """
    decoders: list[tuple[str, Callable[[str], str | None]]] = [
        ("escapes", lambda text: _unescaped(text, set(_ESCAPES), strict=True)),
        ("escapes", lambda text: _unescaped(text, set("\"'`"), strict=False)),
        ("escapes", lambda text: _unescaped(text, {"n", "t", "r"}, strict=False)),
        ("escapes", lambda text: _unescaped(text, {"\\"}, strict=False)),
        ("entities", _without_entities),
    ]
    for name, decode in decoders:
        read_old, read_new = decode(old), decode(new)
        if read_old and read_old != old:
            cut = read_new is not None and _cuts_literal(new, read_new, read_old)
            yield name, read_old, None if cut else read_new
    fresh = _numbered(new)
    for way, without in enumerate(_numbered(old, step=1) or ()):
        if fresh is None:
            yield "line-numbers", without, None
        else:
            yield "line-numbers", without, fresh[min(way, len(fresh) - 1)] if fresh else new


def _unescaped(text: str, known: set[str], *, strict: bool) -> str | None:
    """The text with these escapes resolved; strictly, None where a backslash is none of them."""
    if "\\" not in text:
        return text
    result: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        following = text[position + 1 : position + 2]
        if character != "\\":
            result.append(character)
            position += 1
        elif following and following in known:
            result.append(_ESCAPES[following])
            position += 2
        elif strict and following == "u" and _is_hex(text[position + 2 : position + 6]):
            result.append(chr(int(text[position + 2 : position + 6], 16)))
            position += 6
        elif strict:
            return None
        else:
            # A backslash that is itself escaped escapes nothing.
            step = 2 if following == "\\" else 1
            result.append(text[position : position + step])
            position += step
    # Characters beyond the first 65,536 are written as two halves.
    return "".join(result).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_hex(text: str) -> bool:
    return len(text) == 4 and all(character in "0123456789abcdefABCDEF" for character in text)


def _cuts_literal(text: str, read: str, old: str) -> bool:
    """Whether line ends that were escapes fall inside quotation marks, where they belong."""
    if text.count("\n") == read.count("\n"):
        return False
    known = set(old.split("\n"))
    fresh = [line for line in read.split("\n") if line not in known]
    return any(line.replace('\\"', "").replace('"""', "").count('"') % 2 for line in fresh)


def _without_entities(text: str) -> str:
    for name, character in _ENTITIES.items():
        text = text.replace(f"&{name};", character)
    return text


def first_number(text: str) -> int:
    """The line number that a text is pasted with; 0 when it has none."""
    found = _number(text.split("\n", 1)[0])
    return found[0] if found else 0


def _numbered(text: str, *, step: int | None = None) -> list[str] | None:
    """The text without line numbers, in each way they may be set off; [] when it has none.

    None when only some of its lines have a number, or they do not grow (by `step`).
    """
    lines = text.split("\n")
    ending = "\n" if len(lines) > 1 and not lines[-1].strip() else ""
    if ending:
        lines.pop()
    parts = [_number(line) for line in lines]
    found = [part for part in parts if part is not None]
    if not found:
        return []
    if len(found) < len(lines):
        return (
            None if any(line.strip() for line, p in zip(lines, parts, strict=True) if not p) else []
        )
    numbers = [number for number, _ in found]
    steps = [after - before for before, after in pairwise(numbers)]
    if any(grown != step if step else grown < 0 for grown in steps):
        return None
    texts = ["\n".join(rest for _, rest in found) + ending]
    if all(not rest or rest[0] == " " for _, rest in found):
        texts.append("\n".join(rest[1:] for _, rest in found) + ending)
    return texts


def _number(line: str) -> tuple[int, str] | None:
    rest = line.lstrip(" ").removeprefix("L")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    after = rest[digits:]
    if after[:2] == " |":
        after = after[1:]
    if (
        not 0 < digits < 8
        or not rest[:digits].isascii()
        or after[:1] not in _NUMBER_ENDS
        or not after
    ):
        return None
    return int(rest[:digits]), after[1:]


# By the grade of a match.
_NAMES = ("exact", "line-endings", "typography", "trailing-whitespace", "indentation",
          "typography", "whitespace")  # fmt: skip
_REACH = 200  # lines that may have been added or removed since a paste


def find(source: Source, old: str, new: str) -> tuple[str, list[Match], str, str] | None:
    """How the old text can be found, with the texts as they were read for it."""
    if old.startswith(BOM):
        old, new = old.removeprefix(BOM), new.removeprefix(BOM)
    matches = find_matches(source, old, new)
    if matches:
        return _NAMES[matches[0].grade], matches, old, new
    trimmed = _without_blank_edges(source.lines_of(old), source.lines_of(new))
    if trimmed is not None:
        matches = find_lines(source, trimmed[0].split("\n"), trimmed[1].split("\n"))
        if matches:
            return "whitespace", matches, *trimmed
    unread = ""
    results: dict[tuple[str, int], tuple[str, list[Match], str, str]] = {}
    for name, read_old, read_new in readings(_lined(source, old), _lined(source, new)):
        if name == "line-numbers":
            fresh = (read_new or "").split("\n")
            matches = find_lines(source, read_old.split("\n"), fresh)
            number = first_number(old)
            reach = _REACH if "\n" in read_old.strip("\n") else _REACH // 10
            matches = [m for m in matches if abs(source.line_at(m.start) + 1 - number) <= reach]
        else:
            matches = find_words(source, read_old) or find_matches(source, read_old, read_new or "")
        if not matches:
            continue
        if read_new is None:
            unread = name
            continue
        results.setdefault((read_new, matches[0].start), (name, matches, read_old, read_new))
        if name == "line-numbers":
            break
    if len(results) > 1 or (unread and not results):
        why = "can be read in two ways" if results else f"can't be read without its {unread}"
        raise EditError(
            f"{OLD} is not in the file as it was sent, only without its {unread or 'escapes'}, "
            f"and {NEW} {why}",
            hint=f"Send {OLD} and {NEW} as the file has them: no escapes or line numbers added.",
        )
    return next(iter(results.values()), None)


def find_block(source: Source, old: Sequence[str], new: Sequence[str]) -> tuple[str, list[Match]]:
    """How whole lines that are not there to the letter can be found, and where."""
    matches = find_lines(source, old, new)
    if not matches and not (source.text.isascii() and "".join(old).isascii()):
        matches = find_lines(source, old, new, folded=True)
    return (_NAMES[matches[0].grade], matches) if matches else ("", [])


def find_words(source: Source, old: str) -> list[Match]:
    """Matches to the letter that begin and end with whole words."""
    return [
        Match(source, start, start + len(old), grade=EXACT)
        for start in exact_positions(source.text, old)
        if whole_words(source.text, start, start + len(old))
    ]


def _lined(source: Source, text: str) -> str:
    return "\n".join(source.lines_of(text))


def _without_blank_edges(before: list[str], after: list[str]) -> tuple[str, str] | None:
    """Both texts without the blank lines around them, where they have the same ones."""
    changed = False
    while len(before) > 1 and len(after) > 1 and not before[0].strip() and not after[0].strip():
        del before[0], after[0]
        changed = True
    while len(before) > 1 and len(after) > 1 and not before[-1].strip() and not after[-1].strip():
        del before[-1], after[-1]
        changed = True
    return ("\n".join(before), "\n".join(after)) if changed else None
