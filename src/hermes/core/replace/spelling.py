"""Other readings of what was sent: escaped once too often, or pasted with line numbers.

Each reading is applied to the old and to the new text alike, and counts only if the old text is
found that way.
"""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
