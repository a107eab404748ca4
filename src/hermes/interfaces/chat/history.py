"""Input history: a private JSON lines file, shared by concurrent chats."""

from __future__ import annotations

import os

from hermes.core.paths import home_path, make_private

# Entries kept, and the file size at which older ones are dropped.
_ENTRIES = 2_000
_BYTES = 2 * 1024 * 1024


def history_path() -> str:
    return home_path("chat_history")


def load() -> list[str]:
    """The entries, oldest first; unreadable lines are skipped."""
    import json

    try:
        with open(history_path(), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    entries = []
    for line in lines[-_ENTRIES:]:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, str):
            entries.append(entry)
    return entries


def append(text: str) -> None:
    """Add an entry; errors of the file system are ignored."""
    import json

    path = history_path()
    line = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False) + "\n"
    try:
        make_private(os.path.dirname(path))
        # One write: concurrent chats do not mix their lines.
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _O_NOFOLLOW, 0o600)
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

    from hermes.core.paths import write_private

    entries = load()
    while sum(map(len, entries)) > _BYTES // 4:
        entries = entries[len(entries) // 2 + 1 :]
    lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    write_private(path, "".join(lines).encode())


_O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
