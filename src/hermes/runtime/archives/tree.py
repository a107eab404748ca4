"""The files, folders and links that an archive makes, before they are all on disk."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hermes.runtime.archives.names import check_part, fold, refusal, split_name
from hermes.runtime.archives.values import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Collection

    from hermes.runtime.archives.values import ArchiveLimits, Kind, Member

_HOPS = 40


class Node:
    """One place in the tree; `path` as the archive spells it, slashes between components."""

    __slots__ = ("kind", "link", "path")

    def __init__(self, path: str, kind: Kind, link: str = "") -> None:
        self.path = path
        self.kind = kind
        self.link = link


class Tree:
    """Accepts each place once, and only below folders."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._nodes: dict[str, Node] = {}
        self._ends: dict[str, list[str] | None] = {}
        # Folders that are only implied by the names below them cost as much as named ones.
        self._most = limits.max_members * 2 + limits.max_depth

    def add(self, member: Member) -> str:
        """The path of a member, whose place is taken from now on; `""` for the top folder."""
        folder = member.kind == "folder"
        parts = split_name(member.path, folder=folder, depth=self._limits.max_depth)
        if not parts:
            return ""
        key = path = ""
        for part in parts[:-1]:
            key, path = _below(key, fold(part)), _below(path, part)
            self._take(key, Node(path, "folder"))
        key, path = _below(key, fold(parts[-1])), _below(path, parts[-1])
        kind: Kind = "file" if member.kind == "hardlink" else member.kind
        if not folder and key in self._nodes:
            raise refusal(member.path, f"is taken by {self._nodes[key].path!a} already")
        self._take(key, Node(path, kind, member.link))
        return path

    def hardlink(self, member: Member) -> str:
        """The path of the file, already in the tree, that a hard link is another name of."""
        parts = split_name(member.link, folder=False, depth=self._limits.max_depth)
        node = self._nodes.get(_key(parts))
        if node is None or node.kind != "file" or node.path != "/".join(parts):
            raise refusal(member.path, "is a hard link to no earlier file of the archive")
        return node.path

    def folders(self) -> list[str]:
        """Every folder, named or implied, the inner ones after the outer."""
        return [node.path for node in self._nodes.values() if node.kind == "folder"]

    def links(self) -> list[Node]:
        """Every symbolic link."""
        return [node for node in self._nodes.values() if node.kind == "symlink"]

    def check_links(self, target: str | None, left_out: Collection[str] = ()) -> None:
        """Raise unless every link leads to a place inside `target`, other links included.

        None is a target with nothing in it; links that are left out are not made.
        """
        for key, node in self._nodes.items():
            if node.kind == "symlink" and node.path not in left_out:
                self._end(key, node, target, _HOPS)

    def _take(self, key: str, node: Node) -> None:
        there = self._nodes.setdefault(key, node)
        if there.path != node.path:
            raise refusal(node.path, f"is the same as {there.path!a} on some systems")
        if there is not node and there.kind != "folder":
            raise refusal(node.path, f"is needed as a folder but is a {there.kind}")
        if len(self._nodes) > self._most:
            raise ArchiveError("the archive holds too many folders")

    def _end(self, key: str, node: Node, target: str | None, hops: int) -> list[str]:
        """Where a link leads in the end, as components below the target."""
        if key in self._ends:
            known = self._ends[key]
            if known is None:
                raise refusal(node.path, "is a link that leads back to itself")
            return known
        if hops == 0:
            raise refusal(node.path, "is a link through too many others")
        self._ends[key] = None
        at = node.path.split("/")[:-1]
        folder = True
        for part in self._steps(node):
            if part == "..":
                # What comes after a place that is not there yet is anyone's guess.
                if not at or not folder:
                    raise refusal(node.path, f"is a link out of the target: {node.link!a}")
                at = at[:-1]
                continue
            at = [*at, part]
            if folder:
                here = self._nodes.get(_key(at))
                if here is not None and here.kind == "symlink":
                    at = self._end(_key(at), here, target, hops - 1)
                folder = self._is_folder(at, target, node)
        self._ends[key] = at
        return at

    def _is_folder(self, at: list[str], target: str | None, link: Node) -> bool:
        node = self._nodes.get(_key(at))
        if node is not None or not at:
            return node is None or node.kind == "folder"
        if target is None:
            return False
        try:
            mode = os.lstat(os.path.join(target, *at)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        if stat.S_ISLNK(mode):
            # Where it leads is not the archive's to use, and may change.
            raise refusal(link.path, "is a link through a link that was there before")
        return stat.S_ISDIR(mode)

    def _steps(self, node: Node) -> list[str]:
        link = node.link
        if not link or link.startswith(("/", "\\", "~")) or link[1:2] == ":":
            raise refusal(node.path, f"is a link out of the target: {link!a}")
        steps = [part for part in link.split("/") if part not in ("", ".")]
        if len(steps) > self._limits.max_depth:
            raise refusal(node.path, "is a link with too long a path")
        for part in steps:
            if part != "..":
                check_part(part, node.path)
        return steps


def _below(above: str, part: str) -> str:
    return f"{above}/{part}" if above else part


def _key(parts: list[str]) -> str:
    return "/".join(map(fold, parts))
