"""Memory snapshot: both files as text for the start of a conversation."""

from __future__ import annotations

import os

from hermes.core.home import home_path

_ABOUT = {"MEMORY.md": "Your notes", "USER.md": "About the person"}


def snapshot() -> str:
    """What is remembered, for the system text; empty when nothing is.

    Entries that give orders, which somebody else must have written, are left out and counted.
    """
    parts = []
    for file, title in _ABOUT.items():
        if os.path.exists(home_path("memories", file)):
            parts += _part(file, title)
    return "\n\n".join(parts)


def _part(file: str, title: str) -> list[str]:
    from hermes.core.errors import ToolError
    from hermes.safety.injection import find_orders
    from hermes.safety.sanitise import clean_text, sanitise_error
    from hermes.stores.memory.blocks import entries, rendered
    from hermes.stores.memory.memory_store import Memory
    from hermes.stores.memory.versioned_file import shown

    memory = Memory("user" if file == "USER.md" else "memory")
    try:
        text = memory.text()
    except (OSError, ToolError) as error:
        return [f"{title} ({memory.file}): can't be read: {error}"]
    lines: list[str] = []
    room, held, cut = memory.limit, 0, 0
    for block in entries(text):
        said = clean_text(shown(block.text))
        if next(find_orders(said), None) is not None:
            held += 1
            continue
        # Neither framing that could end the system text, nor secrets.
        line = rendered(sanitise_error(said, limit=len(text)))
        if len(line) > room:
            cut += 1
            continue
        room -= len(line)
        lines.append(line)
    if held:
        lines.append(f"({held} left out: written as orders to you)\n")
    if cut:
        lines.append(f"({cut} left out: no room; the file has {len(text):,} characters)\n")
    return [f"{title} ({memory.file}):\n{''.join(lines).rstrip()}"] if lines else []
