"""The entry points of installed packages, looked up anew only when an installation changed.

`importlib.metadata` costs more than the rest of a listing together, so its answer is remembered.
"""

from __future__ import annotations

import os
import sys

from hermes.core.log import Log

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.runtime.manifest import Manifest

log = Log("hermes.plugins")


def entry_points(group: str, manifest: Manifest) -> list[tuple[str, str]]:
    """Names and targets of a group's entry points, sorted."""
    key = _installed()
    known = manifest.extra.get(group)
    if isinstance(known, dict) and known.get("key") == key:
        return [(name, target) for name, target in known["found"]]
    found = sorted(_looked_up(group))
    manifest.note(group, {"key": key, "found": found})
    manifest.save()
    return found


def _looked_up(group: str) -> set[tuple[str, str]]:
    from importlib.metadata import distributions

    found: set[tuple[str, str]] = set()
    seen: set[str] = set()
    for package in distributions():
        try:
            name = package.metadata["Name"]
            if name not in seen:
                # The first one on the path is the one that is imported.
                seen.add(name)
                points = package.entry_points.select(group=group)
                found |= {(point.name, point.value) for point in points}
        except Exception:
            # A package whose description is damaged must not hide the others.
            log.info("the entry points of %s can't be read", package, exc_info=True)
    return found


def _installed() -> str:
    """Changes when a package is added to or removed from any place that imports come from."""
    # The first place is the script's own folder or the current one: nothing is installed there.
    places = [place for place in sys.path[1:] if os.path.isdir(place)]
    return repr([(place, os.stat(place).st_mtime_ns) for place in places])
