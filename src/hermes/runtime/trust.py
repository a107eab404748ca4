"""Trust store: project folders whose content may be loaded, each pinned to a digest of that
content.
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
        if not isinstance(found, dict):
            raise ConfigError(f"{self._path} can't be read: it holds no places")
        return {str(place): str(seen) for place, seen in found.items()}

    def knows(self, place: str) -> bool:
        """Whether this path was ever trusted, with any content."""
        return os.path.realpath(place) in self.all()

    def trusts(self, place: str) -> bool:
        """Whether this path has exactly the trusted content."""
        place = os.path.realpath(place)
        return self.all().get(place) == fingerprint(place)

    def give(self, place: str) -> str:
        """Trust the present content; its digest."""
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
    """Digest of every file below a path: names, kinds, links and content.

    Links are followed. Bytecode files of Python do not count, so they must not be loaded from
    trusted folders.
    """
    total = hashlib.sha256()
    try:
        for name, kind, content in _files(place, "", frozenset()):
            for part in (os.fsencode(name), kind, content):
                total.update(b"%d:" % len(part) + part)
    except OSError as error:
        raise ConfigError(f"{error.filename or place} can't be read: {error.strerror}") from None
    return total.hexdigest()


def _files(path: str, name: str, above: frozenset[str]) -> Iterator[tuple[str, bytes, bytes]]:
    """Name, kind and content of everything at and below a path."""
    if os.path.islink(path):
        yield name, b"link", os.fsencode(os.readlink(path))
    if os.path.isdir(path):
        real = os.path.realpath(path)
        yield name, b"folder", b""
        if real not in above:
            for inner in sorted(os.listdir(path)):
                if inner != "__pycache__":
                    place = os.path.join(path, inner)
                    yield from _files(place, f"{name}/{inner}", above | {real})
    elif os.path.isfile(path):
        with open(path, "rb") as file:
            yield name, b"file", hashlib.file_digest(file, "sha256").digest()
    else:
        yield name, b"other", b""
