"""parse_patch: detects the format of a patch; parser of the codex format (`*** Begin Patch`)."""

from __future__ import annotations

from hermes.core.errors import EditError
from hermes.text.patches.model import ADDED, CONTEXT, FilePatch, Hunk, Opening, PatchError
from hermes.text.patches.unified_format import parse_unified

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from hermes.text.patches.model import Action


BEGIN, _END = "*** Begin Patch", "*** End Patch"
_MOVE, _END_OF_FILE = "*** Move to:", "*** End of File"
SECTIONS: dict[str, Action] = {
    "*** Add File:": "add",
    "*** Update File:": "update",
    "*** Delete File:": "delete",
}
_EXPECTED = "`*** Add File: path`, `*** Update File: path` or `*** Delete File: path`"


def parse_envelope(lines: Sequence[str], first: int) -> list[FilePatch]:
    """The files of a patch whose `*** Begin Patch` is at an index; PatchError with its line."""
    reader = _Reader(lines, first + 1)
    patches = reader.read()
    for number in range(reader.place, len(lines)):
        if lines[number].strip():
            raise PatchError(number + 1, f"expected nothing behind `{_END}`")
    if not patches:
        raise PatchError(reader.place, f"the patch has no file; expected {_EXPECTED}")
    return patches


class _Reader:
    def __init__(self, lines: Sequence[str], place: int) -> None:
        self._lines = lines
        self.place = place

    def read(self) -> list[FilePatch]:
        """All files up to the end of the patch."""
        patches: list[FilePatch] = []
        while True:
            while self._sees("") and not self._lines[self.place].strip():
                self.place += 1
            line = self._next()
            if line.strip() == _END:
                return patches
            opening = next((known for known in SECTIONS if line.startswith(known)), None)
            if opening is None:
                raise PatchError(self.place, f"expected {_EXPECTED} or `{_END}`, not {_cut(line)}")
            patch = FilePatch(_name(line, opening, self.place), SECTIONS[opening], line=self.place)
            if patch.action == "add":
                self._read_content(patch)
            elif patch.action == "update":
                self._read_update(patch)
            patches.append(patch)

    def _next(self) -> str:
        if self.place >= len(self._lines):
            raise PatchError(
                len(self._lines),
                f"the patch is cut off: expected `{_END}`",
                hint="Send the whole patch again, or several smaller ones.",
            )
        self.place += 1
        return self._lines[self.place - 1]

    def _sees(self, opening: str) -> bool:
        return self.place < len(self._lines) and self._lines[self.place].startswith(opening)

    def _body(self, marks: str, expected: str) -> list[tuple[str, str]]:
        """Marked lines up to the next line of the patch's own.

        An empty line is one that lost its mark, unless nothing follows: then it only parts.
        """
        body: list[tuple[str, str]] = []
        blank = 0
        while self._sees("") and not self._sees("***") and not self._sees("@@"):
            line = self._next()
            if not line:
                blank += 1
                continue
            if line.startswith("\\ No newline"):
                continue  # the final line end of a file stays as it is
            if line[0] == "\t" and CONTEXT in marks:
                line = CONTEXT + line  # its mark was taken for indentation
            if line[0] not in marks:
                raise PatchError(self.place, f"expected {expected}, not {_cut(line)}")
            body += [(marks[0], "")] * blank
            body.append((line[0], line[1:]))
            blank = 0
        return body

    def _read_content(self, patch: FilePatch) -> None:
        hunk = Hunk(self.place + 1)
        hunk.lines = self._body(ADDED, "a line of the new file that starts with `+`")
        if self._sees("@@"):
            raise PatchError(self.place + 1, "a new file has `+` lines, and no `@@`")
        self._skip_end_of_file()
        if hunk.lines:
            patch.hunks.append(hunk)

    def _read_update(self, patch: FilePatch) -> None:
        if self._sees(_MOVE):
            patch.move_to = _name(self._next(), _MOVE, self.place)
        while self._sees("") and (not self._sees("***") or self._sees(_END_OF_FILE)):
            hunk = self._read_hunk()
            if hunk.lines:
                patch.hunks.append(hunk)
        if not patch.hunks and patch.move_to is None:
            raise PatchError(patch.line, f"`{patch.path}` has no change; expected `@@` and lines")

    def _read_hunk(self) -> Hunk:
        number = self.place + 1
        hunk = Hunk(number)
        while self._sees("@@"):
            opening = Opening(self._next())
            hunk.start, hunk.new_start = opening.start, opening.new_start
            if opening.heading and opening.start is None:
                hunk.headings.append(opening.heading)
        headed = self.place >= number
        hunk.lines = self._body(CONTEXT + "-+", "a line that starts with ` `, `-` or `+`")
        hunk.at_end = self._skip_end_of_file()
        if not hunk.changes and (hunk.lines or headed or hunk.at_end):
            raise PatchError(number, "a hunk has no line that starts with `-` or `+`")
        return hunk

    def _skip_end_of_file(self) -> bool:
        seen = self._sees(_END_OF_FILE)
        self.place += seen
        return seen


def _name(line: str, opening: str, number: int) -> str:
    name = line.removeprefix(opening).strip()
    if not name:
        raise PatchError(number, f"expected a path behind `{opening}`")
    return name


def _cut(line: str) -> str:
    return f"`{line[:80]}`" + ("…" if len(line) > 80 else "")


if TYPE_CHECKING:
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
    """Actions and paths of a patch; [] for one that can't be parsed and so changes nothing."""
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
