"""Other readings of what was sent: escaped once too often, or pasted with line numbers.

Each reading is applied to the old and to the new text alike, and counts only if the old text is
found that way.
"""

from __future__ import annotations

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
        if read_old and read_old != old and read_new is not None:
            yield name, read_old, read_new
    fresh = _numbered(new)
    for way, without in enumerate(_numbered(old) or ()):
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
        elif strict:
            return None
        else:
            # A backslash that is itself escaped escapes nothing.
            step = 2 if following == "\\" else 1
            result.append(text[position : position + step])
            position += step
    return "".join(result)


def _without_entities(text: str) -> str:
    for name, character in _ENTITIES.items():
        text = text.replace(f"&{name};", character)
    return text


def _numbered(text: str) -> list[str] | None:
    """The text without line numbers, in each way they may be set off; [] when it has none.

    None when only some of its lines have a number.
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
    if numbers != sorted(numbers):
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
