"""parse_patch: the files that a patch changes, whichever style it is written in."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.files.patches.envelope import BEGIN, SECTIONS, parse_envelope
from hermes.files.patches.unified import parse_unified
from hermes.files.patches.values import ADDED, PatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from hermes.files.patches.values import FilePatch

    Kind = Literal["write", "delete", "read"]


def parse_patch(text: str) -> list[FilePatch]:
    """The files that a patch changes, in its order; names are as the patch has them.

    Raises:
        EditError: The patch is empty, cut off or can't be read; the message has its line.
    """
    # Only line feeds end a line: a form feed or U+2028 is content.
    sent = text.removeprefix("\ufeff").split("\n")
    patches = _parsed([line.removesuffix("\r") for line in sent])
    for patch, end in zip(patches, [*(patch.line - 1 for patch in patches[1:]), None], strict=True):
        patch.returns = _has_returns(patch, sent, end)
    return patches


def _parsed(lines: list[str]) -> list[FilePatch]:
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise EditError(
            "the patch is empty; nothing was changed",
            hint="Send a unified diff, or a text from `*** Begin Patch` to `*** End Patch`.",
        )
    if lines[first].startswith(("```", "apply_patch <<")):
        first = _unwrapped(lines, first)
    if lines[first].strip() == BEGIN:
        return parse_envelope(lines, first)
    if lines[first].startswith(tuple(SECTIONS)):
        raise PatchError(first + 1, f"expected `{BEGIN}`, not `{lines[first][:80]}`")
    return parse_unified(lines, whole=lines[-1] == "")


def _has_returns(patch: FilePatch, sent: list[str], end: int | None) -> bool:
    """Whether the lines of a new file end with carriage returns, and the patch's own do not."""
    if patch.action != "add" or not patch.hunks or sent[patch.line - 1].endswith("\r"):
        return False
    hunk = patch.hunks[0]
    added = [line for line in sent[hunk.line - 1 : end] if line.startswith(ADDED)]
    ended = added[:-1] if hunk.new_bare else added
    return bool(ended) and all(line.endswith("\r") for line in ended)


def paths_of(patch_text: str) -> list[tuple[Kind, str]]:
    """What a patch would do to which paths; [] for one that can't be read and so does nothing."""
    try:
        patches = parse_patch(patch_text)
    except EditError:
        return []
    acts: list[tuple[Kind, str]] = []
    for patch in patches:
        if patch.action == "delete" or patch.move_to is not None:
            acts.append(("delete", patch.path))
        else:
            acts.append(("write", patch.path))
        if patch.move_to is not None:
            acts.append(("write", patch.move_to))
    return list(dict.fromkeys(acts))


def _unwrapped(lines: list[str], opening: int) -> int:
    """The first line of a patch in a Markdown fence or a shell's here-document.

    The lines of the wrapper are emptied, so that line numbers stay.
    """
    first = lines[opening]
    closing = "```" if first.startswith("```") else first.rsplit("<<", 1)[-1].strip(" -'\"\\")
    last = max(number for number, line in enumerate(lines) if line.strip())
    lines[opening] = ""
    if lines[last].strip() == closing:
        lines[last] = ""
    start = next((number for number, line in enumerate(lines) if line.strip()), None)
    if start is None:
        raise PatchError(opening + 1, "there is no patch inside")
    return start
