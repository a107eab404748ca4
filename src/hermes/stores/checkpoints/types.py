"""Data types of the checkpoint store: authors, path states, changes, reports, errors."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes.core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.stores.checkpoints.path_state import Traits
    from hermes.stores.checkpoints.tree_walk import Folders

    Kind = Literal["absent", "file", "link", "folder", "special"]
    # Called with a line for people and how far the work is; `ToolContext.progress` fits.
    Progress = Callable[..., None]

# The digest of a file that was too large to read: what the system says of it.
BY_STATUS = "status:"


class CheckpointError(ToolError):
    """The store could not keep or restore a state."""


class Author(NamedTuple):
    """Origin of a change: session, turn, call, tool, agent, client."""

    session: str = ""
    turn: str = ""
    call: str = ""
    tool: str = ""
    agent: str = ""
    front_door: str = ""

    @property
    def described(self) -> str:
        """For people: the tool, and where it was called."""
        # Outside a conversation a call is a turn of its own.
        turn = "" if self.turn == self.call else self.turn
        named = (("call", self.call), ("turn", turn), ("session", self.session))
        where = ", ".join(f"{word} {value}" for word, value in named if value)
        who = f"{self.tool or 'something'}{f' of {self.agent}' if self.agent else ''}"
        return f"{who} ({where})" if where else who


class State(NamedTuple):
    """State of a path. `mode` and `traits` are None where they are unknown or unused."""

    kind: Kind
    digest: str = ""
    mode: int | None = None
    size: int = 0
    target: str = ""
    traits: Traits | None = None

    @property
    def readable(self) -> bool:
        """Whether the digest is of the bytes, so that the store has or can have them."""
        return self.kind == "file" and not self.digest.startswith(BY_STATUS)

    @property
    def described(self) -> str:
        """For people."""
        if self.kind == "absent":
            return "nothing"
        if self.kind == "link":
            return f"a link to {self.target}"
        if self.kind == "file":
            return f"a file of {self.size} bytes"
        return {"folder": "a folder", "special": "a pipe, socket or device"}[self.kind]


ABSENT = State("absent")


def digest_of(data: bytes) -> str:
    """The digest by which bytes are known here: SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def file_state(data: bytes, mode: int | None = None) -> State:
    """A file that holds `data`; without a mode, the one it has or the system gives."""
    return State("file", digest_of(data), mode, len(data))


def link_state(target: str) -> State:
    """A symbolic link."""
    return State("link", target=target)


def folder_state(mode: int | None = None) -> State:
    """A folder."""
    return State("folder", mode=mode)


class Planned(NamedTuple):
    """The state that a tool is about to create at a path."""

    place: str
    after: State


class Change(NamedTuple):
    """One recorded change of one place."""

    id: int
    at: float
    author: Author
    disk: str
    place: str
    before: State
    after: State
    # False for what was found after a command was cut off: others may have done it.
    certain: bool = True
    # True where only times changed, or which names are one file; not shown to people.
    quiet: bool = False


class Turn(NamedTuple):
    """Changes made together: a turn of a conversation, a single call, an undo."""

    id: int
    session: str
    name: str
    at: float
    tools: tuple[str, ...]
    places: int
    example: str
    undoes: str = ""


class Restored(NamedTuple):
    """A place that undo changed, or would change."""

    place: str
    was: State
    now: State
    disk: str = "local"


class Left(NamedTuple):
    """A path that undo left alone, and the reason; `difference` is the diff of a restore.

    `forcible` paths are restored by `force`.
    """

    place: str
    reason: str
    difference: str = ""
    disk: str = "local"
    forcible: bool = False


class UndoReport(NamedTuple):
    """Result of an undo. `undo_turn` names it, so that it can be undone itself."""

    session: str
    turn: str
    call: str
    restored: list[Restored]
    left: list[Left]
    already: int
    notes: list[str]
    undo_turn: str = ""
    dry_run: bool = False
    resumed: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing was left alone."""
        return not self.left


class PruneReport(NamedTuple):
    """Turns dropped to keep the limits, oldest first."""

    turns: list[Turn]
    folders: list[str]
    freed: int
    kept: int
    notes: list[str]


class Usage(NamedTuple):
    """How much the store holds."""

    bytes: int
    max_bytes: int
    turns: int
    changes: int
    contents: int
    oldest: float | None


class Snapshot:
    """A folder before a command; `notes` list its unprotected parts."""

    __slots__ = (
        "author", "files", "folders", "id", "later", "lock", "notes", "root", "stored", "watermark"
    )  # fmt: skip

    def __init__(self, root: str, author: Author, folders: Folders, notes: list[str]) -> None:
        self.root = root
        self.author = author
        self.folders = folders
        self.notes = notes
        self.files = sum(map(len, folders.values()))
        self.stored = 0
        # Files that are still to be read.
        self.later = 0
        self.id = 0
        self.watermark = 0
        # An open file that says by its lock that the command is still under way.
        self.lock: int | None = None
