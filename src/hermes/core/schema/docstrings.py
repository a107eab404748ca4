"""Docstring parser: the description of a tool, and of each parameter."""

from __future__ import annotations

_LISTS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments",
          "other parameters")  # fmt: skip
_OTHERS = ("returns", "return", "raises", "raise", "yields", "yield")
_TITLES = frozenset((*_LISTS, *_OTHERS, "attributes"))
_INLINE = tuple(f"{title}: " for title in _OTHERS)
_FIELDS = (":param", ":type", ":return", ":rtype", ":raise", ":yield", ":arg", ":key", ":kwarg")
_BULLETS = ("- ", "* ", "• ", "+ ")


def parse(text: str | None, *, attributes: bool = False) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the description of each documented parameter.

    With `attributes`, an `Attributes:` section counts as well, as classes have it.
    """
    if not text:
        return "", {}
    if "\n" not in text:
        return text.strip(), {}
    lines = _dedent(text)
    summary: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    body = summary
    hanging = False  # in a section that ends at the next line without indentation
    for index, line in enumerate(lines):
        if not line or line[0] == " ":
            body.append(line)
            continue
        title = _title(lines, index)
        if title:
            body = [line] if title == ":" else []
            sections.append((title, body))
            hanging = title[-1] != "-"
        elif hanging:
            body = []
            hanging = False
        else:
            body.append(line)
    described: dict[str, str] = {}
    for title, body in sections:
        name = title.rstrip("-")
        if title == ":":
            _field(body, described)
        elif name in _LISTS or (attributes and name == "attributes"):
            described.update(_entries(body[1:] if title.endswith("-") else body))
    return "\n".join(summary).strip(), described


def _dedent(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.expandtabs().splitlines()]
    first = [lines.pop(0).lstrip()]  # it stands behind the quotes, at no indentation of its own
    margin = min([len(line) - len(line.lstrip()) for line in lines if line], default=0)
    return first + [line[margin:] for line in lines] if margin else first + lines


def _title(lines: list[str], index: int) -> str:
    """The section that starts here: its name, with "-" for an underlined one, ":" for a field."""
    line = lines[index]
    if line[0] == ":":
        return ":" if line.startswith(_FIELDS) else ""
    word = line.lower()
    if word[-1] == ":":
        return word[:-1] if word[:-1] in _TITLES else ""
    if word in _TITLES and index + 1 < len(lines) and lines[index + 1].strip("-") == "":
        return word + "-" if len(lines[index + 1]) > 2 else ""
    # A result in one line; as the first line it is the summary itself.
    starts = index > 0 and not lines[index - 1] and word.startswith(_INLINE)
    return "returns" if starts else ""


def _entries(lines: list[str]) -> dict[str, str]:
    described: dict[str, str] = {}
    names: list[str] = []
    margin: int | None = None
    gap = False
    for line in lines:
        if not line:
            gap = True
            continue
        text = line.lstrip()
        depth = len(line) - len(text)
        margin = depth if margin is None else margin
        head = _head(text) if depth <= margin else None
        if head:
            names, text = head
            for name in names:
                described[name] = text
        else:
            for name in names:
                described[name] = _joined(described[name], text, gap=gap)
        gap = False
    return described


def _head(line: str) -> tuple[list[str], str] | None:
    """The names and the text of `name (type): text`; a bare `name : type` has no text yet."""
    words, colon, text = line.partition(":")
    if "(" in words:
        words, _, rest = line.partition("(")
        depth = 1
        for position, character in enumerate(rest):
            depth += (character == "(") - (character == ")")
            if depth == 0:
                rest = rest[position + 1 :].lstrip()
                break
        colon, text = rest[:1], rest[1:]
        if colon != ":":
            return None
    elif words.endswith(" ") or not colon:
        text = ""  # underlined sections put a type here
    if words.isidentifier():
        return [words], text.strip()
    names = [word.strip(" `").lstrip("\\*") for word in words.split(",")]
    return (names, text.strip()) if all(name.isidentifier() for name in names) else None


def _field(lines: list[str], described: dict[str, str]) -> None:
    words, colon, text = lines[0][1:].partition(":")
    kind, *rest = words.split()
    if colon and rest and kind in ("param", "parameter", "arg", "argument", "key", "keyword"):
        text = text.strip()
        for line in lines[1:]:
            if line.strip():
                text = _joined(text, line.strip(), gap=False)
        described[rest[-1].lstrip("\\*")] = text


def _joined(text: str, line: str, *, gap: bool) -> str:
    if not text:
        return line
    return f"{text}\n{line}" if gap or line.startswith(_BULLETS) else f"{text} {line}"
