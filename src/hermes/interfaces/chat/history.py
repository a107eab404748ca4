"""Input history: a private JSON lines file, shared by concurrent chats."""

from __future__ import annotations

import os

from hermes.core.home import home_path, make_private

# What is remembered, and when the file is cut down to it.
_ENTRIES = 2_000
_BYTES = 2 * 1024 * 1024


def history_path() -> str:
    """Where it is kept."""
    return home_path("chat_history")


def typed_before() -> list[str]:
    """What was typed before, oldest first; a line that can't be read is left out."""
    import json

    try:
        with open(history_path(), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines[-_ENTRIES:]:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, str):
            found.append(entry)
    return found


def remember(text: str) -> None:
    """Keep what was typed; where that can't be, it is not kept."""
    import json

    path = history_path()
    line = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False) + "\n"
    try:
        make_private(os.path.dirname(path))
        # Appended in one write: two chats at once do not mix their lines.
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
        try:
            os.write(handle, line.encode())
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        if size > _BYTES:
            _shorten(path)
    except OSError:
        return


def _shorten(path: str) -> None:
    import json

    from hermes.core.home import write_private

    kept = typed_before()
    while sum(map(len, kept)) > _BYTES // 4:
        kept = kept[len(kept) // 2 + 1 :]
    lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in kept)
    write_private(path, "".join(lines).encode())


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
