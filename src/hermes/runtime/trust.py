"""Whose content may be loaded: folders that a person trusted, each by the digest of what it held.

Trust is given for exact content. A file added, changed or removed ends it, until it is given again.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from hermes.core.errors import ConfigError
from hermes.core.home import home_path, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator


class TrustStore:
    """The trusted folders of one person."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path or home_path("trust.json")

    def all(self) -> dict[str, str]:
        """Trusted places, each with the digest it was trusted at."""
        import json

        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self._path} can't be read: {error}") from None
        return {str(place): str(seen) for place, seen in found.items()}

    def trusts(self, place: str) -> bool:
        """Whether this place holds exactly what was trusted."""
        place = os.path.realpath(place)
        return self.all().get(place) == fingerprint(place)

    def give(self, place: str) -> str:
        """Trust what the place holds now; the digest."""
        place = os.path.realpath(place)
        if not os.path.exists(place):
            raise ConfigError(f"{place} does not exist")
        seen = fingerprint(place)
        self._write({**self.all(), place: seen})
        return seen

    def revoke(self, place: str) -> bool:
        """Take trust back; whether there was any."""
        place = os.path.realpath(place)
        known = self.all()
        if place not in known:
            return False
        del known[place]
        self._write(known)
        return True

    def _write(self, known: dict[str, str]) -> None:
        import json

        write_private(self._path, json.dumps(known, indent=2, sort_keys=True).encode())


def fingerprint(place: str) -> str:
    """A digest of every file below a place: names, kinds, links and content."""
    total = hashlib.sha256()
    for path in _files(place):
        total.update(f"{os.path.relpath(path, place)}\0".encode("utf-8", "surrogateescape"))
        if os.path.islink(path):
            total.update(b"link\0" + os.readlink(path).encode("utf-8", "surrogateescape"))
            # What a link leads to is part of what is trusted.
        if os.path.isfile(path):
            with open(path, "rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        total.update(b"\0")
    return total.hexdigest()


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted([*names, *(f for f in folders if os.path.islink(f"{folder}/{f}"))]):
            yield os.path.join(folder, name)
