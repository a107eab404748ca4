"""The last snapshot of a task, remembered on disk from one run of Hermes to the next."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import NamedTuple

from hermes.core.home import home_path, write_private


class Saved(NamedTuple):
    """A snapshot, and the image that its sandbox had been started from."""

    image: str
    snapshot: str


class SavedSnapshots:
    """Of one task at one service."""

    def __init__(self, provider: str, task: str) -> None:
        key = sha256(task.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._path = home_path("sandboxes", f"{provider}-{key}.json")

    def last(self) -> Saved | None:
        """The newest one; None when there is none, or nothing legible."""
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            return Saved(str(found["image"]), str(found["snapshot"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, saved: Saved) -> None:
        """Remember a snapshot in place of the one before."""
        write_private(self._path, json.dumps(saved._asdict()).encode())
