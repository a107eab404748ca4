"""`Memory`: one file of entries, edited by several processes and people; edits are merged."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import hermes.stores.memory.blocks as cut
from hermes.core.errors import ToolError
from hermes.core.home import home_path, write_private
from hermes.stores.memory.blocks import entries, newline_of, rendered, with_entry, without
from hermes.stores.memory.versioned_file import (
    Version,
    Versions,
    alone,
    digest,
    made,
    read,
    read_settled,
    swap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    from hermes.stores.memory.blocks import Block


_ALIKE = 0.85


def merged(ours: str, theirs: str, log: Sequence[Version]) -> str:
    """Their text, with those changes of ours that it was never shown."""
    if theirs == ours:
        return theirs
    left, found = _said(ours), _said(theirs)
    missing = [text for text in left if text not in found]
    fresh = [text for text in found if text not in left]
    if not missing or not fresh:
        return theirs
    unseen, gone = _unseen(missing, found, log)
    if len(unseen) == 1 and _worked_over(unseen[0], set(fresh) - gone):
        return theirs
    if unseen:
        back = gone - set(left)
        theirs = without(theirs, [block for block in entries(theirs) if block.text in back])
    return _with_all(theirs, unseen)


def with_late(text: str, late: str, version: Version) -> str:
    """The file with what was written into the state before it after we had read that."""
    known = {*_said(text), *version.went}
    return _with_all(text, [said for said in _said(late) if said not in known])


def _unseen(
    missing: Sequence[str], found: Sequence[str], log: Sequence[Version]
) -> tuple[list[str], set[str]]:
    """What came and what went lately, back to the first entry that the other side has."""
    came: dict[str, None] = {}
    gone: set[str] = set()
    for version in reversed(log):
        if any(text in found for text in version.came):
            break
        came |= dict.fromkeys(text for text in version.came if text in missing)
        gone |= set(version.went)
    return list(came)[::-1], gone


def _worked_over(text: str, fresh: Iterable[str]) -> bool:
    """Whether one of the new texts is this one, with a few letters changed."""
    from difflib import SequenceMatcher

    return any(SequenceMatcher(None, text, new).ratio() > _ALIKE for new in fresh)


def _with_all(text: str, contents: Iterable[str]) -> str:
    for content in contents:
        text = with_entry(text, content)
    return text


def _said(text: str) -> list[str]:
    return [block.text for block in entries(text)]


_SHOWN = 100
_HANDLES = (40, 80, 160)


def ways_out(
    target: str,
    blocks: Sequence[Block],
    content: str,
    *,
    text: str,
    limit: int,
    replaced: Sequence[Block] = (),
    ages: Mapping[str, float],
) -> dict[str, Any]:
    """The entries, largest first, and calls that make room for the content.

    Args:
        target: The file, as the tool calls it.
        blocks: Its entries.
        content: What there is no room for.
        text: The file as it is.
        limit: How many characters it may have.
        replaced: Entries that the content was to stand for.
        ages: When entries came, where that is known.
    """
    size = len(rendered(content, newline_of(text)))
    over = len(text) - sum(block.chars for block in replaced) + size - limit
    others = [block for block in blocks if block not in replaced]
    listed = [_listed(block, ages) for block in sorted(blocks, key=lambda b: -b.chars)]
    found: dict[str, Any] = {"entries": listed}
    dropped = _enough(others, over)
    if dropped:
        gone = [*replaced, *dropped]
        found["drop"] = _call(target, gone, content, blocks)
    pair = _alike(others)
    if pair:
        gone = [*replaced, *pair]
        whole = "\n".join([*(block.text for block in pair), content])
        room = limit - len(text) + sum(block.chars for block in gone)
        most = room - (len(rendered(whole)) - len(whole))
        if most > 0:
            found["merge"] = {
                "call": _call(target, gone, whole, blocks),
                "shorten_content_to": most,
            }
    return found


def _listed(block: Block, ages: Mapping[str, float]) -> dict[str, Any]:
    cut = block.text[: _SHOWN - 1] + "…" if len(block.text) > _SHOWN else block.text
    shown: dict[str, Any] = {"chars": block.chars, "text": cut}
    if block.text in ages:
        shown["since"] = time.strftime("%Y-%m-%d", time.gmtime(ages[block.text]))
    return shown


def _enough(blocks: Sequence[Block], over: int) -> list[Block]:
    """The smallest entry that makes enough room, or as few large ones as do."""
    fitting = [block for block in blocks if block.chars >= over]
    if fitting:
        return [min(fitting, key=lambda block: block.chars)]
    chosen: list[Block] = []
    for block in sorted(blocks, key=lambda block: -block.chars):
        chosen.append(block)
        if sum(one.chars for one in chosen) >= over:
            return chosen
    return []


def _alike(blocks: Sequence[Block]) -> Sequence[Block]:
    """The two entries that share most of their words, of the sixty largest."""
    largest = sorted(blocks, key=lambda block: -block.chars)[:60]
    words = {block: set(block.text.casefold().split()) for block in largest}
    return max(combinations(largest, 2), key=lambda two: _shared(words, *two), default=())


def _shared(words: Mapping[Block, set[str]], one: Block, other: Block) -> float:
    return len(words[one] & words[other]) / max(1, len(words[one] | words[other]))


def _call(
    target: str, gone: Sequence[Block], content: str, blocks: Sequence[Block]
) -> dict[str, Any]:
    return {
        "action": "replace",
        "target": target,
        "old_text": [_handle(block, blocks) for block in gone],
        "content": content,
    }


def _handle(block: Block, blocks: Sequence[Block]) -> str:
    """A piece of an entry that no other entry has."""
    for size in _HANDLES:
        piece = block.text[:size].rstrip()
        if piece == block.text or sum(piece in one.text for one in blocks) == 1:
            return piece
    return block.text


if TYPE_CHECKING:
    Target = Literal["memory", "user"]

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
# In characters: every conversation begins with them.
LIMITS = {"memory": 6_000, "user": 3_000}
_TRIES = 100


class FullError(ToolError):
    """There is no room; `ways_out` lists the entries and calls that make room."""

    def __init__(self, file: str, over: int, limit: int, ways_out: dict[str, Any]) -> None:
        super().__init__(
            f"{file} has room for {limit:,} characters, and this is {over:,} too many; "
            "nothing was changed",
            hint="Send one of the calls: drop as it is, or merge with its content shortened.",
        )
        self.over = over
        self.ways_out = ways_out


class OrdersError(ToolError):
    """The text gives orders to whoever reads it; `rule` says of which kind."""

    def __init__(self, rule: str, why: str, words: str) -> None:
        super().__init__(
            f"not remembered: {why} ({words!r:.120})",
            hint="If the person wants it, write it down as a fact about them.",
        )
        self.rule = rule


class Change(NamedTuple):
    """What came of a call: the size of the file now, and whether anything was new."""

    chars: int
    limit: int
    entries: int
    changed: bool


class Memory:
    """One of the two files; nothing is opened or made before it is needed."""

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
        """Where the file is; a link is followed."""
        return os.path.realpath(os.path.join(self.folder, self.file))

    def text(self) -> str:
        """The file as it is, after what an editor may have undone was done again."""
        if os.path.isdir(self._versions.folder):
            # Where nothing can be written, the file is simply read.
            with suppress(OSError):
                self._change(lambda text: text, "merge", "")
        return _decoded(read_settled(self.path) or b"")

    def entries(self) -> list[str]:
        """What is remembered, in the order of the file."""
        return [block.text for block in cut.entries(self.text())]

    def add(self, content: str, *, by: str = "") -> Change:
        """Remember one more thing; what is known already is not written twice."""
        content = wanted(content)

        def change(text: str) -> str:
            if any(block.text == content for block in cut.entries(text)):
                return text
            return self._fitting(text, cut.with_entry(text, content), content)

        return self._change(change, "add", by)

    def replace(self, old: Sequence[str], content: str, *, by: str = "") -> Change:
        """Let one entry stand for one or more others, each named by a piece of its text."""
        content = wanted(content)

        def change(text: str) -> str:
            found = self._found(text, old)
            return self._fitting(text, cut.with_replaced(text, found, content), content, found)

        return self._change(change, "replace", by)

    def remove(self, old: Sequence[str], *, by: str = "") -> Change:
        """Forget entries, each named by a piece of its text."""
        return self._change(lambda text: cut.without(text, self._found(text, old)), "remove", by)

    def versions(self) -> list[Version]:
        """Every change that is still known, oldest first; each can be taken back."""
        return self._versions.log()

    def restore(self, number: int, *, by: str = "") -> Change:
        """Bring back the file as it was before a change; that is a change like any other."""
        state = self._versions.state(number)
        if state is None:
            raise ToolError(f"{self.file} has no version {number}")
        return self._change(lambda _: _decoded(state), "restore", by)

    def _change(self, change: Callable[[str], str], action: str, by: str) -> Change:
        with alone(self.folder):
            ours = self._versions.latest()
            for _ in range(_TRIES):
                log = self._versions.log()
                seen = read_settled(self.path)
                before = merged(_decoded(ours), _decoded(seen or b""), log)
                before = self._with_late(before, log)
                after = change(before)
                if self._written(seen, ours, _encoded(after), action, by):
                    found = len(cut.entries(after))
                    return Change(len(after), self.limit, found, changed=after != before)
        raise ToolError(
            f"{self.file} is being written by another program all the time",
            hint="Try again in a moment.",
        )

    def _written(self, seen: bytes | None, ours: bytes, after: bytes, action: str, by: str) -> bool:
        """Put a new state in place; False when the file has changed since it was seen."""
        there = seen or b""
        if after == there:
            return True
        versions = self._versions
        number = versions.draft(after)
        draft = versions.path(number)
        versions.set_latest(after)
        if not swap(draft, self.path, seen):
            versions.set_latest(ours)
            if read(draft) == after:
                os.unlink(draft)
            else:
                # Written in the instant that our state was there: found as late text next time.
                versions.note(made(number, "outside", by="", before=after))
            return False
        if seen is None:
            write_private(draft, b"")
        if ours != there:
            # Somebody else wrote over what we had left: that stays to be had, too.
            versions.note(made(versions.draft(ours), "outside", by="", before=ours))
        came, went = _difference(_decoded(there), _decoded(after))
        versions.note(made(number, action, by=by, came=came, went=went, before=there))
        return True

    def _with_late(self, text: str, log: Sequence[Version]) -> str:
        """The text with what an editor wrote into the file's old state after it was swapped."""
        for version in log[-1:]:
            late = self._versions.state(version.number)
            if late is not None and digest(late) != version.digest:
                return with_late(text, _decoded(late), version)
        return text

    def _fitting(self, text: str, after: str, content: str, replaced: Sequence[Block] = ()) -> str:
        over = len(after) - self.limit
        if over <= 0 or len(after) <= len(text):
            return after
        if len(cut.rendered(content)) > self.limit:
            raise ToolError(
                f"{len(content):,} characters are too many for {self.file}, which has room "
                f"for {self.limit:,} in all",
                hint="Remember the gist; keep the rest in a file.",
            )

        ages = {said: version.at for version in self._versions.log() for said in version.came}
        ways = ways_out(
            self.target, cut.entries(text), content,
            text=text, limit=self.limit, replaced=replaced, ages=ages,
        )  # fmt: skip
        raise FullError(self.file, over, self.limit, ways)

    def _found(self, text: str, old: Sequence[str]) -> list[Block]:
        found: dict[Block, None] = {}
        for piece in old:
            found[self._one(cut.entries(text), piece)] = None
        if not found:
            raise ToolError("old_text names no entry")
        return list(found)

    def _one(self, blocks: Sequence[Block], piece: str) -> Block:
        """The entry that a piece of text belongs to."""
        asked = _folded(piece)
        if not asked:
            raise ToolError("old_text is empty", hint="Give a piece of the entry's text.")
        whole = [block for block in blocks if _folded(block.text) == asked]
        fitting = whole or [block for block in blocks if asked in _folded(block.text)]
        if not fitting:
            raise ToolError(
                f"no entry of {self.file} has {piece!r:.120}",
                hint=f"Its entries: {_store_listed(blocks)}"
                if blocks
                else f"{self.file} is empty.",
            )
        if len({block.text for block in fitting}) > 1:
            raise ToolError(
                f"{len(fitting)} entries of {self.file} have {piece!r:.120}",
                hint=f"Give more of the text: {_store_listed(fitting)}",
            )
        return fitting[0]


def wanted(content: str) -> str:
    """The text as it is remembered: nothing invisible, no orders to whoever reads it."""
    from hermes.safety.injection import find_orders
    from hermes.safety.sanitise import clean_text

    cleaned = "\n".join(line.rstrip() for line in clean_text(content).split("\n")).strip()
    if not cleaned:
        raise ToolError("there is nothing to remember", hint="Give the text as content.")
    for order in find_orders(cleaned):
        raise OrdersError(order.rule, order.description, cleaned[order.start : order.end])
    return cleaned


def _difference(before: str, after: str) -> tuple[list[str], list[str]]:
    """What entries came and which went."""
    old = [block.text for block in cut.entries(before)]
    new = [block.text for block in cut.entries(after)]
    known, left = set(old), set(new)
    return [text for text in new if text not in known], [text for text in old if text not in left]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _store_listed(blocks: Sequence[Block]) -> str:
    return "; ".join(f"{block.text:.60}".replace("\n", " ") for block in blocks[:20])


def _decoded(data: bytes) -> str:
    # What is no UTF-8 goes through unharmed.
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
