"""`Memory`: one file of entries, edited by several processes and people; edits are merged.

The file as a person saved it wins. But an editor that was opened before our last changes saves a
file without them: when the newest entries are missing, all of them back to some change, and there
is new text too, those changes are applied again. A file that merely lost entries lost them on
purpose.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes.core.errors import ToolError
from hermes.core.paths import home_path, write_private
from hermes.stores.memory.blocks import (
    entries,
    newline_of,
    rendered,
    with_entry,
    with_replaced,
    without,
)
from hermes.stores.memory.versioned_file import (
    Version,
    Versions,
    exchange,
    folder_lock,
    read,
    read_settled,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    from hermes.stores.memory.blocks import Block

    Target = Literal["memory", "user"]

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
# In characters: both files are part of every system prompt.
LIMITS = {"memory": 6_000, "user": 3_000}
_ATTEMPTS = 100
# Similarity from which a new entry counts as an edited version of a missing one.
_EDITED = 0.85
_PREVIEW = 100
_PIECE_SIZES = (40, 80, 160)


class FullError(ToolError):
    """The file has no room; `ways_out` lists its entries and the calls that make room."""

    def __init__(self, file: str, over: int, limit: int, ways_out: dict[str, Any]) -> None:
        super().__init__(
            f"{file} has room for {limit:,} characters, and this is {over:,} too many; "
            "nothing was changed",
            hint="Send one of the calls: drop as it is, or merge with its content shortened.",
        )
        self.over = over
        self.ways_out = ways_out


class InjectionError(ToolError):
    """The text is a prompt injection: it gives instructions to its reader. `rule` is the kind."""

    def __init__(self, rule: str, description: str, excerpt: str) -> None:
        super().__init__(
            f"not remembered: {description} ({excerpt!r:.120})",
            hint="If the person wants it, write it down as a fact about them.",
        )
        self.rule = rule


class Change(NamedTuple):
    """Result of a change: size of the file now, and whether it is another one."""

    chars: int
    limit: int
    entries: int
    changed: bool


class Memory:
    """One of the two memory files; nothing is opened or created before it is needed."""

    def __init__(
        self, target: Target = "memory", *, folder: str | None = None, limit: int | None = None
    ) -> None:
        self.target = target
        self.file = FILES[target]
        self.folder = folder or home_path("memories")
        self.limit = LIMITS[target] if limit is None else limit
        self._versions = Versions(os.path.join(self.folder, "versions", self.file))

    @property
    def path(self) -> str:
        """Path of the file; a symbolic link is followed."""
        return os.path.realpath(os.path.join(self.folder, self.file))

    def text(self) -> str:
        """The file, after our changes that an editor overwrote were applied again."""
        if os.path.isdir(self._versions.folder):
            # Where nothing can be written, the file is simply read.
            with suppress(OSError):
                self._change(lambda text: text, "merge", "")
        return _decoded(read_settled(self.path, last=self._versions.latest()) or b"")

    def entries(self) -> list[str]:
        """The text of each entry, in the order of the file."""
        return _texts(self.text())

    def add(self, content: str, *, by: str = "") -> Change:
        """Add an entry, unless the file has it already."""
        content = checked(content)

        def change(text: str) -> str:
            if content in _texts(text):
                return text
            return self._within_limit(text, with_entry(text, content), content)

        return self._change(change, "add", by)

    def replace(self, old: Sequence[str], content: str, *, by: str = "") -> Change:
        """Replace one or more entries, each named by a piece of its text, by one entry."""
        content = checked(content)

        def change(text: str) -> str:
            blocks = self._blocks(text, old)
            return self._within_limit(text, with_replaced(text, blocks, content), content, blocks)

        return self._change(change, "replace", by)

    def remove(self, old: Sequence[str], *, by: str = "") -> Change:
        """Remove entries, each named by a piece of its text."""
        return self._change(lambda text: without(text, self._blocks(text, old)), "remove", by)

    def versions(self) -> list[Version]:
        """The changes whose versions are kept, oldest first; each can be undone by `restore`."""
        return self._versions.log()

    def restore(self, number: int, *, by: str = "") -> Change:
        """Restore the file as it was before a change; that is a change itself."""
        content = self._versions.content(number)
        if content is None:
            raise ToolError(f"{self.file} has no version {number}")
        return self._change(lambda _: _decoded(content), "restore", by)

    def _change(self, change: Callable[[str], str], action: str, by: str) -> Change:
        versions = self._versions
        with folder_lock(self.folder):
            ours = versions.latest()
            for _ in range(_ATTEMPTS):
                log = versions.log()
                late = list(versions.written_late(log))
                current = read_settled(self.path, last=ours)
                before = _merged(_decoded(ours), _decoded(current or b""), log)
                for position, data in late:
                    before = self._with_late(before, _decoded(data), log[position:])
                after = change(before)
                if self._write(current, ours, _encoded(after), action, by):
                    for position, data in late:
                        versions.acknowledge(log[position].number, data)
                    count = len(entries(after))
                    return Change(len(after), self.limit, count, changed=after != before)
        raise ToolError(
            f"{self.file} is being written by another program all the time",
            hint="Try again in a moment.",
        )

    def _write(
        self, current: bytes | None, ours: bytes, after: bytes, action: str, by: str
    ) -> bool:
        """Replace the file by a new version; False when it is no longer the `current` one."""
        before = current or b""
        if after == before:
            return True
        if read(self.path) != current:
            return False
        versions = self._versions
        number = versions.draft(after)
        draft = versions.path(number)
        versions.set_latest(after)
        if not exchange(draft, self.path, current):
            versions.set_latest(ours)
            # The draft was the file for an instant: an editor may have it open, and write to it.
            versions.append(number, "outside", after)
            return False
        if current is None:
            write_private(draft, b"")
        if ours != before:
            # The file was edited by others: our version before that is kept as well.
            versions.append(versions.draft(ours), "outside", ours)
        old, new = _texts(_decoded(before)), _texts(_decoded(after))
        versions.append(
            number,
            action,
            before,
            by=by,
            added=[text for text in new if text not in old],
            removed=[text for text in old if text not in new],
        )
        return True

    def _with_late(self, text: str, late: str, log: Sequence[Version]) -> str:
        """The text with the entries that an editor wrote into an earlier version.

        `log` begins with that version: entries which it had before, or which were removed since,
        are no new ones.
        """
        skipped = {*_texts(text), *(entry for version in log for entry in version.removed)}
        if len(log) > 1:
            # The next version is the file that replaced this one.
            skipped.update(_texts(_decoded(self._versions.content(log[1].number) or b"")))
        return _with_entries(text, [entry for entry in _texts(late) if entry not in skipped])

    def _within_limit(
        self, text: str, after: str, content: str, replaced: Sequence[Block] = ()
    ) -> str:
        over = len(after) - self.limit
        if over <= 0 or len(after) <= len(text):
            return after
        if len(rendered(content)) > self.limit:
            raise ToolError(
                f"{len(content):,} characters are too many for {self.file}, which has room "
                f"for {self.limit:,} in all",
                hint="Remember the gist; keep the rest in a file.",
            )
        added = {entry: version.at for version in self._versions.log() for entry in version.added}
        ways = _ways_out(
            self.target, entries(text), content,
            text=text, limit=self.limit, replaced=replaced, added=added,
        )  # fmt: skip
        raise FullError(self.file, over, self.limit, ways)

    def _blocks(self, text: str, pieces: Sequence[str]) -> list[Block]:
        blocks = dict.fromkeys(self._block(entries(text), piece) for piece in pieces)
        if not blocks:
            raise ToolError("old_text names no entry")
        return list(blocks)

    def _block(self, blocks: Sequence[Block], piece: str) -> Block:
        """The entry that contains a piece of text; whole matches first, then any."""
        folded = _folded(piece)
        if not folded:
            raise ToolError("old_text is empty", hint="Give a piece of the entry's text.")
        whole = [block for block in blocks if _folded(block.text) == folded]
        matches = whole or [block for block in blocks if folded in _folded(block.text)]
        if not matches:
            listed = f"Its entries: {_listed(blocks)}" if blocks else f"{self.file} is empty."
            raise ToolError(f"no entry of {self.file} has {piece!r:.120}", hint=listed)
        if len({block.text for block in matches}) > 1:
            raise ToolError(
                f"{len(matches)} entries of {self.file} have {piece!r:.120}",
                hint=f"Give more of the text: {_listed(matches)}",
            )
        return matches[0]


def checked(content: str) -> str:
    """The text without invisible characters; raises `InjectionError` for a prompt injection."""
    from hermes.safety.injection import find_planted
    from hermes.safety.sanitise import clean_text

    cleaned = "\n".join(line.rstrip() for line in clean_text(content).split("\n")).strip()
    if not cleaned:
        raise ToolError("there is nothing to remember", hint="Give the text as content.")
    for order in find_planted(cleaned):
        raise InjectionError(order.rule, order.description, cleaned[order.start : order.end])
    return cleaned


def _merged(ours: str, theirs: str, log: Sequence[Version]) -> str:
    """The file as others saved it, plus those changes of ours that they had not seen."""
    if theirs == ours:
        return theirs
    our_texts, their_texts = _texts(ours), _texts(theirs)
    missing = [text for text in our_texts if text not in their_texts]
    fresh = [text for text in their_texts if text not in our_texts]
    if not missing or not fresh:
        return theirs
    unseen, removed = _unseen(missing, their_texts, log)
    if len(unseen) == 1 and _is_edit(unseen[0], set(fresh) - removed):
        return theirs
    if unseen:
        stale = removed - set(our_texts)
        theirs = without(theirs, [block for block in entries(theirs) if block.text in stale])
    return _with_entries(theirs, unseen)


def _unseen(
    missing: Sequence[str], theirs: Sequence[str], log: Sequence[Version]
) -> tuple[list[str], set[str]]:
    """Entries added and removed lately, back to the newest added entry that the others have."""
    added: dict[str, None] = {}
    removed: set[str] = set()
    for version in reversed(log):
        if any(text in theirs for text in version.added):
            break
        added |= dict.fromkeys(text for text in version.added if text in missing)
        removed |= set(version.removed)
    return list(added)[::-1], removed


def _is_edit(text: str, fresh: Iterable[str]) -> bool:
    """Whether one of the new texts is this one with a few letters changed."""
    from difflib import SequenceMatcher

    return any(SequenceMatcher(None, text, new).ratio() > _EDITED for new in fresh)


def _ways_out(
    target: str,
    blocks: Sequence[Block],
    content: str,
    *,
    text: str,
    limit: int,
    replaced: Sequence[Block],
    added: Mapping[str, float],
) -> dict[str, Any]:
    """The entries, largest first, and tool calls that make room for the content.

    Args:
        target: The file, as the tool calls it.
        blocks: Its entries.
        content: The entry that does not fit.
        text: The file.
        limit: Its limit in characters.
        replaced: Entries that the content would replace.
        added: Times at which entries were added, where they are logged.
    """
    size = len(rendered(content, newline_of(text)))
    over = len(text) - sum(block.chars for block in replaced) + size - limit
    others = [block for block in blocks if block not in replaced]
    ways: dict[str, Any] = {
        "entries": [_preview(block, added) for block in sorted(blocks, key=lambda b: -b.chars)]
    }
    if dropped := _enough(others, over):
        ways["drop"] = _call(target, [*replaced, *dropped], content, blocks)
    if pair := _most_similar(others):
        gone = [*replaced, *pair]
        joined = "\n".join([*(block.text for block in pair), content])
        room = limit - len(text) + sum(block.chars for block in gone)
        most = room - (len(rendered(joined)) - len(joined))
        if most > 0:
            ways["merge"] = {
                "call": _call(target, gone, joined, blocks),
                "shorten_content_to": most,
            }
    return ways


def _preview(block: Block, added: Mapping[str, float]) -> dict[str, Any]:
    text = block.text[: _PREVIEW - 1] + "…" if len(block.text) > _PREVIEW else block.text
    preview: dict[str, Any] = {"chars": block.chars, "text": text}
    if block.text in added:
        preview["since"] = time.strftime("%Y-%m-%d", time.gmtime(added[block.text]))
    return preview


def _enough(blocks: Sequence[Block], over: int) -> list[Block]:
    """The smallest entry that makes enough room, or as few large ones as do."""
    fitting = [block for block in blocks if block.chars >= over]
    if fitting:
        return [min(fitting, key=lambda block: block.chars)]
    chosen: list[Block] = []
    for block in sorted(blocks, key=lambda block: -block.chars):
        chosen.append(block)
        if sum(block.chars for block in chosen) >= over:
            return chosen
    return []


def _most_similar(blocks: Sequence[Block]) -> Sequence[Block]:
    """The two entries that share most of their words, of the sixty largest."""
    largest = sorted(blocks, key=lambda block: -block.chars)[:60]
    words = {block: set(block.text.casefold().split()) for block in largest}

    def overlap(pair: tuple[Block, Block]) -> float:
        first, second = (words[block] for block in pair)
        return len(first & second) / max(1, len(first | second))

    return max(combinations(largest, 2), key=overlap, default=())


def _call(
    target: str, gone: Sequence[Block], content: str, blocks: Sequence[Block]
) -> dict[str, Any]:
    return {
        "action": "replace",
        "target": target,
        "old_text": [_unique_piece(block, blocks) for block in gone],
        "content": content,
    }


def _unique_piece(block: Block, blocks: Sequence[Block]) -> str:
    """A piece of an entry that no other entry has."""
    for size in _PIECE_SIZES:
        piece = block.text[:size].rstrip()
        if piece == block.text or sum(piece in other.text for other in blocks) == 1:
            return piece
    return block.text


def _texts(text: str) -> list[str]:
    return [block.text for block in entries(text)]


def _with_entries(text: str, contents: Iterable[str]) -> str:
    for content in contents:
        text = with_entry(text, content)
    return text


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _listed(blocks: Sequence[Block]) -> str:
    return "; ".join(f"{block.text:.60}".replace("\n", " ") for block in blocks[:20])


def _decoded(data: bytes) -> str:
    # Bytes that are no UTF-8 survive the round trip.
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
