"""YAML edits: set one value in a YAML text; comments and all other lines stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


def edited(text: str, parts: list[str], value: Any) -> str | None:
    """`text` with `value` at the key path `parts`; None for a layout that is not supported.

    The caller parses the new text and compares it with the intended values.
    """
    import yaml

    try:
        root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    spelled = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=2**31)
    spelled = spelled.removesuffix("\n").removesuffix("\n...")
    line_end = "\r\n" if "\r\n" in text else "\n"
    if root is None or root.value == "":
        return _after(text, len(text), _block(parts, spelled, "", line_end), line_end)
    node, key = root, None
    while parts and isinstance(node, yaml.MappingNode):
        # The last of two alike is the one that counts.
        pairs = [p for p in node.value if getattr(p[0], "value", None) == parts[0]]
        if not pairs:
            return _added(text, node, parts, spelled, line_end)
        key, node = pairs[-1]
        parts = parts[1:]
    if key is None:
        return None
    if not parts:
        return _replaced(text, key, node, spelled)
    if isinstance(node, yaml.ScalarNode) and not node.value:
        indent = " " * (key.start_mark.column + 2)
        return _after(text, key.end_mark.index, _block(parts, spelled, indent, line_end), line_end)
    return None


def _added(text: str, node: Any, parts: list[str], spelled: str, line_end: str) -> str:
    """The text with a name that its section does not have yet."""
    if not node.value or node.flow_style:
        inner = _flow(parts, spelled) + (", " if node.value else "")
        # At the front: at the back there may be a comma or a comment.
        start = text.index("{", node.start_mark.index) + 1
        return text[:start] + inner + text[start:]
    indent = " " * node.value[0][0].start_mark.column
    return _after(text, _end(*node.value[-1]), _block(parts, spelled, indent, line_end), line_end)


def _replaced(text: str, key: Any, node: Any, spelled: str) -> str | None:
    start, end = node.start_mark.index, _end(key, node)
    if start < key.start_mark.index:
        return None
    if not text[start:end].strip():
        # No value yet: it goes right behind the colon.
        start = end = text.index(":", key.end_mark.index) + 1
        spelled = f" {spelled}"
    elif node.start_mark.line > key.start_mark.line and not (
        node.start_mark.column > key.start_mark.column
    ):
        # Items of a list may stand as far left as their name; a value in brackets may not.
        spelled = f"  {spelled}"
    return text[:start] + spelled + text[end:]


def _end(key: Any, node: Any) -> int:
    """Where the text of a value ends; a block itself claims the comments that follow it, too."""
    start, end = node.start_mark.index, node.end_mark.index
    if not key.start_mark.index <= start < end:
        # Nothing there is said to be where the next thing begins, an alias where its anchor is.
        behind: int = key.end_mark.index
        return behind
    if isinstance(node.value, list) and node.value and not node.flow_style:
        last = node.value[-1]
        return _end(*last) if isinstance(last, tuple) else _end(last, last)
    found: int = end
    return found


def _after(text: str, place: int, lines: str, line_end: str) -> str:
    """The text with lines put behind the line that `place` is in."""
    if place and text[place - 1 : place] == "\n":
        return text[:place] + lines + text[place:]
    found = text.find("\n", place)
    if found < 0:
        return text + (line_end if text else "") + lines
    return text[: found + 1] + lines + text[found + 1 :]


def _block(parts: list[str], spelled: str, indent: str, line_end: str) -> str:
    lines = [f"{indent}{'  ' * depth}{part}:" for depth, part in enumerate(parts)]
    return line_end.join(lines) + f" {spelled}{line_end}"


def _flow(parts: list[str], spelled: str) -> str:
    for part in reversed(parts[1:]):
        spelled = f"{{{part}: {spelled}}}"
    return f"{parts[0]}: {spelled}"
