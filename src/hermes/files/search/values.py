"""What a search is asked, and what an engine answers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import BinaryIO, Protocol

    from hermes.files.search.dialect import Pattern

    class Opens(Protocol):
        """Whatever files can be read from: a disk, or a way of reading one."""

        def open(self, place: str) -> BinaryIO:
            """A file for reading, positioned at its start."""
            ...


class Choice:
    """Which files are searched besides the plain ones."""

    __slots__ = ("binary", "hidden", "ignored")

    def __init__(
        self,
        *,
        hidden: bool = False,
        ignored: bool = False,
        binary: bool = False,
    ) -> None:
        self.hidden = hidden
        self.ignored = ignored
        self.binary = binary


class Skipped:
    """How many entries were left out, and why; a folder that was not entered counts as one."""

    __slots__ = ("binary", "hidden", "ignored", "large", "links", "unreadable")

    def __init__(self) -> None:
        self.hidden = self.ignored = self.binary = self.large = self.unreadable = self.links = 0


class Asked:
    """What to look for and where: all files below `root`, or only those of `among`."""

    __slots__ = ("above", "among", "choice", "most", "pattern", "root")

    def __init__(
        self,
        root: str,
        pattern: Pattern,
        choice: Choice,
        *,
        among: Collection[str] | None = None,
        most: bool = False,
        above: bool = True,
    ) -> None:
        self.root = root
        self.pattern = pattern
        self.choice = choice
        # Paths below the root.
        self.among = among
        # Whether that is most of what there is.
        self.most = most
        # Whether ignore files of the folders above have a say.
        self.above = above


class Tally:
    """How many lines match in each file that has any, by its path below the root."""

    __slots__ = ("binary", "counts", "finished", "scanned", "skipped")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        # The files that were left out as binary, as the engine names them.
        self.binary: list[str] = []
        self.scanned = 0
        self.skipped = Skipped()
        self.finished = True
