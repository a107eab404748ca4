"""Truncation of large results to the model's size limit; the omitted part is named and stored as
an artifact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.json_text import to_json

if TYPE_CHECKING:
    from typing import Any

    from hermes.runtime.artifacts import ArtifactStore

# What the frame around a cut result (handle, sizes, the note) may take.
_FRAME = 400
_SMALLEST = 40


def fit(
    content: str, limit: int, artifacts: ArtifactStore | None, source: str = ""
) -> tuple[str, str | None]:
    """`content` (JSON text) in at most `limit` characters, and the handle of the whole.

    `source` is the untrusted source of the text, stored with the whole.

    The note on the omitted part needs room: a limit below about 450 is taken as 450.
    """
    limit = max(limit, _FRAME + _SMALLEST)
    if len(content) <= limit:
        return content, None
    value = _parsed(content)
    whole = value if isinstance(value, str) else content
    handle, note = _keep(whole, artifacts, source)
    frame: dict[str, Any] = {"truncated": True, "total_chars": len(whole), "note": note}
    if handle:
        frame["artifact"] = handle
    budget = max(limit - len(to_json(frame)) - len('{"result":},'), _SMALLEST)
    while True:
        framed = to_json(_framed(shrink(value, budget), frame))
        if len(framed) <= limit:
            return framed, handle
        if budget <= _SMALLEST:
            return to_json({"result": whole[: _SMALLEST // 2], **frame}), handle
        budget = max(budget * 3 // 4, _SMALLEST)


def _parsed(content: str) -> Any:
    import json

    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        # Nested too deeply, or a number of thousands of digits: cut as the text that it is.
        return content


def _keep(whole: str, artifacts: ArtifactStore | None, source: str) -> tuple[str | None, str]:
    if artifacts is None:
        return None, "the rest was not kept: this front door has no artifact store"
    try:
        handle = artifacts.put(whole, source=source)
    except OSError as error:
        reason = error.strerror or str(error)
        return None, f"the rest could not be kept: {reason:.120}"
    return handle, f'read_artifact("{handle}", offset=…, limit=…, pattern=…) shows the rest'


def _framed(value: Any, frame: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value, dict):
        clash = frame.keys() & value.keys()
        return {**value, **frame} if not clash else {"result": value, **frame}
    key = "items" if isinstance(value, list) else "text" if isinstance(value, str) else "result"
    return {key: value, **frame}


def shrink(value: Any, budget: int) -> Any:
    """`value` cut so that its JSON text has about `budget` characters at most."""
    if isinstance(value, str):
        return _shrink_text(value, budget)
    if isinstance(value, list):
        return _shrink_list(value, budget)
    if isinstance(value, dict):
        return _shrink_dict(value, budget)
    return value


def _size(value: Any) -> int:
    return len(to_json(value))


def _shrink_text(text: str, budget: int) -> str:
    # Escapes make the JSON longer than the text.
    length = _size(text)
    if length <= budget:
        return text
    room = max(budget * len(text) // length - 50, 8)
    head = room * 2 // 3
    tail = room - head
    left = len(text) - room
    return f"{text[:head]}\n…[{left} characters left out]…\n{text[len(text) - tail :]}"


def _shrink_list(items: list[Any], budget: int) -> list[Any]:
    sizes = [_size(item) + 1 for item in items]
    if not items or sum(sizes) + 2 <= budget:
        return items
    room = budget - 40
    head: list[Any] = []
    for item, size in zip(items, sizes, strict=True):
        if size > room * 2 // 3:
            break
        head.append(item)
        room -= size
    tail: list[Any] = []
    for item, size in zip(reversed(items[len(head) :]), reversed(sizes[len(head) :]), strict=True):
        if size > room:
            break
        tail.append(item)
        room -= size
    if not head and not tail:
        # Even the first item is too large: show what fits of it.
        head = [shrink(items[0], max(room, _SMALLEST))]
    left = len(items) - len(head) - len(tail)
    return [*head, f"…[{left} items left out]…", *reversed(tail)] if left else [*head, *tail]


def _shrink_dict(fields: dict[str, Any], budget: int) -> dict[str, Any]:
    sizes = {key: _size(key) + 1 + _size(value) + 1 for key, value in fields.items()}
    if sum(sizes.values()) + 2 <= budget:
        return fields
    room = budget - 2
    kept = _with_room(sizes, room)
    left = len(fields) - len(kept)
    room -= _SMALLEST if left else 0
    # The small fields are kept whole; the large ones share what is left.
    large = dict.fromkeys(kept)
    for key in kept:
        if sizes[key] * len(large) > room:
            break
        room -= sizes[key]
        del large[key]
    share = room // max(len(large), 1)
    shown = {
        key: shrink(value, share - _size(key) - 2) if key in large else value
        for key, value in fields.items()
        if key in kept
    }
    return {**shown, "…": f"{left} fields left out"} if left else shown


def _with_room(sizes: dict[str, int], room: int) -> dict[str, None]:
    """The fields of which something can be shown, smallest first; all, if there is room."""
    least = {key: min(size, _size(key) + 2 * _SMALLEST) for key, size in sizes.items()}
    if sum(least.values()) > room:
        room -= _SMALLEST
    kept: dict[str, None] = {}
    for key in sorted(sizes, key=sizes.__getitem__):
        room -= least[key]
        if room < 0:
            break
        kept[key] = None
    return kept
