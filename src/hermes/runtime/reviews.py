"""Review queue: calls stored until a person approves or rejects them.

    reviews/pending/ID.json    not run yet
    reviews/settled/ID.json    approved or rejected, with name and time

The id is a digest of the call, so a repeated call is stored once. Settling moves the file first, so
that two people cannot run the same call.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError, ToolError
from hermes.core.json_text import to_json
from hermes.core.paths import home_path, make_private, write_private

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from hermes.runtime.stages import CallState
    from hermes.safety.policy import Ruling

# A model that is told to write on and on must not fill the disk.
MOST = 500
_KEPT = 1_000


class ReviewError(HermesError):
    """A review can't be found or settled as asked."""


class Review:
    """One stored call, with the untrusted sources that the conversation had read.

    `changed` holds the files that it would write, each with the digest it had; `state` is
    `pending`, `approved` or `rejected`.
    """

    __slots__ = (
        "agent", "arguments", "at", "by", "changed", "front_door", "id", "kind", "session",
        "settled_at", "sources", "state", "tool", "turn", "workspace",
    )  # fmt: skip

    def __init__(self, **fields: Any) -> None:
        self.id: str = fields["id"]
        self.at: float = fields["at"]
        self.kind: str = fields["kind"]
        self.tool: str = fields["tool"]
        self.arguments: dict[str, Any] = fields["arguments"]
        self.sources: list[str] = fields["sources"]
        self.workspace: str = fields["workspace"]
        self.session: str = fields.get("session", "")
        self.turn: str = fields.get("turn", "")
        self.agent: str = fields.get("agent", "")
        self.front_door: str = fields.get("front_door", "")
        self.changed: dict[str, str] = fields.get("changed", {})
        self.state: str = fields.get("state", "pending")
        self.by: str = fields.get("by", "")
        self.settled_at: float = fields.get("settled_at", 0.0)

    def plain(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return {name: getattr(self, name) for name in self.__slots__}

    def outdated(self) -> list[str]:
        """Files that changed since the call was made."""
        return [place for place, seen in self.changed.items() if _digest(place) != seen]


class Reviews:
    """Review queue of one home folder, created on first use."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder

    @property
    def folder(self) -> str:
        """Where they are kept."""
        return self._folder or home_path("reviews")

    def hold(self, state: CallState, ruling: Ruling, sources: Sequence[str]) -> Review:
        """Put a call aside."""
        context = state.context
        writes = [
            place
            for (kind, _), place in (ruling.paths or {}).items()
            if kind in ("write", "delete")
        ]
        review = Review(
            id=_name(state.tool, state.arguments, context.workspace),
            at=time.time(),
            kind=ruling.keeps,
            tool=state.tool,
            arguments=state.arguments,
            sources=list(sources),
            workspace=context.workspace,
            session=context.session_id,
            turn=context.turn,
            agent=context.agent_path,
            front_door=context.front_door,
            changed={place: _digest(place) for place in writes},
        )
        if len(self._names("pending")) >= MOST:
            raise ToolError(
                f"{MOST} changes wait for review already; this one was neither done nor kept",
                hint="Go on without it, and tell the person.",
            )
        self._write("pending", review)
        return review

    def pending(self) -> list[Review]:
        """Pending reviews, oldest first."""
        return self._all("pending")

    def settled(self) -> list[Review]:
        """Settled reviews, oldest decision first."""
        return sorted(self._all("settled"), key=lambda review: review.settled_at)

    def find(self, name: str) -> Review:
        """The pending review of that id, or of the only one that begins so."""
        wanted = name.strip().casefold()
        matches = [id_ for id_ in self._names("pending") if wanted and id_.startswith(wanted)]
        if len(matches) != 1:
            several = f"{name!r:.40} may be any of {', '.join(matches[:5])}"
            raise ReviewError(
                several if matches else f"nothing that waits for review is called {name!r:.40}",
                hint="`hermes memory review` shows what waits.",
            )
        review = self._read("pending", matches[0])
        if review is None:
            raise ReviewError(f"{matches[0]} has just been settled by somebody else")
        return review

    def settle(self, review: Review, state: Literal["approved", "rejected"], by: str) -> None:
        """Settle a review; `ReviewError` when another process was faster."""
        old, new = self._path("pending", review.id), self._path("settled", review.id)
        make_private(os.path.dirname(new))
        try:
            os.replace(old, new)
        except FileNotFoundError:
            raise ReviewError(f"{review.id} has just been settled by somebody else") from None
        review.state, review.by, review.settled_at = state, by, time.time()
        self._write("settled", review)
        for gone in self.settled()[:-_KEPT]:
            os.unlink(self._path("settled", gone.id))

    def reopen(self, review: Review) -> None:
        """Have one wait again: carrying it out failed."""
        review.state, review.by, review.settled_at = "pending", "", 0.0
        self._write("pending", review)
        os.unlink(self._path("settled", review.id))

    def _all(self, state: str) -> list[Review]:
        reviews = [self._read(state, name) for name in self._names(state)]
        return sorted((one for one in reviews if one is not None), key=lambda one: one.at)

    def _names(self, state: str) -> list[str]:
        try:
            names = os.listdir(os.path.join(self.folder, state))
        except FileNotFoundError:
            return []
        return sorted(name[:-5] for name in names if name.endswith(".json"))

    def _path(self, state: str, name: str) -> str:
        return os.path.join(self.folder, state, f"{name}.json")

    def _read(self, state: str, name: str) -> Review | None:
        import json

        try:
            with open(self._path(state, name), encoding="utf-8") as file:
                return Review(**json.load(file))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReviewError(f"{self._path(state, name)} can't be read: {error}") from None

    def _write(self, state: str, review: Review) -> None:
        data = to_json(review.plain()).encode("utf-8", "surrogatepass")
        write_private(self._path(state, review.id), data)


def _name(tool: str, arguments: Any, workspace: str) -> str:
    import hashlib

    text = to_json([tool, arguments, workspace]).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:8]


def _digest(place: str) -> str:
    import hashlib

    try:
        with open(place, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
