"""Memory prompt: both memory files as text for the system prompt."""

from __future__ import annotations

import os

from hermes.core.paths import home_path

_TITLES = {"MEMORY.md": "Your notes", "USER.md": "About the person"}


def snapshot() -> str:
    """Both memory files as prompt text; empty when there are no entries.

    Entries that look like prompt injections are left out and counted.
    """
    parts = []
    for file, title in _TITLES.items():
        if os.path.exists(home_path("memories", file)):
            parts += _part(file, title)
    return "\n\n".join(parts)


def _part(file: str, title: str) -> list[str]:
    from hermes.core.errors import ToolError
    from hermes.safety.injection import find_planted
    from hermes.safety.sanitise import clean_text, sanitise_error
    from hermes.stores.memory.blocks import entries, rendered
    from hermes.stores.memory.memory_store import Memory
    from hermes.stores.memory.versioned_file import printable

    memory = Memory("user" if file == "USER.md" else "memory")
    try:
        text = memory.text()
    except (OSError, ToolError) as error:
        return [f"{title} ({memory.file}): can't be read: {error}"]
    lines: list[str] = []
    room, injections, too_long = memory.limit, 0, 0
    for block in entries(text):
        entry = clean_text(printable(block.text))
        if next(find_planted(entry), None) is not None:
            injections += 1
            continue
        # Without framing that could end the system prompt, and without secrets.
        line = rendered(sanitise_error(entry, limit=len(text)))
        if len(line) > room:
            too_long += 1
            continue
        room -= len(line)
        lines.append(line)
    if injections:
        lines.append(f"({injections} left out: written as orders to you)\n")
    if too_long:
        lines.append(f"({too_long} left out: no room; the file has {len(text):,} characters)\n")
    return [f"{title} ({memory.file}):\n{''.join(lines).rstrip()}"] if lines else []
