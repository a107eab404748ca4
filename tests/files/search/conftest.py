"""A small tree to search, and both engines to search it with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.environments.disk.local_disk import LocalDisk
from hermes.files.search.content import search_content
from hermes.files.search.query import read_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.files.search.content import Found

ENGINES = ("ripgrep", "python")


def make(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder; a name that ends in a slash is a folder."""
    for name, content in files.items():
        place = root / name
        if name.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def search(root: Path | str, pattern: str, /, *, engine: str, **options: Any) -> Found:
    """Search by one engine."""
    known = {name: options.pop(name) for name in ("literal", "ignore_case") if name in options}
    wanted = read_pattern(pattern, **known)
    return search_content(LocalDisk(), str(root), wanted, engine=engine, **options)  # type: ignore[arg-type]


def seen(found: Found) -> dict[str, Any]:
    """All of an answer, as plain values."""
    return {
        "counts": list(found.counts.items()),
        "lines": found.lines,
        "scanned": found.scanned,
        "skipped": {name: getattr(found.skipped, name) for name in type(found.skipped).__slots__},
        "withheld": found.withheld,
        "finished": found.finished,
    }


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    return str(request.param)
