"""Limits of archives: sizes, safe member names, the tree of members; errors and results."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Literal


if TYPE_CHECKING:
    Existing = Literal["refuse", "skip", "replace"]
    Kind = Literal["file", "folder", "symlink", "hardlink", "other"]

_MIB = 1024 * 1024


class ArchiveError(ToolError):
    """An archive was refused or can't be read; nothing was extracted."""


class ArchiveLimits:
    """Limits of an extraction; the ratio counts from `ratio_from` extracted bytes on."""

    __slots__ = (
        "max_bytes",
        "max_depth",
        "max_file_bytes",
        "max_members",
        "max_ratio",
        "ratio_from",
    )

    def __init__(
        self,
        *,
        max_bytes: int = 2048 * _MIB,
        max_members: int = 100_000,
        max_ratio: float = 200,
        ratio_from: int = 10 * _MIB,
        max_file_bytes: int = 1024 * _MIB,
        max_depth: int = 64,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_members = max_members
        self.max_ratio = max_ratio
        self.ratio_from = ratio_from
        self.max_file_bytes = max_file_bytes
        self.max_depth = max_depth


class Member:
    """One entry as the archive describes it; `path` and `link` are not checked yet."""

    __slots__ = ("kind", "link", "mode", "mtime", "path", "size")

    def __init__(
        self, path: str, kind: Kind, *, size: int, mode: int, mtime: float | None, link: str = ""
    ) -> None:
        self.path = path
        self.kind = kind
        self.size = size
        self.mode = mode
        self.mtime = mtime
        self.link = link

    def __repr__(self) -> str:
        return f"Member({self.path!r}, {self.kind!r}, size={self.size})"


class PlacedPath(NamedTuple):
    """A path that will be created or replaced, and its source in the staging folder.

    `drafted` is empty for a new parent folder of the target.
    """

    place: str
    drafted: str


class Extracted:
    """Result of an extraction: `paths` of files and links below `target`, in archive order.

    `skipped` and `replaced` are the files that existed before.
    """

    __slots__ = ("bytes", "paths", "replaced", "skipped", "target")

    def __init__(
        self,
        target: str,
        paths: list[str],
        size: int,
        *,
        skipped: Sequence[str] = (),
        replaced: Sequence[str] = (),
    ) -> None:
        self.target = target
        self.paths = paths
        self.bytes = size
        self.skipped = list(skipped)
        self.replaced = list(replaced)

    @property
    def files(self) -> int:
        """How many files and links there are."""
        return len(self.paths)

    def __repr__(self) -> str:
        return f"Extracted({self.target!r}, files={self.files}, bytes={self.bytes})"


# What a member may need beside its bytes: headers, long names, padding.
_OVERHEAD = 4096
_SLACK = 1024 * 1024


class Meter:
    """Counts bytes in, bytes out and members; raises as soon as one is too many."""

    __slots__ = ("_declared", "_members", "_packed", "_unpacked", "_watch", "limits")

    def __init__(self, limits: ArchiveLimits, watch: Callable[[int], object] | None = None) -> None:
        self.limits = limits
        # Told how many bytes of the file were taken so far; may raise to stop.
        self._watch = watch
        self._declared = 0
        self._members = 0
        self._packed = 0
        self._unpacked = 0

    def member(self, member: Member) -> None:
        """Count a member by its declared size, which its reader never exceeds."""
        limits = self.limits
        self._members += 1
        if self._members > limits.max_members:
            raise _too_much(f"more than {limits.max_members} members")
        if member.size > limits.max_file_bytes:
            raise _too_much(f"a file of more than {limits.max_file_bytes} bytes: {member.path!r}")
        self._declared += member.size
        if self._declared > limits.max_bytes:
            raise _too_much(f"more than {limits.max_bytes} bytes")

    def packed(self, size: int) -> None:
        """Count bytes taken from the archive file."""
        self._packed += size
        if self._watch is not None:
            self._watch(self._packed)

    def unpacked(self, size: int) -> None:
        """Count bytes that came out of it, headers and padding included."""
        limits = self.limits
        self._unpacked += size
        if self._unpacked > limits.max_bytes + _OVERHEAD * limits.max_members + _SLACK:
            raise _too_much(f"more than {limits.max_bytes} bytes")
        if self._unpacked > limits.ratio_from and self._unpacked > limits.max_ratio * self._packed:
            raise _too_much(f"bytes compressed more than {limits.max_ratio:g} to 1")


def _too_much(what: str) -> ArchiveError:
    return ArchiveError(
        f"the archive holds {what}", hint="Nothing was unpacked; it may be a decompression bomb."
    )


_LONGEST = 255
_DRIVE = re.compile(r"[A-Za-z]:")
# Windows opens a device for these whatever follows the first dot.
_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:[.:].*)?", re.I | re.S
)
# Control characters, line and paragraph separators, and what turns the writing direction around.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def split_name(name: str, *, folder: bool, depth: int) -> list[str]:
    """The components of a member's name; none for the top folder itself.

    A leading `./` and the closing slash of a folder are how ordinary archives are written.
    """
    if name.startswith("~"):
        raise refusal(name, "starts with `~`")
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        raise refusal(name, "is absolute")
    path = name
    if folder:
        path = path.removesuffix("/")
        if path == ".":
            return []
    parts = path.removeprefix("./").split("/")
    if len(parts) > depth:
        raise refusal(name, f"is more than {depth} folders deep")
    for part in parts:
        check_part(part, name)
    return parts


def check_part(part: str, name: str) -> None:
    """Raise unless a path component is valid on every system; `name` is for the message."""
    if part in ("", ".", ".."):
        raise refusal(name, f"has a component {part!r}")
    if _UNSEEN.search(part):
        raise refusal(name, "has control characters")
    if "\\" in part or (os.name == "nt" and ":" in part):
        raise refusal(name, "has a separator of another system")
    if part[-1] in ". ":
        raise refusal(name, "has a component that ends with a dot or a space")
    if _DEVICE.fullmatch(part):
        raise refusal(name, "is the name of a device on Windows")
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        raise refusal(name, "is not valid UTF-8") from None
    if size > _LONGEST:
        raise refusal(name, f"has a component of more than {_LONGEST} bytes")


def fold(part: str) -> str:
    """The same text for components that some file system takes for the same name."""
    if part.isascii():
        return part.lower()
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", part).casefold())
    # Some file systems skip characters that have no shape.
    return "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")


def refusal(name: str, why: str) -> ArchiveError:
    """The error for a name that can't be used."""
    shown = name if len(name) <= 200 else name[:200] + "…"
    return ArchiveError(f"the archive is refused: the name {shown!a} {why}")


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
        """Reserve and return the path of a member; `""` for the top folder."""
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
            end = self._ends[key]
            if end is None:
                raise refusal(node.path, "is a link that leads back to itself")
            return end
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
