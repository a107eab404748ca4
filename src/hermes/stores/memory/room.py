"""Which entries could go, or become one, when a file is full: calls ready to be made."""

from __future__ import annotations

import time
from itertools import combinations
from typing import TYPE_CHECKING, Any

from hermes.stores.memory.blocks import newline_of, rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.stores.memory.blocks import Block

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
