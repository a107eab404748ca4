"""A listing in plain words: names by their kinds, how many, the largest and the newest."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.counting import number
from hermes.agent.providers.embedded.shortening import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# As many names of one kind as are told.
_NAMES = 30


def listed(data: dict[str, Any], _: Mapping[str, Any], about: str = "") -> str:
    """Names by their kinds, and how many of each."""
    tree = str(data.get("tree", ""))
    if not tree:
        return "The folder is empty: 0 files."
    kinds: dict[str, list[str]] = {}
    folders, sizes = [], []
    for path, size in paths_of(tree):
        if path.endswith("/"):
            folders.append(path)
            continue
        kinds.setdefault(os.path.splitext(path)[1] or "without an ending", []).append(path)
        sizes.append((path, size))
    lines = [number(int(data.get("files", 0)), "file") + f", {number(len(folders), 'folder')}"]
    if folders:
        lines[0] += f": {_some(folders)}"
    for kind, paths in sorted(kinds.items(), key=lambda one: -len(one[1])):
        lines.append(f"{len(paths)} {kind}: {_some(paths)}")
    sizes.sort(key=lambda one: -_bytes(one[1]))
    if len(sizes) > 1:
        # Of a folder with too many files to list, nothing is said about the others.
        among = f" of the first {len(sizes)} files" if data.get("next_offset") else ""
        largest = ", ".join(f"{path} {size}" for path, size in sizes[:3])
        lines.append(f"(The largest{among}: {largest})")
        newest = ", ".join(f"{path} {when}" for path, when in data.get("newest") or ())
        lines += [f"(The newest{among}, changed last: {newest})"] if newest else []
    return excerpt("\n".join(lines), about)


def paths_of(tree: str) -> Iterator[tuple[str, str]]:
    """The paths in a drawn tree, and what it says about each."""
    above: list[str] = []
    for line in tree.splitlines():
        level = (len(line) - len(line.lstrip())) // 2
        name, _, note = line.strip().partition("  ")
        del above[level:]
        yield "".join(above) + name, note
        if name.endswith("/"):
            above.append(name)


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMES} more" if len(paths) > _NAMES else ""
    return ", ".join(paths[:_NAMES]) + more


def _bytes(size: str) -> float:
    """How much `1.5K` or `20B` is."""
    match = re.fullmatch(r"([\d.]+)\s*([BKMGT])\w*", size)
    return float(match[1]) * 1024 ** "BKMGT".index(match[2]) if match else 0.0
